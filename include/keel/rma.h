/* Put, get, accumulate, atomics, fence. An address is (segment, rank, offset in bytes into that rank's part).
 *
 * Every call
 *  threads   may be made by any thread; one process-wide lock is held on the other-node path only.
 *  blocks    at most the operation timeout (KEEL_TIMEOUT_MS, default 30000), never for a dead, frozen or cut-off peer:
 *            the failure is found, the view changes, and the operation goes to the copy that is left.
 *  errors    KEEL_ERR_ARG (nothing done); KEEL_ERR_DATA_LOST when no copy is left; KEEL_ERR_TIMEOUT (outcome unknown);
 *            KEEL_ERR_FENCED, KEEL_ERR_AGENT_GONE (this process has lost the job and must end).
 * On a segment with KEEL_REDUNDANCY_NONE whose owner's node is dead, a put or accumulate is ignored and returns KEEL_OK, a
 * get, fetch-and-add or compare-and-swap returns KEEL_ERR_DATA_LOST (FT-ARMCI, "Error Propagation and Return Codes"). */
#ifndef KEEL_RMA_H
#define KEEL_RMA_H

#include <stddef.h>
#include <stdint.h>

#include <keel/segment.h>
#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copy len bytes from local src to (segment, rank, offset). Returns when every live copy holds them. */
KEEL_MUST_CHECK keel_status keel_put(keel_segment *segment, int rank, size_t offset, const void *src, size_t len);
/* Copy len bytes from (segment, rank, offset) to local dst. */
KEEL_MUST_CHECK keel_status keel_get(keel_segment *segment, int rank, size_t offset, void *dst, size_t len);

/* Non-blocking forms. The local buffer belongs to Keel until the handle is complete. The handle is the caller's memory;
 * it must stay in place until keel_wait, or keel_test with another answer than KEEL_IN_PROGRESS, has returned. A NULL
 * handle makes the operation implicit: keel_fence or keel_fence_all completes it and reports its error. */
typedef struct keel_handle {
    uint64_t opaque[4];
} keel_handle;
KEEL_MUST_CHECK keel_status keel_put_nb(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                                        keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_get_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len,
                                        keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_wait(keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_test(keel_handle *handle);

/* Complete all implicit operations of this process to the rank's parts (all ranks' parts), on all live copies.
 * Returns the first error one of them met. */
KEEL_MUST_CHECK keel_status keel_fence(int rank);
KEEL_MUST_CHECK keel_status keel_fence_all(void);

/* Element-wise: part[offset .. ] += scale * src[0..n-1] in doubles; offset is a multiple of 8. Takes effect exactly once
 * on every copy, whatever dies; atomic per element against other accumulates and atomics. Blocking.
 * Inside a task (keel/task.h) it counts once for the task, not once for the process. */
KEEL_MUST_CHECK keel_status keel_acc_double(keel_segment *segment, int rank, size_t offset, double scale,
                                            const double *src, size_t n);

/* Atomic on a 64-bit integer at an offset that is a multiple of 8; *old gets the value before. Exactly once. */
KEEL_MUST_CHECK keel_status keel_fetch_add(keel_segment *segment, int rank, size_t offset, int64_t add, int64_t *old);
KEEL_MUST_CHECK keel_status keel_compare_swap(keel_segment *segment, int rank, size_t offset, int64_t expected,
                                              int64_t desired, int64_t *old);

#ifdef __cplusplus
}
#endif
#endif
