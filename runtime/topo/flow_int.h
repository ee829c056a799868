/* Inside of flow.h: what its searches share.
 *   flow.c         streams, prices, and which search is asked
 *   flow_grid.c    the shortest ways of a grid
 *   flow_tree.c    the shortest ways of a tree
 *   flow_search.c  ways of any length
 *   flow_expect.c  the streams of a pattern */
#ifndef KEEL_TOPO_FLOW_INT_H
#define KEEL_TOPO_FLOW_INT_H
#include "runtime/topo/flow.h"
#include "runtime/topo/flow_tree.h"

enum { BY_X, BY_Y, WIDTH_MAX = 256, PORTS_MAX = 1024 };

enum { QUEUED = 0x80 }; /* beside an input, in `back` of a search through all links */

/* The inputs of a router are its ports, and those of its endpoints behind them. Of a grid an input has the number of
 * the port that leads on in the same direction, of a tree that of the port it comes in by. */
static inline int input_of(const struct fabric *f, int32_t link)
{
    return (f->kind == FABRIC_GRID ? link : f->reverse[link]) % f->ports;
}

static inline int first_input(const struct fabric *f, int32_t from)
{
    return f->ports + (f->kind == FABRIC_TREE ? from % f->arity : 0);
}

/* Links to endpoints that are priced. */
static inline int32_t ends(const struct fabric *f)
{
    return f->kind == FABRIC_TREE ? f->endpoints : 0;
}

static inline float wait_at(const struct flow *w, int32_t out, int input)
{
    return w->gain[out] * (w->sum[out] - w->stream[out * w->inputs + input]);
}

static inline float price(const struct flow *w, int32_t link, int input)
{
    return (float)w->traffic.hop_ns + wait_at(w, link, input);
}

/* At the link to the endpoint. In a grid it is left out: that gains nothing there. */
static inline float wait_at_end(const struct flow *w, int32_t dest, int input)
{
    return ends(w->fabric) ? wait_at(w, fabric_links(w->fabric) + dest, input) : 0;
}

/* A turn from the second dimension to the first begins a segment, and a path has room for a few only. Where the
 * cheapest way has more, such turns are made dearer until one is found that can be named. */
enum { DEARER_TURNS = 10 };

static inline float turn_price(const struct flow *w, int round)
{
    return round ? (float)w->traffic.hop_ns * (float)(1u << 2 * (round - 1)) : 0;
}

/* flow_grid.c */
/* The cheapest of the shortest ways of a grid. returns its price or a negative number. */
double flow_grid_route(const struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng,
                       struct detour_path *path);
/* A multi-step path in a grid that follows these ports. returns false when it takes too many segments. */
bool flow_grid_path(const struct fabric *f, int32_t from, const uint8_t *ports, int n, struct detour_path *path);

/* flow_search.c */
/* The cheapest way of any length, if it costs less than the limit. returns its price or a negative number. */
double flow_search_route(struct flow *w, int32_t from, int32_t dest, float limit, struct detour_path *path);
#endif
