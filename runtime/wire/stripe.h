/* A large write to several copies, in chunks: which chunk goes to which copy next. Pure.
 *
 * Every chunk is written to one copy after the other, to the next one when it is whole in the one before: at any moment
 * one copy of a chunk at most is torn (guarantee G1), so that one is whole even if the node of another dies with the
 * writer. The chunks take turns in which copy is first: all connections are busy from the beginning to the end. Writes
 * to one copy complete in the order in which they were taken. */
#ifndef KEEL_WIRE_STRIPE_H
#define KEEL_WIRE_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/limits.h"

enum {
    STRIPE_CHUNK_MAX = 512 * 1024, /* bytes */
    STRIPE_AHEAD = 4,              /* chunks taken for one copy first and not yet for the last one */
};

struct stripe {
    uint64_t len, chunk; /* bytes */
    uint64_t skew;       /* chunks end so many bytes earlier, at words of the memory */
    int copies;
    /* [first][level]: chunks of those whose first copy is that one, in the copy that is so many places behind it */
    uint64_t taken[LEGS_MAX][LEGS_MAX], done[LEGS_MAX][LEGS_MAX];
};

struct stripe_piece {
    uint64_t offset, len; /* in the write */
    int level;            /* so many copies have it */
};

/* len > 0 bytes to that many copies, at the offset in memory: no chunk ends within an aligned word, which would be new
 * in one half and old in the other in the copies that each half comes to first. */
void stripe_init(struct stripe *s, uint64_t offset, uint64_t len, int copies);
/* Takes the next piece for the copy; false if there is none now. */
bool stripe_take(struct stripe *s, int copy, struct stripe_piece *piece);
/* The oldest piece of the level that was taken for this copy, and not reported before, is whole there. */
void stripe_done(struct stripe *s, int copy, int level);
#endif
