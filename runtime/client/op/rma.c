/* Puts and gets on an instance: what libkeel's public calls do when the fast path of public_rma.c does not hold. */
#include "runtime/client/op/rma_int.h"

#include "runtime/client/op/handle.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"

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
        __atomic_store_n(&n->signal_tag, route.tag, __ATOMIC_RELEASE);
    if (!behind && adds && !replica_map_is_used(&c->replicas))
        __atomic_store_n(&n->add_tag, route.tag, __ATOMIC_RELEASE);
    if (!behind)
        __atomic_store_n(&n->get_tag, route.tag, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&c->lock);
}

keel_status rma_put(struct client *c, keel_segment *s, int rank, size_t offset, const void *src, size_t len)
{
    if (near_bad_range(c, s, rank, offset, len) || (!src && len))
        return rma_bad_call(c);
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
        return rma_bad_call(c);
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

keel_status rma_op_for(struct client *c, keel_handle *handle, struct op **op)
{
    keel_status status = c->leaving ? KEEL_ERR_STATE : handle ? handle_use(c, handle) : KEEL_OK;
    *op = status == KEEL_OK ? op_alloc(c) : NULL;
    return status != KEEL_OK || *op ? status : KEEL_ERR_NOMEM;
}

static keel_status start_copy(struct client *c, enum op_kind kind, bool strong, keel_segment *s, int rank,
                              size_t offset, const void *src, void *dst, size_t len, keel_handle *handle)
{
    if (near_bad_range(c, s, rank, offset, len) || (!src && !dst && len))
        return rma_bad_call(c);
    struct op *op;
    client_lock(c);
    keel_status status = rma_op_for(c, handle, &op);
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
        return rma_bad_call(c);
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
