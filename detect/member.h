/* Who is alive, and in which order things happened to whom: failure detector and view agreement of one node, as a pure
 * state machine. It does no I/O and reads no clock: the owner (detect/helper.h in an agent, tests/sim in the simulator)
 * passes events and the time in and carries out the actions.
 *
 * Nodes have the ids 0..n-1. Those below n_born are members from the start (spares included); the others are *unborn*:
 * no members, until a node joins the job under one. An id goes unborn -> member -> gone and never back. A *view* is an
 * epoch number and the set of those born and not declared dead up to it. A view change adds one to the epoch and
 * carries a batch of events (base/view_event.h); every member that lives sees the same sequence of batches
 * (docs/protocols/detection.md has the argument). At most one node is born in a view, and under the least unborn id: so
 * whoever is in a view in which a node is born has an id below it.
 *
 *   submit / verdict -> PREPARE(epoch, events) to all -> member_prepared() of all -> COMMIT(epoch, events, max value)
 *                    -> all have committed -> SETTLED(epoch)
 *
 * Who joins (self >= n_born) begins at epoch 0 like everybody and is given the log by the members, from which it has
 * the view; it asks them for its birth itself, and votes and proposes from the view on in which it was born.
 *
 * threads   none inside; the owner serialises all calls. Callbacks are made from inside the calls; of this header's
 *           functions they may call only member_submit, member_prepared, member_check and the queries.
 * memory    under 6.5 KiB per core whatever n, 12 bytes for each range of dead ids in each of four sets, at most n / 7
 *           bytes a set
 *           (idset.h), and the log: 700 bytes an epoch. The coordinator: n / 8 bytes more.
 * source    FT-ARMCI, "Remote-Node Fault Detection Module": heartbeat reads on a ring, datagram pings, a quorum.
 *           Differs:
 *           a failed read is only a suspicion; a death becomes a totally ordered view. */
#ifndef KEEL_DETECT_MEMBER_H
#define KEEL_DETECT_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/job_settings.h"
#include "runtime/base/limits.h"
#include "runtime/base/view_event.h"

enum {
    MEMBER_NODES_MAX = 100000,  /* of a simulation; a job has LIMIT_NODES at most */
    MEMBER_LINKS_MAX = 64,      /* reports of broken links that are kept; more are dropped */
    MEMBER_BATCH_MAX = 16,      /* entries in one epoch: events, or deaths of neighbours */
    MEMBER_EVENTS_MAX = 128,    /* events in one epoch */
    MEMBER_DATAGRAM_MAX = 1344, /* bytes of the longest datagram a core sends */
};
_Static_assert((int)LIMIT_NODES <= (int)MEMBER_NODES_MAX, "a job's nodes have a detector");

#define MEMBER_NEVER UINT64_MAX
enum { MEMBER_BEAT_BITS = 56 };
enum {
    MEMBER_LATE_TIMES = 4
}; /* a limit grows by so many times what judge or judged were late by, and at most by itself */

/* The b of VIEW_NODE_DEAD. */
enum member_evidence {
    MEMBER_ALIVE,       /* no evidence of death */
    MEMBER_REFUSED,     /* positive: the peer's kernel says that nobody listens there; the agent is gone for certain */
    MEMBER_SILENT,      /* neither it nor its host answered anything for the limit; a majority of voters agrees */
    MEMBER_HUNG,        /* its host answers and its agent does not, and somebody has waited for it for stopped_ns */
    MEMBER_UNREACHABLE, /* some reach it, but a majority of voters could not for twice the limit */
};

/* What the death of a node would cost: who would be lost with it is given more time. */
enum member_stake {
    MEMBER_CHEAP,  /* nothing that is not elsewhere */
    MEMBER_COSTLY, /* data of which there is no other whole copy */
    MEMBER_FATAL,  /* the job */
};

struct member_params {
    int n;                /* ids */
    int n_born;           /* of members at the start: 0..n_born-1 */
    int self;             /* 0..n-1; from n_born on: it joins */
    uint32_t incarnation; /* who joins: its own; another one that is born under its id is somebody else */
    int sponsor;          /* who joins: the member that it asks first */
    int was;              /* who joins: 1 + the id of the node that was where it is now, and is dead; 0: none */
    int place;            /* who joins: 1 + the place of the grid that it takes; 0: as in VIEW_NODE_BORN */
    enum member_topology topology;
    int degree;       /* ring, random: how many nodes each one reads (successors; draws) */
    const int *edges; /* MEMBER_FILE: [edge_count][2] reader, target; kept by the caller for the core's life */
    int edge_count;
    uint64_t seed;      /* random topology (same on all nodes) and choice of voters */
    int voters;         /* members asked to ping a suspect, if there are so many */
    uint64_t period_ns; /* between heartbeat reads of one node */
    uint64_t late_ns;   /* a read or ping unanswered for so long raises a suspicion */
    uint64_t ping_ns;   /* between pings of a suspect */
    /* silence of a node and its host, from the last sign of either to the verdict; at the least: patience.c */
    uint64_t limit_ns;
    /* where its host answers: from when somebody waits for it to the verdict; MEMBER_NEVER: there is none */
    uint64_t stopped_ns;
    uint64_t answer_ns;  /* within which who runs and is reached has answered: what is no verdict is measured by it */
    uint64_t startup_ns; /* agents start one after the other: who was never heard of is not silent before */
    uint64_t rto_ns;     /* first retransmission; doubles up to rto_max_ns */
    uint64_t rto_max_ns;
};

/* Sensible values for n nodes; the caller then changes what it wants. */
void member_params_default(struct member_params *p, int n, int self);

/* Others than the default. Suspicions after this time, in milliseconds: all that is no verdict follows. Before
 * member_params_silence. */
void member_params_late(struct member_params *p, int late_ms);
/* Verdicts after these times, and looks often enough for them. In milliseconds, 100 <= limit; stopped 0: never. */
void member_params_silence(struct member_params *p, int limit_ms, int stopped_ms);

/* How it is with a node, as seen here. */
enum member_how {
    MEMBER_IS_SILENT,  /* neither it nor its host answers */
    MEMBER_IS_STOPPED, /* its host says that its agent was stopped: a signal, a debugger */
    MEMBER_IS_HUNG,    /* its host answers, it does not */
    MEMBER_IS_BEYOND,  /* others reach it, we do not */
};
/* Why a verdict waits longer than the limit. */
enum member_why { MEMBER_WHY_NONE, MEMBER_WHY_DATA, MEMBER_WHY_JOB, MEMBER_WHY_SIDE, MEMBER_WHY_LATE };
struct member_doubt {
    int node;
    enum member_how how;
    enum member_why why;
    uint64_t since_ns; /* its last sign of life, in the owner's time */
    uint64_t limit_ns; /* from then to the verdict; MEMBER_NEVER: not before somebody waits for it, or not at all */
    bool waited_for;   /* somebody here waits for it */
};
const char *member_how_name(enum member_how how); /* "does not answer, nor does its host" */
const char *member_why_name(enum member_why why); /* "its death would lose data", "" for NONE */

/* For the event log. */
enum member_report_kind {
    MEMBER_REPORT_SUSPECT,     /* node, text = evidence */
    MEMBER_REPORT_CLEARED,     /* the suspect gave a sign of life */
    MEMBER_REPORT_VERDICT,     /* node is dead, by this member's judgement: evidence */
    MEMBER_REPORT_LINK_BROKEN, /* node lives, but the path from here does not work */
    MEMBER_REPORT_LINK_OK,
    MEMBER_REPORT_PREPARE, /* epoch */
    MEMBER_REPORT_BORN,    /* node becomes a member with the view that is committed next */
    MEMBER_REPORT_VIEW,    /* epoch committed */
    MEMBER_REPORT_SETTLED, /* epoch committed by all */
    MEMBER_REPORT_HALT,    /* this member ends: text = reason */
    /* the suspect has been silent for a while: doubt says how it is, and for how long it is waited for */
    MEMBER_REPORT_PATIENCE,
    /* this member hears too few of the others, and ends if that stays so: limit_ns from now at the latest */
    MEMBER_REPORT_CUT_OFF,
    MEMBER_REPORT_IN_TOUCH, /* that is over */
    /* this member was late by limit_ns, more than its limit for silence allows for and twice what was told before */
    MEMBER_REPORT_LATE,
    /* not for the log */
    MEMBER_REPORT_ANSWERED, /* node answered what was sent at asked_ns, after a member_check */
    MEMBER_REPORT_LINKS,    /* what member_links gives has changed */
    MEMBER_REPORT_AGENT,    /* the kernel of the suspect's host answers: it is its agent that does not */
};
struct member_report {
    enum member_report_kind kind;
    enum member_evidence evidence;
    int node;       /* or -1 */
    uint64_t epoch; /* the last committed one, or the one meant */
    uint64_t now_ns;
    uint64_t asked_ns;
    const char *text;          /* static storage */
    struct member_doubt doubt; /* MEMBER_REPORT_PATIENCE */
    uint64_t limit_ns;
};
const char *member_report_name(enum member_report_kind kind);
const char *member_evidence_name(enum member_evidence evidence);

struct member_ops {
    void *user;
    /* Unreliable datagram; may be lost, doubled, reordered. len <= MEMBER_DATAGRAM_MAX. */
    void (*send)(void *user, int to, const void *data, size_t len);
    /* Read node's heartbeat word: member_heartbeat follows, or member_broken, or nothing. At most one read per node is
     * outstanding, except that a read unanswered for late_ns is given up and may be posted again. */
    void (*read)(void *user, int node);
    /* Heartbeat reads of node will (not) be asked for from now on: keep (drop) a connection. */
    void (*watch)(void *user, int node, bool on);
    /* Try to connect to node's listener: member_refused follows if its kernel says nobody listens, member_kernel if it
     * takes the connection, which needs no process of that host to run; else nothing. And ask its witness, if it has
     * one: member_stopped or member_runs follows, or nothing. */
    void (*probe)(void *user, int node);
    /* Epoch `epoch` is proposed: stop acting for, and refuse, what these events declare dead, then call member_prepared
     * (from within or later) with the number `proposal`, never 0. May come again for one epoch with other events and
     * another number (a coordinator died in between): the last counts. A node named dead in a superseded batch stays
     * suspected for ever, so fencing it early is right. */
    void (*prepare)(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n);
    /* Epoch is decided: every live member gets the same events in the same order. max_value is the largest value that a
     * live member gave to member_prepared. A member that was cut off and catches up gets commits without a prepare. */
    void (*commit)(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value);
    /* Every live member of that view has committed all epochs up to this one. Comes in order, may skip numbers. */
    void (*settled)(void *user, uint64_t epoch);
    /* This member was declared dead, has no quorum or no memory. It does nothing any more, and calls nothing: the
     * process must end. */
    void (*halt)(void *user, const char *reason);
    void (*report)(void *user, const struct member_report *report);
    /* node is a member from now on, as this incarnation: comes before anything is sent to it, and before the commit.
     * May be NULL. */
    void (*born)(void *user, int node, uint32_t incarnation);
};

struct member;

/* ops is copied. NULL if out of memory or a parameter is out of range. */
struct member *member_create(const struct member_params *params, const struct member_ops *ops, uint64_t now);
void member_destroy(struct member *m);

/* When member_tick should be called next (absolute). Changes with every call into the core. */
uint64_t member_deadline(const struct member *m);
/* Hand in everything that has arrived before you tick: time in which the owner did not run is not held against others
 * (docs/protocols/detection.md, "blindness"). */
void member_tick(struct member *m, uint64_t now);

void member_receive(struct member *m, int from, const void *data, size_t len, uint64_t now);
/* A read completed. The word is a number that changes and, above MEMBER_BEAT_BITS, how late its owner was of late. */
void member_heartbeat(struct member *m, int node, uint64_t word, uint64_t now);
/* What this member's word is to be, with the number. */
uint64_t member_beat(const struct member *m, uint64_t number);
void member_broken(struct member *m, int node, uint64_t now);  /* a connection to node broke, a read failed */
void member_refused(struct member *m, int node, uint64_t now); /* node's kernel: nobody listens. Certain death */
void member_kernel(struct member *m, int node, uint64_t now);  /* node's kernel takes connections */
/* Nobody could ask its host, for want of something here: it is silent to nobody on that account. */
void member_unasked(struct member *m, int node, uint64_t now);
void member_stopped(struct member *m, int node, uint64_t now); /* node's host says: its agent was stopped */
void member_runs(struct member *m, int node, uint64_t now);    /* ... it was not, it waits for a processor or a disk */
/* Somebody has doubts about node: find out now. MEMBER_REPORT_ANSWERED follows, with an asked_ns not before now, if the
 * way there and back works within limit_ns. */
void member_check(struct member *m, int node, uint64_t now);
/* What its death would cost, until something else is said; MEMBER_CHEAP at first. */
void member_stake(struct member *m, int node, enum member_stake stake, uint64_t now);
/* An operation of this node waits for that one, and says so again before `until` if it still does then. */
void member_waits(struct member *m, int node, uint64_t until, uint64_t now);

/* Have an event ordered. Kept and resent until it is; each exactly once, in the order submitted here, unless this
 * member dies first. type >= VIEW_EVENT_FIRST. Returns its sequence number on this member (1, 2, ...; the births it has
 * ordered take some), or 0: it has ended, maybe now, for want of memory. */
uint32_t member_submit(struct member *m, const struct view_event *event, uint64_t now);
/* The answer to prepare(). Ignored if that proposal was superseded. */
void member_prepared(struct member *m, uint64_t proposal, uint64_t value, uint64_t now);

/* Queries */
int member_next_id(const struct member *m);                  /* the least unborn id; n: there is none left */
bool member_believes_dead(const struct member *m, int node); /* own verdict, or declared */
/* Of a reason for which a member ended: did the others go on without it, or may they have? Then it may join them
 * again. */
bool member_was_left_out(const char *reason);
/* Links that are broken though both ends live, a < b. Every member comes to know of all, some hops after an end
 * noticed. since_ns is in the time of this member's owner. A link is reported whole again only after it has worked for
 * answer_ns, longer if it breaks again and again. Returns their number, at most max; MEMBER_LINKS_MAX are enough for
 * all that is kept. */
struct member_link {
    int a, b;
    uint64_t since_ns;
};
int member_links(const struct member *m, struct member_link *out, int max);
/* False: there is no doubt about it. */
bool member_doubt(const struct member *m, int node, struct member_doubt *out);
/* What this member knows at the moment. */
enum { MEMBER_WATCHES_MAX = 32, MEMBER_DOUBTS_MAX = 32, MEMBER_LATENCY_BUCKETS = 20 };
struct member_status {
    uint64_t epoch;
    bool born;
    int next_id; /* the least unborn id */
    int coordinator, n_watches, n_doubts, n_links;
    struct member_watch_status {
        int node;
        uint64_t last_life_ns; /* its heartbeat was seen to move */
        uint64_t reads;        /* completed */
        uint32_t
            latency[MEMBER_LATENCY_BUCKETS]; /* of them, that took [2^k, 2^(k+1)) us; the first and last are open */
    } watches[MEMBER_WATCHES_MAX];
    struct member_doubt_status {
        int node;
        const char *state;
        uint64_t since_ns;
        int asked, reached, unreached; /* members asked for a vote; what they answered */
        struct member_doubt doubt;
    } doubts[MEMBER_DOUBTS_MAX];
    struct member_link links[MEMBER_LINKS_MAX];
};
void member_status(const struct member *m, struct member_status *out);
#endif
