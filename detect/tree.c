/* The tree of a phase: the ids that are not in `out`, in ascending order starting at the root, are positions 0, 1, ...; position p has the children
 * 8p+1 .. 8p+8. It is computed, not built. Out are those declared dead before the slot, whom everybody knows who takes part in it, and those
 * whom the root leaves out, whom its messages name. */
#include "detect/member_internal.h"

#include <assert.h>
#include <stdlib.h>

bool tree_has(const struct member *m, int id)
{
    return !idset_has(&m->round.out, id);
}

static int rank_of(const struct member *m, int id) /* ids of the tree below id */
{
    return id - idset_below(&m->round.out, id);
}

int tree_pos(const struct member *m, int id)
{
    int d = rank_of(m, id) - rank_of(m, m->round.root);
    return d < 0 ? d + m->round.size : d;
}

int tree_id(const struct member *m, int pos)
{
    assert(m->round.size > 0);
    return idset_nth_out(&m->round.out, (rank_of(m, m->round.root) + pos) % m->round.size);
}

int tree_children(const struct round *r)
{
    int first = FANOUT * r->pos + 1;
    int n = r->size - first;
    return n < 0 ? 0 : n < FANOUT ? n : FANOUT;
}

int tree_levels(const struct round *r)
{
    int n = 0;
    for (int p = FANOUT * r->pos + 1; p < r->size; p = FANOUT * p + 1)
        n++;
    return n > 1 ? n : 1;
}

void tree_mark(struct member *m, int pos)
{
    struct round *r = &m->round;
    for (int lo = pos, hi = pos; lo < r->size; lo = FANOUT * lo + 1, hi = FANOUT * hi + FANOUT)
        for (int p = lo; p <= hi && p < r->size; p++)
            bitset_add(r->acked, p);
}

/* ------------------------------------------------------------------------------------------------ who is in it */

/* `out` for the slot, from `left`. False: out of memory. */
bool tree_make_out(struct member *m, uint64_t slot)
{
    struct round *r = &m->round;
    bool ok = idset_copy(&r->out, &m->gone);
    for (uint64_t s = slot; s <= m->epoch; s++) /* our view may be a later one */
        for (int i = 0; i < m->log[s - 1]->n; i++)
            if (m->log[s - 1]->events[i].type == MEMBER_NODE_DEAD)
                ok = ok && idset_del(&r->out, (int)m->log[s - 1]->events[i].a);
    for (int i = 0; i < r->n_left; i++)
        ok = ok && idset_add(&r->out, r->left[i]);
    return ok;
}

bool tree_left_add(struct round *r, int id)
{
    if (!grow((void **)&r->left, &r->cap_left, r->n_left + 1, sizeof *r->left))
        return false;
    r->left[r->n_left++] = id;
    return true;
}

static int by_id(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The deaths among events, into `left`. */
static bool left_add_deaths(struct round *r, const struct member_event *events, int n)
{
    bool ok = true;
    for (int i = 0; i < n; i++)
        if (events[i].type == MEMBER_NODE_DEAD)
            ok = ok && tree_left_add(r, (int)events[i].a);
    return ok;
}

static void sort_left(struct round *r)
{
    int k = 0;
    if (r->n_left)
        qsort(r->left, (size_t)r->n_left, sizeof *r->left, by_id);
    for (int i = 0; i < r->n_left; i++)
        if (k == 0 || r->left[k - 1] != r->left[i])
            r->left[k++] = r->left[i];
    r->n_left = k;
}

/* As root: whom the batch declares, who was declared since the slot, and whom we believe dead, as many as a message can name. Others
 * believed dead stay in the tree, and are not waited for. */
bool tree_leave_out(struct member *m, uint64_t slot, const struct batch *batch)
{
    struct round *r = &m->round;
    for (int most = m->n_deaths < WIRE_LEFT_MAX ? m->n_deaths : WIRE_LEFT_MAX;; most = most * 3 / 4) {
        bool ok = true;
        r->n_left = 0;
        for (int i = 0; batch && i < batch->n; i++)
            ok = ok && left_add_deaths(r, &batch->e[i].event, 1);
        for (uint64_t s = slot; s <= m->epoch; s++)
            ok = ok && left_add_deaths(r, m->log[s - 1]->events, m->log[s - 1]->n);
        for (int i = 0; i < most; i++)
            ok = ok && tree_left_add(r, m->deaths[i].node);
        sort_left(r);
        if (!ok)
            return false;
        if (most == 0 || (r->n_left <= WIRE_LEFT_MAX && wire_left_bytes(r->left, r->n_left) <= WIRE_LEFT_BYTES))
            return tree_make_out(m, slot);
    }
}
