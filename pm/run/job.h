/* keelrun's side of a job: who has joined, what goes to whom, when it is over.
 *
 *   JOB_JOINING --all nodes READY--> JOB_RUNNING --first OVER, FAILED, stop--> JOB_ENDING --all nodes gone-->
 * JOB_CLOSING
 *   --all launchers gone--> the loop stops. ENDING and CLOSING have deadlines after which force is used. */
#ifndef KEEL_PM_JOB_H
#define KEEL_PM_JOB_H

#include "pm/wire/conn.h"
#include "pm/wire/link.h"
#include "pm/run/launch.h"
#include "pm/run/news.h"
#include "pm/wire/message.h"
#include "pm/run/options.h"
#include "pm/run/sink.h"
#include "pm/run/stdin_feed.h"
#include "pm/wire/waits.h"

enum job_phase { JOB_JOINING, JOB_RUNNING, JOB_ENDING, JOB_CLOSING };
enum node_phase { NODE_AWAITED, NODE_JOINED, NODE_READY, NODE_OVER, NODE_LOST };

struct asking;
struct returner;

struct job_node {
    enum node_phase phase;
    int started_as;        /* the number by which launch.h and its agent's HELLO know it */
    struct pm_conn *conn;  /* NULL: there is none now */
    struct link link;      /* what is said over it, and over those that follow */
    long long console;     /* with which the agent comes again */
    uint64_t cut_ms;       /* since when there is none, though the job runs; 0: there is one */
    struct asking *asking; /* its listener */
    int refusals;          /* of it, in a row */
    bool rest_told;        /* that the end waits for it */
    int agent_fd;          /* pidfd of the agent, if it is below us; -1 elsewhere */
    json_t *ready;         /* MSG_READY */
    bool unexplained;      /* its agent has ended, and no view has called it dead yet */
    uint64_t declared_ms;  /* when a view called it dead; 0: none has */
    bool unborn;           /* it comes later, and no view has it yet */
    int sponsor;           /* of such a one: a member */
    uint64_t born_epoch;   /* of that view; 0: it was there at the start */
    bool hears;     /* it was asked whether it knows of the one that comes (job_return.c), and has not answered */
    int unanswered; /* pings since it was last heard, while another node's loss is unexplained */
    size_t owed[2]; /* of its standard output and error: taken, and not said yet */
};

/* With --label: whose line it is that has begun and not ended. */
struct job_line {
    bool open;
    int node, rank;
};

struct job {
    uv_loop_t loop;
    struct options *options; /* the number of spares is what has come of them */
    uint64_t id;
    uint8_t *secret; /* the job's, SESSION_SECRET bytes: told to those that came with a ticket */
    enum job_phase phase;
    uv_tcp_t listener;
    uv_tcp_t console; /* listens for agents whose connection broke, and that know the secret */
    int console_port;
    struct launch *launch;
    /* [all]: first those that take part, by their numbers, then those that did not come; and room behind them */
    struct job_node *nodes;
    int total, all;
    char **names; /* of hosts, in the same order; NULL on a bed */
    int round;    /* of descriptions of the job: a further one when a node did not come */
    uint64_t round_ms;
    int strangers; /* connections that have not said which node they are */
    struct peer *oldest_stranger, *newest_stranger;
    /* The result. What keelrun decides itself is final and told at once; of what the nodes say the best is told at the
     * end: a code other than 0, and a reason that one of them alone knows. */
    bool decided, final;
    int code;
    char *why;    /* not told yet */
    bool why_own; /* that node alone knows it */
    bool forced;  /* the hard way was taken */
    bool closing_forced;
    bool standbys_begun, fault_told;
    bool news_awaited; /* it was told for whom, when nobody in reach is left */
    struct news news;
    uv_timer_t deadline, limit, doubt, looks;
    struct waits waits; /* from the start of the job on */
    uv_timer_t waiting;
    int cut_told; /* how many nodes are out of reach; 0: nothing was told */
    uint64_t cut_told_ms;
    int signals_seen;             /* of those that end the job */
    int end_signal;               /* that the ranks are to get; 0: SIGTERM */
    struct sink sinks[2], events; /* one for both where standard output and error are the same file */
    struct sink *out, *err;
    int window;            /* how much output of each stream each agent may send ahead */
    struct job_line at[2]; /* standard output and error */
    bool output_failed;    /* some could not be written */
    bool has_events, events_failed;
    struct stdin_feed feed;
    struct returner *returners; /* job_return.c: the first one has its turn */
    uv_timer_t returning;
};

/* Runs the job on an initialised loop; both listeners listen, launch is ready to begin. What is still to be written is job_io_finish's
 * matter, which gives the exit code. */
void job_run(struct job *j);
/* By its host, or its number; in out or elsewhere. */
const char *job_node_name(const struct job *j, int node, char *out, size_t size);
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

/* job_end.c */
/* Our own decision. The first one counts. why is told at once; NULL: there is none. */
void job_decide(struct job *j, int code, const char *why);
/* What a node says of the end: all say the same, but for what one of them alone knows. */
void job_hear_end(struct job *j, int code, const char *why, bool own);
/* Its agent has more to say, as far as is known. */
bool job_is_left(const struct job *j, int node);
/* A decision, and what follows from it. */
void job_stop(struct job *j, int code, const char *why);
/* From now on the nodes' ends are waited for; by force: not for long. */
void job_begin_end(struct job *j);
void job_use_force(struct job *j);
void job_end_if_all_gone(struct job *j);
/* A signal that ends the job; the second is harder. */
void job_interrupted(struct job *j, int signal_number);
/* Of our standard output or error: ends the job, as SIGPIPE ends a program. */
void job_reader_gone(struct job *j);
/* Our standard output or error cannot be written: ends the job, whose output would be lost. */
void job_output_lost(struct job *j, const char *why);

/* job_doubt.c */
/* While nodes are out of reach: if all that could say what became of the job are, and others are lost, the job is over for us after a time. */
void job_wait_for_news(struct job *j);
/* Its agent has ended, for certain; no view has said so yet. */
void job_node_gone(struct job *j, int node, const char *why);

/* job_peers.c */
/* At one of the two listeners. */
void job_agent_connected(struct job *j, bool again);
void job_drop_connection(struct job *j, int node);
/* The node has another place in nodes than it had. */
void job_moved(struct job *j, int node);
/* For job_return.c: a connection is dropped, or is that of a node from now on. */
void job_forget_peer(struct job *j, struct pm_conn *c);
void job_peer_is(struct job *j, struct pm_conn *c, int node);

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
/* From here on those that end are the system's. */
void job_signals_end(void);

/* job_waits.c; from JOB_RUNNING on */
void job_waits_begin(struct job *j);
void job_waits_view(struct job *j, const int *rank_node, const bool *alive);
/* MSG_WAITS */
void job_waits_report(struct job *j, int node, const json_t *report);
/* How it is with a node that does not answer, and that it does again. */
void job_waits_patience(struct job *j, int node, const char *how, const char *why, double limit_ms, bool waited_for);
void job_waits_answers(struct job *j, int node);
void job_waits_end(struct job *j);

/* job_return.c: nodes that were declared dead, live, and come back. */
void job_return_init(struct job *j);
/* MSG_RETURN. False: it is none of the job's. */
bool job_return_asked(struct job *j, struct pm_conn *c, const json_t *m);
/* Its connection broke; true: it was such a one, and has no number yet. */
bool job_return_lost(struct job *j, const struct pm_conn *c);
/* What agents say: the one that comes is ready; it is known where that is. */
void job_return_ready(struct job *j, int node, const json_t *m);
void job_return_met(struct job *j, int node, const json_t *m);
/* MSG_START was sent: its connection may break. */
bool job_return_started(const struct job *j, int node);
/* It cannot go on, or its agent has ended. */
void job_return_failed(struct job *j, int node, const char *why);
/* A view has come, or a node was lost. */
void job_return_look(struct job *j);
/* The job ends. */
void job_return_end(struct job *j);
/* A view has it. */
void job_take_birth(struct job *j, int node, uint64_t epoch);

/* job_link.c */
void job_link_begin(struct job *j);
/* The agent's first connection. */
void job_link_open(struct job *j, int node, struct pm_conn *conn);
/* To a node's agent: over the connection that there is, or that will be. */
void job_send(struct job *j, int node, uint8_t type, const void *body, size_t len);
void job_send_json(struct job *j, int node, uint8_t type, json_t *body); /* takes body */
void job_send_all_json(struct job *j, uint8_t type, json_t *body);       /* takes body */
/* The connection broke while the job ran. */
void job_link_cut(struct job *j, int node, const char *why);
/* The agent is there again, and has received that many frames. False: that cannot be. */
bool job_link_resume(struct job *j, int node, struct pm_conn *conn, uint64_t received);
/* If no node is cut off any more: that is said, where it was said that some are, and nothing is looked at. */
void job_link_settled(struct job *j);
/* What it has to say is on its way, or it is out of reach and not yet for too long. */
bool job_link_waits(const struct job *j, int node);

/* job_io.c */
/* event_log: NULL: none. Ends the program if it cannot be written. Before any thread. */
void job_io_open(struct job *j, const char *event_log);
void job_io_init(struct job *j);
/* The event log is in its file, or is given up. */
void job_io_flush_events(struct job *j);
/* All is written, or cannot be, or its reader did not move for long after an end that was asked for. Returns the exit code. */
int job_io_finish(struct job *j);
void job_event(struct job *j, const char *event, json_t *members);
void job_event_line(struct job *j, const char *line, size_t len);
/* node: who sent it, -1: not known. */
void job_output(struct job *j, int node, const uint8_t *body, size_t len);
void job_say(struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
