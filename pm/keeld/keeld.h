/* keeld's process half: the link to keelrun, the node's processes, PMI, the console socket, and the plane behind them.
 *
 *   JOINING --CONFIG--> CONFIGURED --START--> RUNNING --job over--> ENDING --processes gone--> OVER --BYE, or lease-->
 * exit
 *                                                \--put out--> OUT --processes gone--> a keeld that comes back, JOINING
 *
 * CONFIG may come again before START, where others did not come: everything that it had made is made anew, perhaps as
 * another node.
 *
 * Losing keelrun before START ends the agent; after START it changes nothing but where the output goes, and when:
 * dialogue.c. */
#ifndef KEEL_PM_KEELD_KEELD_H
#define KEEL_PM_KEELD_KEELD_H

#include "pm/keeld/adding.h"
#include "pm/keeld/console.h"
#include "pm/keeld/kind.h"
#include "pm/keeld/dialogue.h"
#include "pm/keeld/output.h"
#include "pm/keeld/pmi.h"
#include "pm/keeld/process.h"
#include "pm/keeld/return.h"
#include "pm/keeld/waits.h"
#include "pm/plane.h"
#include "pm/wire/fault.h"
#include "pm/wire/message.h"
#include "pm/wire/start.h"
#include "pm/wire/ticket.h"

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
    bool join; /* a process of the node has started us, see bootstrap.c: no summons */
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
    int standbys;     /* processes of a spare node */
    int launcher_pid; /* where the starter runs */
    int starts;       /* nodes that it may be asked to start */
    int round;        /* which description of the job it is */
    int sponsor;      /* of one that comes later: a member; else 0 */
    bool added;       /* it is new, and another agent is in keelrun's place until it is a member */
    int was, place;   /* of such a one: as in plane_config */
    char *keelrun;    /* and where keelrun is; NULL: it has ended */
    int start_s;      /* the time in which nodes are to come */
    struct start_way way;
    int window;        /* how much output of each stream may be sent ahead */
    int console_port;  /* of keelrun's host, where a connection that broke is made again */
    long long console; /* which one of keelrun's consoles ours is: nobody else knows it */
    int console_s;     /* how long output, and at the end we, wait for it */
    char **argv, **env;
    char *cwd;
};

enum keeld_lacks {
    LACKS_NOTHING,
    LACKS_END,   /* keelrun ended before it had sent all */
    LACKS_ALL,   /* keelrun had ended before it began, and with it what a process before had read */
    LACKS_AGAIN, /* a process before had read more than keelrun keeps */
};

struct keeld_process {
    struct process *p;
    struct pmi_client *pmi;
    int world;          /* its page (base/world_page.h); -1: it has none */
    bool assigned_late; /* was a standby, or replaces a process that died */
    bool own_fault;     /* died of it while the job ran */
    bool is_guest;      /* its set has begun anew, and what it writes is nobody's yet */
    bool retired;       /* its set has lost another process: it is ended, and nobody is told */
    int aborted;        /* with which code it said that it ends the job (PMI); 0: it has not */
    uint64_t leave_by;  /* its rank goes elsewhere: who has not ended by then (uv_now) is overdue; 0: nobody asks */
    bool writes;        /* files, and the plane was told */
    bool leaves;        /* it was asked to, and not to stay since: its rank goes on in another process */
    bool made_to_leave; /* killed for it, unless it ends by itself before */
    int hidden_pid;     /* the rank's process, which this one has started, and which has died: 0: none; */
    int hidden_signal;  /* of what */
    struct {
        uint64_t bytes;         /* that were given to it */
        bool ended;             /* and it was said that these are all */
        enum keeld_lacks lacks; /* what it reads is not all of standard input */
    } input;
};

struct keeld_peer { /* another node's listener */
    char host[64];
    int port;
    uint8_t *blob; /* [blob_len] of its plane; NULL: nobody has come by that number yet */
    size_t blob_len;
    struct keeld_peer *other; /* until the number is born: whom else we were told of by it */
};

/* The newest view. */
struct keeld_view {
    uint64_t epoch;
    int *rank_node;                         /* [ranks]; NULL: the job is not known yet */
    bool *alive;                            /* [settings_ids] */
    int born;                               /* so many numbers were given so far: who is born lives in that view */
    struct replica_loss loss[REPLICAS_MAX]; /* of each set */
    int files;                              /* the set whose files count; -1: none */
};

/* How the job ended, as far as is known here, and how we do. */
struct keeld_end {
    int code;
    char *why;
    char *own_why;      /* what this node alone knows about the end */
    struct fault fault; /* of any node; kept here because that node may be gone at the end */
    int signal;         /* instead of SIGTERM; 0: that */
    uv_timer_t grace;   /* between SIGTERM and SIGKILL */
    bool departing;     /* only the ends of nodes that we have started are waited for */
    bool departing_forced;
    int exit_code;
};

struct keeld {
    uv_loop_t loop;
    enum keeld_state state;
    struct keeld_launch launch;
    struct keeld_job job;
    pid_t stub_pid;
    char self_host[64]; /* our address on the job's interface */
    uv_timer_t lease;   /* until CONFIG has come; and at the end, for what is left to do */
    uv_signal_t child_signal;
    bool ran;            /* the job has started */
    bool stopped;        /* the node's processes are */
    enum input_read fed; /* of one that comes later: SOME until it is told */
    bool returns;        /* as a keeld that comes back, when the loop ends */

    struct plane *plane;
    uv_poll_t *plane_wake;

    struct keeld_process *processes; /* index is the seat */
    int process_count;
    bool standbys_begun; /* on a spare */
    uv_timer_t leaving;  /* until the first leave_by */

    struct {
        bool said;       /* that sets need all their processes */
        uv_timer_t look; /* at who writes, while a set lacks one */
    } partners;

    struct keeld_kind kind;
    struct keeld_dialogue dialogue;
    struct keeld_output output;
    struct keeld_console console;
    struct keeld_view view;
    struct keeld_pmi pmi;
    struct keeld_waits waits;
    struct keeld_end end;
    struct keeld_peer *peers;   /* [settings_ids] */
    struct keeld_start *starts; /* of other nodes */
    struct keeld_addings addings;
};

/* Runs the agent until the job is over; returns keeld's exit code. */
int keeld_run(const struct keeld_launch *launch, pid_t stub_pid);

/* keeld.c: for the other files */
/* Calls ready when fd can be read. */
uv_poll_t *keeld_watch(struct keeld *a, int fd, uv_poll_cb ready);
/* NULL is allowed. Before fd is closed. */
void keeld_unwatch(uv_poll_t *watch);
void keeld_event(struct keeld *a, const char *event, json_t *members); /* takes members; may be NULL */
/* MSG_STOP, from keelrun or keelctl. */
void keeld_stop(struct keeld *a, const json_t *m);
/* A message of keelrun's. */
void keeld_run_frame(struct keeld *a, uint8_t type, const uint8_t *body, size_t len);

/* config.c */
/* MSG_CONFIG, which may come again before the start. */
void keeld_config_take(struct keeld *a, const json_t *m);
/* MSG_MEET: a node that comes later is there. */
void keeld_config_meet(struct keeld *a, const json_t *m);
/* The same of another agent's, who gets the answer. */
void keeld_config_meet_of(struct keeld *a, struct pm_conn *c, const json_t *m);
/* Where a node is that comes later. False: that cannot be used. */
bool keeld_config_learn(struct keeld *a, const json_t *m);
/* The view has the node now: of those that we were told of by its number this one is meant. */
void keeld_config_born(struct keeld *a, int node);
/* Forgets all of it. */
void keeld_config_forget(struct keeld_peer *p);
void keeld_config_free(struct keeld_job *job);
void keeld_view_free(struct keeld_view *v);
/* The job is known: open memory and transport, and say so. */
void keeld_configure(struct keeld *a);
/* All nodes are known: the list has what each has said, in their order; peers their hosts and ports. */
void keeld_start(struct keeld *a, const json_t *list, const json_t *peers);

/* plane.c: opens it; blob is what other nodes are to know. False: it has been told that this node cannot take part. */
bool keeld_plane_open(struct keeld *a, struct plane_blob *blob);

/* end.c */
/* This node cannot take part: tell keelrun and end. */
void keeld_fail(struct keeld *a, int code, const char *why);
/* What ended the job, known here only. The first one counts. */
void keeld_own_why(struct keeld *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* End the local processes: hard at once, else with a grace. */
void keeld_end(struct keeld *a, int code, const char *why, bool hard);
/* All processes of the node, now. */
void keeld_kill_all(struct keeld *a);
void keeld_processes_gone(struct keeld *a);
/* One of the mpiexec that we ran has ended. */
void keeld_starts_ended(struct keeld *a);
/* In order: when the mpiexec that we run have ended. */
void keeld_depart(struct keeld *a, int exit_code);
/* At once. */
void keeld_leave(struct keeld *a, int exit_code);

/* ranks_env.c: strings and list are the caller's to free. */
struct env_list {
    char **list;
    size_t count;
};
struct env_list keeld_rank_env(const struct keeld *a, int rank);
/* Its node, as the program counts them. */
int keeld_rank_node(const struct keeld *a, int rank);

/* world.c: what is preloaded, for free(); NULL: nothing. A new page for the rank's process; -1: it gets none. */
char *keeld_world_library(const struct keeld *a);
int keeld_world_open(const struct keeld *a, int rank);
/* All processes of the node have ended: the files of the leading set get their places, what was beside them goes. */
void keeld_world_over(struct keeld *a);

/* ranks.c, ranks_end.c, ranks_all.c */
void keeld_ranks_start(struct keeld *a);
void keeld_ranks_assigned(struct keeld *a, int seat, struct life life);
void keeld_ranks_respawn(struct keeld *a, struct life life);
void keeld_ranks_release(struct keeld *a, int seat);
void keeld_ranks_stay(struct keeld *a, int seat);
void keeld_ranks_end(struct keeld *a, int seat);
void keeld_ranks_hidden_death(struct keeld *a, int seat, int pid, int signal);
void keeld_ranks_plain_death(struct keeld *a, int seat);
/* There is standard input, which the program may have read: a set that begins anew would not have it. */
void keeld_ranks_fed(struct keeld *a);
/* As struct plane_callbacks has it. */
void keeld_ranks_output(struct keeld *a, int seat, uint32_t id, bool begins, const uint64_t at[2]);
void keeld_ranks_standby(struct keeld *a);
/* A rank, here or elsewhere, that died of its own fault and was not started again. */
struct fault keeld_ranks_fault(const struct keeld *a);
/* By the newest view: who crashed here behind keel_finalize, and goes on elsewhere, did not for good. */
void keeld_ranks_go_on(struct keeld *a);
bool keeld_ranks_gone(const struct keeld *a);
void keeld_ranks_signal(struct keeld *a, int signal, bool standbys_only);
/* MSG_SIGNAL */
void keeld_ranks_forward(struct keeld *a, int signal);
/* A frame of standard input, for a process of rank 0 here. */
void keeld_ranks_stdin(struct keeld *a, const uint8_t *body, size_t len);
/* That what it gets is not all. */
void keeld_ranks_stdin_lacks(struct keeld *a, const uint8_t *body, size_t len);
/* keelrun has ended, and nobody sends any more. */
void keeld_ranks_stdin_cut(struct keeld *a);
void keeld_ranks_pause(struct keeld *a, int stream, bool pause);
void keeld_ranks_pmi_release(struct keeld *a, int world, const json_t *kvs);
/* Of sets that have lost a process the others are ended. */
void keeld_ranks_retire(struct keeld *a);
/* Descendants of ranks that outlived them (they become children of the agent): reap the dead, kill the live if asked.
 */
void keeld_ranks_orphans(struct keeld *a, bool kill_them);
void keeld_ranks_free(struct keeld *a);

/* A process of this rank that is there already, as the next seat. NULL: it has ended. The lifeline is ours then. */
struct process *keeld_ranks_adopt(struct keeld *a, int rank, pid_t pid, int lifeline);

/* bootstrap.c: a node whose processes keelrun did not start */
void keeld_join_begin(struct keeld *a);
/* takes ready */
void keeld_join_ready(struct keeld *a, json_t *ready);
void keeld_join_failed(struct keeld *a, const char *why);
void keeld_join_run(struct keeld *a);
void keeld_join_say(const struct keeld *a, const char *line);
void keeld_join_over(const struct keeld *a);

/* plane.c: of each set who was lost first, or null. */
json_t *keeld_sets_json(const struct replica_map *m, const struct replica_loss *loss);

/* partners.c: they come to nothing where a set that loses a process is retired in any case. The plane is there. */
void keeld_partners_need_all(struct keeld *a);
/* The process ends. */
void keeld_partners_look_at(struct keeld *a, struct keeld_process *e);
void keeld_partners_view(struct keeld *a, const struct plane_view *v);

/* starts.c */
void keeld_starts_begin(struct keeld *a, const json_t *m);
/* One that is added here, not for keelrun: keeld_adding_launcher_ended is told. */
void keeld_starts_add(struct keeld *a, const struct start_plan *plan);
/* It has joined, or does not come. */
void keeld_starts_added(struct keeld *a, int node, bool joined);
/* Where a program of ours lies, for free(). */
char *keeld_own_path(const char *name);
/* All nodes have joined. */
void keeld_starts_settled(struct keeld *a);
void keeld_starts_signal(struct keeld *a, int signal);
bool keeld_starts_has(const struct keeld *a, pid_t pid);
#endif
