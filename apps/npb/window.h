/* A window: memory of each rank that others put into, and a word for each lane by which they say so. The owner reads
 * its part where it lies and never stores there: its copies stay equal (KEEL_REDUNDANCY_SHADOW).
 *
 * A lane is one stream of puts from one rank. Its word counts them, so a put waits for nobody, and the owner knows
 * which has come. Who puts into bytes that the owner may still be reading must know that it has read them: by a sum
 * since then (npb_sum), or by a later put of the owner's in return (halo.h). */
#ifndef KEEL_NPB_WINDOW_H
#define KEEL_NPB_WINDOW_H

#include "apps/npb/common.h"

struct window {
    struct npb *npb;
    keel_segment *segment;
    size_t base;          /* offset of the data, behind the words */
    int64_t *expected;    /* [lanes] puts that window_wait has seen */
    const void *received; /* the caller's own data */
};

/* Collective: lanes words and the bytes, the same on all ranks. */
void window_open(struct npb *npb, int lanes, size_t bytes, struct window *out);
/* Collective. */
void window_close(struct window *window);

/* Put bytes at an offset of the rank's data, and count them in its lane. */
void window_put(struct window *window, int rank, int lane, size_t offset, const void *src, size_t bytes);

/* The same of `count` pieces of so many bytes: they are `here` bytes apart in src, and `there` bytes apart in the
 * rank's data. */
struct pieces {
    size_t bytes, count, here, there;
};
void window_put_pieces(struct window *window, int rank, int lane, size_t offset, const void *src, struct pieces pieces);

/* Wait for the next put of the rank in the caller's lane. */
void window_wait(struct window *window, int lane, int from);
/* For the next put of each rank r in lane r. */
void window_wait_all(struct window *window);

#endif
