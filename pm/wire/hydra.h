/* One start of one agent by mpiexec.hydra: for keelrun, and for agents that start further ones.
 *
 *   FINDING --keel-launch reports--> HANDING --mpiexec.hydra is gone--> LAUNCHED --the launcher ends--> over
 *
 * mpiexec.hydra finds the launcher and calls keel-launch in its place; then it has done its work and is killed:
 * whoever connects to it meets nobody soon, and before that somebody who knows nothing. The launcher is our child
 * then (who starts nodes is a subreaper). */
#ifndef KEEL_PM_HYDRA_H
#define KEEL_PM_HYDRA_H

#include "pm/wire/order.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

enum { HYDRA_LINE = 256 };
enum hydra_phase { HYDRA_IDLE, HYDRA_FINDING, HYDRA_HANDING, HYDRA_LAUNCHED };

struct hydra;

struct hydra_events {
    /* The launcher is there, h->launcher, and waits until this returns. */
    void (*launched)(struct hydra *h);
    /* All of it has ended, and everything of it here is closed: it may be started again. wait_status -1: it could not
     * be started. h->last says why, if it said so. */
    void (*ended)(struct hydra *h, int wait_status);
};

struct hydra {
    void *user;
    int node; /* that it starts, for the log */
    struct hydra_events events;
    enum hydra_phase phase;
    pid_t mpiexec, launcher; /* 0: not there (yet) */
    char last[HYDRA_LINE];   /* the last line that says something */
    /* internal */
    uv_loop_t *loop;
    bool settled, stopped;
    int report;                  /* socket to keel-launch, -1 */
    int mpiexec_fd, launcher_fd; /* pidfds, -1 */
    int wait_status, handles;    /* handles: still open */
    int looks_stuck, looks_gone; /* looks that found it so */
    bool gone;
    uv_poll_t mpiexec_watch, report_watch, launcher_watch;
    uv_pipe_t output;
    uv_timer_t look;
    char line[HYDRA_LINE];
    size_t line_len;
};

struct hydra_command {
    const char *const *argv;
    char *const *env; /* of mpiexec.hydra, which tells it to all that ask */
    struct order order;
    const struct rlimit *descriptors; /* how many it may have; NULL: as we */
};

void hydra_init(struct hydra *h, uv_loop_t *loop, int node, const struct hydra_events *events, void *user);
/* What goes wrong comes by an event, too. */
void hydra_start(struct hydra *h, const struct hydra_command *command);
/* Its agent has come, or will not: the launcher is not looked at any more. */
void hydra_settled(struct hydra *h);
/* To the launcher; what has not come so far ends. */
void hydra_signal(struct hydra *h, int signal);
bool hydra_has(const struct hydra *h, pid_t pid);
#endif
