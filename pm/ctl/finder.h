/* Finding the agents of this machine: their console sockets in the abstract namespace, in the network namespace of the
 * caller and in those of netns beds. Blocking calls, for keelctl. */
#ifndef KEEL_PM_FINDER_H
#define KEEL_PM_FINDER_H

#include <stdbool.h>
#include <stdint.h>

struct found_agent {
    uint64_t job_id;
    int node;
    int fd; /* connected to its console; -1 if it takes no connections (it is frozen, and others have tried before) */
};

/* The agents of jobs whose id begins with prefix (NULL: of all), ordered by job and node; *count of them, caller closes
 * the fds and frees. Never waits for an agent. */
struct found_agent *finder_agents(const char *prefix, int *count);
#endif
