/* Start and end of an instance. */
#include "runtime/client/client.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/secret.h"
#include "runtime/client/group/behind.h"
#include "runtime/client/move.h"
#include "runtime/client/keep/keep.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/stream/connection.h"
#include "runtime/client/stream/mail.h"
#include "runtime/client/threads.h"
#include "runtime/wire/system.h"

static bool take_replicas(struct client *c)
{
    if (!c->page->replicas)
        return true;
    int *native = calloc(c->page->ranks, sizeof *native), sets = (int)c->page->replicas;
    for (int r = 0; native && r < (int)c->page->ranks; r++)
        native[page_rank(c->page, r)->replica] = r;
    bool good = native && replica_map_init_from(&c->replicas, (int)c->page->ranks / sets, sets, native);
    free(native);
    return good;
}

keel_status client_init(struct client *c, const struct client_env *env, const struct control_welcome *w,
                        const struct page *page, struct intent_page *intents, struct tp *net, struct tp *shm)
{
    *c = (struct client){.env = *env,
                         .rank = w->rank,
                         .size = w->size,
                         .node = w->node,
                         .incarnation = w->incarnation,
                         .restarted = w->restarted != 0,
                         .resumed = w->restarted == 0,
                         .job = w->job,
                         .page = page,
                         .intents = intents,
                         .connections.net = net,
                         .connections.shm = shm,
                         .progress.retry_at = UINT64_MAX,
                         .segments.instance = w->instance,
                         .collectives = w->collectives,
                         .segments.next = SYSTEM_SEGMENT + 1,
                         .segments.known = w->segments};
    c->segments.range =
        (struct range){.base = env->range, .bytes = env->range_bytes / 2}; /* the other half is the groups' */
    c->secret = secret_alloc(sizeof w->secret);
    if (!c->secret)
        return KEEL_ERR_NOMEM;
    memcpy(c->secret, w->secret, sizeof w->secret);
    pthread_mutex_init(&c->lock, NULL);
    ops_init(&c->ops);
    c->progress.looked_at = env->now(env->user);
    c->connections.of = calloc(page->members, sizeof *c->connections.of);
    if (!c->connections.of)
        return KEEL_ERR_NOMEM;
    connection_init(c);
    if (!direct_init(c) || !coll_init(c) || !take_replicas(c))
        return KEEL_ERR_NOMEM;
    if (replica_map_is_used(&c->replicas)) {
        c->restarted = false; /* no rank of a set begins again, but the set (replica/renew.h) */
        c->resumed = true;
        lanes_set_apart(&c->ops.lanes);
    }
    c->segments.system = segment_attach(c, SYSTEM_SEGMENT, SYSTEM_SEGMENT_BYTES, KEEL_REDUNDANCY_TRIPLE);
    return c->segments.system ? KEEL_OK : KEEL_ERR_NOMEM;
}

struct connection *client_own_connection(struct client *c)
{
    return &c->connections.of[c->node];
}

void client_attach(struct client *c, struct tp_ep *own)
{
    client_own_connection(c)->way.ep = own;
    client_own_connection(c)->way.state = WAY_UP;
}

static bool none_left(void *arg)
{
    const struct client *c = arg;
    return !c->ops.active && !c->doubts.given_up[0].any;
}

static void for_unsettled(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)arg;
    out->whom = WAIT_FOR_TAKING;
    out->rank = coll_settles_for(c);
}

static void for_mail(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)arg;
    out->whom = WAIT_FOR_TAKING;
    out->rank = mail_taken_over_by(c);
}

static void for_parcels(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)arg;
    out->whom = WAIT_FOR_TAKING;
    out->rank = courier_hands_over_to(c);
}

/* Nothing is begun any more. False: another thread has been faster. Lock held. */
static bool begin_to_leave(struct client *c)
{
    if (!c->ready || c->leaving)
        return false;
    c->leaving = true;
    return true;
}

keel_status client_let_go(struct client *c)
{
    (void)segment_count_last(c); /* lost with the agent, if at all */
    keel_status status = rma_fence(c, -1);
    client_lock(c);
    struct wait wait = {.call = WAIT_FINALIZE, .whom = waits_for_any_op};
    client_wait(c, none_left, c, &wait); /* those with handles too: who leaves leaves nothing half-done */
    coll_settle(c);
    wait.whom = for_unsettled;
    client_wait(c, coll_is_settled, c, &wait);
    mail_farewell(c);
    wait.whom = for_mail;
    client_wait(c, mail_all_taken_over, c, &wait);
    courier_farewell(c);
    wait.whom = for_parcels;
    client_wait(c, courier_has_handed_over, c, &wait);
    behind_tell(c);
    while (c->ops.active)
        client_progress(c);
    return status;
}

keel_status client_leave(struct client *c)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    client_lock(c);
    bool begins = begin_to_leave(c);
    pthread_mutex_unlock(&c->lock);
    if (!begins)
        return KEEL_ERR_STATE;
    bool moves = move_ends_process(c);
    keel_status status = client_let_go(c);
    /* Other threads that wait, and requests that nobody waited for: before others hear of it, and leave, too. */
    coll_end(c, KEEL_ERR_STATE);
    pthread_mutex_unlock(&c->lock);
    struct control r = {.type = CONTROL_LEAVING};
    FAULT_POINT("rank.leaving");
    keel_status left = moves ? KEEL_OK : c->env.request(c->env.user, &r, NULL);
    FAULT_POINT("rank.left");
    c->move_status = status;
    if (moves) {
        move_is_out(c);
        move_ended(c);
    }
    client_lock(c);
    c->ready = false;
    c->left = true;
    pthread_mutex_unlock(&c->lock);
    return status != KEEL_OK ? status : left;
}

void client_fini(struct client *c)
{
    keep_end(c);
    coll_free(c);
    direct_free(c);
    segment_forget_all(c);
    range_fini(&c->segments.range);
    replica_map_fini(&c->replicas);
    ops_fini(&c->ops);
    free(c->connections.of);
    free(c->task_run.steps);
    secret_free(c->secret, sizeof((struct control_welcome *)0)->secret);
    c->secret = NULL;
    c->connections.of = NULL;
    c->task_run.steps = NULL;
}
