/* The membership core: what it is made of, and what its files share. Each part has a header. Nothing outside detect/
 * includes this.
 *
 *   member.c     entry points, the inner clock, queries
 *   watch.c      heartbeat reads
 *   detector.c   whom to doubt, pings
 *   target.c     a doubt: its states
 *   verdicts.c   who is believed dead
 *   noticed.c    what connections, kernels and witnesses tell
 *   vote.c       votes of others
 *   relays.c     ways around broken links
 *   contact.c    the check of one's own contact
 *   patience.c   how long silence is waited out
 *   topology.c   who reads whom
 *   quorum.c     what a majority is
 *   agreement.c  ballots, the coordinator
 *   join.c       nodes that join
 *   ledger.c     what is prepared, accepted, committed; the log
 *   events.c     events on their way into the log
 *   reports.c    reports to the coordinator
 *   status.c     what is known, for people
 *   linkmap.c    broken links, told to everybody
 *   wave.c      one phase of a view change: down a tree and back
 *   tree.c       who is where in this tree
 *
 * Inner time. All times here are in `m->t`: the owner's clock minus the time in which the owner was late with its
 * tick. What it could not see it does not hold against others. */
#ifndef KEEL_DETECT_MEMBER_INTERNAL_H
#define KEEL_DETECT_MEMBER_INTERNAL_H

#include "detect/idset.h"
#include "detect/member.h"
#include "detect/datagram.h"
#include "detect/agreement.h"
#include "detect/contact.h"
#include "detect/detector.h"
#include "detect/events.h"
#include "detect/grow.h"
#include "detect/ledger.h"
#include "detect/linkmap.h"
#include "detect/patience.h"
#include "detect/relays.h"
#include "detect/roster.h"
#include "runtime/base/bitset.h"
#include "runtime/base/rng.h"

#define NEVER UINT64_MAX
enum { FANOUT = 8, PIECES_MAX = 32, DIRECT_MAX = 64 };

/* Whom a member passes a message on to: the head of these ids, for all of them. */
struct piece {
    int head, end;
};

/* One phase under way: as root (coordinator), inner node or leaf of the tree. */
struct wave {
    enum wave_phase phase;
    int root, parent;
    uint64_t ballot, index;
    uint64_t started;
    int end;  /* this member's part: the ids from its own up to here, exclusive */
    int size; /* members of the tree in it, itself included */
    int n_pieces;
    struct piece piece[PIECES_MAX];
    bool self_done, full_sent, answer_root;
    bool certain;        /* whom the tree leaves out is dead for certain, or declared in this batch */
    uint64_t child_done; /* bit i: all of piece i is complete */
    uint64_t value;      /* PREPARE: max so far. ACCEPT, COMMIT: the decision's */
    struct batch batch;
    uint64_t best_ballot; /* COLLECT: highest accepted proposal of the subtree, 0: none */
    struct batch best;
    uint64_t best_value;
    int attempts;
    uint64_t next_resend, rto;
    struct idset out; /* not in the tree: declared dead before the index, or left out by the root */
    int n_left, cap_left;
    /* of these, in ascending order, whom the root left out and does not declare in this batch; at others: those that
     * it named to them */
    int *left;
    uint64_t
        *acked; /* root: bitset of positions, acked_words long; behind it, of those that said that they are at work: */
    uint64_t *heard;
    unsigned acked_words;
    int direct_at, direct,
        direct_answers; /* root: the next position to write to directly; those written to last; what came since */
    uint64_t told_at;   /* root: of deaths, those who have not answered */
    int copy_from; /* the message that we answer: whose, its number (when it was sent), and when it came (outer time) */
    uint64_t copy_nonce, copy_at;
};

/* How long answers take, as seen here, without the time for which they were kept: half of them came sooner. (Not the
 * mean: what a network delays or loses now and then makes nobody slow.) Who repeats a message earlier only adds to
 * what is under way. */
struct rtt {
    uint64_t half;
};

/* What this member has to say to the coordinator. */
struct report {
    int to;           /* the coordinator, as believed at the last look */
    uint64_t heard;   /* its last sign of life, 0: none */
    uint64_t changed; /* reports with a later number contain all that there is to say */
    uint64_t since;   /* the first of them */
    bool taken;       /* one of them was answered so */
    uint64_t next, rto, hold;
    uint32_t said;       /* number of the last own event in the last one */
    uint64_t said_nonce; /* of the last one, and the deaths in it */
    int said_dead[MEMBER_BATCH_MAX], n_said;
    int from; /* of the deaths, that the next report begins with */
    struct rtt rtt;
};

/* Who joins: what it asks whom. */
struct joining {
    bool born; /* no more */
    int asked;
    uint64_t since;         /* this one */
    uint64_t heard, others; /* it, and anybody, said something */
    uint64_t next, rto;
};

struct member {
    struct member_params p;
    struct member_ops ops;
    int depth; /* of entry points; actions are pumped when the outermost returns */
    bool halted;
    uint64_t now, t, blind, deadline; /* deadline: inner time of the next tick */
    uint64_t woke; /* inner time when the last absence ended that makes signs of before it old; 0: none */
    uint64_t created;
    struct rng rng;
    uint64_t nonce; /* of the last ping: the outer time at which it was sent, or a little more */

    struct roster roster;
    struct verdicts verdicts;
    struct detector detector;
    struct relays relays;
    struct linkmap linkmap;
    struct contact contact;
    struct patience patience;

    struct agreement agreement;
    struct ledger ledger;
    struct proposal proposal;
    struct accepted accepted;
    struct wave wave;

    struct events events;
    struct report report;
    struct joining joining;
    struct rtt wave_rtt; /* of subtrees */
    uint64_t next_poll, poll_rto;
};

/* member.c */
void member_enter(struct member *m, uint64_t now);
void member_leave(struct member *m);
void member_halt(struct member *m, const char *reason);
void member_note(struct member *m, enum member_report_kind kind, int node, enum member_evidence evidence,
                 uint64_t epoch, const char *text);
void member_note_answer(struct member *m, int node, uint64_t asked);
/* Fills in the header; goes around a broken link where a relay is known. */
void member_post(struct member *m, int to, struct datagram *msg);
void member_post_direct(struct member *m, int to, struct datagram *msg); /* never around */
static inline bool is_member(const struct member *m, int node)
{
    return !idset_has(&m->roster.gone, node);
}
static inline bool is_live(const struct member *m, int node) /* by this member's own knowledge */
{
    return !idset_has(&m->roster.dead, node);
}
static inline bool is_unborn(const struct member *m, int node)
{
    return node >= m->roster.next_id;
}
static inline int member_count(const struct member *m)
{
    return m->p.n - m->roster.gone.count;
}
static inline int lowest_member(const struct member *m)
{
    return idset_next_out(&m->roster.gone, 0);
}
static inline uint64_t since(const struct member *m, uint64_t then)
{
    return m->t > then ? m->t - then : 0;
}
static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
/* Into a set of the core. Without memory the member ends. */
void member_put(struct member *m, struct idset *set, int node);

/* topology.c: out receives the nodes that self must read when `gone` are out; at most max. */
int topology_targets(const struct member_params *p, const struct idset *gone, int *out, int max);

/* quorum.c: may `stay` of a view of `total` decide? certain: all others are known to be dead for sure. lowest: the
 * view's lowest id is among those who stay. */
bool quorum_admissible(int total, int stay, bool certain, bool lowest);

/* join.c */
bool join_begin(struct member *m);                               /* false: out of memory */
void join_receive(struct member *m, const struct datagram *msg); /* while we are unborn */
void join_tick(struct member *m);
uint64_t join_deadline(const struct member *m);
void join_stranger(struct member *m, const struct datagram *msg); /* from one that is not born, as far as we know */
bool join_is_other(const struct member *m, const struct batch *batch); /* it bears somebody else under our id */
void join_bear(struct member *m, const struct view_event *e);

/* reports.c */
void rtt_note(struct rtt *rtt, uint64_t took);
uint64_t rtt_rto(const struct member *m, const struct rtt *rtt,
                 int hops); /* to the first repetition, and the longest */
uint64_t rtt_rto_max(const struct member *m, const struct rtt *rtt, int hops);
uint32_t report_submit(struct member *m, const struct view_event *event); /* 0: no memory, it has ended */
void report_death(struct member *m, bool own);
void report_committed(struct member *m);
void report_heard(struct member *m, int node); /* a sign of life, or of work */
void report_taken(struct member *m, int node, uint64_t nonce);
void report_known(struct member *m, int node, uint64_t nonce);
void report_take(struct member *m, const struct datagram *msg);
void report_send(struct member *m);
uint64_t report_deadline(const struct member *m);
void poll_tick(struct member *m);
uint64_t poll_deadline(const struct member *m);
void report_tell_deaths(struct member *m, int to); /* those believed dead and not declared yet */

/* tree.c: of the wave under way. Positions count the members of the tree in this member's part, itself being 0. */
bool tree_has(const struct member *m, int id);
int tree_pos(const struct member *m, int id);
int tree_id(const struct member *m, int pos);
int tree_levels(const struct wave *r);             /* below this member, at least 1 */
void tree_mark(struct member *m, int id, int end); /* root: all members from id up to end have answered */
void tree_split(struct member *m);                 /* makes the pieces */
bool tree_left_add(struct wave *r, int id);        /* this and the next two: false if there is no memory */
/* From `left`, in any order. */
bool tree_make_out(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch);
bool tree_leave_out(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch); /* as root */
/* Of `left`, as many as a message can name: of those in a piece, or of all if there is none. Returns their number. */
int tree_named(const struct wave *r, const struct piece *piece, const int **first);

/* wave.c */
void wave_start(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch, uint64_t value);
void wave_join(struct member *m, const struct datagram *msg);
void wave_ack(struct member *m, const struct datagram *msg);
void wave_self_done(struct member *m);
bool wave_everybody(struct member *m);
void wave_recheck(struct member *m);     /* root: somebody was found dead, or time has passed */
void wave_tell_deaths(struct member *m); /* root: to those who have not answered a PREPARE */
void wave_cancel(struct member *m);
void wave_tick(struct member *m);
bool wave_waits_for(const struct member *m, int node); /* root: for its answer */
#endif
