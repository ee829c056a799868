/* Who is waited for for long: is it stopped? What that means for the calls that wait. */
#include "collectives/group.h"
#include "runtime/client/group/coll_int.h"

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/stream/connection.h"

static int node_of(const struct client *c, int rank)
{
    return (int)(int32_t)(atomic_load_explicit(&page_rank(c->page, rank)->where, memory_order_acquire) >> 32);
}

/* A process that the call needs is stopped, and does not go on. Ordinary calls of a group are given up: whoever leaves
 * lets the others go. The collectives of all live ranks, and what finds out who lives (agree, shrink), end here, and go
 * on when they are called again. */
static void give_up(struct keel_group *g, struct keel_request *r, int member, uint64_t now)
{
    struct client *c = g->client;
    int rank = group_rank(g->ranks, member);
    log_error("rank %d on node %d is stopped, %s has waited for it for %llu ms", rank, node_of(c, rank),
              r->settles ? "keel_finalize"
              : r->own   ? "keel_group_free"
                         : wait_call_name(r->call),
              (unsigned long long)((now - r->look.stopped_since) / KEEL_NS_PER_MS));
    if (g->patient) {
        look_again(&r->look, now); /* and said again */
        return;
    }
    if (!coll_is_of_all(g) && engine_is_ordinary(r->seq)) {
        engine_revoke_for(g->engine, member, now);
        courier_keep(c, g, 0, now);
        r->status = KEEL_ERR_TIMEOUT;
        look_forget(&r->look); /* of who leaves: another one may be, too */
    } else if (r->own) {
        look_again(&r->look, now); /* no caller waits; it is said again */
    } else {
        r->stalled = true;
        r->blamed = member;
        look_forget(&r->look); /* who calls again waits as long again */
    }
}

static void ask_process(struct client *c, int rank, uint64_t now)
{
    struct control ask = {.type = CONTROL_STATUS, .node = node_of(c, rank), .a = rank, .b = (int64_t)now};
    if (ask.node >= 0 && rank != c->rank)
        (void)c->env.tell(c->env.user, &ask); /* asked again, if it was lost */
}

static struct look_member look_at(const void *group, int member)
{
    const struct keel_group *g = group;
    const struct client *c = g->client;
    int rank = group_rank(g->ranks, member);
    const struct page_rank *k = page_rank(c->page, rank);
    struct look_member m = {.lives = rank != c->rank && coll_member_lives(g, member)};
    m.answered = atomic_load_explicit(&k->looked, memory_order_acquire);
    m.stopped = atomic_load_explicit(&k->process, memory_order_relaxed) == PAGE_PROCESS_STOPPED;
    return m;
}

static void look_after(struct keel_group *g, struct keel_request *r, int waits, bool due, uint64_t now)
{
    struct client *c = g->client;
    int member = look_turn(&r->look, group_size(g->ranks), waits, due, look_at, g, c->timeout_ns, now);
    if (member >= 0)
        ask_process(c, group_rank(g->ranks, member), now);
    if (look_found(&r->look))
        give_up(g, r, r->look.stopped, now);
    coll_wake_at(c, r->look.next);
}

/* A call is complete, but there is no room for what the rank is to get: is it stopped? Then nobody waits for that. */
static void look_after_receiver(struct client *c, int rank, uint64_t now)
{
    struct stream *s = &c->coll.stream[rank];
    const struct page_rank *k = page_rank(c->page, rank);
    bool stopped = atomic_load_explicit(&k->process, memory_order_relaxed) == PAGE_PROCESS_STOPPED;
    if (s->asked_at && atomic_load_explicit(&k->looked, memory_order_acquire) >= s->asked_at)
        s->stopped_since = !stopped ? 0 : s->stopped_since ? s->stopped_since : now;
    s->given_up = s->stopped_since && now - s->stopped_since > c->timeout_ns;
    if (s->given_up)
        log_error("rank %d is stopped, what it is to get of a collective has waited for it for %llu ms", rank,
                  (unsigned long long)((now - s->stopped_since) / KEEL_NS_PER_MS));
    s->asked_at = now;
    ask_process(c, rank, now);
}

/* A call of it is complete, and does not wait for who is stopped. */
static bool has_completed(const struct keel_group *g, const void *arg)
{
    (void)arg;
    const struct keel_request *r = g->patient ? NULL : g->requests;
    while (r && !r->done)
        r = r->next;
    return r;
}

void coll_look_after_receivers(struct client *c, uint64_t now)
{
    const struct keel_group *any = c->coll.groups;
    while (any && !(any->engine && has_completed(any, NULL)))
        any = any->next;
    for (int rank = 0; any && rank < c->size; rank++) {
        if (!courier_has_engine_of(c, rank, has_completed, NULL))
            continue;
        if (now >= c->coll.stream[rank].asked_at + LOOK_NS)
            look_after_receiver(c, rank, now);
        coll_wake_at(c, now + LOOK_NS);
    }
}

void coll_ask_about(struct keel_group *g, bool due, uint64_t now)
{
    struct client *c = g->client;
    for (struct keel_request *r = g->requests, *next; r; r = next) {
        next = r->next;
        if (!due && now < r->look.next) {
            coll_wake_at(c, r->look.next);
            continue;
        }
        if (r->settles)
            r->seq = engine_unsettled(g->engine);
        int member = r->done ? -1 : engine_waits_for(g->engine, r->seq);
        int node = member < 0 ? -1 : node_of(c, group_rank(g->ranks, member));
        if (node >= 0 && due)
            connection_ask_agent(c, node, now);
        if (member >= 0 && !r->stalled)
            look_after(g, r, member, due, now);
    }
}
