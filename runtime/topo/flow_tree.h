/* The cheapest ways of flow.h in a tree. */
#ifndef KEEL_TOPO_FLOW_TREE_H
#define KEEL_TOPO_FLOW_TREE_H
#include "runtime/topo/flow.h"

/* The cheapest of the shortest ways: up to one of the common ancestors at the lowest level that has any, and down.
 * returns its price, or a negative number when all of them are cut. */
double flow_tree_route(const struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng,
                       struct detour_path *path);
/* A multi-step path from a router that follows these ports. returns false when it takes too many segments. */
bool flow_tree_path(const struct fabric *f, int32_t at, int32_t dest, const uint8_t *ports, int n,
                    struct detour_path *path);
#endif
