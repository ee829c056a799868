/* What comes from a peer: once, in order, under its view; and what it is told of that. */
#include "runtime/agent/peer_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"

void peer_drop_held(struct peer *peer)
{
    for (struct peer_message *m = peer->held, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    peer->held = NULL;
    peer->held_tail = &peer->held;
    peer->held_last = 0;
}

static void send_or_break(struct tp_ep *ep, const struct wire *w, const void *body)
{
    keel_status status = tp_send(ep, w, sizeof *w, body, w->len, NULL);
    if (status != KEEL_OK && status != KEEL_ERR_LINK) /* with that, TP_CLOSED comes by itself */
        tp_disconnect(ep);
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
            peer_drop_messages(peer, w->seq);
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

void peer_received(struct peers *p, struct peer *peer, const struct tp_event *event)
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
        step = (len + PEER_ALIGN - 1) / PEER_ALIGN * PEER_ALIGN;
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

void peer_acknowledge_due(struct peer *peer, uint64_t now)
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
