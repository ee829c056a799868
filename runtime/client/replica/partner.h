/* Where a replica of a rank has died, the others of that rank, its *partners*, do its part (docs/adr/0197). Pure: who
 * does what, when replicas of a rank must meet, and when they may go on from there. acting.c asks for the first,
 * meeting.c for the others.
 *
 * Sets are bits: of `lives` of a rank, bit s says that its replica in set s has a process. The rules:
 *
 *   acts      what a rank writes in a set is written by its replica there; if that is dead, by the lowest that lives
 *   names     what must count once has the name that each replica of the rank gives it; who has seen a name answers
 *             from memory
 *   interval  between two meetings a replica uses the memory of a rank in one way: it reads, or puts, or adds. So who
 *             is behind reads what those before it have read, in whatever set; and what was put can be put again
 *   meeting   a replica leaves it when it knows that what the rank has written before is complete in all sets, and
 *             that all live replicas know it
 *   deaths    who acts for one more set writes there all that the rank has written since the last meeting; but not what
 *             it knows to be complete there: somebody may have seen it since, and have written over it
 *
 *  threads   one at a time.   blocks   never. */
#ifndef KEEL_CLIENT_REPLICA_PARTNER_H
#define KEEL_CLIENT_REPLICA_PARTNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/replica.h"

/* ---- who does what ---- */

/* The set of the replica that writes what the rank writes in `set`; -1: none lives. */
int partner_actor(unsigned lives, int set);
/* The sets, of `sets` of them, in which the live replica of `set` writes: at least its own. */
unsigned partner_acts(unsigned lives, int set, int sets);
/* The set whose memory the replica of `set` reads of a rank whose lives are `target`: its own if that lives; -1: none
 * does. Of what has a name and an answer, the set that is asked where it writes in none. */
int partner_reads(unsigned target, int set);

/* ---- intervals ---- */

enum partner_use {
    PARTNER_GET,
    PARTNER_PUT,
    PARTNER_ADD,      /* what counts once, and has no answer: accumulates */
    PARTNER_EXCHANGE, /* what counts once, and has one: atomics */
    PARTNER_SIGNAL,   /* what tells others that all before is there: signals, messages, contributions */
    PARTNER_PASS      /* puts and signals of a collective, behind its meeting, to memory of its own (passing.h) */
};

/* What a replica did since the last meeting. Zeroed at first, and when it leaves one. */
struct partner_interval {
    uint64_t read, put, named; /* from and to which ranks: bit rank % 64 */
    bool exchanged;
    size_t bytes; /* that it has put and added, and keeps until it leaves the next meeting */
};

/* Must replicas of the rank meet before that, if they have not just done so for it? limit: of bytes kept, to which this
 * would add `bytes`. */
bool partner_meets(const struct partner_interval *iv, enum partner_use use, int target, size_t bytes, size_t limit);
/* It is done. */
void partner_used(struct partner_interval *iv, enum partner_use use, int target, size_t bytes);

/* ---- meetings ---- */

struct partner_ops {
    /* To the replica in that set, in order; what was said before a death may be lost with it. complete: the sets in
     * which all is complete that the rank has written before this meeting. */
    void (*say)(void *user, int set, unsigned complete);
    /* All that the rank has written since the last meeting is to be written in these sets; from now on this replica
     * writes there. If it has come to a meeting: partner_completes when it is complete there. */
    void (*take_over)(void *user, unsigned sets);
    void (*leave)(void *user); /* it may go on: what was kept is not needed any more */
};

struct partner {
    int set, sets;
    unsigned all, lives, acts;
    bool came;         /* to a meeting, at which it is */
    unsigned complete; /* what it knows there: as it says, */
    unsigned know;     /* and whose replicas know that all is */
    const struct partner_ops *ops;
    void *user;
};

/* ops, user: the caller's, for as long as the partner is used. */
void partner_init(struct partner *p, int set, int sets, const struct partner_ops *ops, void *user);
/* This replica has come to a meeting, and what it has written is complete in those sets. */
void partner_comes(struct partner *p, unsigned sets);
void partner_completes(struct partner *p, unsigned sets);
/* What is heard before it has come to a meeting is said once more: nobody knows that all is complete without it. */
void partner_heard(struct partner *p, int set, unsigned complete);
/* Nothing that it has sent arrives after this. */
void partner_died(struct partner *p, int set);
#endif
