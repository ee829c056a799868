#include "runtime/client/group/witness.h"

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/progress.h"
#include "runtime/wire/complete.h"
#include "runtime/wire/system.h"

enum { MOST_NODES = KEEL_REDUNDANCY_TRIPLE };

static bool has(const int *node, int n, int which)
{
    for (int i = 0; i < n; i++)
        if (node[i] == which)
            return true;
    return false;
}

/* At most `most` nodes run ranks that take part, and another one lives. */
static bool are_few(const struct client *c, int most)
{
    const struct page *p = c->page;
    int node[MOST_NODES], n = 0;
    for (int r = 0; r < c->size; r++) {
        const struct page_rank *k = page_rank(p, r);
        int at = (int)(int32_t)(atomic_load(&k->where) >> 32);
        if (at < 0 || !atomic_load(&k->life) || has(node, n, at))
            continue;
        if (n == most)
            return false;
        node[n++] = at;
    }
    for (int m = 0; m < (int)p->members; m++)
        if (atomic_load(&page_node(p, m)->alive) && !has(node, n, m))
            return true;
    return false;
}

/* The page is of one view from the commit, which thaws it, to the next prepare. */
static bool is_to_be_written(struct client *c)
{
    const struct page *p = c->page;
    struct witness *w = &c->coll.witness;
    const int copies = (int)c->segments.most_copies, most = copies > 1 ? copies : 1;
    if (!atomic_load(&p->begins_again))
        return false;
    const uint64_t epoch = atomic_load(&p->epoch);
    if (atomic_load(&p->frozen))
        return true;
    if (w->view == epoch + 1 && w->most == most)
        return w->few;
    bool few = are_few(c, most);
    if (atomic_load(&p->frozen) || atomic_load(&p->epoch) != epoch)
        return true;
    w->view = epoch + 1;
    w->most = most;
    w->few = few;
    return few;
}

void witness_begin(struct client *c)
{
    struct witness *w = &c->coll.witness;
    if (c->fatal != KEEL_OK || !is_to_be_written(c))
        return;
    FAULT_POINT("coll.writing_down");
    w->any = true;
    w->value = complete_value(c->segments.instance, c->collectives);
    op_init(c, &w->op, OP_PUT, c->segments.system, c->rank, SYSTEM_COMPLETE_AT, sizeof w->value);
    w->op.src = (const uint8_t *)&w->value;
    w->op.patient = true; /* the collective is complete: there is nothing to go back to */
    progress_live(&c->progress, c->env.now(c->env.user));
    op_start(&w->op);
}

static bool is_over(void *of)
{
    struct witness *w = of;
    if (w->any && w->op.finished) { /* not well: all copies of the part have died together, or the job is lost */
        w->any = false;
        FAULT_POINT("coll.written_down");
    }
    return !w->any;
}

bool witness_is_over(struct client *c)
{
    if (!is_over(&c->coll.witness))
        client_progress(c);
    return is_over(&c->coll.witness);
}

void witness_await(struct client *c)
{
    struct witness *w = &c->coll.witness;
    struct wait wait = {.call = WAIT_BARRIER, .whom = waits_for_op, .arg = &w->op};
    if (is_over(w))
        return;
    client_wait(c, is_over, w, &wait);
    while (!is_over(w)) /* as in op_run: the job is lost, and operations end */
        client_progress(c);
}
