/* Starting the agents: one unmodified mpiexec.hydra per node. */
#ifndef KEEL_PM_LAUNCH_H
#define KEEL_PM_LAUNCH_H

#include "pm/bed/bed.h"
#include "pm/run/options.h"

#include <sys/types.h>
#include <uv.h>

struct launch;

struct launch_events {
    /* The node's mpiexec ended, and is not started again; text is the last line that it printed ("" if none). */
    void (*ended)(void *user, int node, int wait_status, const char *text);
};

struct launch_plan {
    const struct options *options;
    const struct bed_netns *netns; /* or NULL */
    const char *keeld;             /* path */
    uint64_t job_id;
    const uint8_t *ticket;
    const char *host; /* of our listener */
    int port;
};

struct launch *launch_create(uv_loop_t *loop, const struct launch_plan *plan, const struct launch_events *events,
                             void *user);
/* Start the nodes, at most a bounded number at a time. */
void launch_begin(struct launch *l);
/* The node's agent has reported: room for another one. */
void launch_joined(struct launch *l, int node);
pid_t launch_mpiexec_pid(const struct launch *l, int node);
/* How often the node's mpiexec was started: more than once if it ended before the agent reported. */
int launch_starts(const struct launch *l, int node);
/* How many mpiexec are still there. */
int launch_running(const struct launch *l);
void launch_signal(struct launch *l, int signal);
const char *launch_last_line(const struct launch *l, int node);
#endif
