#include "runtime/topo/transit.h"

#include <stdlib.h>
#include <string.h>

enum { STAYS, RING, CHAIN, LISTED }; /* marks of slots: to stay, to move in a ring, in a chain; and in a line already */

bool transit_init(struct transit *t, struct place *aim, struct load *load)
{
    size_t slots = (size_t)aim->slots, nodes = (size_t)aim->grid.nodes;
    *t = (struct transit){.aim = aim, .load = load};
    t->stands = malloc(slots * sizeof *t->stands);
    t->holder = malloc(nodes * sizeof *t->holder);
    t->lost_on = malloc(slots * sizeof *t->lost_on);
    t->next = malloc(slots * sizeof *t->next);
    t->lost_slot = malloc(nodes * sizeof *t->lost_slot);
    t->mark = malloc(slots);
    bool ok = t->stands && t->holder && t->lost_on && t->next && t->lost_slot && t->mark &&
              lines_init(&t->lines, aim) && place_plan_init(&t->plan, aim);
    t->done = ok ? malloc((size_t)t->lines.cap * sizeof *t->done) : NULL;
    if (!t->done) {
        transit_fini(t);
        return false;
    }
    memset(t->lost_slot, -1, nodes * sizeof *t->lost_slot);
    memset(t->holder, -1, nodes * sizeof *t->holder);
    memset(t->next, -1, slots * sizeof *t->next);
    memset(t->lost_on, -1, slots * sizeof *t->lost_on);
    for (int32_t s = 0; s < aim->slots; s++) {
        t->stands[s] = aim->node_of[s];
        t->holder[aim->node_of[s]] = s;
    }
    return true;
}

void transit_fini(struct transit *t)
{
    free(t->stands);
    free(t->holder);
    free(t->lost_on);
    free(t->next);
    free(t->lost_slot);
    free(t->mark);
    free(t->done);
    lines_fini(&t->lines);
    place_plan_fini(&t->plan);
    *t = (struct transit){0};
}

static inline bool has_aim(const struct place *p, int32_t slot)
{
    return p->slot_at[p->node_of[slot]] == slot;
}

static inline bool is_moved(const struct transit *t, int32_t slot)
{
    return has_aim(t->aim, slot) && t->aim->node_of[slot] != t->stands[slot];
}

static void load_lose(struct transit *t, int32_t slot)
{
    if (t->load)
        load_drop(t->load, slot);
}

static void load_gain(struct transit *t, int32_t slot)
{
    if (t->load)
        load_put(t->load, slot, t->aim->node_of[slot]);
}

/* Rule 1. */
static void node_died(struct transit *t, int32_t node)
{
    int32_t had = t->holder[node], aimed;
    if (place_fail(t->aim, node, &aimed) == PLACE_REPEAT)
        return;
    if (aimed >= 0)
        load_lose(t, aimed);
    if (had < 0)
        return;
    t->holder[node] = -1;
    t->stands[had] = -1;
    t->lost_on[had] = node;
}

/* Rule 3. */
static void node_came(struct transit *t, int32_t node)
{
    int32_t slot;
    if (place_return(t->aim, node, &slot) == PLACE_MOVED)
        load_gain(t, slot);
}

/* The dead node on which a slot that gives way is lost: the one it stood on, as that is where the others miss it. */
static int32_t where_lost(const struct transit *t, int32_t slot, int32_t for_slot)
{
    int32_t aim = t->aim->node_of[for_slot], stood = slot < 0 || t->stands[slot] >= 0 ? -1 : t->lost_on[slot];
    if (stood < 0 || t->aim->slot_at[stood] != PLACE_DEAD)
        return aim;
    return place_lost_on(t->aim, stood) < 0 ? stood : aim;
}

/* Rule 2, for a slot that may have lost its aim. */
static void stay(struct transit *t, int32_t slot)
{
    while (slot >= 0 && t->stands[slot] >= 0 && !has_aim(t->aim, slot)) {
        int32_t node = t->stands[slot], other = t->aim->slot_at[node];
        if (other >= 0)
            load_lose(t, other);
        place_take(t->aim, slot, node, where_lost(t, other, slot));
        load_gain(t, slot);
        slot = other;
    }
}

/* Rule 4. */
static void give_aims(struct transit *t, const struct place_method *m)
{
    struct place *p = t->aim;
    if (!p->homeless)
        return;
    for (int32_t s = 0; s < p->slots; s++)
        if (!has_aim(p, s) && !p->given_up[s])
            t->lost_slot[p->node_of[s]] = s;
    for (int32_t i = 0; i < p->ndead; i++) {
        int32_t node = p->dead_list[i], slot = t->lost_slot[node];
        if (slot < 0)
            continue;
        t->lost_slot[node] = -1;
        bool planned = place_plan(p, m, node, slot, &t->plan);
        t->bounded |= t->plan.bounded;
        if (!planned)
            continue;
        place_apply(p, &t->plan);
        if (t->load)
            load_move(t->load, &t->plan);
    }
}

static void add_move(struct transit *t, int32_t slot, int32_t from, int32_t to)
{
    if (t->next[slot] < 0)
        t->next[slot] = t->lines.count;
    t->mark[slot] = LISTED;
    lines_add(&t->lines, slot, from, to);
}

/* A slot whose destination will be free, and those behind it, each to the node that the one before leaves. */
static void add_chain(struct transit *t, int32_t slot)
{
    while (slot >= 0) {
        int32_t node = t->stands[slot];
        add_move(t, slot, node, t->aim->node_of[slot]);
        slot = node < 0 ? -1 : t->aim->slot_at[node];
    }
}

/* Slots that change places in a ring: the first steps aside, the others follow, and it comes back behind them. */
static void add_ring(struct transit *t, int32_t slot, int32_t aside)
{
    add_move(t, slot, t->stands[slot], aside);
    for (int32_t s = t->aim->slot_at[t->stands[slot]]; s != slot; s = t->aim->slot_at[t->stands[s]])
        add_move(t, s, t->stands[s], t->aim->node_of[s]);
    add_move(t, slot, aside, t->aim->node_of[slot]);
}

/* No node to step aside to: the slot stays, and who aimed at its node has its aim, which may be that one's own node. */
static void leave_ring(struct transit *t, int32_t slot)
{
    int32_t other = t->aim->slot_at[t->stands[slot]];
    load_lose(t, other);
    load_lose(t, slot);
    place_swap(t->aim, slot, other);
    load_gain(t, other);
    load_gain(t, slot);
}

/* The first node where nobody stands and nobody is to, else one where nobody stands; -1 none. */
static int32_t find_aside(const struct transit *t)
{
    int32_t second = -1;
    for (int32_t n = 0; n < t->aim->grid.nodes; n++) {
        if (t->holder[n] >= 0 || t->aim->slot_at[n] == PLACE_DEAD)
            continue;
        if (t->aim->slot_at[n] == PLACE_FREE)
            return n;
        second = second < 0 ? n : second;
    }
    return second;
}

/* All rings use one node to step aside to, one after another, and if a chain ends in it that chain is last: they are
 * one line. returns   that node, -1 none. */
static int32_t add_rings(struct transit *t)
{
    int32_t aside = find_aside(t);
    for (int32_t s = 0; s < t->aim->slots; s++)
        if (t->mark[s] == RING) {
            if (aside >= 0)
                add_ring(t, s, aside);
            else
                leave_ring(t, s);
        }
    if (aside >= 0 && t->aim->slot_at[aside] >= 0)
        add_chain(t, t->aim->slot_at[aside]);
    lines_end(&t->lines);
    return aside;
}

/* Who is to be moved, in a chain or in a ring? returns   are there rings? */
static bool mark_moves(struct transit *t)
{
    const struct place *p = t->aim;
    int32_t rest = 0;
    for (int32_t s = 0; s < p->slots; s++) {
        t->mark[s] = is_moved(t, s) ? RING : STAYS;
        rest += t->mark[s] == RING;
    }
    for (int32_t s = 0; s < p->slots && rest; s++) {
        if (t->mark[s] != RING || t->holder[p->node_of[s]] >= 0)
            continue;
        for (int32_t at = s; at >= 0; at = t->stands[at] < 0 ? -1 : p->slot_at[t->stands[at]]) {
            t->mark[at] = CHAIN;
            rest--;
        }
    }
    return rest > 0;
}

/* Rule 5. */
static void make_lines(struct transit *t)
{
    const struct place *p = t->aim;
    lines_clear(&t->lines);
    memset(t->next, -1, (size_t)p->slots * sizeof *t->next);
    int32_t taken = mark_moves(t) ? add_rings(t) : -1;
    for (int32_t s = 0; s < p->slots; s++)
        if (t->mark[s] == CHAIN && t->holder[p->node_of[s]] < 0 && p->node_of[s] != taken) {
            add_chain(t, s);
            lines_end(&t->lines);
        }
    memset(t->done, 0, (size_t)t->lines.count * sizeof *t->done);
    t->pending = t->lines.count;
}

int32_t transit_change(struct transit *t, const struct place_method *m, const int32_t *dead, int32_t ndead,
                       const int32_t *back, int32_t nback)
{
    t->bounded = false;
    for (int32_t i = 0; i < ndead; i++)
        node_died(t, dead[i]);
    for (int32_t i = 0; i < nback; i++)
        node_came(t, back[i]);
    for (int32_t s = 0; s < t->aim->slots && t->aim->homeless; s++)
        stay(t, s);
    give_aims(t, m);
    make_lines(t);
    return t->aim->homeless;
}

bool transit_give_up(struct transit *t, int32_t slot)
{
    return t->stands[slot] < 0 && place_give_up(t->aim, slot);
}

bool transit_take(struct transit *t, const struct place_plan *plan)
{
    if (t->pending)
        return false;
    t->bounded = false;
    place_apply(t->aim, plan);
    if (t->load)
        load_move(t->load, plan);
    make_lines(t);
    return true;
}

static bool is_next(const struct transit *t, int32_t slot, int32_t to)
{
    return slot >= 0 && slot < t->aim->slots && t->next[slot] >= 0 && t->lines.move[t->next[slot]].to == to;
}

/* Is there a move before it in its line, and not done? Only moves of one line have nodes in common. */
static bool waits(const struct transit *t, int32_t i)
{
    return i > 0 && t->lines.move[i - 1].from == t->lines.move[i].to && !t->done[i - 1];
}

enum transit_result transit_done(struct transit *t, int32_t slot, int32_t to)
{
    if (!is_next(t, slot, to))
        return TRANSIT_STALE;
    int32_t i = t->next[slot], from = t->stands[slot];
    if (waits(t, i))
        return TRANSIT_NOT_YET;
    if (from >= 0)
        t->holder[from] = -1;
    t->holder[to] = slot;
    t->stands[slot] = to;
    t->done[i] = true;
    t->pending--;
    t->next[slot] = -1;
    if (to != t->aim->node_of[slot]) /* aside: it goes on, later in the same line */
        for (i++; t->next[slot] < 0; i++)
            t->next[slot] = t->lines.move[i].slot == slot ? i : -1;
    return TRANSIT_OK;
}
