#include "runtime/agent/peer_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

enum { LOOK_EVERY_NS = 25000000 };

static size_t make_hello(void *user, const struct way *w, uint8_t *out)
{
    const struct peers *p = user;
    struct hello hello = {.job = p->job,
                          .incarnation = p->incarnation,
                          .node = p->self,
                          .rank = -1,
                          .to_node = w->key.node,
                          .to_incarnation = p->peer[w->key.node].incarnation,
                          .attempt = w->attempts};
    hello_sign(&hello, p->secret);
    memcpy(out, &hello, sizeof hello);
    return sizeof hello;
}

keel_status peers_init(struct peers *p, int self, int count, struct tp *net, uint64_t job, uint64_t incarnation,
                       const uint8_t secret[32], const struct peers_ops *ops)
{
    *p = (struct peers){
        .self = self, .count = count, .job = job, .incarnation = incarnation, .secret = secret, .ops = *ops};
    p->ways = (struct ways){.tp = net,
                            .first_ns = KEEL_NS_PER_MS,
                            .max_ns = 50 * KEEL_NS_PER_MS,
                            .hello = make_hello,
                            .user = p,
                            .tell = way_log,
                            .whose = "node"};
    p->peer = calloc((size_t)count, sizeof *p->peer);
    if (!p->peer)
        return KEEL_ERR_NOMEM;
    for (int i = 0; i < count; i++) {
        p->peer[i].node = i;
        p->peer[i].next = 1;
        p->peer[i].tail = &p->peer[i].head;
        p->peer[i].held_tail = &p->peer[i].held;
        way_init(&p->peer[i].out, &p->ways, way_direct(i));
    }
    return KEEL_OK;
}

void peers_fini(struct peers *p)
{
    for (int i = 0; p->peer && i < p->count; i++) {
        peer_take_back(&p->peer[i]);
        peer_drop_messages(&p->peer[i], UINT64_MAX);
        peer_drop_held(&p->peer[i]);
    }
    free(p->peer);
    p->peer = NULL;
}

void peer_address(struct peers *p, int node, uint64_t incarnation, const struct tp_addrs *addrs)
{
    p->peer[node].incarnation = incarnation;
    p->peer[node].addrs = *addrs;
}

void peer_drop_out(struct peer *peer)
{
    way_drop(&peer->out);
    peer_take_back(peer);
}

void peer_kill(struct peers *p, int node)
{
    struct peer *peer = &p->peer[node];
    if (peer->dead)
        return;
    peer->dead = true;
    peer->ack_due = false;
    peer->unhurried = 0;
    peer_drop_out(peer);
    if (peer->in)
        tp_ep_destroy(peer->in);
    peer->in = NULL;
    peer_drop_messages(peer, UINT64_MAX);
    peer_drop_held(peer);
}

void peer_bear(struct peers *p, int node)
{
    assert(p->peer[node].next == 1);
    p->peer[node].dead = false;
}

void peer_accepted(struct peers *p, int node, struct tp_ep *ep)
{
    struct peer *peer = &p->peer[node];
    if (peer->in)
        tp_ep_destroy(peer->in);
    peer->in = ep;
}

static void closed(struct peers *p, struct peer *peer, const struct tp_event *event, uint64_t now)
{
    if (event->ep == peer->in) {
        tp_ep_destroy(peer->in);
        peer->in = NULL;
    } else if (event->ep == peer->out.ep) {
        way_failed(&peer->out, now);
        peer_take_back(peer);
        bool broken = way_has_broken(&peer->out, &peer->addrs, now);
        if (event->status == KEEL_ERR_NODE_DEAD && way_refusal_counts(&peer->out))
            p->ops.refused(p->ops.user, peer->node);
        else if (broken)
            p->ops.broken(p->ops.user, peer->node);
        else if (peer->out.broke)
            peer_connect_if_due(p, peer, now); /* over another rail; if that fails, who watches the node hears of it */
    }
}

void peer_event(struct peers *p, struct peer *peer, const struct tp_event *event, uint64_t now)
{
    if (peer->dead)
        return;
    if (event->type == TP_RECV) {
        peer_received(p, peer, event);
    } else if (event->type == TP_CLOSED) {
        closed(p, peer, event, now);
    } else if (event->type == TP_CONNECTED && event->ep == peer->out.ep) {
        way_connected(&peer->out, &p->ways, now);
        peer->unsent = peer->head;
        peer_flush(peer);
    } else if (event->type == TP_DONE &&
               event->ep == peer->out.ep) { /* else the connection was dropped, and the message with it */
        peer_message_left(peer, event->op->user);
    }
}

/* The rail may be broken, and nobody says so: the next one is tried. All that is not acknowledged goes out again. */
static void look(struct peer *peer, uint64_t now)
{
    if (peer->addrs.n < 2 || !peer->head || now < peer->look_at)
        return;
    peer->look_at = now + LOOK_EVERY_NS;
    if (!way_is_stuck(&peer->out, &peer->addrs, true, now))
        return;
    log_info("nothing moves on the connection to node %d over rail %d: another one is tried", peer->node,
             peer->out.key.rail);
    way_failed(&peer->out, now);
    peer_take_back(peer);
}

void peers_tick(struct peers *p, uint64_t now)
{
    for (int i = 0; i < p->count; i++) {
        struct peer *peer = &p->peer[i];
        peer_flush(peer);
        peer_acknowledge(peer, now);
        look(peer, now);
        if (peer->head)
            peer_connect_if_due(p, peer, now);
    }
}

uint64_t peers_deadline(const struct peers *p)
{
    uint64_t deadline = UINT64_MAX;
    for (int i = 0; i < p->count; i++) {
        const struct peer *peer = &p->peer[i];
        if (!peer->dead && peer->out.state == WAY_DOWN && peer->head && peer->out.retry_at < deadline)
            deadline = peer->out.retry_at;
        if (!peer->dead && peer->addrs.n > 1 && peer->head && peer->out.state != WAY_DOWN && peer->look_at < deadline)
            deadline = peer->look_at;
        if (!peer->dead && peer->unhurried && peer->ack_at < deadline)
            deadline = peer->ack_at;
    }
    return deadline;
}
