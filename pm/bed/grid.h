/* A bed whose nodes are joined as a grid: neighbour to neighbour by veth pairs, each packet on the dimension-ordered
 * way of runtime/topo/grid.h, forwarded by the nodes between. So messages that share a link share its rate, as on the
 * networks that placement is about.
 *
 *   lo              the node's own address
 *   x-up, x-down    the links towards higher and lower coordinates of the first dimension, and so on for y, z, u, v, w
 *   veth0           the way to the hub, for keelrun and mpiexec only
 *
 * A node whose processes have died forwards on: on such networks it is the router that does, which is not the
 * processor. One whose link was cut (keelctl bed cut) forwards, too, but nothing comes to it or from it.
 *
 * Each function writes the commands of one batch of ip(8) or tc(8), and does nothing else. */
#ifndef KEEL_PM_BED_GRID_H
#define KEEL_PM_BED_GRID_H

#include <stdint.h>

#include "pm/wire/bytes.h"
#include "runtime/topo/grid.h"

enum { BED_LINK_KBIT_MIN = 100, BED_LINK_KBIT_MAX = 100000000 };

struct bed_grid {
    struct grid grid;
    int *node_at; /* [grid.nodes] which node has the place */
    int32_t *at;  /* [nodes] and the place of each */
    int64_t kbit; /* rate of each link and direction, 1,000 bits a second; 0: as fast as they go */
};

/* All links, between namespaces that exist. */
void bed_grid_links(struct bytes *out, const struct bed_grid *b, uint64_t job_id);
/* In the node's namespace: addresses, links up, routes. */
void bed_grid_node(struct bytes *out, const struct bed_grid *b, int node);
/* In the node's namespace, for tc(8): the rates of what leaves it. Nothing where there is no rate. */
void bed_grid_rates(struct bytes *out, const struct bed_grid *b, int node);
/* In the node's namespace: nothing comes to it or leaves it but what it forwards, and the opposite. Silent: who sends
 * gets no error. */
void bed_grid_cut(struct bytes *out, int node, bool up);
#endif
