/* Finding the agents of this machine: their console sockets in the abstract namespace, in the network namespace of the
 * caller and in those of netns beds. Blocking calls, for keelctl. */
#ifndef KEEL_PM_FINDER_H
#define KEEL_PM_FINDER_H

#include <stdbool.h>
#include <stdint.h>

struct found_agent {
    uint64_t job_id;
    int node;
    int fd; /* connected to its console */
};

/* All agents that answer, ordered by job and node; *count of them, caller closes the fds and frees. */
struct found_agent *finder_agents(int *count);
#endif
