/* What makes operations go on: events of the transports, deadlines, views; and waiting for them. */
#include <stdio.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/spin.h"
#include "runtime/client/stream/connection.h"
#include "runtime/client/progress.h"

enum {
    SCAN_EVERY_NS = 1000000,
    ASK_AFTER_NS = 100000000, /* no answer for so long: is the node alive? */
    DIRECT_EVERY = 4,
};

void progress_poll(struct client *c, struct tp *tp, uint64_t now)
{
    struct tp_event *events = c->progress.events; /* no handler looks for more */
    int n = tp_poll(tp, events, PROGRESS_EVENTS);
    c->progress.came += (uint64_t)n;
    for (int i = 0; i < n; i++) {
        if (events[i].type == TP_DONE)
            op_access_done(events[i].op->user, events[i].status);
        else if (events[i].type == TP_CONNREQ)
            direct_asked(c, &events[i], now);
        else if (events[i].ep)
            connection_event(tp_ep_user(events[i].ep), &events[i], now);
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
    for (struct op *op = c->ops.active, *next; c->fatal != KEEL_OK && op; op = next) {
        next = op->next;
        op_fail(op, c->fatal);
    }
}

static void see_view(struct client *c)
{
    uint64_t epoch = atomic_load_explicit(&c->page->epoch, memory_order_acquire);
    if (epoch == c->progress.epoch_seen)
        return;
    c->progress.epoch_seen = epoch;
    for (int m = 0; m < (int)c->page->members; m++)
        if (!atomic_load_explicit(&page_node(c->page, m)->alive, memory_order_acquire))
            connection_drop(c, m);
    coll_see_views(c, c->env.now(c->env.user));
    if (c->doubts.given_up[0].any)
        doubt_taken_up(c);
}

static void ask_node(struct client *c, int node, uint64_t now)
{
    connection_ask_agent(c, node, now);
    connection_look(c, node, false, now);
}

static void ask_about(struct client *c, struct op *op, uint64_t now)
{
    if (c->progress.lived_ns - op->times.started <= ASK_AFTER_NS)
        return;
    if (op_turns_away(op) && op->out.accesses)
        connection_look(c, op->plan.leg[0].node, true, now);
    for (const struct piece *p = op->out.pieces; p; p = p->sibling)
        ask_node(c, p->node, now);
    for (int i = 0; i < op->held.notes; i++)
        connection_look(c, op->held.note[i].node, false, now);
    for (int leg = 0; op->planned && !op->out.pieces && leg < op->plan.legs; leg++)
        ask_node(c, op->plan.leg[leg].node, now);
}

int op_waits_for(const struct op *op, bool *went_out)
{
    op = op_with_turn(op);
    for (const struct piece *p = op->out.pieces; p; p = p->sibling)
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
    if (op->name.waits && node >= 0)
        snprintf(why, sizeof why, "waited for an earlier one with node %d", node);
    else if (op_changes(op) && !op->planned && doubt_is_behind(op->client))
        snprintf(why, sizeof why, "waited for what was given up before");
    else if (node >= 0)
        snprintf(why, sizeof why, "%s node %d", went_out ? "has no answer of" : "had no connection to", node);
    log_warn_some("%s of %llu bytes with rank %d took longer than the %llu ms of KEEL_TIMEOUT_MS: it %s",
                  names[op->kind], (unsigned long long)(op->kind == OP_RMW ? op->word : op->len), op->rank,
                  (unsigned long long)(op->client->timeout_ns / KEEL_NS_PER_MS), why);
    op_fail(op, KEEL_ERR_TIMEOUT);
}

/* Deadlines, views, nodes that do not answer. */
static void scan(struct client *c, uint64_t now)
{
    see_view(c);
    (void)connection_up(c, c->node, now); /* the agent here answers for others, and passes on what other ranks send */
    doubt_tell(c);
    for (struct op *op = c->ops.active, *next; op; op = next) {
        next = op->next;
        if (c->progress.lived_ns > op->times.deadline && op->status == KEEL_IN_PROGRESS) {
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
    c->progress.retry_at = UINT64_MAX;
    for (struct op *op = c->ops.active, *next; op; op = next) {
        next = op->next;
        if (now >= op->times.retry_at)
            op_advance(op, now); /* may set it again */
        else if (op->times.retry_at < c->progress.retry_at)
            c->progress.retry_at = op->times.retry_at;
    }
}

void client_progress(struct client *c)
{
    uint64_t now = c->env.now(c->env.user);
    progress_live(&c->progress, now);
    if (c->left)
        return;
    hall_poll(c, now);
    progress_poll(c, c->connections.shm, now);
    progress_poll(c, c->connections.net, now);
    /* what we wait for comes from an agent, if anything of ours is under way */
    if (c->direct.tp != c->connections.net && (!c->ops.active || ++c->progress.polls % DIRECT_EVERY == 0))
        progress_poll(c, c->direct.tp, now);
    if (c->direct.crowded)
        courier_flow(c, now);
    if (c->ops.serve && c->ops.waiting)
        op_serve(c, now);
    if (now >= c->progress.retry_at)
        retry(c, now);
    if (now >= c->coll.at)
        coll_tick(c, now);
    if (now >= c->progress.scan_at ||
        atomic_load_explicit(&c->page->epoch, memory_order_relaxed) != c->progress.epoch_seen) {
        c->progress.scan_at = now + SCAN_EVERY_NS;
        scan(c, now);
    }
}
