/* Cartesian networks: grids of 1 to 6 dimensions, each dimension a mesh or a torus.
 *
 * A node is a number 0..nodes-1. Coordinate 0 (X) varies fastest: node = x + size[0] * (y + size[1] * (z + ...)).
 * A link is directed and named after the node it leaves: link = (node * ndims + dim) * 2 + (0 towards higher
 * coordinates, 1 towards lower ones). Every node has 2 * ndims link numbers, so arrays indexed by link have
 * grid_links(g) entries; on a mesh the numbers that would leave the grid exist but no route uses them.
 *
 * Routes are dimension-ordered and static: the first dimension of the order is corrected fully, then the next one
 * (XY, XYZ, ...). On a torus the shorter way round is taken, and at exactly half the ring the one towards higher
 * coordinates. Nothing here allocates, blocks or keeps state; a struct grid is immutable after grid_init and may be
 * shared between threads. */
#ifndef KEEL_TOPO_GRID_H
#define KEEL_TOPO_GRID_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GRID_MAX_DIMS = 6,
    GRID_MAX_NODES = 1 << 26, /* so that a link number always fits an int32_t */
    GRID_UP = 0,              /* direction of a link: towards higher coordinates */
    GRID_DOWN = 1,
};

struct grid {
    int ndims;
    int size[GRID_MAX_DIMS];
    bool torus[GRID_MAX_DIMS];
    int32_t stride[GRID_MAX_DIMS]; /* node(c + 1 in dim d) - node(c) */
    int32_t nodes;
};

/* For long loops over nodes or ranks: at every millionth, has the caller's stop (NULL: none) been set? */
static inline bool grid_stopped(const atomic_bool *stop, int32_t i)
{
    return stop && !(i & 0xfffff) && atomic_load(stop);
}

/* Make a grid. torus NULL means a mesh in every dimension.
 * returns   false when ndims is not 1..6, a size is below 1, or the node count exceeds GRID_MAX_NODES. */
bool grid_init(struct grid *g, int ndims, const int *size, const bool *torus);

/* Read "24x24x24" (a mesh), or with a t after a size, "8tx8tx16", a torus in that dimension.
 * returns   NULL, or a constant text that says what is wrong with it. */
const char *grid_parse(struct grid *g, const char *text);

/* Write the form that grid_parse reads; returns buf. len 96 is always enough. */
char *grid_format(const struct grid *g, char *buf, size_t len);

static inline int32_t grid_links(const struct grid *g)
{
    return g->nodes * 2 * g->ndims;
}

static inline int grid_coord(const struct grid *g, int32_t node, int dim)
{
    return (int)(node / g->stride[dim]) % g->size[dim];
}

void grid_coords(const struct grid *g, int32_t node, int coords[]);
int32_t grid_node(const struct grid *g, const int coords[]);

/* The node next to this one, or -1 where a mesh ends (or the dimension has one node only). */
int32_t grid_neighbor(const struct grid *g, int32_t node, int dim, int dir);

/* Signed number of hops from coordinate a to b in a dimension, by the way a route takes. */
static inline int grid_offset(const struct grid *g, int dim, int a, int b)
{
    int off = b - a, n = g->size[dim];
    if (g->torus[dim]) {
        if (2 * off > n)
            off -= n;
        else if (2 * off <= -n)
            off += n;
    }
    return off;
}

/* Hops of a shortest route (Manhattan distance, round the torus where that is shorter). */
int grid_distance(const struct grid *g, int32_t a, int32_t b);

static inline int32_t grid_link(const struct grid *g, int32_t node, int dim, int dir)
{
    return (node * g->ndims + dim) * 2 + dir;
}

static inline int32_t grid_link_from(const struct grid *g, int32_t link)
{
    return link / (2 * g->ndims);
}

static inline int grid_link_dim(const struct grid *g, int32_t link)
{
    return (int)(link / 2 % g->ndims);
}

static inline int grid_link_dir(int32_t link)
{
    return (int)(link & 1);
}

/* A walk along a route, link by link, without storing it:
 *   struct grid_walk w; grid_walk_begin(&w, g, NULL, from, to);
 *   for (int32_t l; (l = grid_walk_next(&w)) >= 0;) ...
 * order   ndims dimensions in the order in which they are corrected; NULL is 0, 1, 2 ... (XYZ). Not copied. */
struct grid_walk {
    const struct grid *g;
    const uint8_t *order;
    int32_t node; /* where the walk stands */
    int step;     /* index into order */
    int left;     /* signed hops left in the current dimension */
    int pos;      /* coordinate in the current dimension */
    int32_t to;
};

void grid_walk_begin(struct grid_walk *w, const struct grid *g, const uint8_t *order, int32_t from, int32_t to);
/* The next directed link of the route, or -1 at its end; afterwards w->node is the node the link leads to. */
int32_t grid_walk_next(struct grid_walk *w);

/* The whole route as links[0..n-1].
 * cap       room in links; grid_diameter(g) is always enough.
 * returns   n, the number of hops, even when it is more than cap (then only the first cap links are written). */
int grid_route(const struct grid *g, const uint8_t *order, int32_t from, int32_t to, int32_t *links, int cap);

/* Hops of the longest route. */
int grid_diameter(const struct grid *g);
#endif
