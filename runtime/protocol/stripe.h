/* A large write to several copies, in chunks: which chunk goes to which copy next. Pure.
 *
 * Every chunk is written to one copy first, and to the others only when it is whole there, so that at any moment one copy
 * of each chunk is whole (guarantee G1). The chunks take turns in which copy is first: all connections are busy from the
 * beginning to the end. Writes to one copy complete in the order in which they were taken. */
#ifndef KEEL_PROTOCOL_STRIPE_H
#define KEEL_PROTOCOL_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/protocol/limits.h"

enum {
    STRIPE_CHUNK_MAX = 512 * 1024, /* bytes */
    STRIPE_AHEAD = 4,              /* chunks taken for one copy first and not yet for the others */
};

struct stripe {
    uint64_t len, chunk; /* bytes */
    uint64_t skew;       /* chunks end so many bytes earlier, at words of the memory */
    int copies;
    uint64_t first_taken[COPIES_MAX], first_done[COPIES_MAX]; /* by the copy that is first */
    uint64_t second_taken[COPIES_MAX][COPIES_MAX];            /* [copy][first] */
};

struct stripe_piece {
    uint64_t offset, len; /* in the write */
    bool second;          /* another copy has it */
};

/* len > 0 bytes to that many copies, at the offset in memory: no chunk ends within an aligned word, which would be new in
 * one half and old in the other in the copies that each half comes to first. */
void stripe_init(struct stripe *s, uint64_t offset, uint64_t len, int copies);
/* Takes the next piece for the copy; false if there is none now. */
bool stripe_take(struct stripe *s, int copy, struct stripe_piece *piece);
/* The oldest piece taken first for this copy, and not reported before, is whole there. */
void stripe_first_done(struct stripe *s, int copy);
#endif
