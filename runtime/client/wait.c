/* A thread that waits: it looks for what it waits for, gives the processor away, and sleeps. */
#include "runtime/client/client.h"

#include "runtime/base/clock.h"
#include "runtime/client/progress.h"
#include "runtime/client/spin.h"
#include "runtime/client/threads.h"

enum {
    SLEEP_MS = 5,
    YIELD_EVERY = 8, /* polls */
    GLANCES = 50,
    GLANCES_DIRECT = 5,
    GLANCES_AGENT = 8,
};

/* The only operation under way is answered by the agent on this node, which may wait for this processor, and nothing
 * of it has still to be sent. */
static bool waits_for_own_agent(const struct client *c)
{
    const struct op *op = c->ops.active;
    if (!op || op->next || !op->planned || op->plan.way != PLAN_MESSAGES || op->plan.legs != 1 || op->out.accesses)
        return false;
    bool last_is_here = op->route.copies > 1 && op->route.node[op->route.copies - 1] == c->node;
    return op->plan.leg[0].node == c->node || (last_is_here && op_is_once(op));
}

/* Nothing of ours is under way, so what we wait for comes from another rank: through shared memory, by the hall or the
 * own agent, or over a connection. Looking into memory costs some ten nanoseconds, asking the network a microsecond.
 * True: it is done. */
static bool glance(struct client *c, bool (*done)(void *arg), void *arg)
{
    for (int i = 0, n = c->looks.once ? 1 : GLANCES; i < n && !c->ops.active; i++) {
        if (c->hall.blocked || hall_has(c))
            hall_poll(c, c->progress.looked_at);
        progress_poll(c, c->connections.shm, c->progress.looked_at);
        if (c->direct.ups && i % GLANCES_DIRECT == 0)
            progress_poll(c, c->direct.tp, c->progress.looked_at);
        if (c->direct.crowded)
            courier_flow(c, c->progress.looked_at);
        if (done(arg))
            return true;
        spin_relax();
    }
    return false;
}

/* What comes from the agent here comes through memory: looking there costs some ten nanoseconds, asking the network
 * microseconds, which the agent, and other ranks of this node that wait for it too, could have had. True: it is
 * done. */
static bool glance_at_agent(struct client *c, bool (*done)(void *arg), void *arg)
{
    for (int i = 0; i < GLANCES_AGENT && waits_for_own_agent(c); i++) {
        c->env.yield(c->env.user);
        progress_poll(c, c->connections.shm, c->progress.looked_at);
        if (done(arg))
            return true;
    }
    return false;
}

/* Until a transport or the hall has something, or for some milliseconds: not at all if one has. The lock is given
 * back meanwhile. */
static void sleep_a_while(struct client *c)
{
    bool idle = c->connections.shm->table->arm(c->connections.shm) &&
                c->connections.net->table->arm(c->connections.net) &&
                (c->direct.tp == c->connections.net || c->direct.tp->table->arm(c->direct.tp)) && hall_sleep(c);
    bool soon = c->progress.retry_at != UINT64_MAX || c->coll.at < c->progress.looked_at + SLEEP_MS * KEEL_NS_PER_MS;
    int ms = !idle ? 0 : soon ? 1 : SLEEP_MS;
    atomic_fetch_sub(&c->threads.lookers, 1);
    pthread_mutex_unlock(&c->lock);
    c->env.sleep(c->env.user, ms);
    client_lock(c);
    atomic_fetch_add(&c->threads.lookers, 1);
    hall_awake(c);
}

/* Who wants to know that a wait lasts may wait for something itself: then that is what this thread waits for. */
static void tell_that_it_lasts(struct client *c, struct wait *wait)
{
    waits_over(c, wait);
    atomic_fetch_sub(&c->threads.lookers, 1);
    pthread_mutex_unlock(&c->lock);
    c->lasts();
    client_lock(c);
    atomic_fetch_add(&c->threads.lookers, 1);
    waits_again(c, wait, c->env.now(c->env.user));
}

bool client_wait(struct client *c, bool (*done)(void *arg), void *arg, struct wait *wait)
{
    bool slept = false;
    atomic_fetch_add(&c->threads.lookers, 1);
    struct spin spin = spin_begin(&c->looks, c->env.now(c->env.user), c->ops.active);
    bool alone = c->ops.active && !c->ops.active->next; /* nothing else is on its way: no answer can be here yet */
    unsigned polls = alone ? 0 : 1;
    uint64_t came = c->progress.came;
    while (!done(arg)) {
        if (c->fatal != KEEL_OK) {
            atomic_fetch_sub(&c->threads.lookers, 1);
            if (!wait->keeps)
                waits_over(c, wait);
            return false;
        }
        if (c->left) /* by another thread: nothing comes any more */
            break;
        if (glance(c, done, arg) || glance_at_agent(c, done, arg))
            break;
        if ((polls++ % YIELD_EVERY == 0 || !c->ops.active) && !waits_for_own_agent(c) &&
            (c->ops.active || c->env.now(c->env.user) >= spin.keep)) {
            uint64_t lent = c->env.now(c->env.user);
            threads_give_way(c); /* the agent that must answer may need this processor */
            spin_lend(&c->looks, &spin, lent, c->env.now(c->env.user));
        } else
            threads_let_in(c);
        client_progress(c); /* from here on the lock is kept: no other thread leaves and closes what is armed below */
        if (done(arg))
            break;
        threads_tell(&c->threads);
        bool on = spin_goes_on(&c->looks, &spin, c->progress.looked_at, c->progress.came != came);
        came = c->progress.came;
        if (c->progress.looked_at >= spin.begun + WAIT_SAID_NS || wait->keeps)
            waits_last(c, wait, spin.begun, c->progress.looked_at);
        /* one that keeps its note may be of many short ones */
        uint64_t since = wait->keeps && wait->since ? wait->since : spin.begun;
        if (c->lasts && c->progress.looked_at >= since + WAIT_SAID_NS) {
            tell_that_it_lasts(c, wait);
            if (done(arg))
                break;
        }
        if (on)
            continue;
        if (!slept)
            spin_end(&c->looks, &spin, false);
        slept = true;
        sleep_a_while(c);
        spin_awake(&c->looks, &spin, c->env.now(c->env.user));
    }
    if (!slept)
        spin_end(&c->looks, &spin, true);
    threads_tell(&c->threads);
    atomic_fetch_sub(&c->threads.lookers, 1);
    if (!wait->keeps)
        waits_over(c, wait);
    return c->fatal == KEEL_OK || done(arg);
}

static bool is_finished(void *arg)
{
    return ((struct op *)arg)->finished;
}

keel_status op_run(struct op *op)
{
    struct client *c = op->client;
    client_lock(c);
    progress_live(&c->progress, c->env.now(c->env.user));
    op_start(op);
    if (!op->finished && threads_follow(c, is_finished, op))
        return op->status;
    static const enum wait_call calls[] = {WAIT_PUT, WAIT_GET, WAIT_ACC, WAIT_RMW};
    struct wait wait = {.call = calls[op->kind], .whom = waits_for_op, .arg = op};
    client_wait(c, is_finished, op, &wait);
    /* Even when the job is lost, nothing may use the caller's memory any more. */
    while (!op->finished)
        client_progress(c);
    pthread_mutex_unlock(&c->lock);
    return op->status;
}
