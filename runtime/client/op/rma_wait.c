/* Waits for operations: of handles, and fences. */
#include "runtime/client/op/rma_int.h"

#include "runtime/client/op/handle.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/progress.h"
#include "runtime/client/threads.h"

bool handle_is_watched;

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
        return rma_bad_call(c);
    if (handle_rests(handle))
        return handle_result_of_rest(handle);
    if (!lock_handles(c, handle, 1))
        return rma_bad_call(c);
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
        return rma_bad_call(c);
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
        return rma_bad_call(c);
    if (!lock_handles(c, handles, n))
        return rma_bad_call(c);
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
        return rma_bad_call(c);
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
