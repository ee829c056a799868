/* The transport table: connections that carry messages, remote writes and remote reads.
 *
 * A `struct tp` is one communication domain with its completion queue; a `struct tp_ep` is one connection. What
 * fills the table: ofi (libfabric FI_EP_MSG, between nodes), stream (the same over our own sockets), shm (rings in
 * shared memory, a rank and its node's agent) and, over any of them, sealed (encrypts). Tests and simulations have two
 * more (tests/lib/net): mem (in one process) and, over any, inject (delays, drops and breaks).
 *
 * Contract
 *  threads    one thread at a time may be inside one tp (the owner serialises). Different tps are independent.
 *  blocking   no call blocks. connect and every transfer end in exactly one event, or in the ep's TP_CLOSED.
 *  order      messages, writes and reads of one ep in one direction take effect at the target in the order posted.
 *             A message is delivered whole or not at all. One exception: a write posted after a read, on the same
 *             bytes, may
 *             be seen by that read; wait for the read's TP_DONE first.
 *  delivery   TP_DONE with KEEL_OK for a write means the bytes are in the target's memory; for a read that they are in
 *             ours; for a
 *             message only that the source buffer may be reused. Any other status means the outcome is unknown.
 *  loss       when a connection breaks each posted op that asked for an event gets TP_DONE with KEEL_ERR_LINK, then
 *             comes
 *             one TP_CLOSED; after that the ep is freed by tp_ep_destroy only. Nothing is retried here. A call that
 *             returns
 *             an error posted nothing; KEEL_ERR_LINK says that the ep is ending, its TP_CLOSED comes or has come.
 *  dead peer  a silent peer produces no event: deadlines are the caller's. tp_disconnect drops hard and at once: when
 *             it
 *             returns nothing of that peer's reaches our memory and the memory of our ops is not touched any more (the
 *             same
 *             holds for tp_ep_destroy). The events of the ops follow from tp_poll. Messages that were sent before it
 *             may be lost.
 *  keys       of memory are not used again for other memory while a connection lasts over which they were used.
 *  batches    events of one tp_poll may still name an ep destroyed while working on that batch; its memory lives until
 *             the next tp_poll.
 */
#ifndef KEEL_NET_TRANSPORT_H
#define KEEL_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

enum {
    TP_HELLO_MAX = 192,             /* bytes of connect data */
    TP_MSG_MAX = 16 * 1024 + 512,   /* bytes of a usual message, header included: what memory is kept for */
    TP_BULK_MAX = 128 * 1024 + 512, /* and of the largest, over any transport */
    /* what stream and mem take, so that sealed has room for its own */
    TP_CONNECT_MAX = TP_HELLO_MAX + 72,
    TP_FRAME_MAX = TP_BULK_MAX + 32,
};

/* A listening address as bytes to pass around; its meaning is the implementation's. Layout is sent between nodes. rail:
 * which of the networks of a job it is in; who connects leaves from its own address in that one. */
struct tp_addr {
    uint16_t len;
    uint16_t rail;
    uint8_t bytes[60];
};

/* All that a node listens at: at least one, of rising rails (net/addrs.h). */
enum { TP_RAILS_MAX = 4 };
struct tp_addrs {
    uint32_t n;
    struct tp_addr of[TP_RAILS_MAX];
};

struct tp;
struct tp_ep;
struct tp_connreq;

/* One operation in flight: the caller's memory, from the post until its TP_DONE. user is the caller's. */
struct tp_op {
    void *provider[8];
    void *user;
    struct tp_ep *ep;
    uint32_t kind;
};

enum tp_event_type {
    TP_CONNREQ,   /* somebody connects: req, data/len = its hello; answer with tp_accept or tp_reject, now or later */
    TP_CONNECTED, /* ep is up (both sides get it) */
    TP_CLOSED,    /* ep is down, or could not connect; status: KEEL_ERR_NODE_DEAD if the peer's kernel refused (nobody
                   * listens there: the process is gone), KEEL_ERR_AUTH if the peer rejected, KEEL_ERR_LINK otherwise */
    TP_RECV,      /* a message on ep: data/len, valid until the next tp_poll on this tp */
    TP_DONE,      /* op finished with status */
    TP_GONE,      /* the device was taken away: no connection will come up any more. Of the tp, no ep; once */
};

struct tp_event {
    enum tp_event_type type;
    keel_status status;
    struct tp_ep *ep;
    struct tp_op *op;
    struct tp_connreq *req;
    const void *data;
    size_t len;
};

struct tp_config {
    const char *host; /* ofi: the address of the job's interface, numeric; connections leave from it too */
    const char *more[TP_RAILS_MAX - 1]; /* those on further rails, of the same family; the first NULL ends them */
    const char *provider;               /* ofi: "tcp" or "verbs" */
    bool optional;                      /* ofi: that it cannot be had is told as information, not as an error */
    int recv_depth;                     /* receive buffers per ep (0: default) */
    int connections; /* ofi: so many must be possible at once; each locks memory if the provider is verbs */
};

struct tp_moved {
    uint64_t received; /* bytes */
    uint64_t taken;    /* bytes of ours, by the peer's system */
    bool pending;      /* there are more of ours */
};

struct tp_table {
    const char *name;
    keel_status (*open)(const struct tp_config *config, struct tp **out);
    void (*close)(struct tp *tp); /* closes and frees every ep, no more events */

    /* Listen on the configured host at a free port; called again, on the next of `more`. KEEL_ERR_STATE: on all of them
     * already. */
    keel_status (*listen)(struct tp *tp, struct tp_addr *out);
    /* Start to connect; user is returned by tp_ep_user. TP_CONNECTED or TP_CLOSED follows. Transfers may be posted only
     * after TP_CONNECTED. */
    keel_status (*connect)(struct tp *tp, const struct tp_addr *to, const void *hello, size_t len, void *user,
                           struct tp_ep **out);
    keel_status (*accept)(struct tp *tp, struct tp_connreq *req, void *user, struct tp_ep **out);
    void (*reject)(struct tp *tp, struct tp_connreq *req);
    void (*disconnect)(struct tp_ep *ep); /* TP_CLOSED follows from poll */
    void (*ep_destroy)(struct tp_ep *ep); /* after TP_CLOSED, or at any time if no event is wanted any more */

    /* Make memory reachable for the tp's peers under a key of our choice (unique per tp), at offsets from 0. */
    keel_status (*reg)(struct tp *tp, void *memory, size_t len, uint64_t key);
    void (*unreg)(struct tp *tp, uint64_t key);

    /* Message of hlen + len bytes, gathered from two places. op NULL: the bytes are copied before the call returns and
     * there is no event; else both places are the provider's until TP_DONE. A full provider queue is absorbed in the
     * ep's own queue (KEEL_OK); past 64 MiB queued the ep is disconnected and KEEL_ERR_LINK returned. */
    keel_status (*send)(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                        struct tp_op *op);
    /* Optional: memory of the transport's for the body of a message without an op: where send is called with it next,
     * for this ep, hlen and len, the body is not copied again. Valid until the next send, or poll. NULL: there is
     * none. */
    void *(*place)(struct tp_ep *ep, size_t hlen, size_t len);
    keel_status (*write)(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                         struct tp_op *op);
    keel_status (*read)(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op);

    /* Optional, for sealed; NULL: not needed. mark: from now on (for what comes: after the message that was delivered
     * last) the lengths of messages are authenticated with these 16-byte keys. A connector that has the entry delivers
     * its first message alone. reset: as disconnect, when somebody has changed the stream and the peer may not
     * understand an orderly end. */
    void (*mark)(struct tp_ep *ep, const uint8_t *send_key, const uint8_t *recv_key);
    void (*reset)(struct tp_ep *ep);

    /* Optional: does the next message go out at once? False: some wait for that in the ep's own queue, or many bytes in
     * the provider's, in copies; it empties in polls. NULL: each does (mem), or it is not known (shm). */
    bool (*room)(const struct tp_ep *ep);

    /* Optional: what has moved on the connection so far. NULL, or false: it is not known. */
    bool (*moved)(const struct tp_ep *ep, struct tp_moved *moved);

    /* Make progress; up to max events. Returns their number. Never blocks. */
    int (*poll)(struct tp *tp, struct tp_event *events, int max);
    /* The descriptor that becomes readable when there is work (one per tp, for epoll; stable until close). */
    int (*wait_fd)(struct tp *tp);
    /* About to sleep on wait_fd: true if that is safe, false if there is work already (poll again). From then on
     * wait_fd also says when what was posted, before or after, can go on. */
    bool (*arm)(struct tp *tp);
};

/* Every tp and ep starts with this, so that the inline calls below find the table. */
struct tp {
    const struct tp_table *table;
};
struct tp_ep {
    struct tp *tp;
    void *user;
    int error; /* the system's, of a connection that ended before it was there; 0: not known */
};

extern const struct tp_table tp_ofi;

/* How many hosts it has. */
static inline int tp_config_rails(const struct tp_config *config)
{
    int n = 1;
    while (n < TP_RAILS_MAX && config->more[n - 1])
        n++;
    return n;
}
static inline void *tp_ep_user(const struct tp_ep *ep)
{
    return ep->user;
}
static inline keel_status tp_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                                  struct tp_op *op)
{
    return ep->tp->table->send(ep, header, hlen, body, len, op);
}
static inline void *tp_place(struct tp_ep *ep, size_t hlen, size_t len)
{
    return ep->tp->table->place ? ep->tp->table->place(ep, hlen, len) : NULL;
}
static inline keel_status tp_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                                   struct tp_op *op)
{
    return ep->tp->table->write(ep, src, len, key, offset, op);
}
static inline keel_status tp_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset,
                                  struct tp_op *op)
{
    return ep->tp->table->read(ep, dst, len, key, offset, op);
}
static inline bool tp_room(const struct tp_ep *ep)
{
    return !ep->tp->table->room || ep->tp->table->room(ep);
}
static inline bool tp_moved(const struct tp_ep *ep, struct tp_moved *moved)
{
    return ep->tp->table->moved && ep->tp->table->moved(ep, moved);
}
static inline int tp_poll(struct tp *tp, struct tp_event *events, int max)
{
    return tp->table->poll(tp, events, max);
}
static inline void tp_disconnect(struct tp_ep *ep)
{
    ep->tp->table->disconnect(ep);
}
static inline void tp_ep_destroy(struct tp_ep *ep)
{
    ep->tp->table->ep_destroy(ep);
}
#endif
