/* The public calls, on the process's instance. Same-node parts take the fast path: no lock, no system call. */
#include <sys/mman.h>

#include "runtime/base/export.h"
#include "runtime/client/api/living.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/op/mutex.h"
#include "runtime/client/op/near.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/op/task.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/segment_part.h"
#include "runtime/client/segment/track.h"
#include "runtime/wire/arith.h"

KEEL_EXPORT keel_status keel_put(keel_segment *segment, int rank, size_t offset, const void *src, size_t len)
{
    if (__builtin_expect(!near_bad_range(&process_client, segment, rank, offset, len) && src, 1)) {
        const struct near *n = &segment->near[rank];
        if (near_valid(n, &n->put_tag)) {
            words_store(near_base(n) + offset, src, len);
            if (near_valid(n, &n->put_tag))
                return KEEL_OK;
        }
    }
    return rma_put(&process_client, segment, rank, offset, src, len);
}

KEEL_EXPORT keel_status keel_get(keel_segment *segment, int rank, size_t offset, void *dst, size_t len)
{
    if (__builtin_expect(!near_bad_range(&process_client, segment, rank, offset, len) && dst, 1)) {
        const struct near *n = &segment->near[rank];
        if (near_valid(n, &n->get_tag)) {
            words_load(dst, near_base(n) + offset, len);
            if (near_valid(n, &n->get_tag))
                return KEEL_OK;
        }
    }
    track_touch(dst, len);
    return rma_get(&process_client, segment, rank, offset, dst, len);
}

KEEL_EXPORT keel_status keel_get_strong(keel_segment *segment, int rank, size_t offset, void *dst, size_t len)
{
    track_touch(dst, len);
    return rma_get_strong(&process_client, segment, rank, offset, dst, len);
}

KEEL_EXPORT keel_status keel_put_nb(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                                    keel_handle *handle)
{
    if (!near_bad_range(&process_client, segment, rank, offset, len) && src) {
        const struct near *n = &segment->near[rank];
        keel_status status;
        if (near_valid(n, &n->put_tag) && (status = rma_use_at_once(&process_client, handle)) != KEEL_OK)
            return status;
        if (near_valid(n, &n->put_tag)) {
            words_store(near_base(n) + offset, src, len);
            if (near_valid(n, &n->put_tag))
                return KEEL_OK;
        }
    }
    return rma_start(&process_client, OP_PUT, segment, rank, offset, src, NULL, len, handle);
}

KEEL_EXPORT keel_status keel_get_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len,
                                    keel_handle *handle)
{
    if (!near_bad_range(&process_client, segment, rank, offset, len) && dst) {
        const struct near *n = &segment->near[rank];
        keel_status status;
        if (near_valid(n, &n->get_tag) && (status = rma_use_at_once(&process_client, handle)) != KEEL_OK)
            return status;
        if (near_valid(n, &n->get_tag)) {
            words_load(dst, near_base(n) + offset, len);
            if (near_valid(n, &n->get_tag))
                return KEEL_OK;
        }
    }
    track_touch(dst, len);
    return rma_start(&process_client, OP_GET, segment, rank, offset, NULL, dst, len, handle);
}

KEEL_EXPORT keel_status keel_get_strong_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len,
                                           keel_handle *handle)
{
    track_touch(dst, len);
    return rma_start_strong(&process_client, segment, rank, offset, dst, len, handle);
}

KEEL_EXPORT keel_status keel_wait(keel_handle *handle)
{
    return rma_wait(&process_client, handle);
}

KEEL_EXPORT keel_status keel_test(keel_handle *handle)
{
    return rma_test(&process_client, handle);
}

KEEL_EXPORT keel_status keel_fence(int rank)
{
    return rank < 0 ? process_client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE : rma_fence(&process_client, rank);
}

KEEL_EXPORT keel_status keel_fence_all(void)
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
    if (at)
        arith_add(type, at, src, n, scale ? scale : arith_one(type), true);
    return at;
}

KEEL_EXPORT keel_status keel_acc(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                                 const void *src, size_t n)
{
    return acc_near(segment, rank, offset, type, scale, src, n)
               ? KEEL_OK
               : rma_acc(&process_client, segment, rank, offset, type, scale, src, n);
}

KEEL_EXPORT keel_status keel_acc_nb(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                                    const void *src, size_t n, keel_handle *handle)
{
    return rma_acc_nb(&process_client, segment, rank, offset, type, scale, src, n, handle);
}

KEEL_EXPORT keel_status keel_acc_double(keel_segment *segment, int rank, size_t offset, double scale, const double *src,
                                        size_t n)
{
    return keel_acc(segment, rank, offset, KEEL_DOUBLE, &scale, src, n);
}

KEEL_EXPORT size_t keel_type_size(keel_type type)
{
    return arith_size(type);
}

KEEL_EXPORT keel_status keel_rmw(keel_segment *segment, int rank, size_t offset, keel_type type, keel_rmw_op op,
                                 const void *operand, const void *expected, void *old)
{
    return rma_rmw(&process_client, segment, rank, offset, type, op, operand, expected, old);
}

KEEL_EXPORT keel_status keel_fetch_add(keel_segment *segment, int rank, size_t offset, int64_t add, int64_t *old)
{
    uint8_t *at = near_shared(segment, rank, offset, sizeof add, sizeof add);
    if (!at)
        return rma_fetch_add(&process_client, segment, rank, offset, add, old);
    int64_t before = arith_rmw(ARITH_ADD, sizeof add, at, add, 0);
    if (old)
        *old = before;
    return KEEL_OK;
}

KEEL_EXPORT keel_status keel_compare_swap(keel_segment *segment, int rank, size_t offset, int64_t expected,
                                          int64_t desired, int64_t *old)
{
    uint8_t *at = near_shared(segment, rank, offset, sizeof desired, sizeof desired);
    if (!at)
        return rma_compare_swap(&process_client, segment, rank, offset, expected, desired, old);
    int64_t before = arith_rmw(ARITH_CAS, sizeof desired, at, expected, desired);
    if (old)
        *old = before;
    return KEEL_OK;
}

KEEL_EXPORT keel_status keel_signal(keel_segment *segment, int rank, size_t word, int64_t add)
{
    keel_status status = keel_fetch_add(segment, rank, word, add, NULL);
    if (status == KEEL_OK)
        signal_tell(&process_client, rank);
    return status;
}

KEEL_EXPORT keel_status keel_put_signal(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                                        size_t word, int64_t add)
{
    if (word % sizeof add || near_bad_range(&process_client, segment, rank, word, sizeof add))
        return process_client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    keel_status status = keel_put(segment, rank, offset, src, len);
    return status == KEEL_OK ? keel_signal(segment, rank, word, add) : status;
}

KEEL_EXPORT keel_status keel_wait_until(keel_segment *segment, size_t word, keel_compare how, int64_t value, int from,
                                        int64_t *got)
{
    return signal_wait(&process_client, segment, word, how, value, from, got);
}

KEEL_EXPORT keel_status keel_segment_alloc(size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out)
{
    return segment_alloc(&process_client, bytes_per_rank, redundancy, out);
}

KEEL_EXPORT keel_status keel_segment_alloc_parts(const size_t *bytes, keel_redundancy redundancy, keel_segment **out)
{
    return segment_alloc_parts(&process_client, bytes, redundancy, out);
}

KEEL_EXPORT keel_status keel_segment_describe(const keel_segment *segment, int rank, keel_segment_part *out)
{
    return process_client.ready ? segment_describe(segment, rank, out) : KEEL_ERR_STATE;
}

KEEL_EXPORT keel_status keel_segment_attach(const keel_segment_part *part, keel_segment **out)
{
    if (process_client.ready)
        return segment_attach_part(&process_client, part, out);
    if (out)
        *out = NULL;
    return KEEL_ERR_STATE;
}

KEEL_EXPORT keel_status keel_segment_free(keel_segment *segment)
{
    return segment_free(&process_client, segment);
}

KEEL_EXPORT void *keel_address(keel_segment *segment, int rank)
{
    return process_client.ready ? segment_address(segment, rank) : NULL;
}

KEEL_EXPORT keel_status keel_locate(int rank, const void *address, keel_segment **segment, size_t *offset)
{
    return segment_locate(&process_client, rank, address, segment, offset);
}

KEEL_EXPORT size_t keel_segment_bytes_per_rank(const keel_segment *segment)
{
    return segment && process_client.ready ? (size_t)segment->largest : 0;
}

KEEL_EXPORT size_t keel_segment_bytes(const keel_segment *segment, int rank)
{
    return segment && process_client.ready && rank >= 0 && rank < process_client.size
               ? (size_t)segment->part_bytes[rank]
               : 0;
}

KEEL_EXPORT keel_redundancy keel_segment_redundancy(const keel_segment *segment)
{
    return segment && process_client.ready ? segment->redundancy : KEEL_REDUNDANCY_NONE;
}

static_assert((int)KEEL_COPIES_MAX == (int)COPIES_MAX, "a part has as many copies");

KEEL_EXPORT keel_status keel_segment_copies(const keel_segment *segment, int rank, int nodes[KEEL_COPIES_MAX], int *n)
{
    return process_client.ready ? segment_copies(segment, rank, nodes, n) : KEEL_ERR_STATE;
}

/* In front of the memory is a page that says how long it is. */
KEEL_EXPORT void *keel_local_alloc(size_t bytes)
{
    enum { PAGE = 4096, LARGE = 2 * 1024 * 1024 };
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t whole = bytes + PAGE;
    char *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (bytes >= LARGE)
        (void)madvise(memory, whole, MADV_HUGEPAGE);
    memcpy(memory, &whole, sizeof whole);
    return memory + PAGE;
}

KEEL_EXPORT void keel_local_free(void *memory)
{
    enum { PAGE = 4096 };
    size_t whole;
    if (!memory)
        return;
    char *begin = (char *)memory - PAGE;
    memcpy(&whole, begin, sizeof whole);
    (void)munmap(begin, whole);
}

static keel_status bad_call(void)
{
    return process_client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
}

/* Mutexes and pools are numbers to the program (living.h). A number that cannot be had is this rank's error in a collective of all. */
static keel_mutexes *mutexes_of(const keel_mutexes *number)
{
    return living_find(number, LIVING_MUTEXES);
}

KEEL_EXPORT keel_status keel_mutexes_create(int per_rank, keel_mutexes **out)
{
    void *number = out ? living_take(LIVING_MUTEXES) : NULL;
    keel_mutexes *made = NULL;
    keel_status able = out && !number ? KEEL_ERR_NOMEM : KEEL_OK;
    keel_status status = mutexes_create(&process_client, able, per_rank, out ? &made : NULL);
    living_set(number, made);
    if (status != KEEL_OK)
        living_give_back(number);
    if (out)
        *out = status == KEEL_OK ? number : NULL;
    return status;
}

KEEL_EXPORT keel_status keel_mutexes_free(keel_mutexes *mutexes)
{
    keel_mutexes *m = mutexes_of(mutexes);
    if (mutexes && !m)
        return bad_call();
    bool gone = false;
    keel_status status = mutexes_free(&process_client, m, &gone);
    if (gone)
        living_give_back(mutexes);
    return status;
}

KEEL_EXPORT keel_status keel_mutex_lock(keel_mutexes *mutexes, int rank, int number, int *dead)
{
    keel_mutexes *m = mutexes_of(mutexes);
    return m ? mutex_lock(m, rank, number, true, dead) : bad_call();
}

KEEL_EXPORT keel_status keel_mutex_try(keel_mutexes *mutexes, int rank, int number, int *dead)
{
    keel_mutexes *m = mutexes_of(mutexes);
    return m ? mutex_lock(m, rank, number, false, dead) : bad_call();
}

KEEL_EXPORT keel_status keel_mutex_unlock(keel_mutexes *mutexes, int rank, int number)
{
    keel_mutexes *m = mutexes_of(mutexes);
    return m ? mutex_unlock(m, rank, number) : bad_call();
}

KEEL_EXPORT keel_status keel_barrier(void)
{
    return collective_barrier(&process_client);
}

KEEL_EXPORT keel_status keel_sync(void)
{
    return collective_barrier(&process_client);
}

KEEL_EXPORT keel_status keel_barrier_begin(void)
{
    return collective_barrier_begin(&process_client);
}

KEEL_EXPORT keel_status keel_barrier_test(uint64_t *epoch)
{
    return collective_barrier_test(&process_client, epoch);
}

KEEL_EXPORT keel_status keel_barrier_end(uint64_t *epoch)
{
    return collective_barrier_end(&process_client, epoch);
}

KEEL_EXPORT keel_status keel_bcast(int root, void *buffer, size_t len)
{
    return collective_bcast(&process_client, root, buffer, len);
}

KEEL_EXPORT keel_status keel_allreduce_sum(const double *in, double *out, size_t n)
{
    return collective_allreduce_sum(&process_client, in, out, n);
}

static keel_taskpool *pool_of(const keel_taskpool *number)
{
    return living_find(number, LIVING_POOL);
}

KEEL_EXPORT keel_status keel_taskpool_create(int64_t count, keel_taskpool **out)
{
    void *number = out ? living_take(LIVING_POOL) : NULL;
    keel_taskpool *made = NULL;
    keel_status able = out && !number ? KEEL_ERR_NOMEM : KEEL_OK;
    keel_status status = taskpool_create(&process_client, able, count, out ? &made : NULL);
    living_set(number, made);
    if (status != KEEL_OK)
        living_give_back(number);
    if (out)
        *out = status == KEEL_OK ? number : NULL;
    return status;
}

KEEL_EXPORT keel_status keel_taskpool_free(keel_taskpool *pool)
{
    keel_taskpool *p = pool_of(pool);
    if (pool && !p)
        return bad_call();
    bool gone = false;
    keel_status status = taskpool_free(&process_client, p, &gone);
    if (gone)
        living_give_back(pool);
    return status;
}

KEEL_EXPORT keel_status keel_taskpool_reset(keel_taskpool *pool)
{
    keel_taskpool *p = pool_of(pool);
    return p ? taskpool_reset(&process_client, p) : bad_call();
}

KEEL_EXPORT keel_status keel_task_next(keel_taskpool *pool, int64_t *task)
{
    keel_taskpool *p = pool_of(pool);
    return p ? task_next(&process_client, p, task) : bad_call();
}

KEEL_EXPORT keel_status keel_task_commit(keel_taskpool *pool, int64_t task)
{
    keel_taskpool *p = pool_of(pool);
    return p ? task_commit(&process_client, p, task) : bad_call();
}
