/* One process of a node: a rank, or a standby that may become one. Starts it in a session of its own, watches it by
 * pidfd, reads its output line by line, carries its PMI socket. Event-loop thread only.
 *
 * It dies with its agent (PR_SET_PDEATHSIG, or the lifeline of an adopted one): the agent's memory is the rank's
 * memory. */
#ifndef KEEL_PM_KEELD_PROCESS_H
#define KEEL_PM_KEELD_PROCESS_H

#include "pm/wire/bytes.h"
#include "pm/keeld/lines.h"
#include "runtime/base/life.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

struct process;

struct process_events {
    void (*output)(struct process *p, int stream, const uint8_t *lines, size_t len); /* stream 1 or 2 */
    void (*pmi)(struct process *p, const uint8_t *data, size_t len);
    void (*stdin_taken)(struct process *p, size_t len); /* bytes accepted (or thrown away: it reads no more) */
    void (*exited)(struct process *p);                  /* code and signal are set; output may still follow */
    void (*drained)(struct process *p);                 /* after exited: nothing follows any more */
};

struct process_spec {
    char *const *argv;
    char *const *env; /* complete, except for KEEL_FD and PMI_FD, which are added */
    const char *cwd;
    struct rlimit descriptors; /* how many it may have */
    bool with_stdin;
    bool same_numbers; /* KEEL_FD and PMI_FD are what they are in any process: its environment is, too */
    int world;         /* a descriptor that the process has as WORLD_FD (base/world_page.h); -1: none */
    bool hold_output;  /* do not read its output before process_release_output */
};

struct process {
    int seat;
    struct life life; /* LIFE_NONE: standby */
    pid_t pid;
    int pidfd;
    bool exited, drained;
    int code, signal;
    void *user;
    /* internal */
    int lifeline; /* of an adopted one, else -1 */
    struct process_events events;
    uv_poll_t exit_watch;
    uv_pipe_t out[2], pmi, in;
    uv_timer_t drain, silence;
    struct lines lines[2];
    uint64_t came[2]; /* bytes of its output and error, counted from where it begins */
    int open_handles, open_outputs;
    bool in_open, pmi_open, hold_output, paused[2];
};

/* NULL on failure, with *error set to the errno of what failed (exec included) and *what to a static text ("" if it was
 * the program). On success *keel_fd is our end of the SOCK_SEQPACKET pair whose other end the process knows as KEEL_FD.
 */
struct process *process_start(uv_loop_t *loop, const struct process_spec *spec, const struct process_events *events,
                              void *user, int *keel_fd, int *error, const char **what);
/* One that runs already and was started by others: no output, no input, no PMI. It holds the other end of the lifeline,
 * a stream, and writes there with which code it ends; without a word it was killed, by whatever. NULL: it has ended. */
struct process *process_adopt(uv_loop_t *loop, pid_t pid, int lifeline, const struct process_events *events,
                              void *user);
void process_release_output(struct process *p);
/* How far its output and error have come, with all that it has written by now. */
void process_output_came(struct process *p, uint64_t at[2]);
/* What it has written by now is passed on, and what follows begins there. */
void process_output_begins(struct process *p, const uint64_t at[2]);
/* Back-pressure: stop or resume reading its output (0) or error (1). What is in the pipe when it ends is read all
 * the same. */
void process_pause_output(struct process *p, int stream, bool pause);
/* len 0: end of file. */
void process_write_stdin(struct process *p, const uint8_t *data, size_t len);
void process_write_pmi(struct process *p, const uint8_t *data, size_t len);
void process_close_pmi(struct process *p);
/* To the process and everything in its process group. */
void process_kill(struct process *p, int signal);
/* The same, once: for signals that count. */
void process_pass(struct process *p, int signal);
#endif
