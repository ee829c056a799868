/* Calls on a group: from the arguments to the request, and its end. */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/group/quick.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"

keel_status coll_status(enum engine_status status)
{
    static const keel_status table[] = {
        [ENGINE_OK] = KEEL_OK,
        [ENGINE_BAD] = KEEL_ERR_ARG,
        [ENGINE_LIMIT] = KEEL_ERR_LIMIT,
        [ENGINE_NOMEM] = KEEL_ERR_NOMEM,
        [ENGINE_MISMATCH] = KEEL_ERR_MISMATCH,
        [ENGINE_ROOT_DEAD] = KEEL_ERR_RANK_DEAD,
        [ENGINE_REVOKED] = KEEL_ERR_REVOKED,
        [ENGINE_LATE] = KEEL_ERR_STATE,
    };
    return table[status];
}

keel_status coll_status_of(const struct keel_group *g, enum engine_status status)
{
    return status == ENGINE_REVOKED && coll_is_of_all(g) ? KEEL_ERR_MISMATCH : coll_status(status);
}

/* ---- requests ---- */

keel_status coll_request_new(struct keel_group *g, struct keel_request **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) {
        *out = g->put_by;
        g->put_by = NULL;
    }
    return *out ? KEEL_OK : KEEL_ERR_LIMIT;
}

void coll_request_free(struct keel_group *g, struct keel_request *r)
{
    if (r->group) {
        struct keel_request **link = &r->group->requests;
        while (*link != r)
            link = &(*link)->next;
        *link = r->next;
    }
    roster_unref(r->covered);
    free(r->blocks);
    free(r->cover);
    if (g->put_by) {
        free(r);
        return;
    }
    *r = (struct keel_request){0};
    g->put_by = r;
}

static enum wait_call name_of(const struct keel_group *g, const struct engine_call *call)
{
    bool living = g == g->client->coll.living;
    if (g->of_segments || g->creation)
        return g->creation ? WAIT_GROUP_CREATE : WAIT_ALLOC;
    if (living && g->client->coll.for_call != WAIT_NO_CALL)
        return g->client->coll.for_call;
    switch (call->kind) {
    case ENGINE_BARRIER:
        return living ? WAIT_BARRIER : WAIT_GROUP_BARRIER;
    case ENGINE_SHRINK:
        return WAIT_GROUP_SHRINK;
    case ENGINE_MOVE:
        return !living                        ? (enum wait_call)(WAIT_GROUP_FIRST + (int)call->move)
               : call->move == SCHEDULE_BCAST ? WAIT_BCAST
                                              : WAIT_ALLREDUCE;
    default:
        return WAIT_GROUP_AGREE;
    }
}

keel_status coll_begin(struct keel_group *g, const struct engine_call *call, struct keel_request *r)
{
    struct client *c = g->client;
    uint64_t now = c->env.now(c->env.user);
    keel_status status = c->fatal != KEEL_OK ? c->fatal : c->coll.broken;
    if (status == KEEL_OK) {
        coll_see_views(c, now);
        r->group = g;
        r->call = name_of(g, call);
        look_begin(&r->look);
        r->next = g->requests;
        g->requests = r;
        g->starting = r;
        status = coll_status_of(g, engine_start(g->engine, call, now, &r->seq));
        g->starting = NULL;
    }
    if (status != KEEL_OK)
        coll_request_free(g, r);
    else
        coll_wake_at(c, engine_deadline(g->engine));
    return status;
}

/* Done, and what other members need of it is on its way: who returns may make no further call for long. */
static bool is_over(const struct keel_request *r)
{
    struct client *c = r->group->client;
    if (!r->done || c->fatal != KEEL_OK || c->coll.broken != KEEL_OK || !courier_has_engine(c, r->group))
        return r->done;
    coll_wake_at(c, c->progress.looked_at + LOOK_NS);
    return false;
}

static bool is_done(void *arg)
{
    const struct keel_request *r = arg;
    return r->stalled || is_over(r);
}

static void whom(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct keel_request *r = arg;
    const struct keel_group *g = r->group;
    int member = r->look.stopped >= 0 ? r->look.stopped : r->done ? -1 : engine_waits_for(g->engine, r->seq);
    out->whom = r->done ? WAIT_FOR_TAKING : WAIT_FOR_ENTRY;
    out->rank = r->done ? courier_engine_to(c, g) : member >= 0 ? group_rank(g->ranks, member) : -1;
}

keel_status coll_await(struct keel_request *r)
{
    struct client *c = r->group->client;
    struct wait wait = {.call = r->call, .whom = whom, .arg = r};
    if (!client_wait(c, is_done, r, &wait))
        coll_break(c, c->fatal); /* nothing uses the caller's memory any more */
    if (r->done)
        segment_await_rest(c);
    return r->done ? r->status : KEEL_ERR_TIMEOUT;
}

bool coll_poll(struct keel_request *r)
{
    struct client *c = r->group->client;
    if (!is_over(r))
        client_progress(c);
    if (c->fatal != KEEL_OK)
        coll_break(c, c->fatal);
    return is_over(r) && (c->fatal != KEEL_OK || segment_stores_rest(c));
}

keel_status coll_check(const struct client *c, const struct keel_group *g)
{
    if (g->freed)
        return KEEL_ERR_ARG;
    return c->ready && !c->task_run.open && g->engine ? KEEL_OK : KEEL_ERR_STATE;
}

keel_status coll_call(struct keel_group *g, const struct engine_call *call, size_t *blocks,
                      struct keel_request **request)
{
    struct client *c = g->client;
    keel_status status = coll_check(c, g);
    *request = NULL;
    if (status != KEEL_OK) {
        free(blocks);
        return status;
    }
    client_lock(c);
    FAULT_POINT("coll.entering");
    struct keel_request *r;
    status = coll_request_new(g, &r);
    if (status == KEEL_OK) {
        struct engine_call mine = *call;
        r->blocks = blocks;
        r->cover = malloc(sizeof *r->cover);
        mine.refuses = mine.refuses || !r->cover;
        status = coll_begin(g, &mine, r);
    } else {
        free(blocks);
    }
    pthread_mutex_unlock(&c->lock);
    if (status == KEEL_OK)
        *request = r;
    return status;
}

/* The request is for nobody but who asks how a member is that is waited for: if it is stopped the group is revoked. */
static void settle(struct keel_group *g, uint64_t now)
{
    engine_settle(g->engine, now);
    coll_wake_at(g->client, engine_deadline(g->engine));
    struct keel_request *r = engine_settled(g->engine) ? NULL : malloc(sizeof *r);
    if (!r)
        return;
    *r = (struct keel_request){
        .group = g, .next = g->requests, .seq = engine_unsettled(g->engine), .own = true, .settles = true};
    look_begin(&r->look);
    g->requests = r;
}

void coll_settle(struct client *c)
{
    for (struct keel_group *g = c->coll.groups; g && c->coll.broken == KEEL_OK; g = g->next)
        if (g->engine)
            settle(g, c->env.now(c->env.user));
}

int coll_settles_for(const struct client *c)
{
    for (const struct keel_group *g = c->coll.groups; g && c->coll.broken == KEEL_OK; g = g->next) {
        int member = g->engine ? engine_waits_for(g->engine, engine_unsettled(g->engine)) : -1;
        if (member >= 0)
            return group_rank(g->ranks, member);
    }
    return -1;
}

bool coll_is_settled(void *client)
{
    const struct client *c = client;
    for (const struct keel_group *g = c->coll.groups; g && c->coll.broken == KEEL_OK; g = g->next)
        if (g->engine && !engine_settled(g->engine))
            return false;
    return true;
}

/* Complete: the caller gets what there is, and the request is gone. */
static keel_status take(struct keel_group *g, struct keel_request *r, keel_covered **covered, uint64_t *value)
{
    keel_status status = r->status;
    if (value)
        *value = r->value;
    if (covered && status == KEEL_OK) {
        *covered = r->cover;
        **covered = (keel_covered){g->client, roster_ref(r->covered)};
        r->cover = NULL;
    }
    coll_request_free(g, r);
    FAULT_POINT("coll.left");
    return status;
}

/* The unfinished one, if it is the same call. */
static keel_status go_on_with(struct keel_group *g, const struct engine_call *call, struct keel_request **out)
{
    const struct engine_call *was = &g->unfinished_call;
    bool same = call->kind == was->kind && call->arguments == was->arguments &&
                (call->kind != ENGINE_AGREE || call->agree == was->agree);
    if (!same)
        return KEEL_ERR_STATE;
    *out = g->unfinished;
    g->unfinished = NULL;
    (*out)->stalled = false;
    return KEEL_OK;
}

static keel_status begin(struct keel_group *g, struct engine_call *call, struct keel_request **out)
{
    struct engine_result result;
    bool repair = call->kind == ENGINE_AGREE || call->kind == ENGINE_SHRINK;
    if (repair && g->unfinished)
        return go_on_with(g, call, out);
    struct keel_request *r;
    keel_status status = coll_request_new(g, &r);
    if (status != KEEL_OK)
        return status;
    if (!quick_call(g, call, &result)) {
        status = coll_begin(g, call, r);
        *out = status == KEEL_OK ? r : NULL;
        return status;
    }
    *r = (struct keel_request){
        .seq = engine_posted(g->engine), .done = true, .status = coll_status(result.status), .value = result.value};
    if (result.members)
        r->covered = roster_ref((struct roster *)(uintptr_t)result.members);
    *out = r;
    return KEEL_OK;
}

keel_status coll_finish(struct keel_group *g, const struct engine_call *call, struct keel_request **out)
{
    const struct client *c = g->client;
    struct engine_call mine = *call;
    *out = NULL;
    keel_status status = begin(g, &mine, out);
    if (status != KEEL_OK)
        return status;
    struct keel_request *r = *out;
    if (r->group)
        status = coll_await(r);
    else
        status = r->status;
    if (!r->done && c->fatal == KEEL_OK && c->coll.broken == KEEL_OK) {
        g->unfinished = r;
        g->unfinished_call = mine;
        *out = NULL;
    }
    engine_left_free(g->engine);
    return status;
}

/* Lock held. */
static keel_status run(struct keel_group *g, const struct engine_call *call, uint64_t *value)
{
    struct engine_call mine = *call;
    struct engine_result result;
    struct keel_request *r;
    FAULT_POINT("coll.entering");
    if (!g->unfinished && quick_call(g, &mine, &result)) { /* without a request */
        if (value)
            *value = result.value;
        segment_await_rest(g->client);
        FAULT_POINT("coll.left");
        return coll_status(result.status);
    }
    keel_status status = coll_finish(g, &mine, &r);
    return r ? take(g, r, NULL, value) : status;
}

keel_status coll_run(struct keel_group *g, const struct engine_call *call, uint64_t *value)
{
    struct client *c = g->client;
    keel_status status = coll_check(c, g);
    if (status != KEEL_OK)
        return status;
    client_lock(c);
    status = run(g, call, value);
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status coll_wait(struct keel_request *r, keel_covered **covered, uint64_t *value)
{
    if (covered)
        *covered = NULL;
    if (!r)
        return KEEL_ERR_ARG;
    struct client *c = r->group->client;
    client_lock(c);
    do { /* until it is complete, also where somebody is stopped */
        r->stalled = false;
        (void)coll_await(r);
    } while (!r->done);
    keel_status status = take(r->group, r, covered, value);
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status coll_test(struct keel_request *r, keel_covered **covered)
{
    if (covered)
        *covered = NULL;
    if (!r)
        return KEEL_ERR_ARG;
    struct client *c = r->group->client;
    client_lock(c);
    keel_status status = coll_poll(r) ? take(r->group, r, covered, NULL) : KEEL_IN_PROGRESS;
    pthread_mutex_unlock(&c->lock);
    return status;
}
