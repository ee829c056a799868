/* Collectives: over all live ranks (the first three calls), and over a group. None hangs on a dead rank. */
#ifndef KEEL_COLLECTIVE_H
#define KEEL_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/group.h>
#include <keel/status.h>
#include <keel/type.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- all live ranks ----
 * A rank that dies is left out; a restarted rank takes part from keel_resume on. All live ranks call the same
 * collectives in the same order. A restarted rank that repeats one which the others completed without it (keel_resume)
 * gets what they got, status and bytes, and waits for nobody. KEEL_ERR_STATE before keel_resume and inside a task. One
 * thread of a rank at a time makes these calls. KEEL_ERR_MISMATCH: ranks are in different calls, or with different
 * arguments. If one is in a collective and another allocates or frees (a segment of all ranks, mutexes, a task pool)
 * that is for good: neither call ends otherwise, and all of these calls are KEEL_ERR_MISMATCH from then on, on all
 * ranks. Groups and operations go on. KEEL_ERR_TIMEOUT: a process that is waited for is stopped (by a signal or a
 * debugger), and has been for KEEL_TIMEOUT_MS; its rank is said on standard error. The collective is not over: the same
 * call with the same arguments, whose memory is Keel's until then, goes on with it. No time passes that makes a process
 * that computes or sleeps an error.
 *  threads   one of a rank at a time.
 *  blocks    until every live rank has called.
 *  errors    KEEL_ERR_ARG, KEEL_ERR_LIMIT, KEEL_ERR_STATE, KEEL_ERR_MISMATCH, KEEL_ERR_TIMEOUT;
 *            what keel_fence_all would have told. */

/* Fault-resilient hypercube barrier (FT-ARMCI, "non-data-moving collectives"), with an implicit keel_fence_all before.
 * Returns when every live rank has entered. An error of the fence, here and in all collectives with one before, is told
 * to this rank alone and once: it has not entered, and the others wait for it until it calls again. */
KEEL_MUST_CHECK keel_status keel_barrier(void);
/* keel_barrier, under the name of what it does: keel_fence_all, then a barrier. */
KEEL_MUST_CHECK keel_status keel_sync(void);

/* The same barrier in two phases, for work between them; other ranks may call keel_barrier meanwhile. begin: this rank
 * has entered, after a keel_fence_all. test: KEEL_IN_PROGRESS until every live rank has entered; else it is over, as by
 * end, which waits for it. What is put, added or fetched between the two belongs to after the barrier. The others may
 * need this process to go on: it takes part inside its Keel calls. *epoch (NULL is allowed) receives the view that the
 * barrier was completed in: that of the last death, departure or replacement of a rank that it goes by; 0: there was
 * none, or the barrier has not ended with KEEL_OK. All ranks that live in that view have entered. It is the same on all
 * ranks but those that die, end or leave (keel_finalize) before the others know of the end.
 * blocks    begin: as keel_fence_all. test: no. end: as keel_barrier; after KEEL_ERR_TIMEOUT it is called again.
 * errors    as keel_barrier. KEEL_ERR_STATE of test and end: none was begun; of begin and all other collectives of all
 *           live ranks,
 *           allocations too: one was begun and is not over. */
KEEL_MUST_CHECK keel_status keel_barrier_begin(void);
KEEL_MUST_CHECK keel_status keel_barrier_test(uint64_t *epoch);
KEEL_MUST_CHECK keel_status keel_barrier_end(uint64_t *epoch);

/* Copy len bytes (the same on all ranks, at most 64 KiB) from root's buffer into everybody's.
 * errors    KEEL_ERR_RANK_DEAD on all ranks if root died before its data was safe; KEEL_ERR_MISMATCH. */
KEEL_MUST_CHECK keel_status keel_bcast(int root, void *buffer, size_t len);

/* Sum, element by element, the n doubles (at most 8192) of every rank that lives at the end into everybody's out; the
 * same bits everywhere, and each time with the same ranks. in and out may be the same. */
KEEL_MUST_CHECK keel_status keel_allreduce_sum(const double *in, double *out, size_t n);

/* ---- the members of a group ----
 *
 * All members that live call the same collectives in the same order, blocking ones and begun ones alike; a call of any
 * length and type. Each returns the same to all who live, whoever dies:
 *
 *   KEEL_OK             the right result over the members that it covers, the same list for all. Covered are all who
 *                       live at the
 *                       end and whose data the result is made from; of a broadcast or scatter, those who have the data.
 *   KEEL_ERR_RANK_DEAD  the root died, and with it what only it had, or what only it was to get; or this process was
 *                       stopped, and others have left without it
 *   KEEL_ERR_MISMATCH   the members' arguments do not fit together: another call, length, root, type or operation
 *   KEEL_ERR_REVOKED    keel_group_revoke. The one call that was under way then may be complete for some members, and
 *                       revoked for others
 *   KEEL_ERR_NOMEM      on some member. It has put by what it needs to say so: nobody waits until it has memory, but
 *                       where a rank has died or
 *                       joined meanwhile, or where it has no connection yet to the node of one that it must tell, and
 *                       no memory or descriptor for one
 *
 * This is for those who live, and those who have left (keel_finalize): a member that returns and dies may have returned
 * what the others do not. One that has left may have been told more members of a barrier, broadcast or scatter, or of a
 * call of no bytes, than the others, those that have died or left since; and KEEL_OK of a reduce or gather whose root
 * dies before the others know of its end: they are told KEEL_ERR_RANK_DEAD. Who leaves does not wait for long for a
 * member that is stopped (below): when that goes on it has an error of what those who have left gave and it has not
 * got, KEEL_ERR_REVOKED or KEEL_ERR_RANK_DEAD, never KEEL_OK with zeros in their place.
 *
 * A member whose process is stopped (by a signal or a debugger; one that computes or sleeps is not) is waited for for
 * KEEL_TIMEOUT_MS. Then the group is revoked: who found out gets KEEL_ERR_TIMEOUT, the others KEEL_ERR_REVOKED, and
 * keel_group_stopped names the member. A call that is complete waits no longer either for room for what a stopped
 * member is to get of it, and returns its status; the member gets it when both call Keel again. Agree, shrink and
 * creation end with KEEL_ERR_TIMEOUT and go on when they are repeated (keel/group.h); a list without it does not wait.
 *
 * Nobody needs who has returned: it may compute, or wait for the others by other means than Keel's, as long as it
 * likes. But where a connection breaks, or memory is short, what it has sent may have to be sent again, which it does
 * in its next call.
 *
 * With an error the output is undefined, the input unchanged. Wrong arguments (KEEL_ERR_ARG: a root that is no member,
 * NULL for bytes, an operation that does not exist for the type), too many begun requests (KEEL_ERR_LIMIT: 64 of a
 * group, or there is no memory for one more) and a call inside a task (KEEL_ERR_STATE) are told to the caller, and
 * nothing is sent. in and out may be the same memory (in place); else they do not overlap. Sums have the same bits with
 * the same members, whatever the timing. Blocks of members that are not covered are filled with zeros.
 *
 * NAME_begin returns at once; the buffers belong to Keel until keel_request_wait, or keel_request_test with another
 * answer than KEEL_IN_PROGRESS, has returned, which also frees the request: after that it is KEEL_ERR_ARG.
 *  threads   one at a time calls on one group; requests and lists of members: any.
 *  blocks    begin: no. test: no. has: no. count: no. free: no. else: until the result is there.
 *  errors    those above; KEEL_ERR_ARG, KEEL_ERR_STATE, KEEL_ERR_LIMIT, KEEL_ERR_TIMEOUT are told to the caller alone;
 *            KEEL_ERR_FENCED, KEEL_ERR_AGENT_GONE. */

typedef struct keel_request keel_request;
/* The members that a result covers. */
typedef struct keel_covered keel_covered;

/* The status of the call; KEEL_IN_PROGRESS until it is complete. covered may be NULL; with KEEL_OK *covered is the
 * caller's, to be freed, otherwise it is NULL. */
KEEL_MUST_CHECK keel_status keel_request_test(keel_request *request, keel_covered **covered);
KEEL_MUST_CHECK keel_status keel_request_wait(keel_request *request, keel_covered **covered);
__extension__ bool keel_covered_has(const keel_covered *covered, int member);
int keel_covered_count(const keel_covered *covered);
void keel_covered_free(keel_covered *covered); /* NULL is allowed */

/* MINLOC, MAXLOC: elements are pairs of 16 bytes, the value in the first 8 (its type's size used) and a 64-bit place in
 * the others; of equal values the lowest place wins. AND, OR, XOR: of bits, of integers and bytes. */
typedef enum keel_op {
    KEEL_SUM,
    KEEL_PROD,
    KEEL_MIN,
    KEEL_MAX,
    KEEL_MINLOC,
    KEEL_MAXLOC,
    KEEL_AND,
    KEEL_OR,
    KEEL_XOR,
    KEEL_USER
} keel_op;

/* What a reduction does to n elements. All members get the same bits, whatever each has asked its processor for
 * (keel_acc in keel/rma.h); a function of the program's own is called as the thread is. KEEL_USER: right = left op
 * right by the function, which must be associative, and calls nothing of Keel; elements have size bytes (0: the
 * type's); commutes: the order of operands may be changed. */
typedef struct keel_combine {
    keel_type type;
    keel_op op;
    void (*function)(const void *left, void *right, size_t n, void *context);
    void *context;
    size_t size;
    __extension__ bool commutes;
} keel_combine;

/* Complete when all members that live have called. */
KEEL_MUST_CHECK keel_status keel_group_barrier(keel_group *group);
KEEL_MUST_CHECK keel_status keel_group_barrier_begin(keel_group *group, keel_request **request);
/* The same, with a keel_fence_all before.
 * errors    also what keel_fence_all tells. */
KEEL_MUST_CHECK keel_status keel_group_sync(keel_group *group);

/* len bytes from the root's data into everybody's. */
KEEL_MUST_CHECK keel_status keel_group_bcast(keel_group *group, int root, void *data, size_t len);
KEEL_MUST_CHECK keel_status keel_group_bcast_begin(keel_group *group, int root, void *data, size_t len,
                                                   keel_request **request);

/* n elements of everybody combined: at the root (the others' out, as long, may be overwritten), at everybody. */
KEEL_MUST_CHECK keel_status keel_group_reduce(keel_group *group, int root, const void *in, void *out, size_t n,
                                              const keel_combine *how);
KEEL_MUST_CHECK keel_status keel_group_reduce_begin(keel_group *group, int root, const void *in, void *out, size_t n,
                                                    const keel_combine *how, keel_request **request);
KEEL_MUST_CHECK keel_status keel_group_allreduce(keel_group *group, const void *in, void *out, size_t n,
                                                 const keel_combine *how);
KEEL_MUST_CHECK keel_status keel_group_allreduce_begin(keel_group *group, const void *in, void *out, size_t n,
                                                       const keel_combine *how, keel_request **request);

/* Combined, and member i gets the i-th piece of n[i] elements; n has an entry for each member. */
KEEL_MUST_CHECK keel_status keel_group_reduce_scatter(keel_group *group, const void *in, void *out, const size_t *n,
                                                      const keel_combine *how);
KEEL_MUST_CHECK keel_status keel_group_reduce_scatter_begin(keel_group *group, const void *in, void *out,
                                                            const size_t *n, const keel_combine *how,
                                                            keel_request **request);

/* The elements of the members up to the caller, and of those before it, combined in the group's order. exscan: the out
 * of the first member that lives is left alone. */
KEEL_MUST_CHECK keel_status keel_group_scan(keel_group *group, const void *in, void *out, size_t n,
                                            const keel_combine *how);
KEEL_MUST_CHECK keel_status keel_group_scan_begin(keel_group *group, const void *in, void *out, size_t n,
                                                  const keel_combine *how, keel_request **request);
KEEL_MUST_CHECK keel_status keel_group_exscan(keel_group *group, const void *in, void *out, size_t n,
                                              const keel_combine *how);
KEEL_MUST_CHECK keel_status keel_group_exscan_begin(keel_group *group, const void *in, void *out, size_t n,
                                                    const keel_combine *how, keel_request **request);

/* Blocks of len bytes, one of each member in the group's order: to the root, from the root, to everybody, and from each
 * to each. out of gather and in of scatter matter at the root only. */
KEEL_MUST_CHECK keel_status keel_group_gather(keel_group *group, int root, const void *in, void *out, size_t len);
KEEL_MUST_CHECK keel_status keel_group_gather_begin(keel_group *group, int root, const void *in, void *out, size_t len,
                                                    keel_request **request);
KEEL_MUST_CHECK keel_status keel_group_scatter(keel_group *group, int root, const void *in, void *out, size_t len);
KEEL_MUST_CHECK keel_status keel_group_scatter_begin(keel_group *group, int root, const void *in, void *out, size_t len,
                                                     keel_request **request);
KEEL_MUST_CHECK keel_status keel_group_allgather(keel_group *group, const void *in, void *out, size_t len);
KEEL_MUST_CHECK keel_status keel_group_allgather_begin(keel_group *group, const void *in, void *out, size_t len,
                                                       keel_request **request);
KEEL_MUST_CHECK keel_status keel_group_alltoall(keel_group *group, const void *in, void *out, size_t len);
KEEL_MUST_CHECK keel_status keel_group_alltoall_begin(keel_group *group, const void *in, void *out, size_t len,
                                                      keel_request **request);

/* Blocks of their own lengths: member i's has lens[i] bytes and is at[i] bytes into the memory. len: of the caller's
 * own block. */
KEEL_MUST_CHECK keel_status keel_group_gather_v(keel_group *group, int root, const void *in, size_t len, void *out,
                                                const size_t *lens, const size_t *at);
KEEL_MUST_CHECK keel_status keel_group_gather_v_begin(keel_group *group, int root, const void *in, size_t len,
                                                      void *out, const size_t *lens, const size_t *at,
                                                      keel_request **request);
KEEL_MUST_CHECK keel_status keel_group_scatter_v(keel_group *group, int root, const void *in, const size_t *lens,
                                                 const size_t *at, void *out, size_t len);
KEEL_MUST_CHECK keel_status keel_group_scatter_v_begin(keel_group *group, int root, const void *in, const size_t *lens,
                                                       const size_t *at, void *out, size_t len, keel_request **request);
KEEL_MUST_CHECK keel_status keel_group_allgather_v(keel_group *group, const void *in, size_t len, void *out,
                                                   const size_t *lens, const size_t *at);
KEEL_MUST_CHECK keel_status keel_group_allgather_v_begin(keel_group *group, const void *in, size_t len, void *out,
                                                         const size_t *lens, const size_t *at, keel_request **request);
KEEL_MUST_CHECK keel_status keel_group_alltoall_v(keel_group *group, const void *in, const size_t *in_lens,
                                                  const size_t *in_at, void *out, const size_t *out_lens,
                                                  const size_t *out_at);
KEEL_MUST_CHECK keel_status keel_group_alltoall_v_begin(keel_group *group, const void *in, const size_t *in_lens,
                                                        const size_t *in_at, void *out, const size_t *out_lens,
                                                        const size_t *out_at, keel_request **request);

#ifdef __cplusplus
}
#endif
#endif
