/* What tests see of maps and of slots on their way: whether all parts of one agree, and a number by which two are
 * compared. */
#ifndef KEEL_TESTS_LIB_TOPO_LOOK_H
#define KEEL_TESTS_LIB_TOPO_LOOK_H

#include "runtime/topo/transit.h"

/* Numbers that tell two states apart, the same on all machines: the finaliser of splitmix64 over what was before and
 * the next value. */
static inline uint64_t digest_add(uint64_t sum, int64_t value)
{
    uint64_t z = (sum ^ (uint64_t)value) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint64_t digest_add_list(uint64_t sum, const int32_t *list, int32_t n)
{
    sum = digest_add(sum, n);
    for (int32_t i = 0; i < n; i++)
        sum = digest_add(sum, list[i]);
    return sum;
}

/* Is the map whole: every slot on its own live node, the free list exact, counters right? */
static inline bool look_place_valid(const struct place *p)
{
    int32_t dead = 0, nfree = 0, homeless = 0;
    for (int32_t n = 0; n < p->grid.nodes; n++) {
        int32_t r = p->slot_at[n];
        if (r == PLACE_DEAD)
            dead++;
        else if (r == PLACE_FREE) {
            nfree++;
            if (p->free_pos[n] >= p->nfree || p->free_list[p->free_pos[n]] != n)
                return false;
        } else if (r < 0 || r >= p->slots || p->node_of[r] != n)
            return false;
    }
    for (int32_t r = 0; r < p->slots; r++)
        if (p->slot_at[p->node_of[r]] != r) {
            if (p->slot_at[p->node_of[r]] != PLACE_DEAD && !p->given_up[r])
                return false;
            homeless++;
        }
    return dead == p->ndead && nfree == p->nfree && homeless == p->homeless &&
           dead + nfree + p->slots - homeless == p->grid.nodes;
}

/* Of everything that decides what comes next: grid, map, who is dead in which order, the free nodes, the sides that 0D
 * remembers. Equal events in equal order give equal numbers. Methods with a state of their own (balance.h) are not in
 * it. */
static inline uint64_t look_place_digest(const struct place *p)
{
    uint64_t sum = digest_add(0, p->grid.ndims);
    for (int d = 0; d < p->grid.ndims; d++) {
        sum = digest_add(sum, p->grid.size[d]);
        sum = digest_add(sum, p->grid.torus[d]);
        sum = digest_add(sum, p->slot_grid.size[d]);
    }
    sum = digest_add_list(sum, p->node_of, p->slots);
    sum = digest_add_list(sum, p->dead_list, p->ndead);
    sum = digest_add_list(sum, p->free_list, p->nfree);
    for (int32_t i = 0; i < p->grid.nodes * p->grid.ndims; i++)
        sum = digest_add(sum, p->last_side[i]);
    for (int32_t r = 0; r < p->slots; r++)
        if (p->given_up[r])
            sum = digest_add(sum, r);
    return sum;
}

static inline bool look_move_valid(const struct transit *t, int32_t i)
{
    const struct place_move *m = &t->lines.move[i];
    const struct place *p = t->aim;
    if (t->done[i])
        return true;
    bool first = t->next[m->slot] == i;
    return p->slot_at[m->to] != PLACE_DEAD && (m->from < 0 || p->slot_at[m->from] != PLACE_DEAD) &&
           (!first || m->from == t->stands[m->slot]) && (m->to == p->node_of[m->slot] || first);
}

/* Do now, aim and moves agree, and does no move begin or end where it must not? */
static inline bool look_transit_valid(const struct transit *t)
{
    const struct place *p = t->aim;
    int32_t held = 0, standing = 0, pending = 0;
    if (!look_place_valid(p))
        return false;
    for (int32_t n = 0; n < p->grid.nodes; n++) {
        int32_t s = t->holder[n];
        held += s >= 0;
        if (s >= 0 && (t->stands[s] != n || p->slot_at[n] == PLACE_DEAD))
            return false;
    }
    for (int32_t s = 0; s < p->slots; s++) {
        standing += t->stands[s] >= 0;
        bool aims = p->slot_at[p->node_of[s]] == s, moved = aims && p->node_of[s] != t->stands[s];
        if ((t->stands[s] >= 0 && !aims) || moved != (t->next[s] >= 0))
            return false;
    }
    for (int32_t i = 0; i < t->lines.count; i++) {
        pending += !t->done[i];
        if (!look_move_valid(t, i))
            return false;
    }
    return held == standing && pending == t->pending;
}

static inline uint64_t look_transit_digest(const struct transit *t)
{
    uint64_t sum = digest_add_list(look_place_digest(t->aim), t->stands, t->aim->slots);
    for (int32_t s = 0; s < t->aim->slots; s++)
        sum = digest_add(sum, t->stands[s] < 0 ? t->lost_on[s] : -1);
    return sum;
}
#endif
