/* A large write to two copies, in chunks: which chunk goes to which copy next. Pure.
 *
 * Every chunk is written to one copy first, and to the other only when it is whole there, so that at any moment one copy
 * of each chunk is whole (guarantee G1). Even chunks go to copy 0 first, odd ones to copy 1: both connections are busy
 * from the beginning to the end. Writes to one copy complete in the order in which they were taken. */
#ifndef KEEL_CORE_STRIPE_H
#define KEEL_CORE_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STRIPE_CHUNK_MAX = 512 * 1024, /* bytes */
    STRIPE_AHEAD = 4,              /* chunks taken for one copy first and not yet for the other */
};

struct stripe {
    uint64_t len, chunk; /* bytes; chunk 0: not a striped write */
    uint64_t first_taken[2], first_done[2], second_taken[2];
};

struct stripe_piece {
    uint64_t offset, len; /* in the write */
    bool second;          /* the other copy has it */
};

/* len > 0 bytes. */
void stripe_init(struct stripe *s, uint64_t len);
/* Takes the next piece for copy 0 or 1; false if there is none now. */
bool stripe_take(struct stripe *s, int copy, struct stripe_piece *piece);
/* The oldest piece taken first for this copy, and not reported before, is whole there. */
void stripe_first_done(struct stripe *s, int copy);
#endif
