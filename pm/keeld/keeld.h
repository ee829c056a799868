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
#ifndef KEEL_PM_KEELD_KEELD_H
#define KEEL_PM_KEELD_KEELD_H

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

enum keeld_state { KEELD_JOINING, KEELD_CONFIGURED, KEELD_RUNNING, KEELD_OUT, KEELD_ENDING, KEELD_OVER };

/* What one that was declared dead, or has no quorum, leaves to the keeld that it becomes: return.c. */
struct keeld_legacy {
    struct summons summons; /* where keelrun is; no ticket */
    uint8_t secret[SESSION_SECRET];
    int node, console_port, console_s;
    long long console;
    pid_t stub_pid;
    struct rlimit descriptors;
};

struct keeld_launch {
    bool join; /* a process of the node has started us, see join.c: no summons */
    uint64_t job_id;
    int node;
    struct summons *summons;   /* secret: its ticket leads to keelrun, which then tells the job's secret */
    struct rlimit descriptors; /* as we were started: the ranks' */
    atomic_bool *runs;         /* shared with the stub: the job has started; written by the agent */
    struct keeld_legacy *back; /* secret: of the life before, NULL: there was none */
};

struct keeld_job {   /* MSG_CONFIG */
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

struct keeld_process {
    struct process *p;
    struct pmi_client *pmi;
    bool assigned_late; /* was a standby, or replaces a process that died */
    bool own_fault;     /* died of it while the job ran */
    int hidden_pid;     /* the rank's process, which this one has started, and which has died: 0: none; */
    int hidden_signal;  /* of what */
};

struct keeld_peer { /* another node's listener */
    char host[64];
    int port;
};

/* A connection made to us: an agent that reports to the PMI root, or keelctl. */
struct keeld_guest {
    struct keeld *agent;
    struct keeld_guest *next;
    struct pm_conn *conn;
    int node;        /* of an agent, -1 otherwise */
    bool attached;   /* keelctl attach */
    uint64_t verify; /* the audit that it waits for, 0: none */
    bool known;      /* has proved itself: it belongs to the job */
};

struct keeld {
    uv_loop_t loop;
    enum keeld_state state;
    struct keeld_launch launch;
    struct keeld_job job;
    pid_t stub_pid;
    char self_host[64]; /* our address on the job's interface */

    /* link.c */
    struct pm_conn *run;      /* to keelrun; NULL: there is none now */
    struct pm_conn *resuming; /* one that is being made again */
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

    struct keeld_process *processes; /* index is the seat */
    int process_count;
    bool here;                /* a process has called keel_init, and keelrun was told */
    bool is_keels;            /* here, or somewhere else: the program uses Keel */
    int lost_rank, lost_node; /* before that was known: a rank that died with its node; -1 */
    uv_timer_t kind;          /* how long the program has then, to show that it is one of Keel's */
    bool standbys_begun;      /* on a spare */
    struct life *held;        /* ranks' lives that wait for that */
    int held_count;
    struct pmi_server *pmi;
    struct pmi_root *root; /* in use at one node only */
    struct pm_conn *root_conn;
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
    struct keeld_peer *peers;
    struct keeld_guest *guests;
    int guest_count;
    uint64_t verifies; /* audits asked for */

    int over_code;
    char *over_why;
    struct fault fault;         /* of any node; kept here because that node may be gone at the end */
    char *own_why;              /* what this node alone knows about the end */
    struct keeld_start *starts; /* of other nodes */
    bool departing;             /* only the ends of those are waited for */
    bool departing_forced;
    bool ran; /* the job has started */
    uv_signal_t child_signal;
    int exit_code;
};

/* Runs the agent until the job is over; returns keeld's exit code. */
int keeld_run(const struct keeld_launch *launch, pid_t stub_pid);

/* keeld.c: for the other files */
/* Calls ready when fd can be read. */
uv_poll_t *keeld_watch(struct keeld *a, int fd, uv_poll_cb ready);
/* NULL is allowed. Before fd is closed. */
void keeld_unwatch(uv_poll_t *watch);
void keeld_event(struct keeld *a, const char *event, json_t *members); /* takes members; may be NULL */
/* This node cannot take part: tell keelrun and end. */
void keeld_fail(struct keeld *a, int code, const char *why);
/* MSG_STOP, from keelrun or keelctl. */
void keeld_stop(struct keeld *a, const json_t *m);
/* What ended the job, known here only. The first one counts. */
void keeld_own_why(struct keeld *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One of the mpiexec that we ran has ended. */
void keeld_starts_ended(struct keeld *a);
/* All processes of the node, now. */
void keeld_kill_all(struct keeld *a);
void keeld_processes_gone(struct keeld *a);

/* In order: when the mpiexec that we run have ended. */
void keeld_depart(struct keeld *a, int exit_code);
/* A message of keelrun's. */
void keeld_run_frame(struct keeld *a, uint8_t type, const uint8_t *body, size_t len);

/* link.c */
void keeld_link_begin(struct keeld *a);
/* To keelrun, now or when it is in reach again; to nobody if it is gone. */
void keeld_link_send(struct keeld *a, uint8_t type, const void *body, size_t len);
void keeld_link_send_json(struct keeld *a, uint8_t type, json_t *body); /* takes body */
/* MSG_REFUSED */
void keeld_link_refused(struct keeld *a, const char *why);
/* All has been said but MSG_OVER: keelrun is waited for. */
void keeld_link_over(struct keeld *a);

/* output.c */
void keeld_output_init(struct keeld *a);
/* stream is 1 or 2 here, as in MSG_OUTPUT; 0 or 1 below. */
void keeld_output(struct keeld *a, int rank, int stream, const uint8_t *lines, size_t len);
/* Nothing of that stream may be sent now. */
bool keeld_output_closed(const struct keeld *a, int stream);
void keeld_output_widen(struct keeld *a, int window);
/* MSG_TAKEN */
void keeld_output_taken(struct keeld *a, const uint8_t *body, size_t len);
/* Whether output waits for keelrun has changed: what may be read is read. */
void keeld_output_free(struct keeld *a);
/* From now on our standard error goes where the ranks' output goes, no more to the stub under Hydra's proxy. */
void keeld_log_capture(struct keeld *a);
/* What we have said and not read back yet. */
void keeld_log_drain(struct keeld *a);

/* ranks.c */
void keeld_ranks_start(struct keeld *a);
void keeld_ranks_assigned(struct keeld *a, int seat, struct life life);
void keeld_ranks_respawn(struct keeld *a, struct life life);
void keeld_ranks_hidden_death(struct keeld *a, int seat, int pid, int signal);
void keeld_ranks_plain_death(struct keeld *a, int seat);
void keeld_ranks_standby(struct keeld *a);
/* A rank, here or elsewhere, that died of its own fault and was not started again. */
struct fault keeld_ranks_fault(const struct keeld *a);
bool keeld_ranks_gone(const struct keeld *a);
void keeld_ranks_signal(struct keeld *a, int signal, bool standbys_only);
/* MSG_SIGNAL */
void keeld_ranks_forward(struct keeld *a, int signal);
void keeld_ranks_stdin(struct keeld *a, const uint8_t *data, size_t len);
void keeld_ranks_pause(struct keeld *a, int stream, bool pause);
void keeld_ranks_pmi_release(struct keeld *a, const json_t *kvs);
/* Descendants of ranks that outlived them (they become children of the agent): reap the dead, kill the live if asked.
 */
void keeld_ranks_orphans(struct keeld *a, bool kill_them);
void keeld_ranks_free(struct keeld *a);

/* A process of this rank that is there already, as the next seat. NULL: it has ended. The lifeline is ours then. */
struct process *keeld_ranks_adopt(struct keeld *a, int rank, pid_t pid, int lifeline);

/* keeld.c, for join.c */
/* The job is known: open memory and transport, and say so. */
void keeld_configure(struct keeld *a);
/* All nodes are known: the list has what each has said, in their order; peers their hosts and ports. */
void keeld_start(struct keeld *a, const json_t *list, const json_t *peers);

/* return.c: the node was put out of the job, and lives */
/* There is somebody to ask, and room. */
bool keeld_return_may(const struct keeld *a);
/* Its processes are killed: when they have ended it begins anew. */
void keeld_return_begin(struct keeld *a);
void keeld_return_processes_gone(struct keeld *a);
/* What is left of it, in a descriptor. -1: that cannot be. */
int keeld_return_leave(struct keeld *a);
void keeld_return_exec(int legacy, uint64_t job_id);
/* At the beginning of the second life: standard input, read once. NULL: there is none. */
struct keeld_legacy *keeld_return_read(void);
void keeld_return_take(struct keeld *a);
/* MSG_RETURN, on a connection that is made as one that broke is. */
void keeld_return_ask(struct keeld *a, struct pm_conn *c);
/* MSG_START has come. */
void keeld_return_started(struct keeld *a);

/* join.c: a node whose processes keelrun did not start */
void keeld_join_begin(struct keeld *a);
/* takes ready */
void keeld_join_ready(struct keeld *a, json_t *ready);
void keeld_join_failed(struct keeld *a, const char *why);
void keeld_join_run(struct keeld *a);
void keeld_join_say(const struct keeld *a, const char *line);
void keeld_join_over(const struct keeld *a);

/* starts.c */
void keeld_starts_begin(struct keeld *a, const json_t *m);
/* All nodes have joined. */
void keeld_starts_settled(struct keeld *a);
void keeld_starts_signal(struct keeld *a, int signal);
bool keeld_starts_has(const struct keeld *a, pid_t pid);

/* kind.c: programs that do not use Keel cannot survive the loss of a node. */
void keeld_kind_init(struct keeld *a);
/* A process of the job has called keel_init. */
void keeld_kind_is_keels(struct keeld *a);
/* Before the view is taken over: what is lost by it? */
void keeld_kind_view(struct keeld *a, const int *rank_node, const bool *node_alive);
/* The exit code of a job that would end with this one. */
int keeld_kind_judge(struct keeld *a, int code);
/* A rank is to go on here: true if it waits until the program has shown what it is. */
bool keeld_kind_holds(struct keeld *a, struct life life);

/* pmi.c */
void keeld_pmi_open(struct keeld *a);
void keeld_pmi_fence(struct keeld *a);
void keeld_pmi_view(struct keeld *a);
void keeld_pmi_report(struct keeld *a, struct keeld_guest *guest, const json_t *m);

/* waits.c: what ranks of this node wait for, to keelrun, or from here to who has started them */
void keeld_waits_init(struct keeld *a);
void keeld_waits_changed(struct keeld *a, const char *members);
/* For keelctl, as in pm/wire/waits.h. */
json_t *keeld_waits_json(const struct keeld *a);
void keeld_waits_free(struct keeld *a);

/* console.c */
void keeld_console_open(struct keeld *a);   /* keelctl finds this node; else a line says so */
bool keeld_console_listen(struct keeld *a); /* for agents; self_host must be known */
void keeld_console_output(struct keeld *a, const void *frame, size_t len);
void keeld_console_over(struct keeld *a);
void keeld_console_verified(struct keeld *a, uint64_t id, const char *json);
void keeld_console_close(struct keeld *a);
#endif
