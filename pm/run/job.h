/* keelrun's side of a job: who has joined, what goes to whom, when it is over.
 *
 *   JOB_JOINING --all nodes READY--> JOB_RUNNING --first OVER, FAILED, stop--> JOB_ENDING --all nodes gone-->
 * JOB_CLOSING
 *   --all launchers gone--> the loop stops. ENDING and CLOSING have deadlines after which force is used. */
#ifndef KEEL_PM_JOB_H
#define KEEL_PM_JOB_H

#include "pm/wire/conn.h"
#include "pm/wire/dialogue.h"
#include "pm/run/job_end.h"
#include "pm/run/job_io.h"
#include "pm/run/job_dialogue.h"
#include "pm/run/job_callers.h"
#include "pm/run/job_replicas.h"
#include "pm/run/job_return.h"
#include "pm/run/job_waits.h"
#include "pm/run/launch.h"
#include "pm/run/news.h"
#include "pm/wire/message.h"
#include "pm/run/options.h"
#include "pm/run/stdin_feed.h"
#include "pm/wire/waits.h"

enum job_phase { JOB_JOINING, JOB_RUNNING, JOB_ENDING, JOB_CLOSING };
enum node_phase { NODE_AWAITED, NODE_JOINED, NODE_READY, NODE_OVER, NODE_LOST };

struct asking; /* job_dialogue.c */

struct job_node {
    enum node_phase phase;
    int started_as;           /* the number by which launch.h and its agent's HELLO know it */
    struct pm_conn *conn;     /* NULL: there is none now */
    struct dialogue dialogue; /* what is said over it, and over those that follow */
    long long console;        /* with which the agent comes again */
    uint64_t cut_ms;          /* since when there is none, though the job runs; 0: there is one */
    struct asking *asking;    /* its listener */
    int refusals;             /* of it, in a row */
    bool rest_told;           /* that the end waits for it */
    int agent_fd;             /* pidfd of the agent, if it is below us; -1 elsewhere */
    json_t *ready;            /* MSG_READY */
    bool unexplained;         /* its agent has ended, and no view has called it dead yet */
    uint64_t declared_ms;     /* when a view called it dead; 0: none has */
    bool unborn;              /* it comes later, and no view has it yet */
    bool taken_back;          /* the number that it had from us; but perhaps it comes all the same */
    int sponsor;              /* of such a one: a member */
    uint64_t born_epoch;      /* of that view; 0: it was there at the start */
    bool hears;     /* it was asked whether it knows of the one that comes (job_return.c), and has not answered */
    int unanswered; /* pings since it was last heard, while another node's loss is unexplained */
    size_t owed[2]; /* of its standard output and error: taken, and not said yet */
};

/* Who may speak to us, and where: one listener for those who come with a ticket, one for those who know the job's
 * secret. */
struct job_door {
    uint8_t *secret; /* the job's, SESSION_SECRET bytes: told to those that came with a ticket */
    uv_tcp_t listener;
    uv_tcp_t console; /* for agents whose connection broke, and that know the secret */
    int console_port;
};

/* Descriptions of the job: a further one when a node did not come. */
struct job_round {
    int number;
    uint64_t begun_ms;
};

struct job {
    uv_loop_t loop;
    struct options *options; /* the number of spares is what has come of them */
    uint64_t id;
    enum job_phase phase;
    struct job_door door;
    struct launch *launch;
    /* [all]: first those that take part, by their numbers, then those that did not come; and room behind them */
    struct job_node *nodes;
    int total, all;
    int born;     /* numbers that some view has had alive */
    char **names; /* of hosts, in the same order; NULL on a bed */
    struct job_round round;
    struct strangers strangers;
    struct verdict verdict;
    bool forced;                     /* the hard way was taken */
    bool closing_forced;             /* and at the very end, for launchers */
    bool standbys_begun, fault_told; /* to all nodes, and to those that come later */
    bool news_awaited;               /* it was told for whom, when nobody in reach is left */
    struct news news;
    uv_timer_t deadline, limit, doubt;
    struct job_waits wait;
    struct cuts cuts;
    int signals_seen; /* of those that end the job */
    int end_signal;   /* that the ranks are to get; 0: SIGTERM */
    struct job_io io;
    struct stdin_feed feed;
    int feed_node;      /* where the process of rank 0 is that it goes to, */
    uint32_t feed_life; /* and its incarnation */
    struct job_replicas replicas;
    struct returners returners;
};

/* Runs the job on an initialised loop; both listeners listen, launch is ready to begin. What is still to be written is
 * job_io_finish's matter, which gives the exit code. */
void job_run(struct job *j);
/* By its host, or its number; in out or elsewhere. */
const char *job_node_name(const struct job *j, int node, char *buffer, size_t size);
/* What befell nodes, if that is to be told. */
void job_tell(struct job *j, const char *line);
/* Of who is waited for: nothing has come to its end yet. */
void job_tell_waits(struct job *j, const char *line);
void job_tell_waits_for(struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Of launch.c: a launcher has ended; the agent of node `by` is to start another node. */
void job_launcher_ended(struct job *j, int started_as, int wait_status, const char *text);
void job_hand_over(struct job *j, int by, int node, const struct start_plan *plan);

/* job_start.c */
/* Nodes are started; each has its time. */
void job_start_begin(struct job *j);
/* The place of a node in nodes, by the number that it was started as. */
int job_place_of(const struct job *j, int started_as);
/* It does not come, or its agent has ended before the start: that is the first loss. */
void job_node_missing(struct job *j, int node, const char *why);
/* All that come are ready: the job runs; or, if not all came, those that did are told of another one. */
void job_start_if_ready(struct job *j);
void job_send_config(struct job *j, int node);

/* job_feed.c: standard input */
void job_feed_begin(struct job *j);
/* Rank 0 goes on in that process, and standard input with it. */
void job_feed_again(struct job *j, int node, uint32_t life);
/* How much of standard input was read, which a process of rank 0 that begins when we have ended lacks. */
void job_tell_input(struct job *j, int node);

/* job_doubt.c */
/* While nodes are out of reach: if all that could say what became of the job are, and others are lost, the job is
 * over for us after a time. */
void job_wait_for_news(struct job *j);
/* Its agent has ended, for certain; no view has said so yet. */
void job_node_gone(struct job *j, int node, const char *why);

/* job_hear.c: what agents that have joined say */
/* Any message that is JSON. */
void job_hear(struct job *j, int node, uint8_t type, const json_t *m);
/* The program is one of Keel's: its ranks can go on elsewhere, and the spares' processes may wait for their use. */
void job_hear_here(struct job *j);
/* What of a line of the event log people are told at once. */
void job_hear_event(struct job *j, int node, const char *line, size_t len);
/* What all were told is told to a node that came later. */
void job_greet(struct job *j, int node);

/* job_signals.c; one job at a time */
void job_signals_begin(struct job *j);
/* From now on the job does not need keelrun. */
void job_signals_runs(void);
/* From here on those that end are the system's. */
void job_signals_end(void);
#endif
