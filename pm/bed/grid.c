#include "pm/bed/grid.h"

#include "pm/bed/bed.h"

#include <stdio.h>

enum { FRAME = 1514, LATENCY_MS = 200 };
/* What the kernel's rules of routing are numbered by; its own rule of local addresses, 0, is moved behind ours. */
enum { RULE_CUT = 10, RULE_LOCAL = 20 };

static const char dim_name[GRID_MAX_DIMS + 1] = "xyzuvw";
static const char *const dir_name[2] = {[GRID_UP] = "up", [GRID_DOWN] = "down"};

/* The place that the link leads to, -1: it is none, as a mesh ends here. */
static int32_t link_to(const struct bed_grid *b, int32_t place, int dim, int dir)
{
    return grid_neighbor(&b->grid, place, dim, dir);
}

void bed_grid_links(struct bytes *out, const struct bed_grid *b, uint64_t job_id)
{
    char from[32], to[32];
    for (int32_t place = 0; place < b->grid.nodes; place++)
        for (int d = 0; d < b->grid.ndims; d++) {
            int32_t next = link_to(b, place, d, GRID_UP);
            if (next < 0)
                continue;
            bed_netns_name(job_id, b->node_at[place], from, sizeof from);
            bed_netns_name(job_id, b->node_at[next], to, sizeof to);
            bytes_printf(out, "link add %c-up netns %s type veth peer name %c-down netns %s\n", dim_name[d], from,
                         dim_name[d], to);
        }
}

/* By the first link of the way, to the neighbour at its other end, who answers for its address on each of its links. */
static void route(struct bytes *out, const struct bed_grid *b, int32_t place, int32_t to, const char *source)
{
    struct grid_walk walk;
    char target[32], via[32];
    grid_walk_begin(&walk, &b->grid, NULL, place, to);
    int32_t link = grid_walk_next(&walk);
    bed_netns_address(b->node_at[to], target, sizeof target);
    bed_netns_address(b->node_at[walk.node], via, sizeof via);
    bytes_printf(out, "route add %s/32 via %s dev %c-%s onlink src %s\n", target, via,
                 dim_name[grid_link_dim(&b->grid, link)], dir_name[grid_link_dir(link)], source);
}

void bed_grid_node(struct bytes *out, const struct bed_grid *b, int node)
{
    int32_t place = b->at[node];
    char address[32], hub[32];
    bed_netns_address(node, address, sizeof address);
    bed_netns_address(-1, hub, sizeof hub);
    bytes_printf(out, "rule add pref %d lookup local\nrule del pref 0\n", RULE_LOCAL);
    bytes_printf(out, "link set lo up\naddr add %s/32 dev lo\nlink set veth0 up\n", address);
    bytes_printf(out, "route add %s/32 dev veth0 src %s\n", hub, address);
    for (int d = 0; d < b->grid.ndims; d++)
        for (int dir = GRID_UP; dir <= GRID_DOWN; dir++)
            if (link_to(b, place, d, dir) >= 0)
                bytes_printf(out, "link set %c-%s up\n", dim_name[d], dir_name[dir]);
    for (int32_t to = 0; to < b->grid.nodes; to++)
        if (to != place)
            route(out, b, place, to, address);
}

void bed_grid_rates(struct bytes *out, const struct bed_grid *b, int node)
{
    for (int d = 0; b->kbit && d < b->grid.ndims; d++)
        for (int dir = GRID_UP; dir <= GRID_DOWN; dir++)
            if (link_to(b, b->at[node], d, dir) >= 0) {
                /* What the timer of a slow kernel lets through at once: 10 ms of the rate, two frames at the least. */
                int64_t burst = b->kbit * 10 / 8;
                bytes_printf(out, "qdisc add dev %c-%s root tbf rate %lldkbit burst %lld latency %dms\n", dim_name[d],
                             dir_name[dir], (long long)b->kbit, (long long)(burst < 2 * FRAME ? 2 * FRAME : burst),
                             LATENCY_MS);
            }
}

void bed_grid_cut(struct bytes *out, int node, bool up)
{
    char address[32];
    const char *verb = up ? "del" : "add";
    bed_netns_address(node, address, sizeof address);
    bytes_printf(out, "rule %s pref %d iif lo to 127.0.0.0/8 lookup local\n", verb, RULE_CUT);
    bytes_printf(out, "rule %s pref %d iif lo to %s lookup local\n", verb, RULE_CUT + 1, address);
    bytes_printf(out, "rule %s pref %d iif lo blackhole\n", verb, RULE_CUT + 2);
    bytes_printf(out, "rule %s pref %d to %s blackhole\n", verb, RULE_CUT + 3, address);
}
