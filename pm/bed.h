/* The netns test bed: every node a network namespace on a bridge, built and removed by keelrun.
 * docs/protocols/launch.md.
 *
 *   keel-<id>-hub    bridge br0, 10.77.0.1; keelrun and its mpiexec instances run in it; one port p<k> per node
 *   keel-<id>-n<k>   node k: veth0, 10.77.0.<k+2>
 *
 * <id> is the job's (8 hex digits), so jobs do not meet, and nothing of the host's network is touched. A guardian
 * process removes the namespaces when keelrun is gone, however it went, and the last process in them has ended. */
#ifndef KEEL_PM_BED_H
#define KEEL_PM_BED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bed_netns;

/* Build it and move the calling process into the hub. NULL on failure with one line of text in why. */
struct bed_netns *bed_netns_create(uint64_t job_id, int nodes, const char *helper, char *why, size_t why_size);
/* Leave the bed and have it removed; waits a bounded time for that. */
void bed_netns_destroy(struct bed_netns *bed);
void bed_netns_address(int node, char *out, size_t size);
/* Program for mpiexec's -launcher-exec, and "NAME=value" that it needs. */
const char *bed_netns_exec(const struct bed_netns *bed);
const char *bed_netns_variable(const struct bed_netns *bed);
#endif
