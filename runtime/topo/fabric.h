/* Networks of routers with a static minimal route between any two of them: what the path policy and the network
 * simulator see of a topology. Grids (mesh or torus in each dimension) take their dimension-order routes from grid.h; a
 * torus of two is a mesh of two, as static routes would use each of two cables between its ends one way only, and the
 * messages of both ways would be cut off by either;
 * a k-ary n-tree has n levels of k^(n-1) switches and k^n endpoints below the last level.
 *
 * A link is directed and named after the router it leaves: link = router * ports + port, so arrays indexed by link have
 * fabric_links(f) entries; numbers that lead nowhere (the rim of a mesh, the roots' upper ports) have neighbor -1. A
 * cable is the pair of links between two routers, named by the smaller of the two link numbers.
 * Immutable after init: any number of threads may read it. Only init allocates, memory is linear in the links. */
#ifndef KEEL_TOPO_FABRIC_H
#define KEEL_TOPO_FABRIC_H
#include "runtime/base/rng.h"
#include "runtime/topo/grid.h"

enum fabric_kind { FABRIC_GRID, FABRIC_TREE, FABRIC_GRAPH };

enum {
    FABRIC_MAX_ROUTERS = 1 << 22,
    FABRIC_MAX_LEVELS = 12, /* of a tree */
    FABRIC_MAX_ARITY = 64,
    FABRIC_MAX_VERTICES = 1024, /* of a graph: it keeps a table of all pairs */
};

struct fabric {
    enum fabric_kind kind;
    struct grid grid;  /* when kind is FABRIC_GRID */
    int arity, levels; /* when kind is FABRIC_TREE */
    int32_t row;       /* switches in a level of the tree */
    int32_t routers;
    int32_t endpoints;
    int ports;         /* links out of every router, to other routers */
    int32_t *neighbor; /* [link] the router it leads to, or -1 */
    int32_t *reverse;  /* [link] the link of the same cable in the other direction, or -1 */
    uint16_t *hop;     /* [at * routers + to] port of the static route, of a graph */
    uint8_t *firm;     /* [link] 1: no cable, it cannot break by itself; of a graph, else NULL */
    uint16_t *digits;  /* [router * ndims] coordinates, or [router * (levels - 1)] digits of a tree's switch */
    /* Of a grid: [dim][coordinate to - coordinate at] the port of the way there; points into ports_toward. */
    const uint8_t *toward[GRID_MAX_DIMS];
    uint8_t *ports_toward;
};

struct fabric_edge {
    int32_t a, b; /* routers */
    bool firm;
};
/* Any graph without double edges: `endpoints` of its routers, the first ones, have an endpoint each. Static routes are
 * shortest ones. returns NULL, or a constant text that says what is wrong; ends with fabric_fini. */
const char *fabric_graph(struct fabric *f, int32_t routers, int32_t endpoints, const struct fabric_edge *edge,
                         int32_t n);
/* Nodes of a running system, each joined to each by a cable per rail. Router i is node i and its first rail; router
 * rail * nodes + i is its further rail, which hangs on node i by a firm link. */
const char *fabric_full(struct fabric *f, int32_t nodes, int32_t rails);

/* "32x32" forms of grid_parse make a grid; "tree:K,N" a K-ary N-tree.
 * returns   NULL, or a constant text that says what is wrong. On success the caller ends with fabric_fini. */
const char *fabric_parse(struct fabric *f, const char *text);
void fabric_fini(struct fabric *f);
/* Write the form that fabric_parse reads; returns buf. len 96 is always enough. */
char *fabric_format(const struct fabric *f, char *buf, size_t len);

static inline int32_t fabric_links(const struct fabric *f)
{
    return f->routers * f->ports;
}

/* The router an endpoint hangs on. */
static inline int32_t fabric_home(const struct fabric *f, int32_t endpoint)
{
    return f->kind != FABRIC_TREE ? endpoint : (f->levels - 1) * f->row + endpoint / f->arity;
}

static inline int32_t fabric_cable(const struct fabric *f, int32_t link)
{
    return f->reverse[link] < link ? f->reverse[link] : link;
}

/* Is it a link that cannot break by itself? It is no hop, as both its ends are the same node's. */
static inline bool fabric_firm(const struct fabric *f, int32_t link)
{
    return f->firm && f->firm[link];
}

/* The port of the static route's next hop, or -1 when at == to.
 * endpoint  whose traffic it is: a tree spreads the way up by the final destination, a grid ignores it. */
int fabric_next(const struct fabric *f, int32_t at, int32_t to, int32_t endpoint);

/* Hops of the static route between two routers, firm links not counted. */
int fabric_hops(const struct fabric *f, int32_t from, int32_t to, int32_t endpoint);

/* The same, but -1 when the route uses a link with avoid[link] set, or has more than limit hops. */
int fabric_hops_avoiding(const struct fabric *f, int32_t from, int32_t to, int32_t endpoint, const uint8_t *avoid,
                         int limit);

/* A random router on some shortest way between two routers (which may be one of the two): in a grid one in the box that
 * they span, on its corners but for `inner` of the dimensions (0: a corner; the number of dimensions and more: anywhere
 * in it), in a tree a common ancestor at the lowest level that has one, when both are at the last level. */
int32_t fabric_between(const struct fabric *f, int32_t from, int32_t to, int inner, struct rng *rng);

/* Of a tree, two switches at the last level: the i-th, from 0, of their common ancestors at the lowest level that has
 * any; -1 when there are no more. */
int32_t fabric_ancestor(const struct fabric *f, int32_t from, int32_t to, int32_t i);

/* Bytes per second and endpoint, as a fraction of the link rate, at which uniform traffic fills the links that cross
 * the middle of the network: no routing can carry more. */
double fabric_bisection_bound(const struct fabric *f);
#endif
