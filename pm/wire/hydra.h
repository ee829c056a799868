/* One mpiexec.hydra that starts one agent: for keelrun, and for agents that start further ones. */
#ifndef KEEL_PM_HYDRA_H
#define KEEL_PM_HYDRA_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

enum { HYDRA_LINE = 256 };

struct hydra;

struct hydra_events {
    /* It has ended, and everything of it here is closed: it may be started again. wait_status -1: it could not be
     * started. h->last says why, if it said so. */
    void (*ended)(struct hydra *h, int wait_status);
    /* What it had started here (ssh, srun, ...) is gone, and it waits for ever. */
    void (*idle)(struct hydra *h);
};

struct hydra {
    void *user;
    int node; /* that it starts, for the log */
    struct hydra_events events;
    pid_t pid;
    bool running;
    char last[HYDRA_LINE]; /* the last line that says something */
    /* internal */
    uv_loop_t *loop;
    int pidfd, wait_status, handles;
    bool had_child;
    int childless; /* looks since it is gone */
    uv_poll_t exit_watch;
    uv_pipe_t output;
    uv_timer_t look;
    char line[HYDRA_LINE];
    size_t line_len;
};

struct hydra_command {
    const char *const *argv;
    char *const *env;
    const struct rlimit *descriptors; /* how many it may have; NULL: as we */
};

void hydra_init(struct hydra *h, uv_loop_t *loop, int node, const struct hydra_events *events, void *user);
/* What goes wrong comes by an event, too. */
void hydra_start(struct hydra *h, const struct hydra_command *command);
/* Its agent has come: it is not looked at any more. */
void hydra_settled(struct hydra *h);
void hydra_signal(struct hydra *h, int signal);
#endif
