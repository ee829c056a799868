/* The netns test bed: every node a network namespace on a bridge, built and removed by keelrun.
 * docs/protocols/launch.md.
 *
 *   keel-<id>-hub    bridge br0, 10.77.0.1; keelrun and its mpiexec instances run in it; one port p<k> per node
 *   keel-<id>-n<k>   node k: veth0, 10.77.0.0 + <k+2>
 *
 * With more rails (--rails) there is a bridge br<r> for each further one, 10.<77+r>.0.1, with ports p<k>r<r>, and
 * node k has veth<r>, 10.<77+r>.0.0 + <k+2>.
 *
 * On the bed grid the nodes' data go by links of their own (bed/grid.h), and the bridge is for keelrun and mpiexec.
 *
 * <id> is the first half of the job's id, so jobs do not meet, and nothing of the host's network is touched. A guardian
 * process removes the namespaces when keelrun is gone, however it went, and the last process in them has ended. */
#ifndef KEEL_PM_BED_H
#define KEEL_PM_BED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BED_NODES_MAX = 1000 }; /* a bridge has 1,023 ports */

/* On the loopback bed: 127.0.0.0 + node + 2, or in the network whose first two numbers KEEL_BED_NET gives. */
void bed_loopback_address(int node, char *out, size_t size);

struct bed_netns;
struct bed_grid;

/* Build it and move the calling process into the hub. NULL on failure with one line of text in why.
 * rails     networks, at least 1.
 * grid      how nodes are joined (bed/grid.h); NULL: by the bridge of each network.
 * helper    path of keel-nsexec.
 * blocks    until it is built, some 20 ms and 5 ms for each node. */
struct bed_netns *bed_netns_create(uint64_t job_id, int nodes, int rails, const struct bed_grid *grid,
                                   const char *helper, char *why, size_t why_size);
/* Leave the bed and have it removed; waits a bounded time for that. NULL is allowed. */
void bed_netns_destroy(struct bed_netns *bed);
pid_t bed_netns_guardian(const struct bed_netns *bed);
/* Node -1: the hub. */
void bed_netns_address(int node, char *out, size_t size);
int bed_netns_node(const char *address); /* -1: of none */
void bed_netns_name(uint64_t job_id, int node, char *out, size_t size);
/* Program for mpiexec's -launcher-exec, and "NAME=value" that it needs. */
const char *bed_netns_exec(const struct bed_netns *bed);
const char *bed_netns_variable(const struct bed_netns *bed);
/* Take a node's port on the bridge down (a silent cut: nobody gets an error) or up again. 0, or an errno. */
int bed_netns_link(uint64_t job_id, int node, int up);

/* Environment variable with the job id, for keel-nsexec. */
#define BED_ENV "KEEL_BED"
#define BED_NETNS_DIR "/run/netns"
#endif
