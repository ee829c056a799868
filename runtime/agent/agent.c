#include "runtime/agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include <keel/segment.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/connect.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/health.h"
#include "runtime/agent/ordering.h"
#include "runtime/agent/parcels.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/receive.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/segments.h"
#include "runtime/agent/strong.h"
#include "runtime/agent/scrub.h"
#include "runtime/agent/verify.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/view/plan.h"
#include "runtime/wire/kinds.h"
#include "runtime/wire/relayed.h"
#include "runtime/wire/system.h"

/* ---- for the parts ---- */

void agent_break(struct agent *a, const char *why)
{
    if (a->broken)
        return;
    a->broken = true;
    atomic_store(&a->page->fenced, 1);
    for (struct conn *c = a->conns; c; c = c->next)
        agent_close_conn(a, c); /* until it ends it answers nobody: what it could not tell the others is not so */
    log_error("%s", why);
    a->ops.fatal(a->ops.user, why);
}

void agent_say_members(struct agent *a, const char *name, const struct json_member *m, size_t count)
{
    char members[512];
    struct json_writer w = json_into(members, sizeof members);
    json_go_on(&w);
    json_put_all(&w, m, count);
    if (json_is_whole(&w)) /* never half a JSON text */
        a->ops.event(a->ops.user, name, members);
}

static uint64_t told(struct agent *a, int node, enum peer_sent sent)
{
    if (sent == PEER_NO_MEMORY)
        agent_break(a, "out of memory for a message to another node");
    return sent == PEER_SENT ? a->peers.peer[node].next - 1 : 0;
}

uint64_t agent_tell(struct agent *a, int node, struct wire *w, const void *body)
{
    if (a->broken)
        return 0; /* nothing follows what is missing */
    return told(a, node, peer_send(&a->peers, node, w, body, a->now));
}

uint64_t agent_tell_from_store(struct agent *a, int node, struct wire *w, const void *bytes)
{
    if (a->broken)
        return 0;
    return told(a, node, peer_send_kept(&a->peers, node, w, bytes, a->now));
}

uint64_t agent_position(const struct agent *a, int node)
{
    return a->fences.node[node] ? UINT64_MAX : a->peers.peer[node].next - 1;
}

bool agent_acked(const struct agent *a, int node, uint64_t position)
{
    return a->peers.peer[node].acked >= position || !a->view.alive[node];
}

/* ---- what comes in ---- */

typedef void takes(struct agent *a, int from, const struct wire *w, const void *body);

static void hash_asked(struct agent *a, int from, const struct wire *w, const void *body)
{
    (void)body;
    verify_asked(a, from, w);
}

static void sums_asked(struct agent *a, int from, const struct wire *w, const void *body)
{
    (void)body;
    scrub_asked(a, from, w);
}

static void rank_asked(struct agent *a, int from, const struct wire *w, const void *body)
{
    (void)body;
    health_asked(a, from, w);
}

static void rank_told(struct agent *a, int from, const struct wire *w, const void *body)
{
    (void)body;
    health_told(a, from, w);
}

static void segment_told(struct agent *a, int from, const struct wire *w, const void *body)
{
    (void)body;
    segments_told(a, from, w);
}

static void segment_has(struct agent *a, int from, const struct wire *w, const void *body)
{
    (void)body;
    segments_has(a, from, w);
}

static void relayed_told(struct agent *a, int from, const struct wire *w, const void *body)
{
    (void)body;
    chain_told(&a->relays, from, w);
    execute_acked(a, from);
}

/* Who takes a message of another agent, by its type. */
static takes *const taker[WIRE_TYPES] = {
    [WIRE_FORWARD] = execute_forwarded,  [WIRE_RELAYED] = relayed_told,      [WIRE_SNAP_BEGIN] = repair_receive,
    [WIRE_SNAP_ORIGIN] = repair_receive, [WIRE_SNAP_TASKS] = repair_receive, [WIRE_SNAP_BLOCK] = repair_receive,
    [WIRE_SNAP_END] = repair_receive,    [WIRE_SNAP_HERE] = repair_receive,  [WIRE_SEGMENT] = segment_told,
    [WIRE_DOUBT] = repair_receive,       [WIRE_FETCH] = repair_receive,      [WIRE_PATCH] = repair_receive,
    [WIRE_COMPARE] = strong_asked,       [WIRE_COMPARED] = strong_told,      [WIRE_HASH] = hash_asked,
    [WIRE_HASHED] = verify_told,         [WIRE_RANK_ASK] = rank_asked,       [WIRE_RANK_SAYS] = rank_told,
    [WIRE_ORDER] = ordering_told,        [WIRE_ORDERED] = ordering_told,     [WIRE_SCRUB] = sums_asked,
    [WIRE_SCRUBBED] = scrub_answered,    [WIRE_SEGMENT_HAS] = segment_has,
};

static void peer_received(void *user, int from, const struct wire *w, const void *body)
{
    struct agent *a = user;
    if (a->broken)
        return; /* what came before was not kept */
    if (!wire_is_known(w, WIRE_OF_AGENTS) || !taker[w->type]) {
        log_error("node %d sends a message of type %u with flags %#x, which there is not", from, w->type, w->flags);
        return;
    }
    if (chain_asks_for_word(w))
        chain_came(&a->relays, from);
    taker[w->type](a, from, w, body);
}

static void peer_acked(void *user, int node, uint64_t seq)
{
    (void)seq;
    struct agent *a = user;
    if (a->broken)
        return;
    execute_acked(a, node);
    if (segments_wait(&a->segments))
        segments_acked(a);
}

static void peer_refused(void *user, int node)
{
    struct agent *a = user;
    a->ops.refused(a->ops.user, node);
}

static void peer_broken(void *user, int node)
{
    struct agent *a = user;
    a->ops.broken(a->ops.user, node);
}

static void peer_no_memory(void *user)
{
    agent_break(user, "out of memory for a message of another node");
}

struct peers_ops agent_peers_ops(struct agent *a)
{
    return (struct peers_ops){a, peer_received, peer_acked, peer_refused, peer_broken, peer_no_memory};
}

static int poll_once(struct agent *a, struct tp *tp)
{
    struct tp_event batch[AGENT_BATCH];
    a->batch.events = batch;
    a->batch.n = a->broken ? 0 : tp_poll(tp, batch, AGENT_BATCH);
    for (int i = 0; i < a->batch.n && !a->broken; i++) {
        const struct tp_event *e = &batch[i];
        a->batch.at = i;
        if (e->type == TP_CONNREQ) {
            connect_asked(a, e);
            continue;
        }
        if (e->type == TP_GONE) {
            agent_break(a, "the RDMA device of this node was taken away, and its data with it");
            continue;
        }
        if (!e->ep)
            continue; /* closed while working on this batch */
        struct peer *peer = tp_ep_user(e->ep);
        struct conn *c = tp_ep_user(e->ep);
        if (peer >= a->peers.peer && peer < a->peers.peer + a->members)
            peer_event(&a->peers, peer, e, a->now);
        else if (e->type == TP_CLOSED)
            agent_close_conn(a, c); /* what it was writing stays known */
        else if (e->type == TP_RECV)
            receive_from_rank(a, c, e);
    }
    int n = a->batch.n;
    a->batch.n = 0;
    return n;
}

int agent_poll(struct agent *a, struct tp *tp)
{
    int n = poll_once(a, tp);
    for (int i = 0; a->newcomers.first && i < AGENT_POLLS_MAX && poll_once(a, tp) > 0; i++)
        ;
    connect_all(a);
    return n;
}

enum { ACK_LOOKS = 64 }; /* at the oldest of those that wait */
#define ACKS_NS (500 * KEEL_NS_PER_MS)

static bool waits_for_others(const struct agent *a)
{
    return a->waiters || segments_wait(&a->segments) || a->strong.checks || a->stash.first || ordering_waits(a);
}

static bool mark_waits_for(const struct agent *a, const struct chain_mark *m, int node)
{
    for (int i = 0; i < m->nodes; i++)
        if (m->node[i] == node && !agent_acked(a, node, m->seq[i]))
            return true;
    return m->nodes > 0 && m->relayed && m->behind == node && !chain_reached(a, m);
}

bool agent_waits_for(const struct agent *a, int node)
{
    int looks = ACK_LOOKS;
    if (node == a->self || !a->view.alive[node])
        return false;
    for (const struct waiter *w = a->waiters; w && looks-- > 0; w = w->next)
        if (mark_waits_for(a, &w->mark, node))
            return true;
    return segments_wait_for(a, node) || strong_waits_for(a, node) || ordering_waits_for(a, node) ||
           (a->stash.first && repair_waits_for(a, node));
}

bool agent_makes_view(const struct agent *a)
{
    for (int m = 0; m < a->members; m++)
        if (a->fences.doomed[m] && a->view.alive[m])
            return true;
    return a->recovery.frozen;
}

/* The rank that waits has asked us, and knows of nobody else. */
static void say_who_is_waited_for(struct agent *a)
{
    if (!waits_for_others(a) || a->now < a->acks_at)
        return;
    a->acks_at = a->now + ACKS_NS;
    for (int m = 0; m < a->members; m++)
        if (agent_waits_for(a, m))
            a->ops.check(a->ops.user, m);
}

bool agent_step(struct agent *a)
{
    if (a->broken)
        return false;
    bool busy = repair_step(a);
    if (!a->recovery.frozen && a->recovery.settled >= a->view.epoch) /* nobody reads what left in an older view */
        busy = store_empty_some(&a->store) || busy;
    chain_step(a);
    strong_step(a);
    verify_step(a);
    scrub_step(a);
    peers_tick(&a->peers, a->now);
    recover_try_answer(a);
    ranks_slide(a);
    weighing_step(a);
    say_who_is_waited_for(a);
    return busy;
}

uint64_t agent_deadline(const struct agent *a)
{
    if (a->broken)
        return UINT64_MAX;
    uint64_t p = peers_deadline(&a->peers), s = strong_deadline(a), v = verify_deadline(a);
    uint64_t w = weighing_deadline(a), u = scrub_deadline(a);
    s = s < v ? s : v;
    s = s < u ? s : u;
    s = s < w ? s : w;
    if (waits_for_others(a) && a->acks_at < s)
        s = a->acks_at;
    return p < s ? p : s;
}
