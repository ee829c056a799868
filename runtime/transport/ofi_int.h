/* Inside of the libfabric transport. ofi.c: the table and progress; ofi_cm.c: connections and their end; ofi_xfer.c:
 * transfers and their queue; ofi_sock.c: the sockets the provider hides.
 *
 * Ownership. Every transfer handed to the provider is described by a `struct xfer` of the tp's own pool, never by
 * the caller's memory: the provider may report a transfer after the caller has forgotten it (it does when an endpoint
 * closes), and then the report meets an orphan xfer that nobody waits for. Receive buffers are xfers too. */
#ifndef KEEL_TRANSPORT_OFI_INT_H
#define KEEL_TRANSPORT_OFI_INT_H

#include "runtime/transport/transport.h"

#include <assert.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
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
    OFI_QUEUE_MAX = 64 * 1024 * 1024, /* copied bytes one ep may hold */
    /* Polls of the completion queue for one of the event queue, which costs a system call. A loss shows on the
     * completion queue first (the posted receives come back), an arming sleeper and a waker look by themselves. */
    OFI_EQ_EVERY = 1024,
    OFI_EQ_EVERY_OPENING = 16, /* while a connection is being made */
    OFI_RECV_DEPTH = 8,
    /* The provider (tcp, 1.17) reads a connection request with blocking calls: its own header, then as many bytes of connect data as
     * that says. So connect data have one length, the largest that it takes, and a socket counts as readable when all is there. */
    OFI_CONNECT_HEADER = 32,
    OFI_CONNECT_DATA = 256,
    OFI_CQ_BATCH = 16,
};

enum xfer_kind { XFER_RECV, XFER_SEND, XFER_WRITE, XFER_READ };

struct ofi_ep;

/* Copies of messages sent without an op. */
struct copybuf {
    struct copybuf *next;
    uint32_t size;
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
};
TAILQ_HEAD(xfer_list, xfer);

struct rbuf {
    struct xfer x;
    uint8_t data[TP_BULK_MAX];
};

/*  CONNECTING, ACCEPTING --> UP --> DOWN --> FLUSHING --> CLOSED
 *       |                     '-------------^   ^
 *       '---------------------------------------'
 *  UP        transfers may be posted
 *  DOWN      the provider reported the loss; what it has already received is still delivered
 *  FLUSHING  the endpoint is closed, ops and then TP_CLOSED are being reported
 *  CLOSED    reported; only ep_destroy is left */
enum ep_state { EP_CONNECTING, EP_ACCEPTING, EP_UP, EP_DOWN, EP_FLUSHING, EP_CLOSED };

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
    bool in_waiting;    /* on tp->waiting */
    bool in_ending;     /* on tp->ending */
    TAILQ_ENTRY(ofi_ep) all, wait_link, end_link;
};
TAILQ_HEAD(ep_list, ofi_ep);

struct tp_connreq {
    LIST_ENTRY(tp_connreq) link;
    struct fi_info *info;
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

/* Connection events already read from the event queue and not yet told. */
struct cm_event {
    STAILQ_ENTRY(cm_event) link;
    struct tp_event event;
};

struct region {
    LIST_ENTRY(region) link;
    uint64_t key;
    struct fid_mr *mr;
};

struct pool_block {
    struct pool_block *next;
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
};

struct ofi_tp {
    struct tp base;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_cq *cq;
    struct fid_pep *pep;
    struct sockaddr_in6 listen_addr;
    bool whole_hellos; /* the listener's sockets are readable when their hello is whole */
    int eq_fd, cq_fd, epoll_fd;
    int recv_depth;
    size_t inject_max;
    uint32_t polls;
    int opening; /* eps in EP_CONNECTING or EP_ACCEPTING */
    bool eq_due; /* read the event queue at the next poll */
    struct ep_list eps, waiting, ending, graveyard;
    STAILQ_HEAD(, cm_event) cm_events;
    LIST_HEAD(, tp_connreq) reqs;
    LIST_HEAD(, region) regions;
    struct xfer_list held; /* receive buffers the caller is looking at until the next poll */
    struct xfer_list free_xfers, free_rbufs;
    struct copybuf *free_small, *free_large, *free_bulk;
    struct pool_block *blocks;
    struct guard guard;
};

static inline struct ofi_tp *ofi_tp_of(struct tp *tp)
{
    return (struct ofi_tp *)tp;
}
static inline struct ofi_tp *ofi_tp_of_ep(const struct ofi_ep *ep)
{
    return (struct ofi_tp *)ep->base.tp;
}

/* ofi_xfer.c */
keel_status ofi_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                     struct tp_op *op);
keel_status ofi_write(struct tp_ep *tp_ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                      struct tp_op *op);
keel_status ofi_read(struct tp_ep *tp_ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op);
/* Give waiting transfers to the provider while it takes them. */
void ofi_ep_push(struct ofi_ep *ep);
/* A transfer ended: off its ep's lists and back to the pool. */
void ofi_xfer_done(struct ofi_tp *tp, struct xfer *x);
void ofi_xfer_free(struct ofi_tp *tp, struct xfer *x);
bool ofi_recv_post(struct ofi_ep *ep, struct xfer *x);
bool ofi_recv_fill(struct ofi_ep *ep);
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
/* Read every event of the event queue into states and cm_events. */
void ofi_eq_drain(struct ofi_tp *tp);
/* The connection is lost: what was received before is still delivered, then the ep ends. */
void ofi_ep_lost(struct ofi_ep *ep, keel_status why);
/* Close the endpoint. When it returns the provider touches no memory of any op of this ep. */
void ofi_ep_shut(struct ofi_ep *ep);

/* ofi_sock.c */
void ofi_sock_setup_listener(struct ofi_tp *tp);
void ofi_sock_setup_connecting(struct ofi_ep *ep);
/* An accepted connection is readable again with the first byte; false if its socket was not found. */
bool ofi_sock_setup_accepted(struct ofi_tp *tp, const struct sockaddr_in6 *peer);
/* shutdown(2) on the ep's socket, behind the provider's back; false if it was not found */
bool ofi_sock_shutdown(struct ofi_ep *ep);
/* Drop incoming connections that have not said hello in time, or are too many. When it is time for it, or at once. */
enum guard_when { GUARD_IF_DUE, GUARD_NOW, GUARD_ALL };
void ofi_sock_guard(struct ofi_tp *tp, enum guard_when when);
#endif
