/* Reliable streams between agents. peer_send puts a message into the stream to a node; peers_tick sends what has come
 * together since, small messages in one of the transport's. A message arrives once, in order, as long as both agents
 * live, whatever happens to connections: messages are kept until acknowledged and sent again on a new connection. An
 * acknowledgement means that the receiver has processed the message. Each direction has a connection of its own, made
 * by the sender; acknowledgements come back on it.
 *
 * A message carries the epoch of its sender's view, and is processed when the receiver's view is that or a later one:
 * what comes before waits, and with it what follows in the stream. */
#ifndef KEEL_AGENT_PEER_H
#define KEEL_AGENT_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/net/hello.h"
#include "runtime/wire/wire.h"
#include "runtime/net/way.h"

struct peer_message;

struct peer {
    int node;
    bool dead;
    struct tp_addrs addrs;
    uint64_t incarnation; /* of that agent */
    uint64_t attempt;     /* the newest of theirs to connect (see hello) */
    /* outgoing */
    struct way out;
    uint64_t look_at; /* with several rails: whether it is stuck */
    uint64_t next;    /* seq of the next message, from 1 */
    uint64_t acked;
    struct peer_message *head, **tail; /* not acknowledged */
    struct peer_message *unsent;       /* of them, the first that is not on its way on this connection */
    struct peer_message *leaving;      /* acknowledged, but the transport still uses their bytes */
    /* incoming */
    struct tp_ep *in;
    uint64_t received;
    struct peer_message *held, **held_tail; /* of a view that has not come here yet */
    uint64_t held_last;                     /* position of the last one */
    bool ack_due;
    unsigned unhurried; /* messages that nobody waits to see acknowledged, received since the last acknowledgement */
    uint64_t ack_at;    /* when they are acknowledged at last; 0: not yet known */
};

struct peers_ops {
    void *user;
    void (*receive)(void *user, int from, const struct wire *w, const void *body);
    void (*acked)(void *user, int node, uint64_t seq);
    void (*refused)(void *user, int node); /* the node's kernel says nobody listens */
    void (*broken)(void *user, int node);
    void (*no_memory)(void *user); /* what has arrived cannot be kept */
};

struct peers {
    int self, count;
    uint64_t job, incarnation;
    const uint8_t *secret; /* the owner's */
    struct ways ways;
    struct peer *peer; /* [count] */
    uint64_t epoch;    /* of the view here */
    struct peers_ops ops;
};

keel_status peers_init(struct peers *p, int self, int count, struct tp *net, uint64_t job, uint64_t incarnation,
                       const uint8_t secret[32], const struct peers_ops *ops);
void peers_fini(struct peers *p);
void peer_address(struct peers *p, int node, uint64_t incarnation, const struct tp_addrs *addrs);

enum peer_sent { PEER_SENT, PEER_IS_DEAD, PEER_NO_MEMORY };

/* Append to the stream. w->seq and w->epoch are set here. */
enum peer_sent peer_send(struct peers *p, int node, const struct wire *w, const void *body, uint64_t now);
/* The same, without a copy of the body: it is sent from where it is, again too if need be, with what stands there then.
 * The bytes stay readable until the message is acknowledged, or let go. */
enum peer_sent peer_send_kept(struct peers *p, int node, const struct wire *w, const void *bytes, uint64_t now);
/* Bytes in this range will not be readable any more: what still needs them goes out with an empty body. */
void peers_let_go(struct peers *p, const void *from, size_t len);
/* For ops.receive: nobody waits for the acknowledgement of this message. It is sent with the next one that somebody
 * waits for, when there are PEER_UNHURRIED_MAX such messages, or after PEER_ACK_NS. */
enum { PEER_UNHURRIED_MAX = 16, PEER_ACK_NS = 100000 };
void peer_unhurried(struct peers *p, int node);
/* From now on somebody does. */
void peers_hurry(struct peers *p);
/* The view here is that of epoch from now on: process what waited for it. */
void peers_epoch(struct peers *p, uint64_t epoch);
/* The node is declared dead: drop its connections and streams, refuse everything. */
void peer_kill(struct peers *p, int node);
/* One that was killed before anything was said to it begins. */
void peer_bear(struct peers *p, int node);

/* An accepted connection of another agent. */
void peer_accepted(struct peers *p, int node, struct tp_ep *ep);
/* Events of the transport whose ep belongs to a peer (ep->user is the struct peer). */
void peer_event(struct peers *p, struct peer *peer, const struct tp_event *event, uint64_t now);
/* Send what was put into the streams, and due acknowledgements; reconnect. */
void peers_tick(struct peers *p, uint64_t now);
/* When peers_tick is needed next; UINT64_MAX: not. */
uint64_t peers_deadline(const struct peers *p);
#endif
