#include "runtime/client/op/lane.h"

#include <stddef.h>

static_assert(LANES_MAX % 64 == 0 && LANES_MAX < INT16_MAX, "a bit for each, and a number with room for none");

static bool is_taken(const struct lanes *l, int lane)
{
    return l->taken[lane / 64] >> (lane % 64) & 1;
}

static void give_back(struct lanes *l, int lane)
{
    const struct lane *n = &l->lane[lane];
    *(n->older ? &l->lane[n->older - 1].newer : &l->oldest) = n->newer;
    *(n->newer ? &l->lane[n->newer - 1].older : &l->newest) = n->older;
    l->taken[lane / 64] &= ~(UINT64_C(1) << (lane % 64));
    l->implicit[lane / 64] &= ~(UINT64_C(1) << (lane % 64));
}

/* The lowest that is free; else the one that was taken first. */
static int choose(struct lanes *l)
{
    for (int word = 0; word < LANE_WORDS; word++)
        if (~l->taken[word])
            return 64 * word + __builtin_ctzll(~l->taken[word]);
    int oldest = l->oldest - 1;
    give_back(l, oldest);
    return oldest;
}

/* Behind those that the lane has under way. */
static void line_up(struct lanes *l, int lane, struct lane_op *o)
{
    struct lane *n = &l->lane[lane];
    *o = (struct lane_op){.lane = lane, .waits = n->first, .number = ++n->number};
    *(n->first ? &n->last->behind : &n->first) = o;
    n->last = o;
}

void lanes_set_apart(struct lanes *l)
{
    l->apart = true;
    l->taken[0] |= 1; /* for good: it is none of those that may become the oldest */
}

void lanes_take_apart(struct lanes *l, struct lane_op *o)
{
    line_up(l, 0, o);
}

uint64_t lanes_draw_apart(struct lanes *l)
{
    return ++l->lane[0].number;
}

void lanes_take(struct lanes *l, struct lane_op *o, int rank, uint64_t *handle)
{
    int lane = choose(l);
    struct lane *n = &l->lane[lane];
    line_up(l, lane, o);
    n->rank = rank;
    n->before = handle ? *handle : 0;
    n->older = l->newest;
    n->newer = 0;
    *(n->older ? &l->lane[n->older - 1].newer : &l->oldest) = (int16_t)(lane + 1);
    l->newest = (int16_t)(lane + 1);
    l->taken[lane / 64] |= UINT64_C(1) << (lane % 64);
    if (rank >= 0)
        l->implicit[lane / 64] |= UINT64_C(1) << (lane % 64);
    if (handle)
        *handle = n->number * LANES_MAX + (uint64_t)lane;
}

bool lanes_are_free(const struct lanes *l)
{
    uint64_t apart = l->apart;
    for (int word = 0; word < LANE_WORDS; word++, apart = 0)
        if (l->taken[word] & ~apart)
            return false;
    return true;
}

void lanes_numbers(const struct lanes *l, uint64_t *numbers)
{
    for (int i = 0; i < LANES_MAX; i++)
        numbers[i] = l->lane[i].number;
}

/* What is set apart is in no order, and its numbers only grow: this process may have more. */
void lanes_go_on(struct lanes *l, const uint64_t *numbers)
{
    for (int i = 0; i < LANES_MAX; i++)
        if (numbers[i] > l->lane[i].number || !(l->apart && i == 0))
            l->lane[i].number = numbers[i];
}

struct lane_op *lanes_end(struct lanes *l, struct lane_op *o)
{
    struct lane *n = &l->lane[o->lane];
    struct lane_op *ahead = NULL;
    for (struct lane_op *p = n->first; p != o; p = p->behind)
        ahead = p;
    *(ahead ? &ahead->behind : &n->first) = o->behind;
    if (n->last == o)
        n->last = ahead;
    if (ahead || !n->first)
        return NULL;
    n->first->waits = false;
    return n->first;
}

void lanes_told_by_call(struct lanes *l, const struct lane_op *o)
{
    bool apart = l->apart && o->lane == 0;
    if (!apart && l->lane[o->lane].number == o->number && is_taken(l, o->lane))
        give_back(l, o->lane);
}

/* From the last one that the handle took to the first. One that another operation has taken meanwhile was the oldest
 * then, so those before it are no longer the handle's either. */
void lanes_told_by_handle(struct lanes *l, uint64_t handle)
{
    while (handle) {
        int lane = (int)(handle % LANES_MAX);
        if (l->lane[lane].number != handle / LANES_MAX || !is_taken(l, lane))
            return;
        handle = l->lane[lane].before;
        give_back(l, lane);
    }
}

void lanes_told_by_fence(struct lanes *l, int rank)
{
    for (int word = 0; word < LANE_WORDS; word++)
        for (uint64_t left = l->implicit[word]; left; left &= left - 1) {
            int lane = 64 * word + __builtin_ctzll(left);
            if (rank < 0 || l->lane[lane].rank == rank)
                give_back(l, lane);
        }
}
