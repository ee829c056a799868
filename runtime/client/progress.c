/* What makes operations go on: events of the transports, deadlines, views; and waiting for them. */
#include <stdio.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/spin.h"
#include "runtime/client/stream/link.h"
#include "runtime/client/progress.h"

enum {
    SCAN_EVERY_NS = 1000000,
    ASK_AFTER_NS = 100000000, /* no answer for so long: is the node alive? */
    LIVED_MAX_NS = 50000000,  /* between two looks at the clock: what is more, this process did not run */
    SLEEP_MS = 5,
    YIELD_EVERY = 8, /* polls */
    DIRECT_EVERY = 4,
    GLANCES = 50,
    GLANCES_DIRECT = 5,
    GLANCES_AGENT = 8,
    TRIES = 16,   /* before who wants the lock sleeps */
    LETS_IN = 16, /* times that the processor is given away for who wants the lock */
    FOLLOWS = 64, /* before who follows looks whether all is well */
};

static uint64_t look(struct client *c)
{
    uint64_t now = c->env.now(c->env.user), gap = now - c->looked_at;
    c->lived_ns += gap < LIVED_MAX_NS ? gap : LIVED_MAX_NS;
    c->looked_at = now;
    return now;
}

static void poll_transport(struct client *c, struct tp *tp, uint64_t now)
{
    struct tp_event *events = c->events; /* no handler looks for more */
    int n = tp_poll(tp, events, CLIENT_EVENTS);
    c->came += (uint64_t)n;
    for (int i = 0; i < n; i++) {
        if (events[i].type == TP_DONE)
            op_access_done(events[i].op->user, events[i].status);
        else if (events[i].type == TP_CONNREQ)
            direct_asked(c, &events[i], now);
        else if (events[i].ep)
            link_event(tp_ep_user(events[i].ep), &events[i], now);
    }
}

static void check_fatal(struct client *c)
{
    if (c->fatal != KEEL_OK)
        return;
    if (atomic_load_explicit(&c->page->fenced, memory_order_acquire))
        c->fatal = KEEL_ERR_FENCED;
    else if (c->env.agent_is_gone(c->env.user))
        c->fatal = KEEL_ERR_AGENT_GONE;
    for (struct op *op = c->active, *next; c->fatal != KEEL_OK && op; op = next) {
        next = op->next;
        op_fail(op, c->fatal);
    }
}

static void see_view(struct client *c)
{
    uint64_t epoch = atomic_load_explicit(&c->page->epoch, memory_order_acquire);
    if (epoch == c->epoch_seen)
        return;
    c->epoch_seen = epoch;
    for (int m = 0; m < (int)c->page->members; m++)
        if (!atomic_load_explicit(&page_node(c->page, m)->alive, memory_order_acquire))
            link_drop(c, m);
    coll_see_views(c, c->env.now(c->env.user));
    if (c->given_up[0].any)
        op_given_up_done(c);
}

static void ask_node(struct client *c, int node, uint64_t now)
{
    link_ask_agent(c, node, now);
    link_look(c, node, false);
}

static void ask_about(struct client *c, struct op *op, uint64_t now)
{
    if (c->lived_ns - op->started <= ASK_AFTER_NS)
        return;
    if (op_turns_away(op) && op->accesses)
        link_look(c, op->plan.leg[0].node, true);
    for (const struct piece *p = op->pieces; p; p = p->sibling)
        ask_node(c, p->node, now);
    for (int i = 0; i < op->notes; i++)
        link_look(c, op->note[i].node, false);
    for (int leg = 0; op->planned && !op->pieces && leg < op->plan.legs; leg++)
        ask_node(c, op->plan.leg[leg].node, now);
}

int op_waits_for(const struct op *op, bool *went_out)
{
    for (const struct piece *p = op->pieces; p; p = p->sibling)
        if (!p->done) {
            *went_out = true;
            return p->node;
        }
    *went_out = false;
    for (int leg = 0; op->planned && leg < op->plan.legs; leg++)
        if (op->plan.leg[leg].posted < op->len)
            return op->plan.leg[leg].node;
    return -1;
}

static void give_up(struct op *op)
{
    static const char *const names[] = {"a put", "a get", "an accumulate", "an atomic operation", "an entry"};
    bool went_out;
    int node = op_waits_for(op, &went_out);
    char why[48] = "waited for others";
    if (op_changes(op) && !op->planned && hold_is_behind(op->client))
        snprintf(why, sizeof why, "waited for what was given up before");
    else if (node >= 0)
        snprintf(why, sizeof why, "%s node %d", went_out ? "has no answer of" : "had no connection to", node);
    log_warn_some("%s of %llu bytes with rank %d took longer than the %llu ms of KEEL_TIMEOUT_MS: it %s",
                  names[op->kind], (unsigned long long)op->len, op->rank,
                  (unsigned long long)(op->client->timeout_ns / KEEL_NS_PER_MS), why);
    op_fail(op, KEEL_ERR_TIMEOUT);
}

/* Deadlines, views, nodes that do not answer. */
static void scan(struct client *c, uint64_t now)
{
    see_view(c);
    (void)link_up(c, c->node, now); /* the agent here answers for others, and passes on what other ranks send */
    if (c->doubt_untold) {
        struct control r = {.type = CONTROL_DOUBT};
        c->doubt_untold = !c->env.tell(c->env.user, &r);
    }
    for (struct op *op = c->active, *next; op; op = next) {
        next = op->next;
        if (c->lived_ns > op->deadline && op->status == KEEL_IN_PROGRESS) {
            give_up(op);
            continue;
        }
        if (op->planned && !op->replan && page_tag(c->page, op->copyset) != op->route.tag)
            op->replan = true;
        ask_about(c, op, now);
        op_advance(op, now);
    }
    check_fatal(c);
}

static void retry(struct client *c, uint64_t now)
{
    c->retry_at = UINT64_MAX;
    for (struct op *op = c->active, *next; op; op = next) {
        next = op->next;
        if (now >= op->retry_at)
            op_advance(op, now); /* may set it again */
        else if (op->retry_at < c->retry_at)
            c->retry_at = op->retry_at;
    }
}

void client_progress(struct client *c)
{
    uint64_t now = look(c);
    if (c->left)
        return;
    hall_poll(c, now);
    poll_transport(c, c->shm, now);
    poll_transport(c, c->net, now);
    /* what we wait for comes from an agent, if anything of ours is under way */
    if (c->direct.tp != c->net && (!c->active || ++c->polls % DIRECT_EVERY == 0))
        poll_transport(c, c->direct.tp, now);
    if (c->direct.crowded)
        courier_flow(c, now);
    if (c->serve && c->waiting)
        op_serve(c, now);
    if (now >= c->retry_at)
        retry(c, now);
    if (now >= c->coll.at)
        coll_tick(c, now);
    if (now >= c->scan_at || atomic_load_explicit(&c->page->epoch, memory_order_relaxed) != c->epoch_seen) {
        c->scan_at = now + SCAN_EVERY_NS;
        scan(c, now);
    }
}

/* The only operation under way is answered by the agent on this node, which may wait for this processor, and nothing of it has still to be sent. */
static bool waits_for_own_agent(const struct client *c)
{
    const struct op *op = c->active;
    if (!op || op->next || !op->planned || op->plan.way != PLAN_MESSAGES || op->plan.legs != 1 || op->accesses)
        return false;
    bool last_is_here = op->route.copies > 1 && op->route.node[op->route.copies - 1] == c->node;
    return op->plan.leg[0].node == c->node || (last_is_here && op_is_once(op));
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Nothing of ours is under way, so what we wait for comes from another rank: through shared memory, by the hall or the own agent, or over a
 * connection. Looking into memory costs some ten nanoseconds, asking the network a microsecond. True: it is done. */
static bool glance(struct client *c, bool (*done)(void *arg), void *arg)
{
    for (int i = 0, n = c->looks.once ? 1 : GLANCES; i < n && !c->active; i++) {
        if (c->hall.blocked || hall_has(c))
            hall_poll(c, c->looked_at);
        poll_transport(c, c->shm, c->looked_at);
        if (c->direct.ups && i % GLANCES_DIRECT == 0)
            poll_transport(c, c->direct.tp, c->looked_at);
        if (c->direct.crowded)
            courier_flow(c, c->looked_at);
        if (done(arg))
            return true;
        relax();
    }
    return false;
}

/* What comes from the agent here comes through memory: looking there costs some ten nanoseconds, asking the network microseconds, which the agent, and
 * other ranks of this node that wait for it too, could have had. True: it is done. */
static bool glance_at_agent(struct client *c, bool (*done)(void *arg), void *arg)
{
    for (int i = 0; i < GLANCES_AGENT && waits_for_own_agent(c); i++) {
        c->env.yield(c->env.user);
        poll_transport(c, c->shm, c->looked_at);
        if (done(arg))
            return true;
    }
    return false;
}

/* ---- several threads ---- */

/* It waits for something that a thread that looks brings about. That one takes it off the list, and does not touch it any more once it is over. */
struct follower {
    struct follower *next;
    bool (*done)(void *arg);
    void *arg;
    atomic_bool over;
};

void client_lock(struct client *c)
{
    if (pthread_mutex_trylock(&c->lock) == 0)
        return;
    atomic_store_explicit(&c->several, true, memory_order_relaxed);
    atomic_fetch_add(&c->wanted, 1);
    bool taken = false;
    for (int i = 0; i < TRIES && !taken; i++) {
        c->env.yield(c->env.user);
        taken = pthread_mutex_trylock(&c->lock) == 0;
    }
    if (!taken)
        pthread_mutex_lock(&c->lock);
    atomic_fetch_sub(&c->wanted, 1);
}

/* What we have looked for may be all that other threads wait for. */
static void tell_followers(struct client *c)
{
    for (struct follower **link = &c->followers, *f; (f = *link) != NULL;) {
        if (!f->done(f->arg)) {
            link = &f->next;
            continue;
        }
        *link = f->next;
        atomic_store_explicit(&f->over, true, memory_order_release);
    }
}

/* They may want to begin something. */
static void let_others_in(struct client *c)
{
    if (!atomic_load_explicit(&c->wanted, memory_order_relaxed))
        return;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < LETS_IN && atomic_load_explicit(&c->wanted, memory_order_relaxed); i++)
        c->env.yield(c->env.user);
    client_lock(c);
}

/* Without the lock, where there are other threads: one of ours may be the one that runs then, and want to begin something. */
static void give_way(struct client *c)
{
    if (!atomic_load_explicit(&c->several, memory_order_relaxed)) {
        c->env.yield(c->env.user);
        return;
    }
    pthread_mutex_unlock(&c->lock);
    c->env.yield(c->env.user);
    client_lock(c);
}

bool client_wait(struct client *c, bool (*done)(void *arg), void *arg, struct wait *wait)
{
    bool slept = false;
    atomic_fetch_add(&c->lookers, 1);
    struct spin spin = spin_begin(&c->looks, c->env.now(c->env.user), c->active);
    bool alone = c->active && !c->active->next; /* nothing else is on its way: no answer can be here yet */
    unsigned polls = alone ? 0 : 1;
    uint64_t came = c->came;
    while (!done(arg)) {
        if (c->fatal != KEEL_OK) {
            atomic_fetch_sub(&c->lookers, 1);
            if (!wait->keeps)
                waits_over(c, wait);
            return false;
        }
        if (c->left) /* by another thread: nothing comes any more */
            break;
        if (glance(c, done, arg) || glance_at_agent(c, done, arg))
            break;
        if ((polls++ % YIELD_EVERY == 0 || !c->active) && !waits_for_own_agent(c) &&
            (c->active || c->env.now(c->env.user) >= spin.keep)) {
            uint64_t since = c->env.now(c->env.user);
            give_way(c); /* the agent that must answer may need this processor */
            spin_lend(&spin, since, c->env.now(c->env.user));
        } else
            let_others_in(c);
        client_progress(c); /* from here on the lock is kept: no other thread leaves and closes what is armed below */
        if (done(arg))
            break;
        tell_followers(c);
        if (c->came != came)
            spin_again(&c->looks, &spin, c->looked_at);
        came = c->came;
        if (c->looked_at >= spin.begun + WAIT_SAID_NS || wait->keeps)
            waits_last(c, wait, spin.begun, c->looked_at);
        if (c->looked_at < spin.until)
            continue;
        if (!slept)
            spin_end(&c->looks, &spin, false);
        slept = true;
        bool idle = c->shm->table->arm(c->shm) && c->net->table->arm(c->net) &&
                    (c->direct.tp == c->net || c->direct.tp->table->arm(c->direct.tp)) && hall_sleep(c);
        bool soon = c->retry_at != UINT64_MAX || c->coll.at < c->looked_at + SLEEP_MS * KEEL_NS_PER_MS;
        int ms = !idle ? 0 : soon ? 1 : SLEEP_MS;
        atomic_fetch_sub(&c->lookers, 1);
        pthread_mutex_unlock(&c->lock);
        c->env.sleep(c->env.user, ms);
        client_lock(c);
        atomic_fetch_add(&c->lookers, 1);
        hall_awake(c);
        spin.until = c->env.now(c->env.user) + c->looks.short_ns / 4;
    }
    if (!slept)
        spin_end(&c->looks, &spin, true);
    tell_followers(c);
    atomic_fetch_sub(&c->lookers, 1);
    if (!wait->keeps)
        waits_over(c, wait);
    return c->fatal == KEEL_OK || done(arg);
}

/* For a thread that has something under way and need not look itself: another one does. True: it is done, and the lock was given back. */
static bool follow(struct client *c, bool (*done)(void *arg), void *arg)
{
    struct follower f = {c->followers, done, arg, false};
    if (!atomic_load_explicit(&c->lookers, memory_order_relaxed))
        return false;
    c->followers = &f;
    while (atomic_load_explicit(&c->lookers, memory_order_relaxed) && c->fatal == KEEL_OK) {
        pthread_mutex_unlock(&c->lock);
        for (int i = 0; i < FOLLOWS && !atomic_load_explicit(&f.over, memory_order_acquire) &&
                        atomic_load_explicit(&c->lookers, memory_order_relaxed);
             i++)
            c->env.yield(c->env.user);
        if (atomic_load_explicit(&f.over, memory_order_acquire))
            return true;
        client_lock(c);
        if (atomic_load_explicit(&f.over, memory_order_relaxed)) {
            pthread_mutex_unlock(&c->lock);
            return true;
        }
    }
    struct follower **link = &c->followers;
    while (*link != &f)
        link = &(*link)->next;
    *link = f.next;
    return false;
}

static bool is_finished(void *arg)
{
    return ((struct op *)arg)->finished;
}

keel_status op_run(struct op *op)
{
    struct client *c = op->client;
    client_lock(c);
    look(c);
    op_start(op);
    if (!op->finished && follow(c, is_finished, op))
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
