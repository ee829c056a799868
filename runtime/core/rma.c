/* The public one-sided calls. */
#include "runtime/core/client.h"

#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/fault.h"

static bool bad_range(const keel_segment *s, int rank, size_t offset, size_t len)
{
    return !s || !client.ready || rank < 0 || rank >= client.size || len > s->bytes_per_rank ||
           offset > s->bytes_per_rank - len;
}

/* Fill in whether and how the part is reached by plain loads and stores under the current route. The slow path does it
 * after an operation, when the copy is mapped. Several threads may: all write the same. */
static void near_update(keel_segment *s, int rank)
{
    const struct page_rank *r = page_rank(client.page, rank);
    struct near *n = &s->near[rank];
    uint64_t route = page_route(client.page, (int)r->slot);
    enum slot_mode mode = route_mode(route);
    bool plain = s->redundancy == KEEL_REDUNDANCY_NONE;
    uint8_t *base = atomic_load_explicit(&s->map[r->slot], memory_order_acquire);
    bool lost = atomic_load_explicit(&page_slot(client.page, (int)r->slot)->lost_at, memory_order_acquire) != 0;
    if (route_primary(route) != client.node || !base || (plain && lost) || mode == SLOT_SYNC)
        return;
    atomic_store_explicit(&n->base, base + (uint64_t)r->index * s->stride, memory_order_release);
    if (plain && (mode == SLOT_PAIR || mode == SLOT_ALONE))
        __atomic_store_n(&n->put_route, route, __ATOMIC_RELEASE);
    __atomic_store_n(&n->get_route, route, __ATOMIC_RELEASE);
}

static inline bool near_valid(const struct near *n, const uint64_t *wanted)
{
    return __atomic_load_n(wanted, __ATOMIC_ACQUIRE) == atomic_load_explicit(n->route, memory_order_acquire);
}

static inline uint8_t *near_base(const struct near *n)
{
    return atomic_load_explicit(&n->base, memory_order_acquire);
}

static inline void copy_bytes(void *dst, const void *src, size_t len)
{
    if (len == 8)
        memcpy(dst, src, 8); /* one store: 8-byte elements are never torn */
    else
        memcpy(dst, src, len);
}

static __attribute__((noinline)) keel_status slow_put(keel_segment *segment, int rank, size_t offset, const void *src,
                                                      size_t len)
{
    if (!client.ready)
        return KEEL_ERR_STATE;
    if (bad_range(segment, rank, offset, len) || (!src && len))
        return KEEL_ERR_ARG;
    struct op op;
    op_init(&op, OP_PUT, segment, rank, offset, len);
    op.src = src;
    keel_status status = op_run(&op);
    near_update(segment, rank);
    return status;
}

static __attribute__((noinline)) keel_status slow_get(keel_segment *segment, int rank, size_t offset, void *dst,
                                                      size_t len)
{
    if (!client.ready)
        return KEEL_ERR_STATE;
    if (bad_range(segment, rank, offset, len) || (!dst && len))
        return KEEL_ERR_ARG;
    struct op op;
    op_init(&op, OP_GET, segment, rank, offset, len);
    op.dst = dst;
    keel_status status = op_run(&op);
    near_update(segment, rank);
    return status;
}

KEEL_EXPORT keel_status keel_put(keel_segment *segment, int rank, size_t offset, const void *src, size_t len)
{
    if (__builtin_expect(!bad_range(segment, rank, offset, len) && src, 1)) {
        const struct near *n = &segment->near[rank];
        if (near_valid(n, &n->put_route)) {
            copy_bytes(near_base(n) + offset, src, len);
            if (near_valid(n, &n->put_route))
                return KEEL_OK;
        }
    }
    return slow_put(segment, rank, offset, src, len);
}

KEEL_EXPORT keel_status keel_get(keel_segment *segment, int rank, size_t offset, void *dst, size_t len)
{
    if (__builtin_expect(!bad_range(segment, rank, offset, len) && dst, 1)) {
        const struct near *n = &segment->near[rank];
        if (near_valid(n, &n->get_route)) {
            copy_bytes(dst, near_base(n) + offset, len);
            if (near_valid(n, &n->get_route))
                return KEEL_OK;
        }
    }
    return slow_get(segment, rank, offset, dst, len);
}

/* Handles: opaque[0] is 1 while the operation runs, opaque[1] its status afterwards. */
static keel_status start_nb(enum op_kind kind, keel_segment *segment, int rank, size_t offset, const void *src,
                            void *dst, size_t len, keel_handle *handle)
{
    if (bad_range(segment, rank, offset, len) || (!src && !dst && len))
        return client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    pthread_mutex_lock(&client.lock);
    struct op *op = op_alloc();
    if (op) {
        op_init(op, kind, segment, rank, offset, len);
        op->src = src;
        op->dst = dst;
        op->handle = handle;
        op->implicit = handle == NULL;
        if (handle)
            *handle = (keel_handle){{1, 0, 0, 0}};
        op_start(op);
    }
    pthread_mutex_unlock(&client.lock);
    return op ? KEEL_OK : KEEL_ERR_NOMEM;
}

KEEL_EXPORT keel_status keel_put_nb(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                                    keel_handle *handle)
{
    return start_nb(OP_PUT, segment, rank, offset, src, NULL, len, handle);
}

KEEL_EXPORT keel_status keel_get_nb(keel_segment *segment, int rank, size_t offset, void *dst, size_t len,
                                    keel_handle *handle)
{
    return start_nb(OP_GET, segment, rank, offset, NULL, dst, len, handle);
}

static bool handle_done(void *arg)
{
    return ((keel_handle *)arg)->opaque[0] == 0;
}

KEEL_EXPORT keel_status keel_wait(keel_handle *handle)
{
    if (!handle)
        return KEEL_ERR_ARG;
    pthread_mutex_lock(&client.lock);
    op_wait(handle_done, handle);
    while (!handle_done(handle))
        op_progress(); /* the job is lost: the operation fails as soon as nothing uses its memory */
    pthread_mutex_unlock(&client.lock);
    return (keel_status)(int64_t)handle->opaque[1];
}

KEEL_EXPORT keel_status keel_test(keel_handle *handle)
{
    if (!handle)
        return KEEL_ERR_ARG;
    pthread_mutex_lock(&client.lock);
    if (!handle_done(handle))
        op_progress();
    bool done = handle_done(handle);
    pthread_mutex_unlock(&client.lock);
    return done ? (keel_status)(int64_t)handle->opaque[1] : KEEL_IN_PROGRESS;
}

static bool none_implicit(void *arg)
{
    int slot = *(int *)arg; /* -1: any */
    for (const struct op *op = client.active; op; op = op->next)
        if (op->implicit && (slot < 0 || op->slot == slot))
            return false;
    return true;
}

static keel_status fence_slot(int slot)
{
    pthread_mutex_lock(&client.lock);
    op_wait(none_implicit, &slot);
    keel_status status = client.fatal != KEEL_OK ? client.fatal : client.implicit_error;
    client.implicit_error = KEEL_OK;
    pthread_mutex_unlock(&client.lock);
    return status;
}

KEEL_EXPORT keel_status keel_fence(int rank)
{
    if (!client.ready)
        return KEEL_ERR_STATE;
    if (rank < 0 || rank >= client.size)
        return KEEL_ERR_ARG;
    return fence_slot((int)page_rank(client.page, rank)->slot);
}

KEEL_EXPORT keel_status keel_fence_all(void)
{
    return client.ready ? fence_slot(-1) : KEEL_ERR_STATE;
}

/* ---- accumulate and atomics ---- */

KEEL_EXPORT keel_status keel_acc_double(keel_segment *segment, int rank, size_t offset, double scale, const double *src,
                                        size_t n)
{
    if (n > SIZE_MAX / sizeof *src || bad_range(segment, rank, offset, n * sizeof *src) || offset % 8 || (!src && n))
        return client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    struct op op;
    op_init(&op, OP_ACC, segment, rank, offset, n * sizeof *src);
    op.src = (const uint8_t *)src;
    op.scale = scale;
    if (client.in_task) {
        op.flags |= WIRE_F_TASK;
        op.task = client.task;
        op.step = client.task_step;
        client.task_step += (uint32_t)((op.len + WIRE_BODY_MAX - 1) / WIRE_BODY_MAX);
        FAULT_POINT("task.accumulating");
    }
    keel_status status = op_run(&op);
    FAULT_POINT("acc.done");
    return status;
}

static keel_status atomic_run(struct op *op, int64_t *old)
{
    keel_status status = op_run(op);
    if (old)
        *old = op->result;
    return status;
}

KEEL_EXPORT keel_status keel_fetch_add(keel_segment *segment, int rank, size_t offset, int64_t add, int64_t *old)
{
    if (bad_range(segment, rank, offset, 8) || offset % 8)
        return client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    const struct near *n = &segment->near[rank];
    if (near_valid(n, &n->put_route)) { /* unreplicated: it dies with the node, once or never */
        int64_t before = atomic_fetch_add((_Atomic int64_t *)(void *)(near_base(n) + offset), add);
        if (old)
            *old = before;
        return KEEL_OK;
    }
    struct op op;
    op_init(&op, OP_ADD, segment, rank, offset, 8);
    op.a = add;
    return atomic_run(&op, old);
}

KEEL_EXPORT keel_status keel_compare_swap(keel_segment *segment, int rank, size_t offset, int64_t expected,
                                          int64_t desired, int64_t *old)
{
    if (bad_range(segment, rank, offset, 8) || offset % 8)
        return client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    const struct near *n = &segment->near[rank];
    if (near_valid(n, &n->put_route)) {
        int64_t before = expected;
        atomic_compare_exchange_strong((_Atomic int64_t *)(void *)(near_base(n) + offset), &before, desired);
        if (old)
            *old = before;
        return KEEL_OK;
    }
    struct op op;
    op_init(&op, OP_CAS, segment, rank, offset, 8);
    op.a = expected;
    op.b = desired;
    return atomic_run(&op, old);
}
