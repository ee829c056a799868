/* What a plan changes on the links. Most of what moving slots take away is there again afterwards, so messages are
 * paired, an old one with a new one, and only the links in which the two differ are touched:
 *   - a message to or from a slot that stays: with itself. After a step aside it has one link more or less;
 *   - a message between two slots that move: with that of the slot which stood on the sender's new node before. In a
 *     slide that one went to where the new one goes, and nothing is left to do.
 * In a large plan most slots move together with most of their peers. Which of them do is looked up once for each mover;
 * where the slot before and the slot now have the same ones at the same sides, their messages need not be paired. */
#include <stdlib.h>
#include <string.h>

#include "runtime/topo/load_route.h"

/* One message more or less on the links that leave the nodes with coordinates low .. high-1 of a line along d upwards,
 * or those one further downwards. node is on the line. */
static inline void cells(const struct place *p, struct load_phase *ph, int32_t node, int d, int dir, int low, int high,
                         int delta)
{
    const struct grid *g = &p->grid;
    int32_t first = node + (low + dir - p->coord[node][d]) * g->stride[d], per = 2 * g->ndims * g->stride[d];
    int32_t link = grid_link(g, first, d, dir);
    for (int c = low; c < high; c++, link += per)
        load_link_change(ph, link, delta);
}

static inline int smaller(int a, int b)
{
    return a < b ? a : b;
}

static inline int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Two stretches of the same line in the same direction, without going round: from[i] to to[i]. */
static inline void line_change(const struct place *p, struct load_phase *ph, int32_t node, int d, const int from[2],
                               const int to[2])
{
    int dir = from[0] < to[0] ? GRID_UP : GRID_DOWN;
    int low0 = smaller(from[0], to[0]), high0 = larger(from[0], to[0]);
    int low1 = smaller(from[1], to[1]), high1 = larger(from[1], to[1]);
    cells(p, ph, node, d, dir, low0, smaller(high0, low1), -1);
    cells(p, ph, node, d, dir, larger(low0, high1), high0, -1);
    cells(p, ph, node, d, dir, low1, smaller(high1, low0), 1);
    cells(p, ph, node, d, dir, larger(low1, high0), high1, 1);
}

/* The route from a[0] to b[0] goes, that from a[1] to b[1] comes. returns   hops more. */
static always_inline int grid_change(const struct place *p, struct load_phase *ph, const int32_t a[2],
                                     const int32_t b[2], int ndims)
{
    const struct grid *g = &p->grid;
    const int16_t *ca[2] = {p->coord[a[0]], p->coord[a[1]]}, *cb[2] = {p->coord[b[0]], p->coord[b[1]]};
    unsigned starts = 0, ends = 0; /* dimensions in which they differ */
    int hops = 0;
    for (int d = 0; d < ndims; d++) {
        starts |= (unsigned)(ca[0][d] != ca[1][d]) << d;
        ends |= (unsigned)(cb[0][d] != cb[1][d]) << d;
    }
    int32_t node[2] = {a[0], a[1]};
    for (int d = 0; d < ndims; d++) {
        bool line = !(ends & ((1u << d) - 1)) && !(starts >> (d + 1)); /* are both on the same line here? */
        if (!line || (starts | ends) >> d & 1) {
            int from[2] = {ca[0][d], ca[1][d]}, to[2] = {cb[0][d], cb[1][d]}, off[2];
            bool straight = true;
            for (int i = 0; i < 2; i++) {
                off[i] = grid_offset(g, d, from[i], to[i]);
                straight = straight && off[i] == to[i] - from[i];
                hops += i ? abs(off[i]) : -abs(off[i]);
            }
            if (line && straight && ((off[0] > 0 && off[1] > 0) || (off[0] < 0 && off[1] < 0)))
                line_change(p, ph, node[0], d, from, to);
            else
                for (int i = 0; i < 2; i++)
                    load_stretch(p, ph, node[i], d, from[i], off[i], i ? 1 : -1);
        }
        for (int i = 0; i < 2; i++)
            node[i] += (cb[i][d] - ca[i][d]) * g->stride[d];
    }
    return hops;
}

static void change(struct load *l, int32_t phase, int32_t a0, int32_t b0, int32_t a1, int32_t b1)
{
    if (l->net.tree.nodes) {
        load_message(l, phase, a0, b0, -1);
        load_message(l, phase, a1, b1, 1);
        return;
    }
    const int32_t a[2] = {a0, a1}, b[2] = {b0, b1};
    if (l->place->grid.ndims == 3) /* the loops unrolled */
        l->hops += grid_change(l->place, &l->phase[phase], a, b, 3);
    else if (l->place->grid.ndims == 2)
        l->hops += grid_change(l->place, &l->phase[phase], a, b, 2);
    else
        l->hops += grid_change(l->place, &l->phase[phase], a, b, l->place->grid.ndims);
}

static inline bool moves(const struct load *l, int32_t slot)
{
    return l->mover[slot].stamp == l->now;
}

static inline bool sent(const struct load *l, int32_t slot)
{
    return l->mover[slot].was >= 0 && (l->convention == LOAD_ALL || l->mover[slot].was == l->place->home[slot]);
}

static inline bool sends(const struct load *l, int32_t slot)
{
    return !l->absent[slot] && (l->convention == LOAD_ALL || l->at[slot] == l->place->home[slot]);
}

/* A message between a mover and a slot that stays: old and new say whether it was and is sent. */
static inline void pair(struct load *l, int32_t phase, int32_t mover, int32_t peer, bool out, bool old, bool new)
{
    int32_t here = l->at[peer], before = l->mover[mover].was, after = l->at[mover];
    if (old && new)
        change(l, phase, out ? before : here, out ? here : before, out ? after : here, out ? here : after);
    else if (old)
        load_message(l, phase, out ? before : here, out ? here : before, -1);
    else if (new)
        load_message(l, phase, out ? after : here, out ? here : after, 1);
}

static void with_those_that_stay(struct load *l, int32_t slot)
{
    const struct pattern *t = l->pattern;
    bool old = sent(l, slot), new = sends(l, slot);
    for (int32_t i = t->out_at[slot]; i < t->out_at[slot + 1]; i++)
        if (!moves(l, t->out[i].slot) && !l->absent[t->out[i].slot])
            pair(l, t->out[i].phase, slot, t->out[i].slot, true, old, new);
    for (int32_t i = t->in_at[slot]; i < t->in_at[slot + 1]; i++)
        if (!moves(l, t->in[i].slot) && sends(l, t->in[i].slot))
            pair(l, t->in[i].phase, slot, t->in[i].slot, false, l->mover[slot].was >= 0, !l->absent[slot]);
}

/* The messages to other movers that old sent from this node, and those that new sends from it (-1: nobody). */
static void among_movers(struct load *l, int32_t node, int32_t old, int32_t new)
{
    const struct pattern *t = l->pattern;
    const struct pattern_peer *was = old >= 0 && sent(l, old) ? t->out + t->out_at[old] : NULL;
    const struct pattern_peer *is = new >= 0 && sends(l, new) ? t->out + t->out_at[new] : NULL;
    int32_t nwas = was ? t->out_at[old + 1] - t->out_at[old] : 0, nis = is ? t->out_at[new + 1] - t->out_at[new] : 0;
    for (int32_t i = 0; i < nwas || i < nis; i++) {
        int32_t from = i < nwas && moves(l, was[i].slot) ? l->mover[was[i].slot].was : -1;
        int32_t to = i < nis && moves(l, is[i].slot) && !l->absent[is[i].slot] ? l->at[is[i].slot] : -1;
        if (from >= 0 && to >= 0 && was[i].phase == is[i].phase) {
            if (from != to)
                change(l, was[i].phase, node, from, node, to);
            continue;
        }
        if (from >= 0)
            load_message(l, was[i].phase, node, from, -1);
        if (to >= 0)
            load_message(l, is[i].phase, node, to, 1);
    }
}

enum { LARGE = 64 };             /* movers; with fewer there is nothing inside */
static const uint32_t apart = 0; /* no shape */
static const int32_t nowhere = INT32_MIN;

/* The peers that move along with a mover, a bit for each, when all of its peers that move do: both ends are as far from
 * their nodes of launch, before and afterwards. The mover's shape comes on top. Else apart. */
static uint32_t peers_along(const struct load *l, int32_t slot)
{
    const struct pattern *t = l->pattern;
    const struct load_mover *m = &l->mover[slot];
    const struct pattern_peer *peer = t->out + t->out_at[slot];
    int32_t n = t->out_at[slot + 1] - t->out_at[slot];
    uint32_t set = 0;
    if (!l->shape[slot] || m->before == nowhere)
        return apart;
    for (int32_t i = 0; i < n; i++) {
        const struct load_mover *p = &l->mover[peer[i].slot];
        if (p->stamp != l->now)
            continue;
        if (p->before != m->before || p->after != m->after)
            return apart;
        set |= 1u << i;
    }
    return set | (uint32_t)l->shape[slot] << LOAD_ALONG;
}

/* Do all peers of the mover move along with it? */
static inline bool all_along(const struct load *l, int32_t slot)
{
    int32_t n = l->pattern->out_at[slot + 1] - l->pattern->out_at[slot];
    return l->along[slot] != apart && (l->along[slot] & ((1u << LOAD_ALONG) - 1)) == (1u << n) - 1;
}

static void movers_begin(struct load *l)
{
    l->nmovers = 0;
    if (++l->now == 0) {
        memset(l->mover, 0, (size_t)l->pattern->slots * sizeof *l->mover);
        l->now = 1;
    }
}

/* The slot is one of those whose place changes. */
static inline void mover(struct load *l, int32_t slot)
{
    if (moves(l, slot))
        return;
    l->mover[slot].stamp = l->now;
    l->mover[slot].was = l->absent[slot] ? -1 : l->at[slot];
    l->movers[l->nmovers++] = slot;
}

/* Remembers which mover has left each node, and how far it has come. */
static void note_ways(struct load *l)
{
    for (int32_t i = 0; i < l->nmovers; i++) {
        int32_t slot = l->movers[i], home = l->place->home[slot];
        struct load_mover *m = &l->mover[slot];
        bool whole = m->was >= 0 && !l->absent[slot];
        m->before = whole ? m->was - home : nowhere;
        m->after = whole ? l->at[slot] - home : nowhere;
        if (m->was >= 0)
            l->left[m->was] = slot;
    }
}

/* slot stands on this node now, old (-1: nobody) did before. */
static void recount_node(struct load *l, int32_t node, int32_t old, int32_t slot, bool large)
{
    if (!large || !all_along(l, slot))
        with_those_that_stay(l, slot);
    if (l->absent[slot])
        return;
    if (!large || old < 0 || l->along[old] == apart || l->along[old] != l->along[slot])
        among_movers(l, node, old, slot);
    l->left[node] = -1;
}

static void recount(struct load *l)
{
    bool large = l->nmovers >= LARGE && l->convention == LOAD_ALL;
    note_ways(l);
    for (int32_t i = 0; large && i < l->nmovers; i++)
        l->along[l->movers[i]] = peers_along(l, l->movers[i]);
    for (int32_t i = 0; i < l->nmovers; i++) {
        int32_t slot = l->movers[i], node = l->at[slot];
        recount_node(l, node, l->left[node], slot, large);
    }
    for (int32_t i = 0; i < l->nmovers; i++) {
        int32_t slot = l->movers[i], node = l->mover[slot].was;
        if (node >= 0 && l->left[node] == slot) {
            among_movers(l, node, slot, -1);
            l->left[node] = -1;
        }
    }
    load_settle(l);
}

void load_move(struct load *l, const struct place_plan *plan)
{
    movers_begin(l);
    for (int32_t i = 0; i < plan->count; i++) {
        int32_t slot = plan->moves[i].slot;
        mover(l, slot);
        l->at[slot] = plan->moves[i].to;
        l->absent[slot] = false;
    }
    recount(l);
}

void load_undo(struct load *l, const struct place_plan *plan)
{
    movers_begin(l);
    for (int32_t i = plan->count - 1; i >= 0; i--) {
        mover(l, plan->moves[i].slot);
        l->at[plan->moves[i].slot] = plan->moves[i].from;
    }
    if (plan->slot >= 0)
        l->absent[plan->slot] = true;
    recount(l);
}

void load_try(struct load *l, const struct place_plan *plan)
{
    load_log_begin(l);
    load_move(l, plan);
    load_log_end(l);
}

void load_try_back(struct load *l, const struct place_plan *plan)
{
    if (!load_log_back(l)) {
        load_undo(l, plan);
        return;
    }
    for (int32_t i = plan->count - 1; i >= 0; i--)
        l->at[plan->moves[i].slot] = plan->moves[i].from;
    if (plan->slot >= 0)
        l->absent[plan->slot] = true;
}
