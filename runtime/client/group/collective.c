/* What all live ranks do together, those that took a dead rank's place included.
 *
 * Barrier, broadcast, sum: collectives of one group of theirs (coll_group.c), whose members join with a view. Who joins
 * begins where the others were when that view was prepared (page.frozen), or one behind, and gets what they got
 * (engine_join). Allocation and free of segments: decisions of another such group, with numbers of their own
 * (segment_alloc.c). */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/group/quick.h"
#include "runtime/client/group/witness.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/move.h"

enum { COLLECTIVE_BYTES_MAX = 64 * 1024, MEMORY_AGAIN_MS = 1 };

bool collective_may_begin(const struct client *c)
{
    return c->ready && c->resumed && !c->task_run.open && !c->coll.split && !c->segments.unfinished.under_way;
}

static bool is_thawed(void *arg)
{
    const struct client *c = arg;
    return !atomic_load(&c->page->frozen) || c->coll.broken != KEEL_OK;
}

static keel_status begin(struct client *c, struct keel_group *all, const struct engine_call *call,
                         struct keel_request **out)
{
    struct keel_request *r;
    struct wait wait = {.call = c->coll.for_call            ? c->coll.for_call
                                : call->kind == ENGINE_MOVE ? WAIT_BCAST
                                                            : WAIT_BARRIER}; /* for a view */
    if (!client_wait(c, is_thawed, c, &wait))
        return c->fatal;
    keel_status status = coll_request_new(all, &r);
    if (status == KEEL_OK)
        status = coll_begin(all, call, r);
    *out = status == KEEL_OK ? r : NULL;
    return status;
}

bool collective_disagrees(const struct client *c)
{
    return c->coll.living->engine && engine_revoked(c->coll.living->engine);
}

/* Whatever it came to, it came to the same for all. */
static void completed(struct client *c)
{
    atomic_store(&c->intents->collectives, ++c->collectives);
    witness_begin(c);
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
    if (c->fatal == KEEL_OK && c->coll.broken == KEEL_OK && !collective_disagrees(c))
        completed(c);
    return status;
}

/* The lock is held, and given back meanwhile. What ended by its time-out is gone on with. */
static keel_status run_locked(struct client *c, struct engine_call *call, uint64_t *value)
{
    struct keel_request *r = c->coll.unfinished;
    struct engine_result result;
    if (!r && c->coll.living->engine && !atomic_load(&c->page->frozen) && quick_call(c->coll.living, call, &result)) {
        completed(c);
        segment_await_rest(c);
        *value = result.value;
        return coll_status(result.status);
    }
    keel_status status = r ? KEEL_OK : begin(c, c->coll.living, call, &r);
    if (status != KEEL_OK || !r)
        return status;
    r->stalled = false;
    c->coll.unfinished = r;
    status = coll_await(r);
    *value = r->value;
    return r->done || c->fatal != KEEL_OK ? finish(c, r, NULL) : status;
}

static keel_status prepare(struct client *c)
{
    keel_status status = segment_count_last(c);
    return status == KEEL_OK ? rma_fence(c, -1) : status;
}

keel_status collective_agree(struct client *c, const struct engine_call *call, uint64_t *value)
{
    if (!collective_may_begin(c))
        return KEEL_ERR_STATE;
    keel_status status = prepare(c);
    if (status != KEEL_OK)
        return status;
    FAULT_POINT("rank.barrier_entering");
    struct engine_call mine = *call;
    client_lock(c);
    status = run_locked(c, &mine, value);
    witness_await(c);
    pthread_mutex_unlock(&c->lock);
    FAULT_POINT("rank.barrier_left");
    move_point(c);
    return status;
}

keel_status collective_run(struct client *c, const struct engine_call *call)
{
    uint64_t value = 0;
    return collective_agree(c, call, &value);
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
    keel_status status = prepare(c);
    if (status != KEEL_OK)
        return status;
    FAULT_POINT("rank.barrier_entering");
    client_lock(c);
    struct keel_request *r = NULL;
    status = c->coll.unfinished ? KEEL_ERR_STATE : begin(c, c->coll.living, &call, &r);
    if (r) {
        c->coll.unfinished = r;
        c->coll.split = true;
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Lock held. It is over when others could tell so, too (witness.h). */
static keel_status end_locked(struct client *c, uint64_t *epoch, bool waits)
{
    struct keel_request *r = c->coll.unfinished;
    keel_status status = KEEL_IN_PROGRESS;
    if (r) {
        r->stalled = false;
        if (waits)
            status = coll_await(r);
        if (waits ? !r->done && c->fatal == KEEL_OK : !coll_poll(r))
            return status;
        c->coll.ended.epoch = 0;
        c->coll.ended.status = finish(c, r, &c->coll.ended.epoch);
    }
    if (waits)
        witness_await(c);
    c->coll.split = !witness_is_over(c);
    if (c->coll.split)
        return KEEL_IN_PROGRESS;
    *epoch = c->coll.ended.epoch;
    return c->coll.ended.status;
}

static keel_status end(struct client *c, uint64_t *epoch, bool waits)
{
    uint64_t in = 0;
    if (epoch)
        *epoch = 0;
    if (!c->ready || c->task_run.open || !c->coll.split)
        return KEEL_ERR_STATE;
    client_lock(c);
    keel_status status = end_locked(c, &in, waits);
    pthread_mutex_unlock(&c->lock);
    if (epoch)
        *epoch = in;
    if (status != KEEL_IN_PROGRESS) {
        FAULT_POINT("rank.barrier_left");
        move_point(c);
    }
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

/* ---- decisions on segments ---- */

/* Lock held. Nobody could tell the others that here is no memory to begin with: there will be. */
static keel_status begin_to_decide(struct client *c, const struct engine_call *call, struct keel_request **out)
{
    keel_status status;
    while ((status = begin(c, c->coll.segments, call, out)) == KEEL_ERR_LIMIT) {
        pthread_mutex_unlock(&c->lock);
        c->env.sleep(c->env.user, MEMORY_AGAIN_MS);
        client_lock(c);
    }
    return status;
}

/* Lock held, and given back meanwhile. */
static keel_status decide(struct client *c, const struct engine_call *call, uint64_t *value)
{
    struct keel_request *r = c->coll.deciding;
    keel_status status = r ? KEEL_OK : begin_to_decide(c, call, &r);
    if (!r)
        return status;
    r->stalled = false;
    c->coll.deciding = r;
    status = coll_await(r);
    if (!r->done && c->fatal == KEEL_OK && c->coll.broken == KEEL_OK)
        return status;
    *value = r->value;
    coll_request_free(c->coll.segments, r);
    c->coll.deciding = NULL;
    return status;
}

keel_status collective_decide(struct client *c, const struct engine_call *call, uint64_t *value, bool *open)
{
    FAULT_POINT("segment.deciding");
    client_lock(c);
    keel_status status = decide(c, call, value);
    *open = c->coll.deciding || c->fatal != KEEL_OK || c->coll.broken != KEEL_OK || collective_disagrees(c);
    pthread_mutex_unlock(&c->lock);
    FAULT_POINT("segment.decided");
    return status;
}

void collective_decided(struct client *c)
{
    atomic_store(&c->intents->segments, ++c->segments.instance);
}
