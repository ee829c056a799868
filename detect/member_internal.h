/* The membership core: what it is made of, and what its files share. Each part has a header. Nothing outside detect/
 * includes this but tests, whose way to look inside is tests/sim/look.h.
 *
 *   member.c     entry points, the inner clock, queries
 *   params.c     what a member is told of its job
 *   message.c    what comes in and goes out
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
 *   wave.c       one phase of a view change: down a tree and back
 *   wave_root.c  the same, at its root
 *   wave_send.c  its messages
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
#include "detect/join.h"
#include "detect/ledger.h"
#include "detect/linkmap.h"
#include "detect/patience.h"
#include "detect/relays.h"
#include "detect/reports.h"
#include "detect/roster.h"
#include "detect/tree.h"
#include "detect/wave.h"
#include "runtime/base/bitset.h"
#include "runtime/base/rng.h"

#define NEVER UINT64_MAX

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

/* params.c */
bool member_params_ok(const struct member_params *p);

/* message.c */
/* Fills in the header; goes around a broken link where a relay is known. */
void member_post(struct member *m, int to, struct datagram *msg);
void member_post_direct(struct member *m, int to, struct datagram *msg); /* never around */

/* topology.c: out receives the nodes that self must read when `gone` are out; at most max. */
int topology_targets(const struct member_params *p, const struct idset *gone, int *out, int max);

/* quorum.c: may `stay` of a view of `total` decide? certain: all others are known to be dead for sure. lowest: the
 * view's lowest id is among those who stay. */
bool quorum_admissible(int total, int stay, bool certain, bool lowest);

#endif
