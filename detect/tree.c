/* The tree of a phase: ids in ascending order from the root on, without those in `out`. Each member has a part of them,
 * which begins with itself; it cuts the rest of its part into pieces of about equal size and passes the message on to
 * the first of each piece, which answers for all of it. So who is dead matters to those only in whose part it lies, and
 * a message names no others: ten thousand dead of a hundred thousand are told in shares of some hundred bytes. (The
 * coordinator is the lowest that it does not believe dead, so none are below the root.)
 *
 * Out are those declared dead before the index, whom everybody knows who takes part in it, those that the batch
 * declares, and those whom the root leaves out. Where some of the latter may live, a proposal names the same ones to
 * everybody (wave.c, adopt_left_out). */
#include "detect/member_internal.h"

#include <assert.h>
#include <stdlib.h>

enum { RUN_MIN = 16 }; /* so many dead in a row are worth a cut between them */

bool tree_has(const struct member *m, int id)
{
    return id >= m->wave.root && !idset_has(&m->wave.out, id);
}

static int rank_of(const struct member *m, int id) /* ids of the tree below id, and ids below the root */
{
    return id - idset_below(&m->wave.out, id);
}

int tree_pos(const struct member *m, int id)
{
    return rank_of(m, id) - rank_of(m, m->p.self);
}

int tree_id(const struct member *m, int pos)
{
    assert(pos >= 0 && pos < m->wave.size);
    return idset_nth_out(&m->wave.out, rank_of(m, m->p.self) + pos);
}

int tree_levels(const struct wave *r)
{
    int n = 0;
    for (int below = r->size - 1; below > 0; below = (below - 1) / FANOUT)
        n++;
    return n > 1 ? n : 1;
}

void tree_mark(struct member *m, int id, int end)
{
    int to = tree_pos(m, end);
    for (int p = tree_pos(m, id); p < to && p < m->wave.size; p++)
        bitset_add(m->wave.acked, p);
}

/* ------------------------------------------------------------------------------------------------ pieces */

/* The least index in `left` of an id that is >= from. */
static int left_at(const struct wave *r, int from)
{
    int lo = 0, hi = r->n_left;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (r->left[mid] < from)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int tree_named(const struct wave *r, const struct piece *piece, const int **first)
{
    int lo = piece ? left_at(r, piece->head) : 0, hi = piece ? left_at(r, piece->end) : r->n_left;
    *first = r->left ? r->left + lo : NULL; /* NULL: nobody was ever left */
    int n = hi - lo < DATAGRAM_LEFT_MAX ? hi - lo : DATAGRAM_LEFT_MAX;
    while (n > 0 && datagram_left_bytes(*first, n) > DATAGRAM_LEFT_BYTES)
        n = n * 3 / 4;
    return n;
}

static bool can_be_named(const struct wave *r, const struct piece *piece)
{
    const int *first;
    return tree_named(r, piece, &first) == left_at(r, piece->end) - left_at(r, piece->head);
}

/* Positions from .. to - 1, up to the last member: the dead behind it are in nobody's part. */
static struct piece piece_of(const struct member *m, int from, int to)
{
    return (struct piece){tree_id(m, from), tree_id(m, to - 1) + 1};
}

/* Where a long row of dead lies in it, there; else in the middle. A piece with dead in it has two members at least. */
static void cut(struct member *m, struct piece *piece, struct piece *rest)
{
    struct wave *r = &m->wave;
    int best = -1, most = RUN_MIN - 1, hi = left_at(r, piece->end);
    for (int i = left_at(r, piece->head), begun = i; i < hi; i++) {
        begun = i > 0 && r->left[i] == r->left[i - 1] + 1 && begun < i ? begun : i;
        if (i - begun + 1 > most) {
            most = i - begun + 1;
            best = r->left[i];
        }
    }
    int from = tree_pos(m, piece->head), to = tree_pos(m, piece->end - 1) + 1;
    int at =
        best >= 0 ? tree_pos(m, best) : (from + to) / 2; /* the position of a dead one is that of the next member */
    *rest = piece_of(m, at, to);
    *piece = piece_of(m, from, at);
}

void tree_split(struct member *m)
{
    struct wave *r = &m->wave;
    int below = r->size - 1;
    r->n_pieces = below < FANOUT ? below : FANOUT;
    for (int i = 0; i < r->n_pieces; i++)
        r->piece[i] =
            piece_of(m, 1 + (int)((int64_t)i * below / r->n_pieces), 1 + (int)((int64_t)(i + 1) * below / r->n_pieces));
    for (int i = 0; i < r->n_pieces && r->n_pieces < PIECES_MAX;) {
        if (can_be_named(r, &r->piece[i]))
            i++;
        else
            cut(m, &r->piece[i], &r->piece[r->n_pieces]), r->n_pieces++;
    }
}

/* ------------------------------------------------------------------------------------------------ who is in it */

bool tree_left_add(struct wave *r, int id)
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

static void sort_left(struct wave *r)
{
    int k = 0;
    if (r->n_left)
        qsort(r->left, (size_t)r->n_left, sizeof *r->left, by_id);
    for (int i = 0; i < r->n_left; i++)
        if (k == 0 || r->left[k - 1] != r->left[i])
            r->left[k++] = r->left[i];
    r->n_left = k;
}

static bool left_add_deaths(struct wave *r, const struct batch *batch)
{
    bool ok = true;
    for (int i = 0; i < batch->n; i++)
        for (int node = batch_next_death(&batch->e[i].event, -1); node >= 0;
             node = batch_next_death(&batch->e[i].event, node))
            ok = ok && tree_left_add(r, node);
    return ok;
}

/* Who was no member before the index, though our view may be a later one. Whom the index bears has to commit it, too.
 */
static bool gone_before(const struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch,
                        struct idset *gone)
{
    bool ok = idset_copy(gone, &m->roster.gone), commits = phase == PHASE_COMMIT || phase == PHASE_SETTLE;
    for (uint64_t s = index; s <= m->ledger.epoch; s++) {
        const struct batch *b = &m->ledger.log[s - 1]->batch;
        const struct view_event *birth = batch_birth(b);
        for (int i = 0; i < b->n; i++)
            for (int k = batch_next_death(&b->e[i].event, -1); k >= 0; k = batch_next_death(&b->e[i].event, k))
                ok = ok && idset_del(gone, k);
        if (birth && !(commits && s == index))
            ok = ok && idset_add(gone, (int)birth->a);
    }
    if (commits && index > m->ledger.epoch && batch && batch_birth(batch))
        ok = ok && idset_del(gone, (int)batch_birth(batch)->a);
    return ok;
}

bool tree_make_out(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch)
{
    struct wave *r = &m->wave;
    struct idset gone = {0};
    bool now = index > m->ledger.epoch && !(batch && batch_birth(batch)); /* the members are those of our view */
    bool ok = now || gone_before(m, phase, index, batch, &gone);
    ok = ok && (!batch || left_add_deaths(r, batch));
    sort_left(r);
    ok = ok && idset_union(&r->out, now ? &m->roster.gone : &gone, r->left, r->n_left);
    idset_free(&gone);
    int k = 0;
    for (int i = 0; i < r->n_left; i++)
        if (!batch || !batch_declares(batch, r->left[i]))
            r->left[k++] = r->left[i];
    r->n_left = k;
    return ok;
}

/* As root: whom the batch declares, who was declared since the index, and whom we believe dead. */
bool tree_leave_out(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch)
{
    struct wave *r = &m->wave;
    bool ok = true;
    r->n_left = 0;
    for (uint64_t s = index; s <= m->ledger.epoch; s++)
        ok = ok && left_add_deaths(r, &m->ledger.log[s - 1]->batch);
    for (int i = 0; i < m->verdicts.n; i++)
        ok = ok && tree_left_add(r, m->verdicts.deaths[i].node);
    return ok && tree_make_out(m, phase, index, batch);
}
