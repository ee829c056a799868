/* Inside of the libfabric transport. ofi.c: the table, start and end, memory; ofi_poll.c: progress; ofi_cm.c:
 * connections and their end; ofi_eq.c: what the provider says of them; ofi_xfer.c: transfers and their queue;
 * ofi_pool.c: their memory; ofi_sock.c: the sockets that the tcp provider hides; ofi_rdma.c, ofi_rdma_accept.c and
 * ofi_frame.c: what a provider over an RDMA device wants instead.
 *
 * Ownership. Every transfer handed to the provider is described by a `struct xfer` of the tp's own pool, never by
 * the caller's memory: the provider may report a transfer after the caller has forgotten it (it does when an endpoint
 * closes), and then the report meets an orphan xfer that nobody waits for. Receive buffers are xfers too. */
#ifndef KEEL_NET_OFI_OFI_INT_H
#define KEEL_NET_OFI_OFI_INT_H

#include "runtime/net/ofi/fabric.h"
#include "runtime/net/transport.h"

#include <assert.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/queue.h>

enum {
    OFI_WINDOW = 256,                 /* transfers of one ep inside the provider; more wait in the ep */
    OFI_INJECT_MAX = 256,             /* bytes, whatever the provider offers */
    OFI_INJECT_RUN = 32,              /* injected messages between two tracked ones, so that they are bounded too */
    OFI_SMALL_COPY = 512,             /* bytes of the small copy buffers */
    OFI_ROOM = 512 * 1024,            /* copied bytes that the provider may hold while there is said to be room */
    OFI_QUEUE_MAX = 64 * 1024 * 1024, /* copied bytes one ep may hold */
    /* Polls of the completion queue for one of the event queue, which costs a system call. A loss shows on the
     * completion queue first (the posted receives come back), an arming sleeper and a waker look by themselves. */
    OFI_EQ_EVERY = 1024,
    OFI_EQ_EVERY_OPENING = 16, /* while a connection is being made */
    OFI_IDLE_ARMS = 32,        /* without an event between them: what wakes us may be what the provider cannot take */
    OFI_RECV_DEPTH = 8,
    /* The provider (tcp, 1.17) reads a connection request with blocking calls: its own header, then as many bytes of
     * connect data as that says. So connect data have one length, the largest that it takes, and a socket counts as
     * readable when all is there. */
    OFI_CONNECT_HEADER = 32,
    OFI_CONNECT_DATA = 256,
    OFI_CQ_BATCH = 16,
    /* over an RDMA device: see ofi_rdma.c */
    RDMA_WINDOW = 64,
    RDMA_CREDITS = 24, /* messages that a peer may have sent and we have not looked at */
    RDMA_RESERVE = 8,  /* receive buffers beside them, for what the ends tell each other */
    RDMA_KEYS = 64,    /* of a peer's memory, remembered */
    RDMA_CQ = 16384,
    RDMA_SEND_QUEUE =
        2 * RDMA_WINDOW + 64, /* a write takes two entries; what the ends tell each other is not counted */
};

enum xfer_kind { XFER_RECV, XFER_SEND, XFER_WRITE, XFER_READ };

/* Begins each message over an RDMA device. */
struct rdma_head {
    uint8_t kind;     /* enum rdma_frame */
    uint8_t more;     /* the message goes on in the next frame */
    uint16_t credits; /* so many more may be sent */
    uint32_t zero;
};
enum { RDMA_FRAME = TP_MSG_MAX + (int)sizeof(struct rdma_head), OFI_LARGE_COPY = RDMA_FRAME };

struct ofi_ep;

/* Copies of messages sent without an op. */
struct copybuf {
    struct copybuf *next;
    uint32_t size;
    void *desc; /* of its registration */
    uint8_t data[];
};

struct xfer {
    struct fi_context2 context; /* first: the provider's context pointer is the xfer */
    enum xfer_kind kind;
    struct ofi_ep *ep;      /* NULL: orphan, the report is dropped */
    struct tp_op *op;       /* NULL: nobody wants to hear of it */
    TAILQ_ENTRY(xfer) link; /* ep->inflight, ep->waiting, ep->posted_recvs, tp->held, or a free list */
    struct copybuf *copy;
    struct iovec iov[2];
    uint32_t iov_count;
    uint64_t key, offset;
    bool control;      /* RDMA: needs no credit */
    bool given_up;     /* RDMA: its endpoint is gone, the caller's memory is not looked at */
    bool written;      /* RDMA: a write is with the provider, the read that says that it has arrived is not */
    struct fid_mr *mr; /* RDMA: of the caller's memory, for this transfer */
    void *dst;         /* RDMA: of a read whose bytes come into copy */
};
TAILQ_HEAD(xfer_list, xfer);

struct rbuf {
    struct xfer x;
    void *desc;
    bool counts; /* RDMA: took a credit of the peer */
    _Alignas(max_align_t) uint8_t data[];
};

/* RDMA: where a peer's memory is. */
struct rdma_region {
    uint64_t key, provider_key, base, len;
    uint64_t there; /* 0: there is none */
};

/*  CONNECTING, ACCEPTING --> UP --> DOWN --> FLUSHING --> CLOSED
 *       |                     '-------------^   ^
 *       '---------------------------------------'
 *  UP        transfers may be posted
 *  DOWN      the provider reported the loss; what it has already received is still delivered
 *  FLUSHING  the endpoint is closed, ops and then TP_CLOSED are being reported
 *  CLOSED    reported; only ep_destroy is left */
enum ep_state { EP_CONNECTING, EP_ACCEPTING, EP_UP, EP_DOWN, EP_FLUSHING, EP_CLOSED };

/* A connection event that was read from the event queue and is not told yet, in memory of what it is about: it comes
 * also where there is no memory. */
struct cm_event {
    STAILQ_ENTRY(cm_event) link;
    struct tp_event event;
};

struct ofi_ep {
    struct tp_ep base;
    enum ep_state state;
    keel_status why; /* status of TP_CLOSED */
    struct fid_ep *fid;
    struct sockaddr_in6 peer; /* or sockaddr_in: where connect goes to */
    struct xfer_list inflight, waiting, posted_recvs;
    uint32_t inflight_count, injected, reads;
    uint64_t copied;    /* bytes in copybufs */
    bool provider_down; /* the provider has ended it and flushed its transfers */
    bool watched;       /* tcp: its socket is in tp->room_fd, */
    int socket;         /* and this one */
    bool hidden;        /* RDMA: came in, and the caller has not accepted it */
    uint64_t since_ns;  /* it came */
    struct tp_connreq *req;
    struct opening *opening;
    bool asked; /* RDMA: where a key's memory is */
    uint16_t credits, owed;
    struct rdma_region regions[RDMA_KEYS];
    uint32_t next_region;
    struct copybuf *whole; /* RDMA: a message of several frames */
    size_t whole_len;
    bool in_waiting; /* on tp->waiting */
    bool in_ending;  /* on tp->ending */
    struct cm_event connected;
    TAILQ_ENTRY(ofi_ep) all, wait_link, end_link;
};
TAILQ_HEAD(ep_list, ofi_ep);

struct tp_connreq {
    LIST_ENTRY(tp_connreq) link;
    struct fi_info *info;
    struct fid_pep *pep; /* that it has come to */
    struct ofi_ep *ep;   /* RDMA: instead */
    struct cm_event told;
    size_t len;
    uint8_t hello[TP_HELLO_MAX];
};

/* Connect data as they travel. */
struct ofi_hello {
    uint8_t len;
    uint8_t bytes[OFI_CONNECT_DATA - 1];
};
static_assert(sizeof(struct ofi_hello) == OFI_CONNECT_DATA && (int)TP_HELLO_MAX < (int)OFI_CONNECT_DATA,
              "a hello fits");

struct region {
    LIST_ENTRY(region) link;
    uint64_t key;
    void *memory;
    size_t len;
    struct fid_mr *mr;
};

struct pool_block {
    struct pool_block *next;
    struct fid_mr *mr;
};

/* Incoming connections that have not said hello yet. */
enum { GUARD_MAX = 512 };
struct guard {
    uint64_t next_ns;
    int count;
    struct guarded {
        int fd;
        struct sockaddr_in6 peer;
        uint64_t since_ns;
    } seen[GUARD_MAX];
    int here[GUARD_MAX]; /* while some are dropped: connections of the same host, -1: dropped */
};

/* One of the addresses of this node: its listener, if it listens there. */
struct ofi_rail {
    struct fi_info *info;
    struct fid_pep *pep;
    struct sockaddr_in6 listen_addr;
    bool whole_hellos; /* the listener's sockets are readable when their hello is whole */
    int listen_fd;     /* the provider's; -1: not there */
};

/* Memory of transfers, ofi_pool.c. */
struct ofi_pools {
    struct xfer_list free_xfers, free_rbufs;
    struct copybuf *free_small, *free_large, *free_bulk;
    struct copybuf *placed; /* for the next message; kept until one is composed in it. NULL: none */
    struct pool_block *blocks;
    size_t rbuf_bytes;
};

/* Of a provider over an RDMA device, ofi_rdma.c and ofi_rdma_accept.c. */
struct ofi_device {
    uint8_t scratch[8]; /* what a read that follows a write brings */
    struct fid_mr *scratch_mr;
    struct openings *openings;
    int hidden;                /* endpoints that the caller has not accepted */
    bool gone;                 /* it was taken away, */
    struct cm_event told_gone; /* which has been told */
};

struct ofi_tp {
    struct tp base;
    struct ofi_rail rail[TP_RAILS_MAX];
    int rails, listening; /* how many there are, and on how many of them it listens */
    struct fi_info *info; /* of the first */
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_cq *cq;
    bool rdma;  /* the provider is verbs */
    bool muted; /* tcp: the provider's own wake-up is not heard */
    int eq_fd, cq_fd, epoll_fd;
    int room_fd;        /* tcp: says that a socket that was full has room; each time once */
    int spare_fd;       /* given up to take what the provider has no descriptor for; -1: not there */
    unsigned idle_arms; /* in a row, without an event between them */
    int recv_depth;
    size_t inject_max;
    uint32_t polls;
    int opening; /* eps in EP_CONNECTING or EP_ACCEPTING */
    bool eq_due; /* read the event queue at the next poll */
    struct ofi_device device;
    struct ep_list eps, waiting, ending, graveyard;
    struct ofi_ep *
        kept; /* memory of one that could not be opened, for the next: so attempts get further where memory is scarce */
    STAILQ_HEAD(, cm_event) cm_events;
    LIST_HEAD(, tp_connreq) reqs;
    LIST_HEAD(, region) regions;
    struct xfer_list held;       /* receive buffers the caller is looking at until the next poll */
    struct copybuf *held_wholes; /* as held */
    struct ofi_pools pools;
    struct fi_cq_msg_entry entries[OFI_CQ_BATCH]; /* being handled: too many for a stack */
    struct guard guard, guard_next;               /* as of the last sweep; of one that runs */
};

static inline struct ofi_tp *ofi_tp_of(struct tp *tp)
{
    return (struct ofi_tp *)tp;
}
static inline struct ofi_tp *ofi_tp_of_ep(const struct ofi_ep *ep)
{
    return (struct ofi_tp *)ep->base.tp;
}

/* ofi_poll.c */
int ofi_poll(struct tp *base, struct tp_event *events, int max);
bool ofi_arm(struct tp *base);

/* ofi_xfer.c */
bool ofi_room(const struct tp_ep *tp_ep);
keel_status ofi_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                     struct tp_op *op);
void *ofi_place(struct tp_ep *tp_ep, size_t hlen, size_t len);
keel_status ofi_write(struct tp_ep *tp_ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                      struct tp_op *op);
keel_status ofi_read(struct tp_ep *tp_ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op);
/* Give waiting transfers to the provider while it takes them. */
void ofi_ep_push(struct ofi_ep *ep);
/* Give it to the provider, or let it wait behind the others; a control frame goes before them. */
void ofi_post_or_wait(struct ofi_ep *ep, struct xfer *x);
/* A transfer ended: off its ep's lists and back to the pool. */
void ofi_xfer_done(struct ofi_tp *tp, struct xfer *x);
bool ofi_recv_post(struct ofi_ep *ep, struct xfer *x);
bool ofi_recv_fill(struct ofi_ep *ep);

/* ofi_pool.c: what is taken is NULL without memory */
struct xfer *ofi_xfer_take(struct ofi_tp *tp);
void ofi_xfer_free(struct ofi_tp *tp, struct xfer *x);
struct xfer *ofi_rbuf_take(struct ofi_tp *tp);
struct copybuf *ofi_copy_take(struct ofi_tp *tp, size_t len);
void ofi_copy_free(struct ofi_tp *tp, struct copybuf *copy);
void ofi_pools_free(struct ofi_tp *tp);

/* ofi_cm.c */
void ofi_ep_set_state(struct ofi_ep *ep, enum ep_state state);
keel_status ofi_listen(struct tp *base, struct tp_addr *out);
keel_status ofi_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                        struct tp_ep **out);
keel_status ofi_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out);
void ofi_reject(struct tp *base, struct tp_connreq *req);
void ofi_disconnect(struct tp_ep *tp_ep);
void ofi_ep_destroy(struct tp_ep *tp_ep);
/* The connection is lost: what was received before is still delivered, then the ep ends. */
void ofi_ep_lost(struct ofi_ep *ep, keel_status why);
/* Close the endpoint. When it returns the provider touches no memory of any op of this ep. */
void ofi_ep_shut(struct ofi_ep *ep);
struct ofi_ep *ofi_ep_new(struct ofi_tp *tp, void *user, enum ep_state state);
/* Make the provider's endpoint ready, which it opens first if there is none: 0, or an error. */
int ofi_ep_open(struct ofi_ep *ep, struct fi_info *info);
void ofi_ep_discard(struct ofi_ep *ep);
keel_status ofi_status_of_connect_error(int err, bool rejected);

/* ofi_eq.c */
/* Read every event of the event queue into states and cm_events. */
void ofi_eq_drain(struct ofi_tp *tp);
void ofi_cm_tell(struct ofi_tp *tp, struct cm_event *entry, struct tp_event event);
/* To who asks for a connection. */
void ofi_refuse(struct fid_pep *pep, fid_t handle);

/* ofi_sock.c */
void ofi_sock_setup_listener(struct ofi_tp *tp, struct ofi_rail *rail);
void ofi_sock_mute(struct ofi_tp *tp);
void ofi_sock_drop_unacceptable(struct ofi_tp *tp);
void ofi_sock_setup_connecting(struct ofi_ep *ep);
/* An accepted connection is readable again with the first byte; false if its socket was not found. */
bool ofi_sock_setup_accepted(struct ofi_ep *ep, const struct sockaddr_in6 *peer);
/* It is up: room in its socket wakes who sleeps. False if it cannot be watched. */
bool ofi_sock_watch(struct ofi_ep *ep);
bool ofi_sock_moved(const struct tp_ep *tp_ep, struct tp_moved *moved);
/* Before the last look: what made room until now wakes nobody. */
void ofi_sock_forget_room(const struct ofi_tp *tp);
/* shutdown(2) on the ep's socket, behind the provider's back; false if it was not found */
bool ofi_sock_shutdown(struct ofi_ep *ep);
/* Drop incoming connections that have not said hello in time, or are too many. When it is time for it, or at once. */
enum guard_when { GUARD_IF_DUE, GUARD_NOW, GUARD_ALL };
void ofi_sock_guard(struct ofi_tp *tp, enum guard_when when);

/* ofi_rdma.c: connections */
/* Before libfabric's first call: it reads then whether it is to keep memory registered that was given up. */
void rdma_prepare_library(void);
void rdma_hints(struct fi_info *hints);
/* 0, or libfabric's error */
int rdma_open(struct ofi_tp *tp, int connections);
void rdma_close(struct ofi_tp *tp);
keel_status rdma_connect(struct ofi_ep *ep, const void *hello, size_t len);
void rdma_abandon(struct ofi_ep *ep);
/* Endpoints that the provider has opened meanwhile. */
bool rdma_any_opened(const struct ofi_tp *tp);
void rdma_take_opened(struct ofi_tp *tp);
void rdma_on_connreq(struct ofi_tp *tp, struct fi_info *info);
void rdma_on_connected(struct ofi_ep *ep);
keel_status rdma_on_connect_error(const struct fi_eq_err_entry *err);
keel_status rdma_accept(struct ofi_tp *tp, struct tp_connreq *req, void *user, struct tp_ep **out);
void rdma_reject(struct ofi_tp *tp, struct tp_connreq *req);
/* Of what the ends tell each other: what concerns the connection. */
void rdma_on_hello(struct ofi_ep *ep, const void *hello, size_t len);
void rdma_on_verdict(struct ofi_ep *ep, bool accepted);
void rdma_guard(struct ofi_tp *tp);

/* ofi_frame.c: transfers */
enum rdma_frame {
    FRAME_MESSAGE = 1,
    FRAME_CREDIT,
    FRAME_HELLO,
    FRAME_ACCEPTED,
    FRAME_REJECTED,
    FRAME_ASK,
    FRAME_REGION
};
void rdma_tell(struct ofi_ep *ep, enum rdma_frame kind, const void *data, size_t len);
keel_status rdma_send(struct ofi_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                      struct tp_op *op);
/* The local side of a write or read, from or to the caller's memory. */
keel_status rdma_prepare(struct ofi_ep *ep, struct xfer *x, void *local, size_t len);
ssize_t rdma_post(struct ofi_ep *ep, struct xfer *x);
/* The endpoint of a transfer is gone: the caller's memory is the caller's again. */
void rdma_give_up(struct xfer *x);
/* A transfer ended; true if it is as the provider says. */
bool rdma_finish(struct xfer *x, bool good);
/* A receive buffer is with the provider again. */
void rdma_reposted(struct ofi_ep *ep, struct rbuf *buf);
/* 1 if it became an event */
int rdma_on_frame(struct ofi_tp *tp, struct xfer *x, size_t len, struct tp_event *event);
#endif
