/* Put, get, accumulate, atomics, fence. An address is (segment, rank, offset in bytes into that rank's part).
 *
 * Every call
 *  threads   may be made by any thread; one process-wide lock is held on the other-node path only.
 *  blocks    at most the operation timeout (KEEL_TIMEOUT_MS, by default longer than any verdict takes), never for a
 *            dead, frozen or cut-off peer:
 *            the failure is found, the view changes, and the operation goes to the copy that is left.
 *  errors    KEEL_ERR_ARG (nothing done); KEEL_ERR_STATE before keel_init and after keel_finalize; KEEL_ERR_DATA_LOST
 *            when no copy is left; KEEL_ERR_TIMEOUT (outcome unknown, but
 *            what this rank writes after it is not overwritten by it: that waits until no byte of it can come any
 *            more);
 *            KEEL_ERR_FENCED, KEEL_ERR_AGENT_GONE (this process has lost the job and must end).
 *            KEEL_ERR_NOMEM, nothing done: no memory, or at the first touch of a part on this node no descriptor to map
 *            it.
 * On a segment with KEEL_REDUNDANCY_NONE whose owner's node is dead, a put or accumulate is ignored and returns
 * KEEL_OK, a get or an atomic operation returns KEEL_ERR_DATA_LOST (FT-ARMCI, "Error Propagation and Return Codes"). */
#ifndef KEEL_RMA_H
#define KEEL_RMA_H

#include <stddef.h>
#include <stdint.h>

#include <keel/segment.h>
#include <keel/status.h>
#include <keel/type.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Aligned 8-byte words of a part are never torn, with one exception: a put or get of more than 64 KiB between nodes
 * over TCP is copied byte by byte by a kernel, and who reads a word while such a put writes it, or reads it by such
 * a get, may find a part of it old and a part new. */

/* Copy len bytes from local src to (segment, rank, offset). Returns when every live copy holds them. The local memory
 * may be a segment's, too, but in no call of this page bytes that overlap those it reads or writes there. */
KEEL_MUST_CHECK keel_status keel_put(keel_segment *segment, int rank, size_t offset, const void *src, size_t len);
/* Copy len bytes from (segment, rank, offset) to local dst. Sees every put, accumulate and atomic that had completed
 * before the call. It may also see one that is under way; if a copy of the segment then dies, or its node stands still
 * or is out of reach, that may be taken back: a later get gives the older bytes, until the operation has completed (or
 * for good, if its rank died). While a node stands still or is out of reach, gets from its parts of replicated segments
 * are served by another copy; strong gets, and what changes memory, wait for it. */
KEEL_MUST_CHECK keel_status keel_get(keel_segment *segment, int rank, size_t offset, void *dst, size_t len);
/* The same, but what it returned is never taken back: all copies had these bytes, so whatever dies, every later strong
 * get gives them, or what was written after them. (What an atomic operation returned is never taken back either.) This
 * holds for each aligned 8-byte word; the words of one get may be of different moments.
 * It waits until no put to these words is in some copies only. So a writer that is stopped in the middle of a put, two
 * puts that raced and left another value in each copy, or a plain store that was not brought to the others
 * (keel/update.h; by a process that lives or has died) let it end with KEEL_ERR_TIMEOUT. To have seen a value does not
 * mean that its put has completed: that, only its writer knows. Costs a message to the primary copy and from there
 * to each further copy; with one copy left it is a plain get. */
KEEL_MUST_CHECK keel_status keel_get_strong(keel_segment *segment, int rank, size_t offset, void *dst, size_t len);

/* Non-blocking forms; here, and where a name ends in _nb. The local buffer belongs to Keel until the handle is
 * complete. The handle is the caller's memory; it must stay in place until keel_wait, or keel_test with another answer
 * than KEEL_IN_PROGRESS, has returned. A handle whose operation is not complete cannot be given to another
 * (KEEL_ERR_STATE), unless it is an aggregate. A NULL handle makes the operation implicit: keel_fence or keel_fence_all
 * completes it and reports its error.
 * blocks    nb: no. test: no. else: as the operation does. */
typedef struct keel_handle {
    uint64_t opaque[4];
} keel_handle;
KEEL_MUST_CHECK keel_status keel_put_nb(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                                        keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_get_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len,
                                        keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_get_strong_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len,
                                               keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_wait(keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_test(keel_handle *handle);
/* From now on any number of operations can be given to the handle; waiting for it waits for all, and says the first
 * error. KEEL_ERR_STATE: an operation uses it. */
KEEL_MUST_CHECK keel_status keel_handle_aggregate(keel_handle *handle);
/* Wait for all n; the first error in their order. */
KEEL_MUST_CHECK keel_status keel_wait_all(keel_handle *handles, size_t n);
/* Wait until one of the n is complete that was not waited for yet; *which tells which, and the status is its. n, with
 * KEEL_OK: there is none. A handle that no operation was given to is KEEL_ERR_ARG for all of these calls. After
 * keel_finalize, which completes what is under way, handles say what became of their operations. */
KEEL_MUST_CHECK keel_status keel_wait_any(keel_handle *handles, size_t n, size_t *which);

/* Complete all implicit operations of this process to the rank's parts (all ranks' parts), on all live copies.
 * Returns the first error one of them met since the last fence that covered it. */
KEEL_MUST_CHECK keel_status keel_fence(int rank);
KEEL_MUST_CHECK keel_status keel_fence_all(void);
/* The same for the parts of all members of a group, the dead ones' too. Local: no other member calls. Of several
 * errors, that of the first member in the group's order.   errors  KEEL_ERR_ARG: the group was freed. */
KEEL_MUST_CHECK keel_status keel_group_fence(const keel_group *group);

/* Element by element: part[offset ..] += scale * src[0..n-1]. scale is one element of the type, NULL stands for one.
 * Every type but KEEL_BYTE; integers wrap. offset is a multiple of what a component (the real part of a complex number)
 * takes. Takes effect exactly once on every copy, whatever dies; atomic per component against other accumulates and
 * atomics. Products and sums are rounded to the nearest, subnormal numbers stay what they are and nothing traps,
 * whatever the calling thread has asked its processor for (fesetround, -ffast-math): every copy has the same bits,
 * whoever computes it. So it is with the operations of keel/collective.h, but for the caller's own. Inside a task
 * (keel/task.h) it counts once for the task, not once for the process. */
KEEL_MUST_CHECK keel_status keel_acc(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                                     const void *src, size_t n);
/* As keel_put_nb is to keel_put. Inside a task it waits for the accumulates of the task before it that go to the same
 * node, as their order must not depend on time; keel_task_commit completes it, whether or not its handle was waited
 * for. One that fails, in whatever way, is as one of the task's that ended with KEEL_ERR_TIMEOUT (keel/task.h). */
KEEL_MUST_CHECK keel_status keel_acc_nb(keel_segment *segment, int rank, size_t offset, keel_type type,
                                        const void *scale, const void *src, size_t n, keel_handle *handle);
/* keel_acc of KEEL_DOUBLE. */
KEEL_MUST_CHECK keel_status keel_acc_double(keel_segment *segment, int rank, size_t offset, double scale,
                                            const double *src, size_t n);

typedef enum keel_rmw_op {
    KEEL_RMW_ADD,
    KEEL_RMW_SWAP,
    KEEL_RMW_COMPARE_SWAP, /* the operand is stored if the word is *expected */
    KEEL_RMW_AND,          /* of bits, like or and xor */
    KEEL_RMW_OR,
    KEEL_RMW_XOR
} keel_rmw_op;

/* Atomic on one integer (KEEL_INT32, KEEL_INT64, KEEL_UINT32, KEEL_UINT64) at an offset that is a multiple of its size.
 * All pointers are to values of the type. *old (NULL is allowed) gets the value before; expected is looked at by
 * KEEL_RMW_COMPARE_SWAP only. Exactly once; what it returned stays true whatever dies. */
KEEL_MUST_CHECK keel_status keel_rmw(keel_segment *segment, int rank, size_t offset, keel_type type, keel_rmw_op op,
                                     const void *operand, const void *expected, void *old);
/* keel_rmw of KEEL_INT64. */
KEEL_MUST_CHECK keel_status keel_fetch_add(keel_segment *segment, int rank, size_t offset, int64_t add, int64_t *old);
KEEL_MUST_CHECK keel_status keel_compare_swap(keel_segment *segment, int rank, size_t offset, int64_t expected,
                                              int64_t desired, int64_t *old);

#ifdef __cplusplus
}
#endif
#endif
