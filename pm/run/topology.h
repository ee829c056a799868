/* How a batch system says that nodes are joined, read as places of a grid: for --grid auto. What is read is a
 * stranger's text. Pure.
 *
 *   Slurm's switches   a line for each, SwitchName=leaf1 Level=0 ... Nodes=n[1-4], as scontrol show topology prints it:
 *                      a grid of leaf switches by nodes, in their order. Only hosts of the job count, and switches that
 *                      have some; where a switch has fewer than others there are places without a host
 *   a torus            names that end with a coordinate for each of three dimensions, 0 to 9 and A to Z, as Slurm's
 *                      topology/3d_torus has them */
#ifndef KEEL_PM_TOPOLOGY_H
#define KEEL_PM_TOPOLOGY_H

#include <stddef.h>

struct topology_hosts {
    const char *const *name; /* [count] */
    int count;
};

enum topology_result {
    TOPOLOGY_FOUND,
    TOPOLOGY_SILENT, /* it says nothing of switches */
    TOPOLOGY_BAD,    /* it does not fit the hosts; why says how */
};

/* place_of[count] becomes where each stands on a grid of these sides, whose first dimension changes fastest. */
enum topology_result topology_of_switches(const struct topology_hosts *hosts, const char *text, int size[2],
                                          int *place_of, char *why, size_t len);
enum topology_result topology_of_names(const struct topology_hosts *hosts, int size[3], int *place_of, char *why,
                                       size_t len);
#endif
