/* Starting the agents: an unmodified mpiexec.hydra finds the launcher for each node. keelrun runs the first ones, as
 * many as its fan-out; of more nodes the others are handed to agents that have joined, each of which runs as many
 * again, so that the starts make a tree. What an agent cannot start is started from here. An attempt that fails is made
 * again, three times in all; each has a ticket of its own. */
#ifndef KEEL_PM_LAUNCH_H
#define KEEL_PM_LAUNCH_H

#include "pm/bed/bed.h"
#include "pm/run/options.h"
#include "pm/wire/start.h"

#include <sys/types.h>
#include <uv.h>

struct launch;

struct launch_events {
    /* The node's launcher ended, and is not started again; text is the last line that it printed ("" if none). */
    void (*ended)(void *user, int node, int wait_status, const char *text);
    /* The agent of node `by` is to carry out the plan. */
    void (*hand_over)(void *user, int by, int node, const struct start_plan *plan);
};

struct launch_plan {
    const struct options *options;
    const struct bed_netns *netns;    /* or NULL */
    const char *keel_launch;          /* path */
    const struct rlimit *descriptors; /* how many launchers may have */
    uint64_t job_id;
    const char *host; /* of our listener */
    int port;
};

struct launch *launch_create(uv_loop_t *loop, const struct launch_plan *plan, const struct launch_events *events,
                             void *user);
/* How they are started: what the agents have to know for nodes that come later. */
json_t *launch_encode(const struct launch *l);
/* Start the nodes, at most a bounded number at a time. */
void launch_begin(struct launch *l);
/* The node's agent has reported, and can start others: room for another one. */
void launch_joined(struct launch *l, int node);
/* What the agent of node `by` said of the launcher that it was to run for a node: its pid; that it ended. */
void launch_handed_started(struct launch *l, int by, int node, pid_t pid);
void launch_handed_ended(struct launch *l, int by, int node, const char *text);
/* A node that an agent was asked to start is late: it may be that agent who stands still. It is started from here, and
 * has its time again. False: it is. */
bool launch_take_over(struct launch *l, int node);
/* The job does without the node. What its agent was to start is started from here. */
void launch_give_up(struct launch *l, int node);
/* When its start began, by the loop's clock; 0: it has not. */
uint64_t launch_begun_ms(const struct launch *l, int node);
/* How many nodes one agent may be asked to start. */
int launch_handed_most(const struct launch *l);
pid_t launch_launcher_pid(const struct launch *l, int node);
/* Who starts it: an agent's node, or -1. */
int launch_by(const struct launch *l, int node);
/* How often the node was started: more than once if the launcher ended before the agent reported. */
int launch_starts(const struct launch *l, int node);
/* How many launchers of ours are still there. */
int launch_running(const struct launch *l);
void launch_signal(struct launch *l, int signal);
/* What Hydra calls a launcher that is asked for and does not carry standard input; NULL: none. */
const char *launch_refuses(const struct options *options);
/* The node that the ticket of this name was made for, with its key; it may be taken already. Or: of an attempt that was
 * given up; of none. */
enum { LAUNCH_PAST = -1, LAUNCH_UNKNOWN = -2 };
int launch_ticket(const struct launch *l, uint64_t id, const uint8_t **key);
/* Its holder has come: false for all but the first. */
bool launch_take(struct launch *l, int node);
/* ... and has gone without having said anything. */
void launch_give_back(struct launch *l, int node);
const char *launch_last_line(const struct launch *l, int node);
#endif
