/* keeld's process half: the link to keelrun, the node's processes, PMI, the console socket, and the plane behind them.
 *
 *   JOINING --CONFIG--> CONFIGURED --START--> RUNNING --job over--> ENDING --processes gone--> OVER --BYE, or lease-->
 * exit
 *                                                \--put out--> OUT --processes gone--> a keeld that comes back, JOINING
 *
 * CONFIG may come again before START, where others did not come: everything that it had made is made anew, perhaps as another node.
 *
 * Losing keelrun before START ends the agent; after START it changes nothing but where the output goes, and when:
 * link.c. */
#ifndef KEEL_PM_AGENT_H
#define KEEL_PM_AGENT_H

#include "pm/keeld/backlog.h"
#include "pm/wire/conn.h"
#include "pm/wire/fault.h"
#include "pm/wire/link.h"
#include "pm/wire/message.h"
#include "pm/wire/ticket.h"
#include "pm/wire/waits.h"
#include "pm/plane.h"
#include "pm/pmi/pmi.h"
#include "pm/pmi/pmi_root.h"
#include "pm/keeld/process.h"

#include <stdatomic.h>

enum agent_state { AGENT_JOINING, AGENT_CONFIGURED, AGENT_RUNNING, AGENT_OUT, AGENT_ENDING, AGENT_OVER };

/* What one that was declared dead, or has no quorum, leaves to the keeld that it becomes: return.c. */
struct agent_legacy {
    struct summons summons; /* where keelrun is; no ticket */
    uint8_t secret[SESSION_SECRET];
    int node, console_port, console_s;
    long long console;
    pid_t stub_pid;
    struct rlimit descriptors;
};

struct agent_launch {
    bool join; /* a process of the node has started us, see join.c: no summons */
    uint64_t job_id;
    int node;
    struct summons *summons;   /* secret: its ticket leads to keelrun, which then tells the job's secret */
    struct rlimit descriptors; /* as we were started: the ranks' */
    atomic_bool *runs;         /* shared with the stub: the job has started; written by the agent */
    struct agent_legacy *back; /* secret: of the life before, NULL: there was none */
};

struct agent_job {   /* MSG_CONFIG */
    uint8_t *secret; /* SESSION_SECRET bytes */
    struct job_settings settings;
    int standbys;      /* processes of a spare node */
    int launcher_pid;  /* where the starter runs */
    int starts;        /* nodes that it may be asked to start */
    int round;         /* which description of the job it is */
    int sponsor;       /* of one that comes later: a member; else 0 */
    int window;        /* how much output of each stream may be sent ahead */
    int console_port;  /* of keelrun's host, where a connection that broke is made again */
    long long console; /* which one of keelrun's consoles ours is: nobody else knows it */
    int console_s;     /* how long output, and at the end we, wait for it */
    char **argv, **env;
    char *cwd;
};

struct agent_process {
    struct process *p;
    struct pmi_client *pmi;
    bool assigned_late; /* was a standby, or replaces a process that died */
    bool own_fault;     /* died of it while the job ran */
    int hidden_pid;     /* the rank's process, which this one has started, and which has died: 0: none; */
    int hidden_signal;  /* of what */
};

struct agent_peer { /* another node's listener */
    char host[64];
    int port;
};

/* A connection made to us: an agent that reports to the PMI root, or keelctl. */
struct agent_guest {
    struct daemon *agent;
    struct agent_guest *next;
    struct wire_conn *conn;
    int node;        /* of an agent, -1 otherwise */
    bool attached;   /* keelctl attach */
    uint64_t verify; /* the audit that it waits for, 0: none */
    bool known;      /* has proved itself: it belongs to the job */
};

struct daemon {
    uv_loop_t loop;
    enum agent_state state;
    struct agent_launch launch;
    struct agent_job job;
    pid_t stub_pid;
    char self_host[64]; /* our address on the job's interface */

    /* link.c */
    struct wire_conn *run;      /* to keelrun; NULL: there is none now */
    struct wire_conn *resuming; /* one that is being made again */
    struct link link;
    bool joined;                       /* keelrun has proved itself once */
    bool gone, given_up;               /* keelrun has ended; it has been out of reach for too long for output to wait */
    int tries;                         /* to reach it at first */
    int refusals;                      /* in a row, when it was to be reached again */
    bool ended;                        /* the last connection was ended there, or a new one was refused */
    uint64_t over_ms;                  /* when MSG_OVER was said */
    uint64_t output_lost, events_lost; /* while it was given up: bytes; lines of the event log */
    int outside;                       /* our standard error at the start, which the stub reads; -1: none */
    uv_timer_t again, patience;
    uv_timer_t lease;
    uv_timer_t grace; /* between SIGTERM and SIGKILL */
    int end_signal;   /* instead of SIGTERM; 0: that */
    bool stopped;     /* the node's processes are */
    bool returns;     /* as a keeld that comes back, when the loop ends */

    struct plane *plane;
    uv_poll_t *plane_wake;
    uint64_t epoch;
    int *view_rank_node;
    bool *view_alive;
    int born; /* so many numbers were given to nodes so far */

    char *waits;            /* of the plane: what this node's ranks wait for, NULL: for nothing */
    struct waits *gathered; /* where no keelrun does it; NULL: one does */
    uv_timer_t gathering;

    struct agent_process *processes; /* index is the slot */
    int process_count;
    bool here;                /* a process has called keel_init, and keelrun was told */
    bool is_keels;            /* here, or somewhere else: the program uses Keel */
    int lost_rank, lost_node; /* before that was known: a rank that died with its node; -1 */
    uv_timer_t kind;          /* how long the program has then, to show that it is one of Keel's */
    bool standbys_begun;      /* on a spare */
    struct agent_held {
        int rank;
        uint32_t incarnation;
    } * held; /* ranks that wait for that */
    int held_count;
    struct pmi_server *pmi;
    struct pmi_root *root; /* in use at one node only */
    struct wire_conn *root_conn;
    int root_at;
    long long root_released;           /* highest round that we, as the root, have declared complete */
    long long fence_round, fence_done; /* the round our ranks are in; the last one that was released */
    uv_timer_t root_timer;

    long long window[2]; /* what may still be sent of standard output and error */
    uv_pipe_t log_pipe;  /* our own standard error, once we run */
    struct lines log_lines;
    struct backlog backlog;
    int console_fd; /* unix socket for keelctl */
    uv_poll_t *console_watch;
    uv_tcp_t listener; /* on the job's interface, for agents */
    int listener_port;
    struct agent_peer *peers;
    struct agent_guest *guests;
    int guest_count;
    uint64_t verifies; /* audits asked for */

    int over_code;
    char *over_why;
    struct fault fault;         /* of any node; kept here because that node may be gone at the end */
    char *own_why;              /* what this node alone knows about the end */
    struct agent_start *starts; /* of other nodes */
    bool departing;             /* only the ends of those are waited for */
    bool departing_forced;
    bool ran; /* the job has started */
    uv_signal_t child_signal;
    int exit_code;
};

/* Runs the agent until the job is over; returns keeld's exit code. */
int agent_run(const struct agent_launch *launch, pid_t stub_pid);

/* keeld.c: for the other agent_*.c files */
/* Calls ready when fd can be read. */
uv_poll_t *agent_watch(struct daemon *a, int fd, uv_poll_cb ready);
/* NULL is allowed. Before fd is closed. */
void agent_unwatch(uv_poll_t *watch);
void agent_event(struct daemon *a, const char *event, json_t *members); /* takes members; may be NULL */
/* This node cannot take part: tell keelrun and end. */
void agent_fail(struct daemon *a, int code, const char *why);
/* MSG_STOP, from keelrun or keelctl. */
void agent_stop(struct daemon *a, const json_t *m);
/* What ended the job, known here only. The first one counts. */
void agent_own_why(struct daemon *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* End the local processes: hard at once, else with a grace. */
void agent_end(struct daemon *a, int code, const char *why, bool hard);
/* One of the mpiexec that we ran has ended. */
void agent_starts_ended(struct daemon *a);
/* All processes of the node, now. */
void agent_kill_all(struct daemon *a);
void agent_processes_gone(struct daemon *a);

/* In order: when the mpiexec that we run have ended. */
void agent_depart(struct daemon *a, int exit_code);
/* A message of keelrun's. */
void agent_run_frame(struct daemon *a, uint8_t type, const uint8_t *body, size_t len);

/* link.c */
void agent_link_begin(struct daemon *a);
/* To keelrun, now or when it is in reach again; to nobody if it is gone. */
void agent_link_send(struct daemon *a, uint8_t type, const void *body, size_t len);
void agent_link_send_json(struct daemon *a, uint8_t type, json_t *body); /* takes body */
/* MSG_REFUSED */
void agent_link_refused(struct daemon *a, const char *why);
/* All has been said but MSG_OVER: keelrun is waited for. */
void agent_link_over(struct daemon *a);

/* output.c */
void agent_output_init(struct daemon *a);
/* stream is 1 or 2 here, as in MSG_OUTPUT; 0 or 1 below. */
void agent_output(struct daemon *a, int rank, int stream, const uint8_t *lines, size_t len);
/* Nothing of that stream may be sent now. */
bool agent_output_closed(const struct daemon *a, int stream);
void agent_output_widen(struct daemon *a, int window);
/* MSG_TAKEN */
void agent_output_taken(struct daemon *a, const uint8_t *body, size_t len);
/* Whether output waits for keelrun has changed: what may be read is read. */
void agent_output_free(struct daemon *a);
/* From now on our standard error goes where the ranks' output goes, no more to the stub under Hydra's proxy. */
void agent_log_capture(struct daemon *a);
/* What we have said and not read back yet. */
void agent_log_drain(struct daemon *a);

/* ranks.c */
void agent_ranks_start(struct daemon *a);
void agent_ranks_assigned(struct daemon *a, int slot, int rank, uint32_t incarnation);
void agent_ranks_respawn(struct daemon *a, int rank, uint32_t incarnation);
void agent_ranks_hidden_death(struct daemon *a, int slot, int pid, int signal);
void agent_ranks_plain_death(struct daemon *a, int slot);
void agent_ranks_standby(struct daemon *a);
/* A rank, here or elsewhere, that died of its own fault and was not started again. */
struct fault agent_ranks_fault(const struct daemon *a);
bool agent_ranks_gone(const struct daemon *a);
void agent_ranks_signal(struct daemon *a, int signal, bool standbys_only);
/* MSG_SIGNAL */
void agent_ranks_forward(struct daemon *a, int signal);
void agent_ranks_stdin(struct daemon *a, const uint8_t *data, size_t len);
void agent_ranks_pause(struct daemon *a, int stream, bool pause);
void agent_ranks_pmi_release(struct daemon *a, const json_t *kvs);
/* Descendants of ranks that outlived them (they become children of the agent): reap the dead, kill the live if asked.
 */
void agent_ranks_orphans(struct daemon *a, bool kill_them);
void agent_ranks_free(struct daemon *a);

/* A process of this rank that is there already, as the next slot. NULL: it has ended. The lifeline is ours then. */
struct process *agent_ranks_adopt(struct daemon *a, int rank, pid_t pid, int lifeline);

/* keeld.c, for join.c */
/* The job is known: open memory and transport, and say so. */
void agent_configure(struct daemon *a);
/* All nodes are known: the list has what each has said, in their order; peers their hosts and ports. */
void agent_start(struct daemon *a, const json_t *list, const json_t *peers);

/* return.c: the node was put out of the job, and lives */
/* There is somebody to ask, and room. */
bool agent_return_may(const struct daemon *a);
/* Its processes are killed: when they have ended it begins anew. */
void agent_return_begin(struct daemon *a);
void agent_return_processes_gone(struct daemon *a);
/* What is left of it, in a descriptor. -1: that cannot be. */
int agent_return_leave(struct daemon *a);
void agent_return_exec(int legacy, uint64_t job_id);
/* At the beginning of the second life: standard input, read once. NULL: there is none. */
struct agent_legacy *agent_return_read(void);
void agent_return_take(struct daemon *a);
/* MSG_RETURN, on a connection that is made as one that broke is. */
void agent_return_ask(struct daemon *a, struct wire_conn *c);
/* MSG_START has come. */
void agent_return_started(struct daemon *a);

/* join.c: a node whose processes keelrun did not start */
void agent_join_begin(struct daemon *a);
/* takes ready */
void agent_join_ready(struct daemon *a, json_t *ready);
void agent_join_failed(struct daemon *a, const char *why);
void agent_join_run(struct daemon *a);
void agent_join_say(const struct daemon *a, const char *line);
void agent_join_over(const struct daemon *a);

/* starts.c */
void agent_starts_begin(struct daemon *a, const json_t *m);
/* All nodes have joined. */
void agent_starts_settled(struct daemon *a);
void agent_starts_signal(struct daemon *a, int signal);
bool agent_starts_has(const struct daemon *a, pid_t pid);

/* kind.c: programs that do not use Keel cannot survive the loss of a node. */
void agent_kind_init(struct daemon *a);
/* A process of the job has called keel_init. */
void agent_kind_is_keels(struct daemon *a);
/* Before the view is taken over: what is lost by it? */
void agent_kind_view(struct daemon *a, const int *rank_node, const bool *node_alive);
/* The exit code of a job that would end with this one. */
int agent_kind_judge(struct daemon *a, int code);
/* A rank is to go on here: true if it waits until the program has shown what it is. */
bool agent_kind_holds(struct daemon *a, int rank, uint32_t incarnation);

/* pmi.c */
void agent_pmi_open(struct daemon *a);
void agent_pmi_fence(struct daemon *a);
void agent_pmi_view(struct daemon *a);
void agent_pmi_report(struct daemon *a, struct agent_guest *guest, const json_t *m);
void agent_pmi_release(struct daemon *a, const json_t *m);

/* waits.c: what ranks of this node wait for, to keelrun, or from here to who has started them */
void agent_waits_init(struct daemon *a);
void agent_waits_changed(struct daemon *a, const char *members);
/* For keelctl, as in pm/wire/waits.h. */
json_t *agent_waits_json(const struct daemon *a);
void agent_waits_free(struct daemon *a);

/* console.c */
void agent_console_open(struct daemon *a);   /* keelctl finds this node; else a line says so */
bool agent_console_listen(struct daemon *a); /* for agents; self_host must be known */
void agent_console_output(struct daemon *a, const void *frame, size_t len);
void agent_console_over(struct daemon *a);
void agent_console_verified(struct daemon *a, uint64_t id, const char *json);
void agent_console_close(struct daemon *a);
#endif
