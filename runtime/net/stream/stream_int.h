/* Inside of tp_stream (stream.h): its structures, and what its files give each other. */
#ifndef KEEL_NET_STREAM_STREAM_INT_H
#define KEEL_NET_STREAM_STREAM_INT_H

#include <assert.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/queue.h>

#include "runtime/net/stream/stream.h"

enum {
    WORD = 8,                     /* a length, and what messages are padded to */
    INPUT_BYTES = 192 * 1024,     /* of one ep: more than the largest message; untouched pages cost nothing */
    QUEUE_MAX = 64 * 1024 * 1024, /* copied bytes that wait in one ep */
    HELLO_MS = 1000,              /* for an incoming connection to say hello */
    STRANGERS_MAX = 128,          /* that have not */
    ACCEPTS_AT_ONCE = 16,
    EVENTS_AT_ONCE = 32,
    BACKLOG = 1024,
};
static_assert((size_t)INPUT_BYTES >= 2 * WORD + TP_FRAME_MAX, "the largest message fits");
enum { VERDICT_ACCEPTED = 0, VERDICT_REJECTED = 1 };

enum what { IS_LISTENER, IS_REQUEST, IS_EP };

/* An event that waits for the next poll, in memory of what it is about. */
struct told {
    STAILQ_ENTRY(told) link;
    struct tp_event event;
    void *holder; /* freed with it, or NULL */
};

/* On its way to the kernel, or the event that it has left. */
struct output {
    STAILQ_ENTRY(output) link;
    struct tp_op *op; /* NULL: nobody wants to hear */
    const uint8_t *data;
    size_t len, at; /* of data with the words around it */
    uint64_t word;  /* before it */
    struct told told;
    uint8_t bytes[];
};
STAILQ_HEAD(output_list, output);

/*  CONNECTING --> ASKING --accepted--> UP --lost--> DOWN --> ENDED
 *  DOWN: what was received before is still delivered. ENDED: told, or about to be. */
enum ep_state { EP_CONNECTING, EP_ASKING, EP_UP, EP_DOWN, EP_ENDED };

struct stream_ep {
    struct tp_ep base;
    enum what what;
    enum ep_state state;
    int fd;
    uint32_t watched;
    struct output_list out;
    size_t copied;
    uint8_t *in;     /* INPUT_BYTES */
    size_t from, to; /* not looked at yet */
    bool alone;      /* the first message is delivered alone: the keys of the others come with it */
    bool marked;
    uint8_t send_key[crypto_shorthash_KEYBYTES], recv_key[crypto_shorthash_KEYBYTES];
    uint64_t sent, received; /* messages since then */
    bool ready, looked;      /* on these lists of the tp */
    struct told connected, closed;
    TAILQ_ENTRY(stream_ep) link, ready_link, looked_link;
};
TAILQ_HEAD(ep_list, stream_ep);

/* An incoming connection, before it was accepted. */
struct tp_connreq {
    enum what what;
    int fd;
    struct sockaddr_in6 peer;
    uint64_t since_ns;
    bool asked; /* the caller was told */
    struct told told;
    size_t len; /* of in */
    union {
        uint64_t word;
        uint8_t bytes[WORD + TP_CONNECT_MAX];
    } in;
    TAILQ_ENTRY(tp_connreq) link;
};

/* Memory of a connection that could not be made, or for one: where memory is scarce each attempt adds to it, and one
 * has all. */
struct room {
    struct stream_ep *ep;
    uint8_t *in;
    struct output *hello;
    struct tp_connreq *req;
};

struct stream_tp {
    struct tp base;
    struct room room;
    enum what what;
    struct sockaddr_in6 host[TP_RAILS_MAX]; /* or sockaddr_in */
    socklen_t host_len;                     /* of each */
    int rails, listening;                   /* how many there are, and on how many of them it listens */
    int listen_fd[TP_RAILS_MAX];
    int epoll_fd;
    int spare_fd; /* given up for a moment when no descriptor is left */
    uint64_t guard_ns;
    int strangers; /* requests of whom the caller does not know */
    struct ep_list eps, ready, looked, graveyard;
    TAILQ_HEAD(, tp_connreq) reqs; /* the oldest first */
    STAILQ_HEAD(, told) told;
};

static inline struct stream_tp *tp_of(const struct tp_ep *ep)
{
    return (struct stream_tp *)ep->tp;
}

/* stream_ep.c */
void stream_tell(struct stream_tp *tp, struct told *told, struct tp_event event);
void stream_output_end(struct stream_ep *ep, struct output *o, keel_status status);
int stream_take_told(struct stream_tp *tp, struct tp_event *events, int max);
void stream_forget_told(struct stream_tp *tp, const struct tp_ep *ep);
bool stream_watch(struct stream_tp *tp, int fd, uint32_t events, void *who, int how);
void stream_watch_ep(struct stream_ep *ep, uint32_t events);
void stream_fd_close(struct stream_tp *tp, int *fd); /* -1 afterwards; watched or not */
void stream_spare_open(struct stream_tp *tp);
void stream_outputs_end(struct stream_ep *ep, bool say);
void stream_unlist(struct stream_ep *ep);
void stream_ep_end(struct stream_ep *ep, keel_status status);
void stream_ep_drop(struct stream_ep *ep);
void stream_make_ready(struct stream_ep *ep);
void stream_ep_lost(struct stream_ep *ep);

/* stream_io.c */
void stream_mark(struct tp_ep *tp_ep, const uint8_t *send_key, const uint8_t *recv_key);
bool stream_flush(struct stream_ep *ep);
keel_status stream_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                        struct tp_op *op);
bool stream_room(const struct tp_ep *ep);
bool stream_moved(const struct tp_ep *ep, struct tp_moved *moved);
bool stream_fill(struct stream_ep *ep);
int stream_deliver(struct stream_ep *ep, struct tp_event *events, int max);
void stream_recycle(struct stream_tp *tp);
int stream_work_ready(struct stream_tp *tp, struct tp_event *events, int max);

/* stream_link.c */
keel_status stream_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                           struct tp_ep **out);
void stream_on_connected(struct stream_ep *ep);
void stream_on_verdict(struct stream_ep *ep);
keel_status stream_listen(struct tp *base, struct tp_addr *out);
void stream_request_free(struct stream_tp *tp, struct tp_connreq *req);
void stream_drop_late(struct stream_tp *tp);
bool stream_accept_one(struct stream_tp *tp, int listen_fd);
void stream_on_request(struct stream_tp *tp, struct tp_connreq *req);
keel_status stream_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out);
void stream_reject(struct tp *base, struct tp_connreq *req);
void stream_disconnect(struct tp_ep *ep);
void stream_reset(struct tp_ep *ep);
void stream_ep_destroy(struct tp_ep *tp_ep);
#endif
