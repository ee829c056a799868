/* One-sided calls on an instance: what libkeel's public calls do when the fast path of public.c does not hold. */
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/near.h"

static keel_status bad_call(const struct client *c)
{
    return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
}

/* Fill in whether and how the part is reached by plain loads and stores under the current route. The slow path does it
 * after an operation, when the copy is mapped. Several threads may: all write the same. */
static void near_update(struct client *c, keel_segment *s, int rank)
{
    const struct page_rank *r = page_rank(c->page, rank);
    struct near *n = &s->near[rank];
    struct route route;
    if (!page_route_read(c->page, group_of((int)r->slot, s->redundancy), &route))
        return;
    uint8_t *base = atomic_load_explicit(&s->map[r->slot], memory_order_acquire);
    if (route.node[0] != c->node || !base || route.lost || route_mode(route.tag) == ROUTE_THROUGH)
        return;
    atomic_store_explicit(&n->base, base + (uint64_t)r->index * s->stride, memory_order_release);
    if (route.copies == 1 && route_mode(route.tag) == ROUTE_DIRECT)
        __atomic_store_n(&n->put_tag, route.tag, __ATOMIC_RELEASE);
    __atomic_store_n(&n->get_tag, route.tag, __ATOMIC_RELEASE);
}

keel_status rma_put(struct client *c, keel_segment *s, int rank, size_t offset, const void *src, size_t len)
{
    if (near_bad_range(c, s, rank, offset, len) || (!src && len))
        return bad_call(c);
    struct op op;
    op_init(c, &op, OP_PUT, s, rank, offset, len);
    op.src = src;
    keel_status status = op_run(&op);
    near_update(c, s, rank);
    return status;
}

keel_status rma_get(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len)
{
    if (near_bad_range(c, s, rank, offset, len) || (!dst && len))
        return bad_call(c);
    struct op op;
    op_init(c, &op, OP_GET, s, rank, offset, len);
    op.dst = dst;
    keel_status status = op_run(&op);
    near_update(c, s, rank);
    return status;
}

/* Handles: opaque[0] is 1 while the operation runs, opaque[1] its status afterwards. */
keel_status rma_start(struct client *c, enum op_kind kind, keel_segment *s, int rank, size_t offset, const void *src,
                      void *dst, size_t len, keel_handle *handle)
{
    if (near_bad_range(c, s, rank, offset, len) || (!src && !dst && len))
        return bad_call(c);
    pthread_mutex_lock(&c->lock);
    struct op *op = op_alloc(c);
    if (op) {
        op_init(c, op, kind, s, rank, offset, len);
        op->src = src;
        op->dst = dst;
        op->handle = handle;
        op->implicit = handle == NULL;
        if (handle)
            *handle = (keel_handle){{1, 0, 0, 0}};
        op_start(op);
    }
    pthread_mutex_unlock(&c->lock);
    return op ? KEEL_OK : KEEL_ERR_NOMEM;
}

static bool handle_done(void *arg)
{
    return ((keel_handle *)arg)->opaque[0] == 0;
}

keel_status rma_wait(struct client *c, keel_handle *handle)
{
    if (!handle)
        return KEEL_ERR_ARG;
    pthread_mutex_lock(&c->lock);
    client_wait(c, handle_done, handle);
    while (!handle_done(handle))
        client_progress(c); /* the job is lost: the operation fails as soon as nothing uses its memory */
    pthread_mutex_unlock(&c->lock);
    return (keel_status)(int64_t)handle->opaque[1];
}

keel_status rma_test(struct client *c, keel_handle *handle)
{
    if (!handle)
        return KEEL_ERR_ARG;
    pthread_mutex_lock(&c->lock);
    if (!handle_done(handle))
        client_progress(c);
    bool done = handle_done(handle);
    pthread_mutex_unlock(&c->lock);
    return done ? (keel_status)(int64_t)handle->opaque[1] : KEEL_IN_PROGRESS;
}

struct fence {
    const struct client *c;
    int slot; /* -1: any */
};

static bool none_implicit(void *arg)
{
    const struct fence *f = arg;
    for (const struct op *op = f->c->active; op; op = op->next)
        if (op->implicit && (f->slot < 0 || op->slot == f->slot))
            return false;
    return true;
}

keel_status rma_fence(struct client *c, int rank)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (rank < -1 || rank >= c->size)
        return KEEL_ERR_ARG;
    struct fence f = {c, rank < 0 ? -1 : (int)page_rank(c->page, rank)->slot};
    pthread_mutex_lock(&c->lock);
    client_wait(c, none_implicit, &f);
    keel_status status = c->fatal != KEEL_OK ? c->fatal : c->implicit_error;
    c->implicit_error = KEEL_OK;
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- accumulate and atomics ---- */

keel_status rma_acc_double(struct client *c, keel_segment *s, int rank, size_t offset, double scale, const double *src,
                           size_t n)
{
    if (n > SIZE_MAX / sizeof *src || near_bad_range(c, s, rank, offset, n * sizeof *src) || offset % 8 || (!src && n))
        return bad_call(c);
    struct op op;
    op_init(c, &op, OP_ACC, s, rank, offset, n * sizeof *src);
    op.src = (const uint8_t *)src;
    op.scale = scale;
    if (c->in_task) {
        op.flags |= WIRE_F_TASK;
        op.task = c->task;
        op.round = c->task_round;
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

keel_status rma_fetch_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add, int64_t *old)
{
    if (near_bad_range(c, s, rank, offset, 8) || offset % 8)
        return bad_call(c);
    struct op op;
    op_init(c, &op, OP_ADD, s, rank, offset, 8);
    op.a = add;
    return atomic_run(&op, old);
}

keel_status rma_compare_swap(struct client *c, keel_segment *s, int rank, size_t offset, int64_t expected,
                             int64_t desired, int64_t *old)
{
    if (near_bad_range(c, s, rank, offset, 8) || offset % 8)
        return bad_call(c);
    struct op op;
    op_init(c, &op, OP_CAS, s, rank, offset, 8);
    op.a = expected;
    op.b = desired;
    return atomic_run(&op, old);
}
