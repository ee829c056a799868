#include "runtime/client/move.h"

#include "runtime/base/fault.h"
#include "runtime/client/progress.h"
#include "runtime/client/threads.h"
#include "runtime/wire/leave.h"

/* Only this process could go on with it. Lock held. */
static bool something_is_open(const struct client *c)
{
    return !c->ready || c->leaving || !c->resumed || c->task_run.open || c->task_run.drawing || c->coll.split ||
           c->segments.unfinished.under_way || c->mail.head || atomic_load(&c->mutexes_taken) || coll_is_used(c) ||
           errors_any(&c->ops.errors);
}

bool move_may(struct client *c)
{
    client_lock(c);
    bool open = something_is_open(c);
    pthread_mutex_unlock(&c->lock);
    return !open;
}

static bool accept(struct client *c)
{
    uint32_t asked = RELEASE_ASKED;
    return atomic_compare_exchange_strong(&c->intents->released, &asked, RELEASE_ACCEPTED);
}

bool move_ends_process(struct client *c)
{
    uint32_t was = atomic_load(&c->intents->released);
    bool told = atomic_load(&c->told_to_move); /* it is not told back */
    while (was == RELEASE_NONE || was == RELEASE_HELD || was == RELEASE_ASKED)
        if (atomic_compare_exchange_weak(&c->intents->released, &was, told ? RELEASE_ACCEPTED : RELEASE_LEFT))
            return told;
    return true; /* another thread moves it, or its agent ends it */
}

void move_is_out(struct client *c)
{
    uint32_t accepted = RELEASE_ACCEPTED; /* else its agent ends it */
    atomic_compare_exchange_strong(&c->intents->released, &accepted, RELEASE_OUT);
}

static bool is_not_held(void *arg)
{
    const struct client *c = arg;
    return atomic_load(&c->intents->released) != RELEASE_HELD;
}

/* False: the job is lost. */
static bool await_agent(struct client *c)
{
    if (is_not_held(c))
        return true;
    client_lock(c);
    bool asked = client_wait(c, is_not_held, c, &(struct wait){.call = WAIT_BARRIER}); /* for a view */
    pthread_mutex_unlock(&c->lock);
    return asked;
}

bool move_is_due(struct client *c)
{
    const struct intent_page *page = c->intents;
    if (!await_agent(c) || atomic_load(&page->released) == RELEASE_NONE)
        return false;
    return leave_is_due(atomic_load(&page->leave_at), atomic_load(&page->collectives), atomic_load(&page->asked_ns),
                        c->env.now(c->env.user));
}

void move_point_reached(struct client *c)
{
    if (!move_is_due(c))
        return;
    atomic_fetch_add_explicit(&c->intents->move_points, 1, memory_order_relaxed);
    FAULT_POINT("rank.move_point");
    if (!c->env.moves || c->chooses_to_move)
        return;
    if (move_may(c))
        c->env.moves(c->env.user);
}

bool move_go(struct client *c)
{
    if (!accept(c))
        return false;
    FAULT_POINT("rank.moving");
    c->move_status = client_let_go(c);
    while (c->fatal == KEEL_OK && (c->ops.active || !coll_is_settled(c))) { /* other threads have begun something */
        pthread_mutex_unlock(&c->lock);
        keel_status status = client_let_go(c);
        c->move_status = c->move_status == KEEL_OK ? status : c->move_status;
    }
    if (c->fatal == KEEL_OK) {
        move_is_out(c);
        return true;
    }
    pthread_mutex_unlock(&c->lock);
    return false;
}

void move_ended(struct client *c)
{
    bool complete = c->move_status == KEEL_OK && !c->ops.active && !c->doubts.given_up[0].any;
    FAULT_POINT("rank.let_go");
    atomic_store(&c->intents->moved, complete ? MOVED_COMPLETE : MOVED_IN_DOUBT);
    FAULT_POINT("rank.moved");
}
