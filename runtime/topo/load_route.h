/* What load.c and load_move.c share: one message more or less on the links of its route. */
#ifndef KEEL_TOPO_LOAD_ROUTE_H
#define KEEL_TOPO_LOAD_ROUTE_H
#include "runtime/topo/load.h"

enum { LOAD_ALONG = 26, LOAD_SHAPES = 63 }; /* peers and shapes that struct load's along has room for */

#define always_inline inline __attribute__((always_inline))

static always_inline void load_link_change(struct load_phase *ph, int32_t link, int delta)
{
    int32_t c = ph->count[link];
    ph->hist[c]--;
    c += delta;
    ph->hist[c]++;
    ph->count[link] = c;
    if (delta > 0 && c > ph->max)
        ph->max = c;
    if (ph->logging) {
        if (ph->nlog < LOAD_LOG)
            ph->log[ph->nlog] = delta > 0 ? link : ~link;
        ph->nlog++;
    }
}

/* What happens until load_log_end can be taken back with load_log_back. */
void load_log_begin(struct load *l);
void load_log_end(struct load *l);
/* returns   false, and has done nothing, when there was no room for all of it. */
bool load_log_back(struct load *l);

/* One message more or less on the part of a route along dimension d: off hops from this node, whose coordinate is c. */
static always_inline void load_stretch(const struct place *p, struct load_phase *ph, int32_t node, int d, int c,
                                       int off, int delta)
{
    const struct grid *g = &p->grid;
    int dir = off > 0 ? GRID_UP : GRID_DOWN, left = off > 0 ? off : -off, n = g->size[d];
    int32_t per = 2 * g->ndims * g->stride[d], link = grid_link(g, node, d, dir);
    int edge = dir == GRID_UP ? n - c : c + 1; /* hops until the coordinate wraps around */
    if (dir == GRID_DOWN)
        per = -per;
    for (; left; left--, link += per) {
        if (edge-- == 0)
            link -= per * n;
        load_link_change(ph, link, delta);
    }
}

/* Add (delta 1) or remove (-1) one message along a dimension-order route; returns its hops. */
static always_inline int load_grid_message(const struct place *p, struct load_phase *ph, int32_t from, int32_t to,
                                           int delta)
{
    const struct grid *g = &p->grid;
    const int16_t *a = p->coord[from], *b = p->coord[to];
    int hops = 0;
    for (int d = 0; d < g->ndims; d++) {
        if (a[d] == b[d])
            continue;
        int off = grid_offset(g, d, a[d], b[d]);
        load_stretch(p, ph, from, d, a[d], off, delta);
        hops += abs(off);
        from += (b[d] - a[d]) * g->stride[d];
    }
    return hops;
}

static always_inline void load_message(struct load *l, int32_t phase, int32_t from, int32_t to, int delta)
{
    struct load_phase *ph = &l->phase[phase];
    if (!l->net.tree.nodes) {
        l->hops += delta * load_grid_message(l->place, ph, from, to, delta);
        return;
    }
    int32_t links[4];
    int n = fattree_route(&l->net.tree, from, to, links);
    for (int i = 0; i < n; i++)
        load_link_change(ph, links[i], delta);
    l->hops += delta * n;
}

/* After messages were removed: the most used link may carry fewer. */
static inline void load_settle(struct load *l)
{
    for (int32_t i = 0; i < l->pattern->phases; i++) {
        struct load_phase *ph = &l->phase[i];
        while (ph->max > 0 && ph->hist[ph->max] == 0)
            ph->max--;
    }
}
#endif
