/* Notification: one rank adds to a word of another and the other waits for it. What one-sided programs use instead of
 * barriers.
 *
 * A word is 8 bytes, a signed integer, at an offset that is a multiple of 8 in a rank's part of a segment: it is as
 * safe as the segment is, and a process that takes a dead rank's place finds what was added. keel_put sets it, keel_get
 * reads it.
 *  threads   any.
 *  errors    as in keel/rma.h; KEEL_ERR_ARG also for an offset that is no multiple of 8. */
#ifndef KEEL_SIGNAL_H
#define KEEL_SIGNAL_H

#include <stddef.h>
#include <stdint.h>

#include <keel/segment.h>
#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Add to the word of the rank, once, on all live copies, and let it go if it waits. What this rank has completed before
 * (puts that returned, operations that were waited for or fenced) the other sees when it sees the sum.
 * blocks    as keel_fetch_add. */
KEEL_MUST_CHECK keel_status keel_signal(keel_segment *segment, int rank, size_t word, int64_t add);

/* keel_put, and then keel_signal of a word of the same part: who sees the sum sees the bytes, on whichever copy it
 * looks. With an error of the put nothing is added.
 * blocks    as keel_put. */
KEEL_MUST_CHECK keel_status keel_put_signal(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                                            size_t word, int64_t add);

typedef enum keel_compare { KEEL_EQ, KEEL_NE, KEEL_LT, KEEL_LE, KEEL_GT, KEEL_GE } keel_compare;

/* Wait until the caller's own word compares so with the value; *got (NULL is allowed) is what it was then.
 *   from    the rank whose signal is waited for: KEEL_ERR_RANK_DEAD if it is dead or has called keel_finalize, and the
 *           word is not
 *           so (then *got is what it is). KEEL_ANY_RANK (keel/message.h): if that holds for all other ranks.
 * blocks    until then. A word that is changed by other means than signals is looked at every few milliseconds. */
KEEL_MUST_CHECK keel_status keel_wait_until(keel_segment *segment, size_t word, keel_compare how, int64_t value,
                                            int from, int64_t *got);

#ifdef __cplusplus
}
#endif
#endif
