/* The connections to agents, from the first byte on. */
#ifndef KEEL_PM_JOB_PEERS_H
#define KEEL_PM_JOB_PEERS_H

#include <stdbool.h>

#include "pm/wire/conn.h"

struct job;

/* Connections that have not proved to belong to the job, the oldest first; job_callers.c alone touches them. */
struct strangers {
    struct caller *oldest, *newest;
    int count;
};

/* At one of the two listeners. */
void job_agent_connected(struct job *j, bool again);
void job_drop_connection(struct job *j, int node);
/* The node has another place in nodes than it had. */
void job_moved(struct job *j, int node);
/* For job_return.c: a connection is dropped, or is that of a node from now on. */
void job_forget_peer(struct job *j, struct pm_conn *c);
void job_peer_is(struct job *j, struct pm_conn *c, int node);
#endif
