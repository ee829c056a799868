/* What all live ranks do together, those that took a dead rank's place included.
 *
 * Barrier, broadcast, sum: collectives of one group of theirs (coll_group.c), whose members join with a view. Who joins begins
 * where the others were when that view was prepared (page.frozen), or one behind, and gets what they got (engine_join).
 * Allocation: a contribution into replicated memory, the agents' barrier, and reading everybody's. What a rank contributed
 * before it died is in memory or it is not, the same for all readers after the barrier; so all live ranks get the same result.
 * Who takes its place leaves what is there as it is. For want of memory, and for a node that does not answer and is not declared dead, all
 * of this waits without an end: nobody could tell the others. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/protocol/collective_slot.h"

static size_t slot_offset(uint64_t instance)
{
    return (instance & 1) * sizeof(struct collective_slot);
}

/* Through the primary, so that one copy decides whether it has taken effect. */
static keel_status put_through(struct client *c, size_t offset, const void *src, size_t len)
{
    struct op op;
    op_init(c, &op, OP_PUT, c->system, c->rank, offset, len);
    op.src = src;
    op.always_through = op.patient = true;
    return op_run(&op);
}

static keel_status get(struct client *c, uint8_t flags, int rank, size_t offset, void *dst, size_t len)
{
    struct op op;
    op_init(c, &op, OP_GET, c->system, rank, offset, len);
    op.dst = dst;
    op.flags = flags;
    op.patient = true;
    return op_run(&op);
}

/* Did the process whose place this one took contribute, before it died? It may have been read: it stays. */
static keel_status predecessor_contributed(struct client *c, uint32_t kind, size_t len, bool *did)
{
    struct collective_head head;
    *did = false;
    if (!c->restarted || c->instance != c->joined_at)
        return KEEL_OK;
    keel_status status = get(c, WIRE_F_STRONG, c->rank, slot_offset(c->instance + 1), &head, sizeof head);
    *did = status == KEEL_OK && head.tag == c->instance + 1 && head.kind == kind && head.len == len;
    return status == KEEL_ERR_DATA_LOST ? KEEL_OK : status;
}

keel_status collective_contribute(struct client *c, uint32_t kind, const void *data, size_t len)
{
    uint64_t instance = c->instance + 1;
    size_t at = slot_offset(instance);
    bool there;
    keel_status status = predecessor_contributed(c, kind, len, &there);
    if (status != KEEL_OK || there)
        return status;
    if (len)
        status = put_through(c, at + offsetof(struct collective_slot, data), data, len);
    struct collective_head head = {.tag = instance, .kind = kind, .len = (uint32_t)len};
    if (status == KEEL_OK)
        status = put_through(c, at, &head, sizeof head);
    return status;
}

/* What rank contributed to the last instance; *present is false if it did not. */
keel_status collective_read(struct client *c, int rank, uint32_t kind, void *data, size_t len, bool *present)
{
    size_t at = slot_offset(c->instance);
    struct collective_head head;
    keel_status status = get(c, 0, rank, at, &head, sizeof head);
    *present = status == KEEL_OK && head.tag == c->instance;
    if (status == KEEL_ERR_DATA_LOST) { /* so is it for everybody */
        *present = false;
        return KEEL_OK;
    }
    if (status != KEEL_OK || !*present)
        return status;
    if (head.kind != kind || head.len != len)
        return KEEL_ERR_MISMATCH;
    return len ? get(c, 0, rank, at + offsetof(struct collective_slot, data), data, len) : KEEL_OK;
}

keel_status collective_enter(struct client *c)
{
    struct op op;
    op_init(c, &op, OP_ENTER, NULL, 0, 0, 0);
    op.a = (int64_t)c->instance + 1;
    op.patient = true;
    FAULT_POINT("rank.barrier_entering");
    keel_status status = op_run(&op);
    FAULT_POINT("rank.barrier_left");
    if (status == KEEL_OK)
        c->instance++;
    return status;
}

bool collective_may_begin(const struct client *c)
{
    return c->ready && c->resumed && !c->in_task && !c->coll.split;
}

static bool is_thawed(void *arg)
{
    const struct client *c = arg;
    return !atomic_load(&c->page->frozen) || c->coll.broken != KEEL_OK;
}

static keel_status begin(struct client *c, const struct engine_call *call, struct keel_request **out)
{
    struct keel_request *r;
    if (!client_wait(c, is_thawed, c))
        return c->fatal;
    keel_status status = coll_request_new(c->coll.living, &r);
    if (status == KEEL_OK)
        status = coll_begin(c->coll.living, call, r);
    *out = status == KEEL_OK ? r : NULL;
    return status;
}

/* Whatever it came to, it came to the same for all. */
static void completed(struct client *c)
{
    atomic_store(&c->intents->collectives, ++c->collectives);
}

/* The request is complete: its status. *epoch (or NULL): of the view that it was decided in. */
static keel_status finish(struct client *c, struct keel_request *r, uint64_t *epoch)
{
    keel_status status = r->status;
    if (epoch && status == KEEL_OK)
        *epoch = coll_epoch(r->covered ? roster_epoch(r->covered) : r->epoch);
    coll_request_free(c->coll.living, r);
    c->coll.unfinished = NULL;
    c->coll.split = false;
    engine_left_free(c->coll.living->engine);
    if (c->fatal == KEEL_OK && c->coll.broken == KEEL_OK)
        completed(c);
    return status;
}

/* The lock is held, and given back meanwhile. What ended by its time-out is gone on with. */
static keel_status run_locked(struct client *c, struct engine_call *call)
{
    struct keel_request *r = c->coll.unfinished;
    struct engine_result result;
    if (!r && c->coll.living->engine && !atomic_load(&c->page->frozen) && quick_call(c->coll.living, call, &result)) {
        completed(c);
        return coll_status(result.status);
    }
    keel_status status = r ? KEEL_OK : begin(c, call, &r);
    if (status != KEEL_OK || !r)
        return status;
    r->stalled = false;
    c->coll.unfinished = r;
    status = coll_await(r);
    return r->done || c->fatal != KEEL_OK ? finish(c, r, NULL) : status;
}

keel_status collective_run(struct client *c, const struct engine_call *call)
{
    if (!collective_may_begin(c))
        return KEEL_ERR_STATE;
    keel_status status = rma_fence(c, -1);
    if (status != KEEL_OK)
        return status;
    FAULT_POINT("rank.barrier_entering");
    struct engine_call mine = *call;
    client_lock(c);
    status = run_locked(c, &mine);
    pthread_mutex_unlock(&c->lock);
    FAULT_POINT("rank.barrier_left");
    return status;
}

keel_status collective_barrier(struct client *c)
{
    struct engine_call call = {.kind = ENGINE_BARRIER};
    return collective_run(c, &call);
}

/* ---- the barrier in two phases ---- */

keel_status collective_barrier_begin(struct client *c)
{
    struct engine_call call = {.kind = ENGINE_BARRIER};
    if (!collective_may_begin(c))
        return KEEL_ERR_STATE;
    keel_status status = rma_fence(c, -1);
    if (status != KEEL_OK)
        return status;
    FAULT_POINT("rank.barrier_entering");
    client_lock(c);
    struct keel_request *r = NULL;
    status = c->coll.unfinished ? KEEL_ERR_STATE : begin(c, &call, &r);
    if (r) {
        c->coll.unfinished = r;
        c->coll.split = true;
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

static keel_status end(struct client *c, uint64_t *epoch, bool waits)
{
    keel_status status = KEEL_IN_PROGRESS;
    if (epoch)
        *epoch = 0;
    if (!c->ready || c->in_task || !c->coll.split)
        return KEEL_ERR_STATE;
    client_lock(c);
    struct keel_request *r = c->coll.unfinished;
    r->stalled = false;
    if (waits)
        status = coll_await(r);
    if (waits ? r->done || c->fatal != KEEL_OK : coll_poll(r))
        status = finish(c, r, epoch);
    pthread_mutex_unlock(&c->lock);
    if (status != KEEL_IN_PROGRESS)
        FAULT_POINT("rank.barrier_left");
    return status;
}

keel_status collective_barrier_test(struct client *c, uint64_t *epoch)
{
    return end(c, epoch, false);
}

keel_status collective_barrier_end(struct client *c, uint64_t *epoch)
{
    return end(c, epoch, true);
}

keel_status collective_bcast(struct client *c, int root, void *buffer, size_t len)
{
    struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .root = root, .out = buffer, .len = len};
    if (!c->ready || !c->resumed)
        return KEEL_ERR_STATE;
    if (root < 0 || root >= c->size || len > COLLECTIVE_BYTES_MAX || (!buffer && len))
        return KEEL_ERR_ARG;
    return collective_run(c, &call);
}

keel_status collective_allreduce_sum(struct client *c, const double *in, double *out, size_t n)
{
    struct engine_call call = {.kind = ENGINE_MOVE,
                               .move = SCHEDULE_ALLREDUCE,
                               .in = in,
                               .out = out,
                               .len = n * sizeof *in,
                               .element = {.type = ELEMENT_DOUBLE, .op = ELEMENT_SUM}};
    if (!c->ready || !c->resumed)
        return KEEL_ERR_STATE;
    if (n > COLLECTIVE_BYTES_MAX / sizeof *in || (n && (!in || !out)))
        return KEEL_ERR_ARG;
    return collective_run(c, &call);
}
