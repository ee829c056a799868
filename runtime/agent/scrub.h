/* The scrubber: copies at rest are read at a bounded rate, and one that has changed by itself is told, and mended.
 *
 * The primary of each part goes through it, block by block, and asks the other copies for their sums:
 *
 *   SWEEP    sums of some blocks that follow each other. Equal: that sum is kept. Else:
 *   LOOK     the block alone, again and again: does it stay so, and does nothing say that somebody writes there?
 *   VIEW     a view is asked for in which the copyset is made equal (VIEW_SUSPECT): from then on ranks write through
 *            the primary only, and what they were about to write to copies themselves they begin anew
 *   HELD     it is committed: the primary executes nothing. When all whole copies have told their doubts, and have what
 *            it had executed,
 *   JUDGE    it asks once more. Now nobody writes: sums that differ say that a copy is wrong (scrub_judge.h)
 *   FETCH    bytes of another copy: what is wrong here is mended, word by word; else they say where that one is wrong
 *   SPREAD   the repair sends the block to the others, and says RESTORED
 *
 * Whatever comes between, a death, a write, an answer that does not come, ends it: the next pass comes to the block
 * again. Rule S1 to S4: docs/protocols/replication/scrub.md. */
#ifndef KEEL_AGENT_SCRUB_H
#define KEEL_AGENT_SCRUB_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/agent/scrub_judge.h"
#include "runtime/wire/limits.h"
#include "runtime/wire/scrub.h"
#include "runtime/wire/wire.h"

struct agent;
struct msg_patch;

enum scrub_state { SCRUB_SWEEP, SCRUB_LOOK, SCRUB_VIEW, SCRUB_HELD, SCRUB_JUDGE, SCRUB_FETCH, SCRUB_SPREAD };

enum { SCRUB_TOLD_MAX = 32 };

struct scrub {
    uint64_t rate;    /* bytes that this agent reads in a second; 0: it does not */
    uint64_t next_at; /* SWEEP: not before; LOOK: asked again then */
    /* a pass begins so long after the last one at least; what the clocks of two nodes may lie apart */
    uint64_t pass_ns, slack_ns;
    enum scrub_state state;
    struct scrub_part *parts;
    uint64_t pass, pass_at; /* which pass this is, from 1 on, and since when */
    /* where it is */
    uint32_t seg;
    int slot;
    uint64_t offset;
    uint32_t len;
    /* the question */
    bool asked;
    uint64_t question, asked_at, until, generation;
    int nodes, node[COPIES_MAX];
    struct scrub_answer {
        bool here;
        struct msg_scrubbed said;
        uint64_t sum[SCRUB_BLOCKS_MAX], before; /* before: of the last try of LOOK */
    } answer[COPIES_MAX];
    int tries; /* of LOOK */
    /* the suspicion; from VIEW on */
    int copyset;
    unsigned wrong;     /* copies */
    uint8_t *image;     /* [2 * SCRUB_BLOCK] of the block here, and of the copy that is fetched; NULL: none */
    int from;           /* FETCH: which copy */
    uint32_t came;      /* bytes of it */
    uint64_t bad_at;    /* first byte that differs, in the block, */
    uint32_t bad_bytes; /* and up to the last */
    /* that nobody could mend, so that each is told once */
    struct scrub_told {
        uint32_t seg;
        int slot;
        uint64_t offset, sums;
    } told[SCRUB_TOLD_MAX];
    unsigned tolds;
};

/* Bytes a second; 0: not at all. */
void scrub_init(struct scrub *s, uint64_t rate);
void scrub_fini(struct scrub *s);
void scrub_step(struct agent *a);
uint64_t scrub_deadline(const struct agent *a);
/* WIRE_SCRUB, at a copy; WIRE_SCRUBBED, where it was asked. */
void scrub_asked(struct agent *a, int from, const struct wire *w);
void scrub_answered(struct agent *a, int from, const struct wire *w, const void *body);
/* For repair.c. A view was committed. */
void scrub_view_committed(struct agent *a);
/* Is something to be found out in this repair, so that its primary executes nothing? */
bool scrub_holds(const struct agent *a, int copyset);
/* GATHER is over: nothing (any more) is to be found out, what was is in the claims. */
bool scrub_is_judged(struct agent *a, int copyset);
/* All copies have what the repair has sent. */
void scrub_spread(struct agent *a, int copyset);
/* An answer to WIRE_FETCH. False: it is not the scrubber's. */
bool scrub_takes(struct agent *a, int from, const struct msg_patch *m, const void *body);
#endif
