/* Spare allocation qD(r,s): on a q-dimensional grid, the last s layers of each of the first r dimensions hold spare
 * nodes; the slots fill the rest. 2D(1,1) is the right-hand column, 2D(2,1) the right-hand column and the bottom row.
 * Sides other than the first are named: 2D(1,1):y is the bottom row.
 * source    Spare-nodes, "Spare Node Allocation" and "Node Utilization in a Multijob Environment". r = 0 (no spares) is
 *           allowed here too. Nothing allocates or blocks. */
#ifndef KEEL_TOPO_SPARE_H
#define KEEL_TOPO_SPARE_H
#include "runtime/topo/grid.h"

struct spare_layout {
    int q;         /* dimensions of the grid */
    int r;         /* sides that hold spares, 0..q */
    int s;         /* layers per side, less than the size of each of those dimensions */
    unsigned dims; /* bit set of the dimensions that hold them, r of them; 0: the first r */
};

static inline bool spare_holds(const struct spare_layout *l, int dim)
{
    return l->dims ? l->dims >> dim & 1 : dim < l->r;
}

/* Read "3D(2,1)" or "3D(2,1):xz". returns NULL, or a constant text that says what is wrong. */
const char *spare_parse(struct spare_layout *l, const char *text);
char *spare_format(const struct spare_layout *l, char *buf, size_t len);

/* Does the layout fit the grid? returns NULL, or a constant text that says why not. */
const char *spare_check(const struct spare_layout *l, const struct grid *g);

/* What nobody has said: one layer on each of the first two sides that are longer than one node. */
struct spare_layout spare_default(const struct grid *g);

bool spare_is(const struct spare_layout *l, const struct grid *g, int32_t node);

/* The side (its dimension) a spare stands on, the lowest one at a corner; -1 for a node that is not a spare. */
int spare_side(const struct spare_layout *l, const struct grid *g, int32_t node);

/* Number of spares, exactly. */
int32_t spare_count(const struct spare_layout *l, const struct grid *g);

/* The paper's R_qD(r,s) for N nodes, as a share 0..1: it takes every side to be N^(1/q) long and ignores that nodes are
 * whole. */
double spare_share(const struct spare_layout *l, double nodes);

/* The grid of the slots: the network without its spare layers (mesh or torus as the network). */
struct grid spare_slot_grid(const struct spare_layout *l, const struct grid *g);

/* The layout whose exact share of spares is inside [low, high] and nearest to their geometric mean; when none is
 * inside, the one nearest to that. Thin layers are preferred: s + 1 is only looked at when no layout with s is inside.
 * Any dimensions may hold the spares, the first ones are preferred; those with one node never do. returns   the share
 * it gives (0 and r = 0 for a grid of one node), and the layout. */
double spare_choose(const struct grid *g, double low, double high, struct spare_layout *l);
#endif
