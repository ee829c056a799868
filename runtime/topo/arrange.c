/* From one map to another: in which order the slots that change their nodes can move, so that every destination is free
 * when its turn comes. Slots that wait for each other's nodes form chains, which end in a free node and move from that
 * end on, and rings, of which one slot has to step aside to a free node first. */
#include "runtime/topo/place.h"

enum { TODO = -1, DONE = -2, CHAIN = -3 }; /* marks; from 0 up: the slot that waits for this one's node */

static void push(struct place_plan *plan, int32_t slot, int32_t from, int32_t to)
{
    plan->moves[plan->count++] = (struct place_move){.slot = slot, .from = from, .to = to};
}

/* From slot r on, follow who has to make room for whom, while those are in the given state; marks remember who waits.
 * returns the last of them, and whether that one waits for r: a ring. */
static int32_t follow_chain(int32_t *mark, const struct place *p, const int32_t *to, int32_t r, int32_t state,
                            bool *ring)
{
    int32_t last = r, next;
    mark[r] = r;
    while ((next = p->slot_at[to[last]]) >= 0 && mark[next] == state) {
        mark[next] = last;
        last = next;
    }
    *ring = next == r;
    return last;
}

static void mark_chain(int32_t *mark, int32_t last)
{
    for (int32_t at = last, waiting;; at = waiting) {
        waiting = mark[at];
        mark[at] = CHAIN;
        if (waiting == at)
            return;
    }
}

/* Move the chain that ends with last, from its end; leaves out last itself when skip is set. */
static void push_chain(int32_t *mark, const struct place *p, const int32_t *to, int32_t last, bool skip,
                       struct place_plan *plan)
{
    for (int32_t at = last, waiting;; at = waiting) {
        waiting = mark[at];
        mark[at] = DONE;
        if (!(skip && at == last))
            push(plan, at, p->node_of[at], to[at]);
        if (waiting == at)
            return;
    }
}

/* Slots that change places in a ring: one of them steps aside to a free node until the others have moved. */
static void push_ring(int32_t *mark, const struct place *p, const int32_t *to, int32_t last, int32_t aside,
                      struct place_plan *plan)
{
    push(plan, last, p->node_of[last], aside);
    push_chain(mark, p, to, last, true, plan);
    push(plan, last, aside, to[last]);
}

void place_arrange_init(const struct place *p, int32_t *mark)
{
    for (int32_t r = 0; r < p->slots; r++)
        mark[r] = DONE;
}

/* Rings go first: a node to step aside to is free as long as the failed node's slot has none. */
bool place_arrange(const struct place *p, const int32_t *slots, int32_t n, const int32_t *to, int32_t *mark,
                   struct place_plan *plan)
{
    bool ring;
    if (!p->nfree)
        return false;
    plan->count = 0;
    for (int32_t i = 0; i < n; i++)
        if (to[slots ? slots[i] : i] != p->node_of[slots ? slots[i] : i])
            mark[slots ? slots[i] : i] = TODO;
    for (int32_t i = 0; i < n; i++) {
        int32_t r = slots ? slots[i] : i;
        if (mark[r] != TODO)
            continue;
        int32_t last = follow_chain(mark, p, to, r, TODO, &ring);
        if (ring)
            push_ring(mark, p, to, last, p->free_list[0], plan);
        else
            mark_chain(mark, last);
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t r = slots ? slots[i] : i;
        if (mark[r] == CHAIN)
            push_chain(mark, p, to, follow_chain(mark, p, to, r, CHAIN, &ring), false, plan);
    }
    return true;
}
