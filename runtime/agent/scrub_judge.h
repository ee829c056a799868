/* What the sums of a block's copies say, and the sums that are kept of blocks. Pure.
 *
 * A block is at rest when all copies have the same sum: that one is kept, with the time. If they have different ones
 * later, and nobody is writing there, copies have changed by themselves. Right is a copy that still has the sum that is
 * kept, also where two others agree: one may have been filled from the other since. If none has it, three copies vote.
 * A write that has come to one copy and not yet to another one looks just so: it has left a note where it has come
 * (docs/protocols/replication/scrub.md). */
#ifndef KEEL_AGENT_SCRUB_JUDGE_H
#define KEEL_AGENT_SCRUB_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a copy says of a block. */
struct scrub_word {
    uint64_t sum;
    bool stored;       /* a program may have stored there what only this copy has */
    bool written;      /* a write may have come here in part */
    uint64_t noted_ns; /* the last one that came here as a whole was noted so long ago; UINT64_MAX: none was */
};

struct scrub_kept {
    bool any;
    uint64_t sum;
    uint64_t age_ns; /* all copies had it so long ago, or less */
};

enum scrub_verdict {
    SCRUB_EQUAL,
    SCRUB_BUSY,   /* a write may be under way, or a store of the program's: nothing can be said */
    SCRUB_WRONG,  /* some copies are wrong, and it is known which */
    SCRUB_UNKNOWN /* some are, and nobody can say which */
};

/* wrong, of SCRUB_WRONG: bit i, the i-th of the n copies is. */
enum scrub_verdict scrub_judge(const struct scrub_word *copy, int n, const struct scrub_kept *kept, unsigned *wrong);

/* Of the blocks of one part, by its primary. */
struct scrub_part {
    struct scrub_part *next;
    uint32_t seg;
    int slot;
    size_t blocks;
    uint64_t pass;   /* the last one at whose end it was needed */
    uint64_t *sum;   /* [blocks] */
    uint64_t *since; /* [blocks] when all copies had it, 0: none is kept */
};

/* The part's, which is made where it is not there; NULL: no memory. */
struct scrub_part *scrub_part(struct scrub_part **all, uint32_t seg, int slot, size_t blocks);
/* Those that were not needed at the end of this pass are forgotten, all with UINT64_MAX. */
void scrub_forget(struct scrub_part **all, uint64_t pass);
/* asked_at: when the copies were asked that have it all. */
void scrub_keep(struct scrub_part *p, size_t block, uint64_t sum, uint64_t asked_at);
/* slack_ns: what the ages of two nodes may lie apart, beside 1/1024 of them. */
struct scrub_kept scrub_kept_of(const struct scrub_part *p, size_t block, uint64_t now, uint64_t slack_ns);
#endif
