/* One-sided calls on an instance: what libkeel's public calls do when the fast path of public_rma.c does not hold. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/op/handle.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/task.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"
#include "runtime/wire/arith.h"

static_assert((int)KEEL_RMW_ADD == (int)ARITH_ADD && (int)KEEL_RMW_XOR == (int)ARITH_XOR &&
                  (int)KEEL_RMW_COMPARE_SWAP == (int)ARITH_CAS,
              "the public operations are those of the messages");

bool handle_is_watched;

static keel_status bad_call(const struct client *c)
{
    return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
}

static bool may_add(const keel_segment *s, uint32_t slot, const struct route *route)
{
    return route->copies == 1 && route_mode(route->tag) == ROUTE_DIRECT &&
           atomic_load(&s->shared[slot]) == route_generation(route->tag) + 1;
}

/* Puts and gets map what they reach; who only accumulates or counts has nothing mapped when its agent says that it
 * may do so itself. */
static uint8_t *mapped(keel_segment *s, uint32_t slot, const struct route *route)
{
    uint8_t *base = atomic_load_explicit(&s->map[slot], memory_order_acquire);
    if (base || route->lost || !may_add(s, slot, route))
        return base;
    keel_status status;
    return segment_map(s, (int)slot, &status);
}

/* Fill in whether and how the part is reached by plain loads and stores under the current route. The slow path does it
 * after an operation, when the copy is mapped. Several threads may: all write the same. The lock is not held. */
void rma_near_update(struct client *c, keel_segment *s, int rank)
{
    counters_thread(&c->intents->counters);
    const struct page_rank *r = page_rank(c->page, rank);
    struct near *n = &s->near[rank];
    struct route route;
    if (!page_route_read(c->page, copyset_of((int)r->slot, s->redundancy), &route))
        return;
    uint8_t *base = route.node[0] == c->node ? mapped(s, r->slot, &route) : NULL;
    if (!base || route.lost || route_mode(route.tag) == ROUTE_THROUGH)
        return;
    __atomic_store_n(&n->tag, &page_route(c->page, copyset_of((int)r->slot, s->redundancy))->tag, __ATOMIC_RELAXED);
    atomic_store_explicit(&n->base, base + s->part_at[rank], memory_order_release);
    bool alone = route.copies == 1 && route_mode(route.tag) == ROUTE_DIRECT, adds = may_add(s, r->slot, &route);
    client_lock(c); /* else another thread may give something up between the look and the stores (doubt_give_up) */
    bool behind = doubt_is_behind(c);
    if (!behind && alone)
        __atomic_store_n(&n->put_tag, route.tag, __ATOMIC_RELEASE);
    if (!behind && adds)
        __atomic_store_n(&n->add_tag, route.tag, __ATOMIC_RELEASE);
    if (!behind)
        __atomic_store_n(&n->get_tag, route.tag, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&c->lock);
}

keel_status rma_put(struct client *c, keel_segment *s, int rank, size_t offset, const void *src, size_t len)
{
    if (near_bad_range(c, s, rank, offset, len) || (!src && len))
        return bad_call(c);
    struct op op;
    op_init(c, &op, OP_PUT, s, rank, offset, len);
    op.src = src;
    keel_status status = op_run(&op);
    rma_near_update(c, s, rank);
    return status;
}

static keel_status get(struct client *c, bool strong, keel_segment *s, int rank, size_t offset, void *dst, size_t len)
{
    if (near_bad_range(c, s, rank, offset, len) || (!dst && len))
        return bad_call(c);
    struct op op;
    op_init(c, &op, OP_GET, s, rank, offset, len);
    op.dst = dst;
    op.strong = strong;
    keel_status status = op_run(&op);
    rma_near_update(c, s, rank);
    return status;
}

keel_status rma_get(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len)
{
    return get(c, false, s, rank, offset, dst, len);
}

keel_status rma_get_strong(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len)
{
    return get(c, true, s, rank, offset, dst, len);
}

void rma_op_start(struct op *op, keel_handle *handle)
{
    op->handle = handle;
    op->implicit = handle == NULL;
    if (handle)
        handle_add(handle);
    op_start(op);
}

/* An operation of its own, for the handle or implicit. Lock held. */
static keel_status op_for(struct client *c, keel_handle *handle, struct op **op)
{
    keel_status status = c->leaving ? KEEL_ERR_STATE : handle ? handle_use(c, handle) : KEEL_OK;
    *op = status == KEEL_OK ? op_alloc(c) : NULL;
    return status != KEEL_OK || *op ? status : KEEL_ERR_NOMEM;
}

static keel_status start_copy(struct client *c, enum op_kind kind, bool strong, keel_segment *s, int rank,
                              size_t offset, const void *src, void *dst, size_t len, keel_handle *handle)
{
    if (near_bad_range(c, s, rank, offset, len) || (!src && !dst && len))
        return bad_call(c);
    struct op *op;
    client_lock(c);
    keel_status status = op_for(c, handle, &op);
    if (op) {
        op_init(c, op, kind, s, rank, offset, len);
        op->src = src;
        op->dst = dst;
        op->strong = strong;
        rma_op_start(op, handle);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status rma_aggregate(struct client *c, keel_handle *handle)
{
    if (!c->ready || !handle)
        return bad_call(c);
    client_lock(c);
    handle_tell_watcher(handle);
    bool in_use = handle_is(handle) && !handle_is_done(handle);
    if (!in_use) {
        if (handle_is(handle))
            handle_told(c, handle);
        *handle = (keel_handle){{0, 0, HANDLE_AGGREGATE}};
        handle_seal(handle);
    }
    pthread_mutex_unlock(&c->lock);
    return in_use ? KEEL_ERR_STATE : KEEL_OK;
}

keel_status rma_start(struct client *c, enum op_kind kind, keel_segment *s, int rank, size_t offset, const void *src,
                      void *dst, size_t len, keel_handle *handle)
{
    keel_status status = start_copy(c, kind, false, s, rank, offset, src, dst, len, handle);
    if (status == KEEL_OK)
        rma_near_update(c, s, rank); /* the next one may end in its call */
    return status;
}

keel_status rma_start_strong(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len,
                             keel_handle *handle)
{
    return start_copy(c, OP_GET, true, s, rank, offset, NULL, dst, len, handle);
}

static bool handle_done(void *arg)
{
    return handle_is_done(arg);
}

/* With the lock, for another thread that looks may be ending what these have under way. Without: they are none, and
 * the lock was given back. */
static bool lock_handles(struct client *c, const keel_handle *handles, size_t n)
{
    client_lock(c);
    for (size_t i = 0; i < n; i++)
        if (!handle_is(&handles[i])) {
            pthread_mutex_unlock(&c->lock);
            return false;
        }
    return true;
}

keel_status rma_wait(struct client *c, keel_handle *handle)
{
    if (!handle)
        return bad_call(c);
    if (handle_rests(handle))
        return handle_result_of_rest(handle);
    if (!lock_handles(c, handle, 1))
        return bad_call(c);
    if (c->ready && !handle_done(handle)) /* who has left has nothing under way */
        client_wait(c, handle_done, handle,
                    &(struct wait){.call = WAIT_HANDLE, .whom = waits_for_handle, .arg = handle});
    while (!handle_done(handle) && !c->left)
        client_progress(c); /* the job is lost: the operation fails as soon as nothing uses its memory */
    keel_status status =
        handle_done(handle) ? handle_result(c, handle) : KEEL_ERR_STATE; /* a fork's child: its parent's */
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status rma_wait_all(struct client *c, keel_handle *handles, size_t n)
{
    keel_status first = KEEL_OK;
    if ((!handles && n) || (!c->ready && !n))
        return bad_call(c);
    for (size_t i = 0; i < n; i++) {
        keel_status status = rma_wait(c, &handles[i]);
        if (first == KEEL_OK)
            first = status;
    }
    return first;
}

struct any {
    const keel_handle *handle;
    size_t n, which; /* which: n if all were seen */
};

static bool any_done(void *arg)
{
    struct any *a = arg;
    bool unseen = false;
    for (size_t i = 0; i < a->n; i++) {
        if (a->handle[i].opaque[2] & HANDLE_SEEN)
            continue;
        unseen = true;
        if (handle_is_done(&a->handle[i])) {
            a->which = i;
            return true;
        }
    }
    a->which = a->n;
    return !unseen;
}

keel_status rma_wait_any(struct client *c, keel_handle *handles, size_t n, size_t *which)
{
    if (!which || (!handles && n) || (!c->ready && !n))
        return bad_call(c);
    if (!lock_handles(c, handles, n))
        return bad_call(c);
    struct any any = {handles, n, n};
    if (c->ready)
        client_wait(c, any_done, &any, &(struct wait){.call = WAIT_HANDLE, .whom = waits_for_any_op});
    while (!any_done(&any) && !c->left)
        client_progress(c);
    keel_status status = !any_done(&any) ? KEEL_ERR_STATE
                         : any.which < n ? handle_result(c, &handles[any.which])
                                         : KEEL_OK;
    pthread_mutex_unlock(&c->lock);
    *which = any.which;
    return status;
}

keel_status rma_test(struct client *c, keel_handle *handle)
{
    if (!handle || !lock_handles(c, handle, 1))
        return bad_call(c);
    if (c->ready && !handle_done(handle))
        client_progress(c);
    keel_status status = handle_done(handle) ? handle_result(c, handle) : c->left ? KEEL_ERR_STATE : KEEL_IN_PROGRESS;
    pthread_mutex_unlock(&c->lock);
    return status;
}

struct fence {
    const struct client *c;
    int rank; /* -1: any */
};

static bool none_implicit(void *arg)
{
    const struct fence *f = arg;
    for (const struct op *op = f->c->ops.active; op; op = op->next)
        if (op->implicit && (f->rank < 0 || op->rank == f->rank))
            return false;
    return true;
}

keel_status rma_fence(struct client *c, int rank)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (rank < -1 || rank >= c->size)
        return KEEL_ERR_ARG;
    struct fence f = {c, rank};
    client_lock(c);
    struct waits_fence of = {rank};
    if (!none_implicit(&f))
        client_wait(c, none_implicit, &f, &(struct wait){.call = WAIT_FENCE, .whom = waits_for_fence, .arg = &of});
    lanes_told_by_fence(&c->ops.lanes, rank);
    keel_status status = errors_take(&c->ops.errors, rank);
    if (c->fatal != KEEL_OK)
        status = c->fatal;
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- accumulate and atomics ---- */

/* n elements of a type at an offset that suits it. */
static bool bad_elements(const struct client *c, const keel_segment *s, int rank, size_t offset, keel_type type,
                         const void *src, size_t n)
{
    return !arith_can_add(type) || n > SIZE_MAX / arith_size(type) ||
           near_bad_range(c, s, rank, offset, n * arith_size(type)) || offset % arith_align(type) || (!src && n);
}

void rma_acc_init(struct client *c, struct op *op, keel_segment *s, int rank, size_t offset, keel_type type,
                  const void *scale, const void *src, size_t n)
{
    int64_t by[2] = {0, 0};
    memcpy(by, scale ? scale : arith_one(type), arith_size(type));
    op_init(c, op, OP_ACC, s, rank, offset, n * arith_size(type));
    op->src = src;
    op->what = type;
    op->a = by[0];
    op->b = by[1];
}

keel_status rma_acc(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                    const void *src, size_t n)
{
    if (bad_elements(c, s, rank, offset, type, src, n))
        return bad_call(c);
    struct op op;
    keel_status status = KEEL_OK;
    if (c->task_run.open) {
        client_lock(c);
        status = task_turn(c, s, rank);
        pthread_mutex_unlock(&c->lock);
    }
    if (status != KEEL_OK)
        return status;
    rma_acc_init(c, &op, s, rank, offset, type, scale, src, n);
    if (c->task_run.open)
        task_mark(&c->task_run, &op.of_task);
    status = op_run(&op);
    FAULT_POINT("acc.done");
    rma_near_update(c, s, rank);
    return status;
}

keel_status rma_acc_double(struct client *c, keel_segment *s, int rank, size_t offset, double scale, const double *src,
                           size_t n)
{
    return rma_acc(c, s, rank, offset, KEEL_DOUBLE, &scale, src, n);
}

/* By the processor's atomics: unreplicated, on this node, and its agent adds so, too. */
static bool acc_near(struct client *c, keel_segment *s, int rank)
{
    const struct near *n = &s->near[rank];
    if (!near_valid(n, &n->add_tag))
        rma_near_update(c, s, rank); /* the answer to an earlier one may have said so */
    return near_valid(n, &n->add_tag);
}

keel_status rma_use_at_once(struct client *c, keel_handle *handle)
{
    if (!handle)
        return KEEL_OK;
    handle_tell_watcher(handle);
    if (handle_rests(handle)) {
        handle_begin_done(handle);
        return KEEL_OK;
    }
    client_lock(c);
    keel_status status = handle_use(c, handle);
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status rma_acc_nb(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                       const void *src, size_t n, keel_handle *handle)
{
    if (bad_elements(c, s, rank, offset, type, src, n))
        return bad_call(c);
    struct op *op = NULL;
    if (!c->task_run.open && acc_near(c, s, rank)) {
        keel_status status = rma_use_at_once(c, handle);
        if (status == KEEL_OK) {
            arith_add(type, near_base(&s->near[rank]) + offset, src, n, scale ? scale : arith_one(type), true);
            near_counts(c, COUNTER_accumulates_here, 1, n * arith_size(type));
        }
        return status;
    }
    client_lock(c);
    keel_status status = c->task_run.open ? task_turn(c, s, rank) : KEEL_OK;
    if (status == KEEL_OK)
        status = op_for(c, handle, &op);
    if (op) {
        rma_acc_init(c, op, s, rank, offset, type, scale, src, n);
        op->of_task.step_ahead = c->task_run.open;
        if (c->task_run.open)
            task_mark(&c->task_run, &op->of_task);
        rma_op_start(op, handle);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- atomics ---- */

static int64_t word_load(const void *from, size_t bytes)
{
    int32_t narrow;
    int64_t wide;
    memcpy(bytes == 4 ? (void *)&narrow : (void *)&wide, from, bytes);
    return bytes == 4 ? narrow : wide;
}

static void word_store(void *to, int64_t value, size_t bytes)
{
    int32_t narrow = (int32_t)value;
    memcpy(to, bytes == 4 ? (const void *)&narrow : (const void *)&value, bytes);
}

keel_status rma_rmw(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, keel_rmw_op op,
                    const void *operand, const void *expected, void *old)
{
    size_t bytes = type >= KEEL_INT32 && type <= KEEL_UINT64 ? arith_size(type) : 0;
    bool compares = op == KEEL_RMW_COMPARE_SWAP;
    if (!bytes || (unsigned)op >= ARITH_RMW_OPS || !operand || (compares && !expected) ||
        near_bad_range(c, s, rank, offset, bytes) || offset % bytes)
        return bad_call(c);
    const struct near *n = &s->near[rank];
    if (near_valid(n, &n->add_tag)) { /* unreplicated, on this node: it dies with the node, once or never */
        int64_t a = word_load(compares ? expected : operand, bytes), b = compares ? word_load(operand, bytes) : 0;
        int64_t before = arith_rmw((enum arith_rmw)op, bytes, near_base(n) + offset, a, b);
        near_counts(c, COUNTER_atomics_here, 1, 0);
        if (old)
            word_store(old, before, bytes);
        return KEEL_OK;
    }
    struct op run;
    op_init(c, &run, OP_RMW, s, rank, offset, bytes);
    run.what = (uint32_t)op;
    run.word = (uint8_t)bytes;
    run.a = word_load(compares ? expected : operand, bytes);
    run.b = compares ? word_load(operand, bytes) : 0;
    keel_status status = op_run(&run);
    if (old)
        word_store(old, run.result, bytes);
    rma_near_update(c, s, rank);
    return status;
}

keel_status rma_fetch_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add, int64_t *old)
{
    return rma_rmw(c, s, rank, offset, KEEL_INT64, KEEL_RMW_ADD, &add, NULL, old);
}

keel_status rma_compare_swap(struct client *c, keel_segment *s, int rank, size_t offset, int64_t expected,
                             int64_t desired, int64_t *old)
{
    return rma_rmw(c, s, rank, offset, KEEL_INT64, KEEL_RMW_COMPARE_SWAP, &desired, &expected, old);
}
