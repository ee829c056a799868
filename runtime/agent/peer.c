#include "runtime/agent/peer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

/* Several messages in one of the transport's: each is a header and its body, padded to a multiple of this. */
enum { ALIGN = 8, COPIED_MAX = 8 * 1024, LOOK_EVERY_NS = 25000000 };

struct peer_message {
    struct peer_message *next;
    struct tp_op op;      /* while it is sent from here */
    bool in_use;          /* by the transport, until the op's event */
    const uint8_t *bytes; /* of its body: behind it, or where their owner keeps them */
    struct wire wire;
    uint8_t body[];
};

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

static void drop_messages(struct peer *peer, uint64_t up_to)
{
    while (peer->head && peer->head->wire.seq <= up_to) {
        struct peer_message *m = peer->head;
        peer->head = m->next;
        if (peer->unsent == m)
            peer->unsent = m->next;
        if (m->in_use) {
            m->next = peer->leaving;
            peer->leaving = m;
        } else {
            free(m);
        }
    }
    if (!peer->head)
        peer->tail = &peer->head;
}

/* The transport uses none of them any more. */
static void take_back(struct peer *peer)
{
    for (struct peer_message *m = peer->leaving, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    peer->leaving = NULL;
    peer->unsent = NULL;
    for (struct peer_message *m = peer->head; m; m = m->next)
        m->in_use = false;
}

static void left(struct peer *peer, struct peer_message *m)
{
    m->in_use = false;
    for (struct peer_message **link = &peer->leaving; *link; link = &(*link)->next)
        if (*link == m) {
            *link = m->next;
            free(m);
            return;
        }
}

static void drop_held(struct peer *peer)
{
    for (struct peer_message *m = peer->held, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    peer->held = NULL;
    peer->held_tail = &peer->held;
    peer->held_last = 0;
}

void peers_fini(struct peers *p)
{
    for (int i = 0; p->peer && i < p->count; i++) {
        take_back(&p->peer[i]);
        drop_messages(&p->peer[i], UINT64_MAX);
        drop_held(&p->peer[i]);
    }
    free(p->peer);
    p->peer = NULL;
}

void peer_address(struct peers *p, int node, uint64_t incarnation, const struct tp_addrs *addrs)
{
    p->peer[node].incarnation = incarnation;
    p->peer[node].addrs = *addrs;
}

static void drop_out(struct peer *peer)
{
    way_drop(&peer->out);
    take_back(peer);
}

static void connect_if_due(struct peers *p, struct peer *peer, uint64_t now)
{
    if (!peer->dead && peer->out.state == WAY_DOWN)
        (void)way_try(&peer->out, &p->ways, &peer->addrs, peer, now); /* else at peers_deadline */
}

static void send_or_break(struct tp_ep *ep, const struct wire *w, const void *body)
{
    keel_status status = tp_send(ep, w, sizeof *w, body, w->len, NULL);
    if (status != KEEL_OK && status != KEEL_ERR_LINK) /* with that, TP_CLOSED comes by itself */
        tp_disconnect(ep);
}

static size_t padded(const struct peer_message *m)
{
    return (sizeof m->wire + m->wire.len + ALIGN - 1) / ALIGN * ALIGN;
}

/* One message, from where it is kept. */
static keel_status send_one(struct peer *peer, struct peer_message *m)
{
    m->op.user = m;
    keel_status status = tp_send(peer->out.ep, &m->wire, sizeof m->wire, m->bytes, m->wire.len, &m->op);
    m->in_use = status == KEEL_OK;
    return status;
}

/* As many messages as fit, together. */
static keel_status send_some(const struct peer *peer, const struct peer_message *first, const struct peer_message *end,
                             size_t len)
{
    _Alignas(ALIGN) uint8_t frame[TP_MSG_MAX];
    size_t at = 0;
    if (first->next == end)
        return tp_send(peer->out.ep, &first->wire, sizeof first->wire, first->bytes, first->wire.len, NULL);
    for (const struct peer_message *m = first; m != end; m = m->next) {
        memcpy(frame + at, &m->wire, sizeof m->wire);
        if (m->wire.len)
            memcpy(frame + at + sizeof m->wire, m->bytes, m->wire.len);
        at += padded(m);
    }
    return tp_send(peer->out.ep, frame, len, NULL, 0, NULL);
}

/* What the transport does not take leaves a gap, which only a new connection closes: on it all that is not acknowledged
 * goes out again. */
static void flush(struct peer *peer)
{
    while (peer->unsent && peer->out.state == WAY_UP) {
        struct peer_message *first = peer->unsent, *end = first;
        size_t len = 0;
        keel_status status;
        while (end && end->wire.len <= COPIED_MAX && len + padded(end) <= TP_MSG_MAX) {
            len += padded(end);
            end = end->next;
        }
        if (end == first) {
            end = first->next;
            status = send_one(peer, first);
        } else {
            status = send_some(peer, first, end, len);
        }
        peer->unsent = status == KEEL_OK ? end : NULL;
        if (status != KEEL_OK && status != KEEL_ERR_LINK) /* with that, TP_CLOSED comes by itself */
            tp_disconnect(peer->out.ep);
    }
}

/* The message is the stream's next one; room: for a body behind it. NULL: out of memory. */
static struct peer_message *append(struct peers *p, struct peer *peer, const struct wire *w, size_t room, uint64_t now)
{
    struct peer_message *m = malloc(sizeof *m + room);
    if (!m)
        return NULL;
    m->next = NULL;
    m->in_use = false;
    m->bytes = m->body;
    m->wire = *w;
    m->wire.seq = peer->next++;
    m->wire.epoch = p->epoch;
    *peer->tail = m;
    peer->tail = &m->next;
    if (!peer->unsent)
        peer->unsent = m;
    connect_if_due(p, peer, now);
    return m;
}

enum peer_sent peer_send(struct peers *p, int node, const struct wire *w, const void *body, uint64_t now)
{
    struct peer *peer = &p->peer[node];
    if (peer->dead)
        return PEER_IS_DEAD;
    struct peer_message *m = append(p, peer, w, w->len, now);
    if (!m)
        return PEER_NO_MEMORY;
    if (w->len)
        memcpy(m->body, body, w->len);
    if (w->len > COPIED_MAX) /* it goes alone: on its way while the next one is made */
        flush(peer);
    return PEER_SENT;
}

enum peer_sent peer_send_kept(struct peers *p, int node, const struct wire *w, const void *bytes, uint64_t now)
{
    struct peer *peer = &p->peer[node];
    if (peer->dead)
        return PEER_IS_DEAD;
    struct peer_message *m = append(p, peer, w, 0, now);
    if (!m)
        return PEER_NO_MEMORY;
    m->bytes = bytes;
    return PEER_SENT;
}

static bool is_of(const struct peer_message *m, const uint8_t *from, size_t len)
{
    return m->bytes != m->body && m->bytes >= from && m->bytes < from + len;
}

void peers_let_go(struct peers *p, const void *from, size_t len)
{
    for (int i = 0; p->peer && i < p->count; i++) {
        struct peer *peer = &p->peer[i];
        bool in_use = false;
        for (const struct peer_message *m = peer->leaving; m; m = m->next)
            in_use = in_use || is_of(m, from, len);
        for (struct peer_message *m = peer->head; m; m = m->next)
            if (is_of(m, from, len)) {
                in_use = in_use || m->in_use;
                m->bytes = m->body;
                m->wire.len = 0;
            }
        if (in_use)
            drop_out(peer); /* made again by peers_tick */
    }
}

void peer_kill(struct peers *p, int node)
{
    struct peer *peer = &p->peer[node];
    if (peer->dead)
        return;
    peer->dead = true;
    peer->ack_due = false;
    peer->unhurried = 0;
    drop_out(peer);
    if (peer->in)
        tp_ep_destroy(peer->in);
    peer->in = NULL;
    drop_messages(peer, UINT64_MAX);
    drop_held(peer);
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

static void hold(struct peers *p, struct peer *peer, const struct wire *w)
{
    struct peer_message *m = malloc(sizeof *m + w->len);
    if (!m) {
        p->ops.no_memory(p->ops.user);
        return;
    }
    m->next = NULL;
    m->wire = *w;
    if (w->len)
        memcpy(m->body, w + 1, w->len);
    *peer->held_tail = m;
    peer->held_tail = &m->next;
    peer->held_last = w->seq;
}

static void received_one(struct peers *p, struct peer *peer, const struct wire *w)
{
    if (w->type == WIRE_PEER_ACK) {
        if (w->seq > peer->acked && w->seq < peer->next) {
            peer->acked = w->seq;
            drop_messages(peer, w->seq);
            p->ops.acked(p->ops.user, peer->node, w->seq);
        }
        return;
    }
    bool was_due = peer->ack_due;
    peer->ack_due = true;
    if (w->seq != (peer->held ? peer->held_last : peer->received) + 1)
        return; /* a repetition */
    if (peer->held || w->epoch > p->epoch) {
        hold(p, peer, w);
        return;
    }
    unsigned unhurried = peer->unhurried;
    peer->received++;
    p->ops.receive(p->ops.user, peer->node, w, w + 1);
    peer->ack_due = was_due || peer->unhurried == unhurried;
}

void peer_unhurried(struct peers *p, int node)
{
    p->peer[node].unhurried++;
}

void peers_hurry(struct peers *p)
{
    for (int i = 0; i < p->count; i++)
        p->peer[i].ack_due = p->peer[i].ack_due || p->peer[i].unhurried;
}

static void received(struct peers *p, struct peer *peer, const struct tp_event *event)
{
    const uint8_t *at = event->data;
    for (size_t left = event->len; left && !peer->dead;) {
        const struct wire *w = (const struct wire *)(const void *)at;
        size_t len = left < sizeof *w || left - sizeof *w < w->len ? SIZE_MAX : sizeof *w + w->len, step;
        if (len == SIZE_MAX) {
            log_error("malformed message from node %d", peer->node);
            return;
        }
        received_one(p, peer, w);
        step = (len + ALIGN - 1) / ALIGN * ALIGN;
        at += step;
        left -= step < left ? step : left;
    }
}

void peers_epoch(struct peers *p, uint64_t epoch)
{
    p->epoch = epoch;
    for (int i = 0; i < p->count; i++) {
        struct peer *peer = &p->peer[i];
        while (peer->held && peer->held->wire.epoch <= epoch) {
            struct peer_message *m = peer->held;
            peer->held = m->next;
            if (!peer->held)
                peer->held_tail = &peer->held;
            peer->received++;
            peer->ack_due = true;
            p->ops.receive(p->ops.user, peer->node, &m->wire, m->body);
            free(m);
        }
    }
}

static void closed(struct peers *p, struct peer *peer, const struct tp_event *event, uint64_t now)
{
    if (event->ep == peer->in) {
        tp_ep_destroy(peer->in);
        peer->in = NULL;
    } else if (event->ep == peer->out.ep) {
        way_failed(&peer->out, now);
        take_back(peer);
        bool broken = way_has_broken(&peer->out, &peer->addrs, now);
        if (event->status == KEEL_ERR_NODE_DEAD && way_refusal_counts(&peer->out))
            p->ops.refused(p->ops.user, peer->node);
        else if (broken)
            p->ops.broken(p->ops.user, peer->node);
        else if (peer->out.broke)
            connect_if_due(p, peer, now); /* over another rail, and who watches the node hears of it if that fails */
    }
}

void peer_event(struct peers *p, struct peer *peer, const struct tp_event *event, uint64_t now)
{
    if (peer->dead)
        return;
    if (event->type == TP_RECV) {
        received(p, peer, event);
    } else if (event->type == TP_CLOSED) {
        closed(p, peer, event, now);
    } else if (event->type == TP_CONNECTED && event->ep == peer->out.ep) {
        way_connected(&peer->out, &p->ways, now);
        peer->unsent = peer->head;
        flush(peer);
    } else if (event->type == TP_DONE &&
               event->ep == peer->out.ep) { /* else the connection was dropped, and the message with it */
        left(peer, event->op->user);
    }
}

/* Without a connection the messages come again, on a new one. */
static void acknowledge(struct peer *peer, uint64_t now)
{
    if (peer->unhurried && !peer->ack_at)
        peer->ack_at = now + PEER_ACK_NS;
    if (!peer->ack_due && peer->unhurried < PEER_UNHURRIED_MAX && (!peer->unhurried || now < peer->ack_at))
        return;
    struct wire ack = {.type = WIRE_PEER_ACK, .seq = peer->received};
    if (peer->in)
        send_or_break(peer->in, &ack, NULL);
    peer->ack_due = false;
    peer->unhurried = 0;
    peer->ack_at = 0;
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
    take_back(peer);
}

void peers_tick(struct peers *p, uint64_t now)
{
    for (int i = 0; i < p->count; i++) {
        struct peer *peer = &p->peer[i];
        flush(peer);
        acknowledge(peer, now);
        look(peer, now);
        if (peer->head)
            connect_if_due(p, peer, now);
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
