/* What the two halves of an agent (keeld) tell each other.
 *
 *   process half   main thread, libuv: the launcher connection, the node's processes (start, pidfd, output), PMI,
 * keelctl. plane          own threads: global memory, transport, detection, views, recovery.
 *
 * Calls into the plane may be made from the main thread only and do not block. Callbacks come on the main thread (the
 * plane queues them and wakes the loop through plane_wake_fd; the process half then calls plane_dispatch). */
#ifndef KEEL_PM_PLANE_H
#define KEEL_PM_PLANE_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/status.h>

#include "runtime/base/job_settings.h"
#include "runtime/base/life.h"
#include "runtime/base/rails.h"

enum {
    PLANE_BLOB_MAX = 832,
    PLANE_WHY_MAX = 384,
    PLANE_MAX_RESTARTS = 3, /* of a rank on a live node, then it is left dead */
};

struct plane_config {
    uint64_t job_id;
    const uint8_t *secret;           /* 32 bytes, the caller's, which outlive the plane */
    int node;                        /* this node; spares come behind nodes, and those that come later behind them */
    int was;                         /* of one that comes later: 1 + the dead node that was where it is; else 0 */
    int place;                       /* of such a one: 1 + the place of the grid that it takes; 0: see view_event.h */
    int sponsor;                     /* of one that comes later: a member, which it asks to become one; else 0 */
    const char *host;                /* numeric address of this node on the job's interface */
    const char *more[RAILS_MAX - 1]; /* and on further rails, of the same family; the first NULL ends them */
    const struct job_settings *settings; /* the caller's, for the plane's life */
};

/* How this node's address blobs travel: opaque bytes, exchanged by the launcher before the start. */
struct plane_blob {
    uint32_t len;
    uint8_t bytes[PLANE_BLOB_MAX];
};

/* A committed view: who runs where. It is the callee's until it returns. */
struct plane_view {
    uint64_t epoch;
    const int *rank_node;   /* [ranks] -1: nobody runs the rank */
    const bool *node_alive; /* [settings_ids] */
    int free;               /* nodes of the grid that no slot is on or goes to */
    int files;              /* the set whose files count (view/view.h); -1: none */
    bool by_loss;           /* the job ends, for a loss that the program is not written for; nobody goes on anywhere */
    /* [REPLICAS_MAX] the sets of a program with replicas: what is left of those that are retired is to be ended */
    const struct replica_loss *loss;
    /* [REPLICAS_MAX] those that do not begin anew any more: by what the last attempt came to nothing (view/view.h) */
    const struct replica_loss *in_vain;
    const struct replica_loss *lost; /* [nlost] where replicas do the part of the dead: who is dead */
    int nlost;
};

struct plane_callbacks {
    void *user;
    /* The process in seat `seat` of this node (a standby that waits in keel_init) is this life of its rank from now
     * on. */
    void (*assigned)(void *user, int seat, struct life life);
    /* Start another process on this node for this life of its rank; then plane_process_started with a new seat, or
     * plane_process_refused. */
    void (*respawn)(void *user, struct life life);
    /* The opposite of assigned: the process in seat is to end, and its rank goes to another node. It has been told.
     * When it has not ended after a while plane_process_overdue is to be called. A process that ends for a reason of
     * its own is told of as ever. */
    void (*release)(void *user, int seat);
    /* And back: it stays. */
    void (*stay)(void *user, int seat);
    /* It is overdue, and to be killed. If that is what ends it plane_process_moved is to be called, and nobody counts a
     * death. */
    void (*end)(void *user, int seat);
    /* A process of this node has called keel_init: the program is one of Keel's. */
    void (*here)(void *user);
    /* The program of seat has started the rank's process, pid, and that has died, of signal (or SIGNAL_HIDDEN). What is
     * left of the program is to be ended, and plane_process_exited is then about the rank. It may have ended
     * meanwhile. */
    void (*hidden_death)(void *user, int seat, int pid, int signal);
    /* How many bytes has the process in seat written to standard output and error? All that it has written by now is to
     * be read before. begins: they are dropped, and what follows has its places from at[2] on. plane_process_output
     * follows, with this id. */
    void (*output)(void *user, int seat, uint32_t id, bool begins, const uint64_t at[2]);
    /* The process in seat was killed, and the job ends for it: see plain_death_ends. */
    void (*plain_death)(void *user, int seat);
    void (*view)(void *user, const struct plane_view *view);
    /* The job is over for everybody: exit code, and the line that says why if it is not 0 (else NULL). End the
     * processes that are left (standbys), report, go away. */
    void (*job_over)(void *user, int code, const char *why);
    /* This agent must end at once: it was declared dead or lost the quorum (out), or its plane broke. Kill all
     * processes of the node. */
    void (*fatal)(void *user, const char *why, bool out);
    /* One line for the event log: a JSON object without newline, complete with time stamp and node. */
    void (*event)(void *user, const char *json);
    /* plane_verify has come to its end: one JSON object. */
    void (*verified)(void *user, uint64_t id, const char *json);
    /* plane_rebalance is answered: one JSON object. */
    void (*rebalanced)(void *user, uint64_t id, const char *json);
    /* What ranks of this node wait for (pm/wire/waits.h) has changed: members of a JSON object but for now_ns, NULL:
     * none waits. since_ns is CLOCK_MONOTONIC. */
    void (*waits)(void *user, const char *members);
};

struct plane;

/* Before plane_create. A limit for silence below the default is refused, with a reason, where a quarter of it is less
 * than what this process was late by just now. Blocks for a fifth of a second then, and not otherwise. */
bool plane_allows_silence(const struct job_settings *settings, char why[PLANE_WHY_MAX]);

/* Opens listeners and memory; blob receives what other nodes need to reach this one. */
keel_status plane_create(const struct plane_config *config, const struct plane_callbacks *callbacks, struct plane **out,
                         struct plane_blob *blob);
/* All nodes' blobs, in node order, [settings_ids]; of length 0 where nobody has come by that number. Starts the
 * threads. If it fails, why gets what could not be done, and at which node's blob. */
keel_status plane_start(struct plane *plane, const struct plane_blob *blobs, char why[PLANE_WHY_MAX]);
/* Where a node is that may become a member later. Once it has been said a view may name it. KEEL_ERR_ARG: that is no
 * blob of such a node. */
keel_status plane_meet(struct plane *plane, int node, const struct plane_blob *blob);
/* Is it of the node that the newest view has by this number? Several may have been said to come by it (plane_meet). */
bool plane_is_node(const struct plane *plane, int node, const struct plane_blob *blob);
/* The place of the grid that the node has, or had when it died, by the newest view; -1: none. */
int plane_place(const struct plane *plane, int node);
/* A process was started in seat (0.. unique on this node, never reused) as this life of its rank (LIFE_NONE:
 * a standby on a spare node).
 * fd is our end of its SOCK_SEQPACKET socketpair (the child's end is KEEL_FD in its environment); the plane owns fd
 * now. */
keel_status plane_process_started(struct plane *plane, int seat, struct life life, int pid, int fd);
/* No process could be started for this life of its rank: another node is to run it. */
void plane_process_refused(struct plane *plane, struct life life);
/* The process in seat ended: by exit with code, or by signal (0 if none). */
void plane_process_exited(struct plane *plane, int seat, int code, int signal);
/* The process in seat was released and has not ended for so long that it is to be killed. The callback end follows,
 * unless it is to stay by now, or its program has come to its end. */
void plane_process_overdue(struct plane *plane, int seat);
/* It was released a while ago, and is waited for: if its program has come to its end the event log says so. */
void plane_process_lingers(struct plane *plane, int seat);
/* The process in seat, which was to be released, has been killed for that. */
void plane_process_moved(struct plane *plane, int seat);
/* The answer to the callback output. */
void plane_process_output(struct plane *plane, int seat, uint32_t id, const uint64_t at[2]);
/* The program has what a set of its ranks could not get that begins anew: no set does from now on. */
void plane_sets_stay(struct plane *plane);
/* The rank, which runs on this node, is to go on in a new process on that node. Nothing happens where it is not here or
 * cannot move. What it holds in its own memory is lost, as when it dies. Nothing in Keel asks for it yet but tests. */
void plane_move_rank(struct plane *plane, int rank, int node);
/* What this node's detector knows, one JSON object: probe, coordinator, watches, doubts, links, said (see keelctl(1)).
 * The caller frees it. NULL: out of memory, or not started. */
char *plane_detection_json(struct plane *plane);
/* What this node's processes have counted (runtime/base/counters.h): {"agent": {NAME: n, ...}, "ranks": {"RANK": {...},
 * ...}}, without what is 0. Of a rank all its processes that this node has had count. The caller frees it. NULL: out
 * of memory, or not started. */
char *plane_counters_json(struct plane *plane);
/* Processes do what no replica can do for another: a set that loses one is retired. Also if it was said before. */
void plane_needs_sets(struct plane *plane);
/* The process has written a file: the set whose files count has all ranks that have. */
void plane_writes(struct plane *plane, struct life life);
/* keelrun (or keelctl stop) wants the job to end with this code: becomes a view event, everybody gets job_over. */
void plane_stop_job(struct plane *plane, int code, const char *why);
/* Compare the copies of all segments (runtime/agent/verify.h); verified follows, with this id. */
void plane_verify(struct plane *plane, uint64_t id);
/* Should slots that live stand elsewhere (runtime/agent/weighing.h)? If it pays within so many seconds (0: as many
 * as the job has run) they move; rebalanced follows, with this id. */
void plane_rebalance(struct plane *plane, uint64_t id, uint32_t seconds);
int plane_wake_fd(const struct plane *plane);
void plane_dispatch(struct plane *plane);
/* Stops the threads, frees everything. NULL is allowed. */
void plane_destroy(struct plane *plane);
#endif
