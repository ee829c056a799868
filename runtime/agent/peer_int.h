/* Inside of the streams between agents (peer.h).
 *   peer.c      the two streams of each peer: start and end, connections, events
 *   peer_out.c  what goes to a peer: kept until acknowledged, sent again on a new connection
 *   peer_in.c   what comes from one: once, in order, under its view; and acknowledged */
#ifndef KEEL_AGENT_PEER_INT_H
#define KEEL_AGENT_PEER_INT_H

#include "runtime/agent/peer.h"

enum { PEER_ALIGN = 8 }; /* several messages in one of the transport's: each is a header and its body, padded to this */

struct peer_message {
    struct peer_message *next;
    struct tp_op op;      /* while it is sent from here */
    bool in_use;          /* by the transport, until the op's event */
    const uint8_t *bytes; /* of its body: behind it, or where their owner keeps them */
    struct wire wire;
    uint8_t body[];
};

/* peer.c */
/* Without a connection to it any more. */
void peer_drop_out(struct peer *peer);

/* peer_out.c */
void peer_drop_messages(struct peer *peer, uint64_t up_to);
/* The transport uses none of them any more. */
void peer_take_back(struct peer *peer);
/* Nor this one. */
void peer_message_left(struct peer *peer, struct peer_message *m);
void peer_send_unsent(struct peer *peer);

/* peer_in.c */
void peer_drop_held(struct peer *peer);
void peer_received(struct peers *p, struct peer *peer, const struct tp_event *event);
/* Where it is time to. Without a connection the messages come again, on a new one. */
void peer_acknowledge_due(struct peer *peer, uint64_t now);

/* Nearly always these three have nothing to do. */
static inline void peer_connect_if_due(struct peers *p, struct peer *peer, uint64_t now)
{
    if (!peer->dead && peer->out.state == WAY_DOWN)
        (void)way_try(&peer->out, &p->ways, &peer->addrs, peer, now); /* else at peers_deadline */
}

static inline void peer_flush(struct peer *peer)
{
    if (peer->unsent)
        peer_send_unsent(peer);
}

static inline void peer_acknowledge(struct peer *peer, uint64_t now)
{
    if (peer->ack_due || peer->unhurried)
        peer_acknowledge_due(peer, now);
}
#endif
