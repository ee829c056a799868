/* A two-stage fat tree: edge switches with `down` nodes each, and `spines` second-stage switches, each linked to every
 * edge switch. Routes are static and chosen by destination (node number modulo spines), as InfiniBand subnet managers
 * do.
 *
 * Directed links are numbered: node to edge, edge to node (both by node), edge to spine, spine to edge (both by
 * edge * spines + spine). Nothing allocates or blocks. */
#ifndef KEEL_TOPO_FATTREE_H
#define KEEL_TOPO_FATTREE_H
#include <stdbool.h>
#include <stdint.h>

struct fattree {
    int32_t nodes, down, spines, edges;
};

/* returns   false when a number is below 1 or the links would not fit an int32_t. */
bool fattree_init(struct fattree *t, int32_t nodes, int32_t down, int32_t spines);

static inline int32_t fattree_links(const struct fattree *t)
{
    return 2 * t->nodes + 2 * t->edges * t->spines;
}

/* The directed links from one node to another, in order; 0, 2 or 4 of them. */
int fattree_route(const struct fattree *t, int32_t from, int32_t to, int32_t links[4]);
#endif
