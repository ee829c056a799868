/* The public calls of keel/rma.h and keel/signal.h, on the process's instance. Same-node parts take the fast path:
 * no lock, no system call. */
#include "runtime/base/export.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/op/near.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/segment/track.h"
#include "runtime/wire/arith.h"

/* Of these four the fast path is the program's call itself: while calls are direct nothing is between them, and the
 * look whether the process is in a job is the look whether there is a wrapper. */

/* No range of the segment that this process may reach now. `ready`: it is in a job. */
static inline bool bad(bool ready, const keel_segment *segment, int rank, size_t offset, size_t len)
{
    return ready ? near_outside(&process_client, segment, rank, offset, len)
                 : near_bad_range(&process_client, segment, rank, offset, len);
}

/* At the beginning of a line of the cache: where the linker had put it elsewhere, a put of 8 bytes took 2.4 ns, and
 * here 2.1. */
#define ALIGNED __attribute__((aligned(64)))

static inline bool is_direct(void)
{
    return __builtin_expect(process_client.ready == CLIENT_DIRECT, 1);
}

/* Those that are no word: a call of their own, so that the one of a word, which is in line, saves no registers. */
static __attribute__((noinline)) keel_status put_run(keel_segment *segment, int rank, size_t offset, const void *src,
                                                     size_t len)
{
    const struct near *n = &segment->near[rank];
    words_store_run(near_base(n) + offset, src, len);
    if (!near_valid(n, &n->put_tag))
        return rma_put(&process_client, segment, rank, offset, src, len);
    counters_own(counter_mine, COUNTER_puts_here, 1, len);
    return KEEL_OK;
}

static __attribute__((noinline)) keel_status get_far(keel_segment *segment, int rank, size_t offset, void *dst,
                                                     size_t len)
{
    track_touch(dst, len);
    return rma_get(&process_client, segment, rank, offset, dst, len);
}

static __attribute__((noinline)) keel_status get_run(keel_segment *segment, int rank, size_t offset, void *dst,
                                                     size_t len)
{
    const struct near *n = &segment->near[rank];
    words_load_run(dst, near_base(n) + offset, len);
    if (!near_valid(n, &n->get_tag))
        return get_far(segment, rank, offset, dst, len);
    counters_own(counter_mine, COUNTER_gets_here, 1, len);
    return KEEL_OK;
}

/* A thread has no block before its first call that is not of this kind. */
static inline __attribute__((always_inline)) keel_status put(bool ready, keel_segment *segment, int rank, size_t offset,
                                                             const void *src, size_t len)
{
    struct counter_block *b = counter_mine;
    if (__builtin_expect(!bad(ready, segment, rank, offset, len) && src && b, 1)) {
        const struct near *n = &segment->near[rank];
        if (near_valid(n, &n->put_tag)) {
            if (len != 8)
                return put_run(segment, rank, offset, src, len);
            memcpy(near_base(n) + offset, src, 8);
            if (near_valid(n, &n->put_tag)) {
                counters_own(b, COUNTER_puts_here, 1, 8);
                return KEEL_OK;
            }
        }
    }
    return rma_put(&process_client, segment, rank, offset, src, len);
}

keel_status call_put(keel_segment *segment, int rank, size_t offset, const void *src, size_t len)
{
    return put(false, segment, rank, offset, src, len);
}

static __attribute__((noinline, cold)) keel_status put_by_table(keel_segment *segment, int rank, size_t offset,
                                                                const void *src, size_t len)
{
    return calls_now()->put(segment, rank, offset, src, len);
}

KEEL_EXPORT ALIGNED keel_status keel_put(keel_segment *segment, int rank, size_t offset, const void *src, size_t len)
{
    return is_direct() ? put(true, segment, rank, offset, src, len) : put_by_table(segment, rank, offset, src, len);
}

static inline __attribute__((always_inline)) keel_status get(bool ready, keel_segment *segment, int rank, size_t offset,
                                                             void *dst, size_t len)
{
    struct counter_block *b = counter_mine;
    if (__builtin_expect(!bad(ready, segment, rank, offset, len) && dst && b, 1)) {
        const struct near *n = &segment->near[rank];
        if (near_valid(n, &n->get_tag)) {
            if (len != 8)
                return get_run(segment, rank, offset, dst, len);
            memcpy(dst, near_base(n) + offset, 8);
            if (near_valid(n, &n->get_tag)) {
                counters_own(b, COUNTER_gets_here, 1, 8);
                return KEEL_OK;
            }
        }
    }
    return get_far(segment, rank, offset, dst, len);
}

keel_status call_get(keel_segment *segment, int rank, size_t offset, void *dst, size_t len)
{
    return get(false, segment, rank, offset, dst, len);
}

static __attribute__((noinline, cold)) keel_status get_by_table(keel_segment *segment, int rank, size_t offset,
                                                                void *dst, size_t len)
{
    return calls_now()->get(segment, rank, offset, dst, len);
}

KEEL_EXPORT ALIGNED keel_status keel_get(keel_segment *segment, int rank, size_t offset, void *dst, size_t len)
{
    return is_direct() ? get(true, segment, rank, offset, dst, len) : get_by_table(segment, rank, offset, dst, len);
}

static inline __attribute__((always_inline)) keel_status
put_nb(bool ready, keel_segment *segment, int rank, size_t offset, const void *src, size_t len, keel_handle *handle)
{
    if (!bad(ready, segment, rank, offset, len) && src) {
        const struct near *n = &segment->near[rank];
        keel_status status;
        if (near_valid(n, &n->put_tag) && (status = rma_use_at_once(&process_client, handle)) != KEEL_OK)
            return status;
        if (near_valid(n, &n->put_tag)) {
            words_store(near_base(n) + offset, src, len);
            if (near_valid(n, &n->put_tag)) {
                near_counts(&process_client, COUNTER_puts_here, 1, len);
                return KEEL_OK;
            }
        }
    }
    return rma_start(&process_client, OP_PUT, segment, rank, offset, src, NULL, len, handle);
}

keel_status call_put_nb(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                        keel_handle *handle)
{
    return put_nb(false, segment, rank, offset, src, len, handle);
}

static __attribute__((noinline, cold)) keel_status put_nb_by_table(keel_segment *segment, int rank, size_t offset,
                                                                   const void *src, size_t len, keel_handle *handle)
{
    return calls_now()->put_nb(segment, rank, offset, src, len, handle);
}

KEEL_EXPORT keel_status keel_put_nb(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                                    keel_handle *handle)
{
    return is_direct() ? put_nb(true, segment, rank, offset, src, len, handle)
                       : put_nb_by_table(segment, rank, offset, src, len, handle);
}

static inline __attribute__((always_inline)) keel_status
get_nb(bool ready, keel_segment *segment, int rank, size_t offset, void *dst, size_t len, keel_handle *handle)
{
    if (!bad(ready, segment, rank, offset, len) && dst) {
        const struct near *n = &segment->near[rank];
        keel_status status;
        if (near_valid(n, &n->get_tag) && (status = rma_use_at_once(&process_client, handle)) != KEEL_OK)
            return status;
        if (near_valid(n, &n->get_tag)) {
            words_load(dst, near_base(n) + offset, len);
            if (near_valid(n, &n->get_tag)) {
                near_counts(&process_client, COUNTER_gets_here, 1, len);
                return KEEL_OK;
            }
        }
    }
    track_touch(dst, len);
    return rma_start(&process_client, OP_GET, segment, rank, offset, NULL, dst, len, handle);
}

keel_status call_get_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len, keel_handle *handle)
{
    return get_nb(false, segment, rank, offset, dst, len, handle);
}

static __attribute__((noinline, cold)) keel_status get_nb_by_table(keel_segment *segment, int rank, size_t offset,
                                                                   void *dst, size_t len, keel_handle *handle)
{
    return calls_now()->get_nb(segment, rank, offset, dst, len, handle);
}

KEEL_EXPORT keel_status keel_get_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len,
                                    keel_handle *handle)
{
    return is_direct() ? get_nb(true, segment, rank, offset, dst, len, handle)
                       : get_nb_by_table(segment, rank, offset, dst, len, handle);
}

keel_status call_get_strong(keel_segment *segment, int rank, size_t offset, void *dst, size_t len)
{
    track_touch(dst, len);
    return rma_get_strong(&process_client, segment, rank, offset, dst, len);
}

keel_status call_get_strong_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len,
                               keel_handle *handle)
{
    track_touch(dst, len);
    return rma_start_strong(&process_client, segment, rank, offset, dst, len, handle);
}

keel_status call_wait(keel_handle *handle)
{
    return rma_wait(&process_client, handle);
}

keel_status call_test(keel_handle *handle)
{
    return rma_test(&process_client, handle);
}

keel_status call_fence(int rank)
{
    return rank < 0 ? process_client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE : rma_fence(&process_client, rank);
}

keel_status call_fence_all(void)
{
    return rma_fence(&process_client, -1);
}

/* Can the range be reached by the processor's atomics? Unreplicated only: it dies with the node, once or never. */
static uint8_t *near_shared(keel_segment *segment, int rank, size_t offset, size_t len, size_t align)
{
    if (align == 0 || near_bad_range(&process_client, segment, rank, offset, len) || offset % align)
        return NULL;
    const struct near *n = &segment->near[rank];
    return near_valid(n, &n->add_tag) ? near_base(n) + offset : NULL;
}

/* Accumulates of a task are known to the agent by their numbers: they go to it. */
static bool acc_near(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale, const void *src,
                     size_t n)
{
    if (!arith_can_add(type) || n > SIZE_MAX / arith_size(type) || !src || process_client.task_run.open)
        return false;
    uint8_t *at = near_shared(segment, rank, offset, n * arith_size(type), arith_align(type));
    if (at) {
        arith_add(type, at, src, n, scale ? scale : arith_one(type), true);
        near_counts(&process_client, COUNTER_accumulates_here, 1, n * arith_size(type));
    }
    return at;
}

keel_status call_acc(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale, const void *src,
                     size_t n)
{
    return acc_near(segment, rank, offset, type, scale, src, n)
               ? KEEL_OK
               : rma_acc(&process_client, segment, rank, offset, type, scale, src, n);
}

keel_status call_acc_nb(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                        const void *src, size_t n, keel_handle *handle)
{
    return rma_acc_nb(&process_client, segment, rank, offset, type, scale, src, n, handle);
}

keel_status call_acc_double(keel_segment *segment, int rank, size_t offset, double scale, const double *src, size_t n)
{
    return call_acc(segment, rank, offset, KEEL_DOUBLE, &scale, src, n);
}

KEEL_EXPORT size_t keel_type_size(keel_type type)
{
    return arith_size(type);
}

keel_status call_rmw(keel_segment *segment, int rank, size_t offset, keel_type type, keel_rmw_op op,
                     const void *operand, const void *expected, void *old)
{
    return rma_rmw(&process_client, segment, rank, offset, type, op, operand, expected, old);
}

keel_status call_fetch_add(keel_segment *segment, int rank, size_t offset, int64_t add, int64_t *old)
{
    struct counter_block *b = counter_mine;
    uint8_t *at = near_shared(segment, rank, offset, sizeof add, sizeof add);
    if (!at || !b)
        return rma_fetch_add(&process_client, segment, rank, offset, add, old);
    counter_add(b, COUNTER_atomics_here, 1);
    int64_t before = atomic_fetch_add((_Atomic int64_t *)(void *)at, add);
    if (old)
        *old = before;
    return KEEL_OK;
}

keel_status call_compare_swap(keel_segment *segment, int rank, size_t offset, int64_t expected, int64_t desired,
                              int64_t *old)
{
    struct counter_block *b = counter_mine;
    uint8_t *at = near_shared(segment, rank, offset, sizeof desired, sizeof desired);
    if (!at || !b)
        return rma_compare_swap(&process_client, segment, rank, offset, expected, desired, old);
    counter_add(b, COUNTER_atomics_here, 1);
    int64_t before = arith_rmw(ARITH_CAS, sizeof desired, at, expected, desired);
    if (old)
        *old = before;
    return KEEL_OK;
}

keel_status call_signal(keel_segment *segment, int rank, size_t word, int64_t add)
{
    return signal_send(&process_client, segment, rank, word, add);
}

keel_status call_put_signal(keel_segment *segment, int rank, size_t offset, const void *src, size_t len, size_t word,
                            int64_t add)
{
    if (word % sizeof add || near_bad_range(&process_client, segment, rank, word, sizeof add))
        return process_client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    keel_status status = call_put(segment, rank, offset, src, len);
    return status == KEEL_OK ? call_signal(segment, rank, word, add) : status;
}

keel_status call_wait_until(keel_segment *segment, size_t word, keel_compare how, int64_t value, int from, int64_t *got)
{
    return signal_wait(&process_client, segment, word, how, value, from, got);
}
