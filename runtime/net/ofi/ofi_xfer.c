#include "runtime/net/ofi/ofi_int.h"

#include <stdlib.h>
#include <string.h>

void ofi_xfer_done(struct ofi_tp *tp, struct xfer *x)
{
    struct ofi_ep *ep = x->ep;
    if (ep) {
        if (x->kind == XFER_RECV) {
            TAILQ_REMOVE(&ep->posted_recvs, x, link);
        } else {
            TAILQ_REMOVE(&ep->inflight, x, link);
            ep->inflight_count--;
            ep->reads -= x->kind == XFER_READ;
            if (x->copy)
                ep->copied -= x->copy->size;
        }
    }
    ofi_xfer_free(tp, x);
}

/* ---- receiving ---- */

bool ofi_recv_post(struct ofi_ep *ep, struct xfer *x)
{
    struct rbuf *buf = (struct rbuf *)x;
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    if (fi_recv(ep->fid, buf->data, tp->pools.rbuf_bytes, buf->desc, FI_ADDR_UNSPEC, x) != 0)
        return false;
    x->ep = ep;
    TAILQ_INSERT_TAIL(&ep->posted_recvs, x, link);
    if (tp->rdma)
        rdma_reposted(ep, buf);
    return true;
}

bool ofi_recv_fill(struct ofi_ep *ep)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    for (int i = 0; i < tp->recv_depth; i++) {
        struct xfer *x = ofi_rbuf_take(tp);
        if (!x)
            return false;
        if (!ofi_recv_post(ep, x)) {
            ofi_xfer_free(tp, x);
            return false;
        }
    }
    return true;
}

/* ---- posting ---- */

/* A long write says in several places where it goes, one behind the other, only so that its header has more bytes: 24
 * for each. What a kernel puts less than 64 bytes farther into a page than where it lies, as memory that begins with a
 * page behind a header of 40 bytes, it copies slowly on some processors (docs/adr/0020). */
enum { WRITE_PLACES = 4, WRITE_PLACE = 64, WRITE_LONG = 32 * 1024 };

static size_t remote_places(const struct ofi_tp *tp, const struct xfer *x, struct fi_rma_iov *place)
{
    size_t n =
        x->kind == XFER_WRITE && x->iov[0].iov_len >= WRITE_LONG && tp->info->tx_attr->rma_iov_limit >= WRITE_PLACES
            ? WRITE_PLACES
            : 1;
    for (size_t i = 0; i < n; i++)
        place[i] = (struct fi_rma_iov){.addr = x->offset + i * WRITE_PLACE, .len = WRITE_PLACE, .key = x->key};
    place[n - 1].len = x->iov[0].iov_len - (n - 1) * WRITE_PLACE;
    return n;
}

/* 0 if the provider took it. Plain completions mean "left my buffer", which is all a message promises; a write must be
 * in the target's memory, which only FI_DELIVERY_COMPLETE says; a read completes with its bytes. */
static ssize_t provider_post(struct ofi_ep *ep, struct xfer *x)
{
    if (ofi_tp_of_ep(ep)->rdma)
        return rdma_post(ep, x);
    if (x->kind == XFER_SEND) {
        struct fi_msg msg = {.msg_iov = x->iov, .iov_count = x->iov_count, .context = x};
        return fi_sendmsg(ep->fid, &msg, FI_COMPLETION);
    }
    struct fi_rma_iov remote[WRITE_PLACES];
    struct fi_msg_rma msg = {.msg_iov = x->iov, .iov_count = 1, .rma_iov = remote, .context = x};
    msg.rma_iov_count = remote_places(ofi_tp_of_ep(ep), x, remote);
    if (x->kind == XFER_WRITE)
        return fi_writemsg(ep->fid, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    return fi_readmsg(ep->fid, &msg, FI_COMPLETION);
}

static bool try_post(struct ofi_ep *ep, struct xfer *x)
{
    uint32_t window = ofi_tp_of_ep(ep)->rdma ? RDMA_WINDOW : OFI_WINDOW;
    if ((ep->inflight_count >= window && !x->control) || provider_post(ep, x) != 0)
        return false;
    TAILQ_INSERT_TAIL(&ep->inflight, x, link);
    ep->inflight_count++;
    ep->injected = 0;
    ep->reads += x->kind == XFER_READ;
    return true;
}

void ofi_post_or_wait(struct ofi_ep *ep, struct xfer *x)
{
    x->ep = ep;
    if ((x->control || TAILQ_EMPTY(&ep->waiting)) && try_post(ep, x))
        return;
    if (x->control)
        TAILQ_INSERT_HEAD(&ep->waiting, x, link);
    else
        TAILQ_INSERT_TAIL(&ep->waiting, x, link);
    if (!ep->in_waiting) {
        ep->in_waiting = true;
        TAILQ_INSERT_TAIL(&ofi_tp_of_ep(ep)->waiting, ep, wait_link);
    }
}

void ofi_ep_push(struct ofi_ep *ep)
{
    struct xfer *x;
    while ((x = TAILQ_FIRST(&ep->waiting)) != NULL) {
        TAILQ_REMOVE(&ep->waiting, x, link);
        if (!try_post(ep, x)) {
            TAILQ_INSERT_HEAD(&ep->waiting, x, link);
            return;
        }
    }
    TAILQ_REMOVE(&ofi_tp_of_ep(ep)->waiting, ep, wait_link);
    ep->in_waiting = false;
}

void *ofi_place(struct tp_ep *tp_ep, size_t hlen, size_t len)
{
    struct ofi_tp *tp = ofi_tp_of(tp_ep->tp);
    if (tp->rdma || hlen + len <= tp->inject_max || hlen > TP_BULK_MAX || len > TP_BULK_MAX - hlen)
        return NULL;
    if (tp->pools.placed && tp->pools.placed->size < hlen + len) {
        ofi_copy_free(tp, tp->pools.placed);
        tp->pools.placed = NULL;
    }
    if (!tp->pools.placed)
        tp->pools.placed = ofi_copy_take(tp, hlen + len);
    return tp->pools.placed ? tp->pools.placed->data + hlen : NULL;
}

/* The one with the body in it already, if it is there, or another one. */
static struct copybuf *copy_for(struct ofi_tp *tp, size_t hlen, const void *body, size_t len)
{
    struct copybuf *placed = tp->pools.placed;
    if (!placed || body != placed->data + hlen)
        return ofi_copy_take(tp, hlen + len);
    tp->pools.placed = NULL;
    return placed;
}

static uint8_t *gather(uint8_t *to, const void *header, size_t hlen, const void *body, size_t len)
{
    if (hlen)
        memcpy(to, header, hlen);
    if (len && body != to + hlen)
        memcpy(to + hlen, body, len);
    return to;
}

static keel_status send_copy(struct ofi_ep *ep, const void *header, size_t hlen, const void *body, size_t len)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    if (hlen + len <= tp->inject_max && ep->injected < OFI_INJECT_RUN && TAILQ_EMPTY(&ep->waiting)) {
        uint8_t both[OFI_INJECT_MAX];
        const void *bytes = len == 0 ? header : hlen == 0 ? body : gather(both, header, hlen, body, len);
        if (fi_inject(ep->fid, bytes, hlen + len, FI_ADDR_UNSPEC) == 0) {
            ep->injected++;
            return KEEL_OK;
        }
    }
    if (ep->copied >= OFI_QUEUE_MAX) {
        ofi_disconnect(&ep->base);
        return KEEL_ERR_LINK;
    }
    struct xfer *x = ofi_xfer_take(tp);
    if (!x)
        return KEEL_ERR_NOMEM;
    x->kind = XFER_SEND;
    x->copy = copy_for(tp, hlen, body, len);
    if (!x->copy) {
        ofi_xfer_free(tp, x);
        return KEEL_ERR_NOMEM;
    }
    ep->copied += x->copy->size;
    x->iov[0] = (struct iovec){.iov_base = gather(x->copy->data, header, hlen, body, len), .iov_len = hlen + len};
    x->iov_count = 1;
    ofi_post_or_wait(ep, x);
    return KEEL_OK;
}

keel_status ofi_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                     struct tp_op *op)
{
    struct ofi_ep *ep = (struct ofi_ep *)tp_ep;
    if (hlen > TP_BULK_MAX || len > TP_BULK_MAX - hlen)
        return KEEL_ERR_ARG;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    if (ofi_tp_of_ep(ep)->rdma)
        return rdma_send(ep, header, hlen, body, len, op);
    if (!op)
        return send_copy(ep, header, hlen, body, len);
    struct xfer *x = ofi_xfer_take(ofi_tp_of_ep(ep));
    if (!x)
        return KEEL_ERR_NOMEM;
    x->kind = XFER_SEND;
    x->op = op;
    x->iov_count = 0;
    if (hlen || !len)
        x->iov[x->iov_count++] = (struct iovec){.iov_base = (void *)(uintptr_t)header, .iov_len = hlen};
    if (len)
        x->iov[x->iov_count++] = (struct iovec){.iov_base = (void *)(uintptr_t)body, .iov_len = len};
    op->ep = tp_ep;
    ofi_post_or_wait(ep, x);
    return KEEL_OK;
}

/* The provider takes a copy and sends it when it can: it says so by a completion, which a poll finds. */
bool ofi_room(const struct tp_ep *tp_ep)
{
    const struct ofi_ep *ep = (const struct ofi_ep *)tp_ep;
    return TAILQ_EMPTY(&ep->waiting) && ep->copied < OFI_ROOM;
}

static keel_status rma(struct tp_ep *tp_ep, enum xfer_kind kind, void *local, size_t len, uint64_t key, uint64_t offset,
                       struct tp_op *op)
{
    struct ofi_ep *ep = (struct ofi_ep *)tp_ep;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    struct xfer *x = ofi_xfer_take(ofi_tp_of_ep(ep));
    if (!x)
        return KEEL_ERR_NOMEM;
    x->kind = kind;
    x->op = op;
    x->iov[0] = (struct iovec){.iov_base = local, .iov_len = len};
    x->iov_count = 1;
    x->key = key;
    x->offset = offset;
    keel_status status = ofi_tp_of_ep(ep)->rdma ? rdma_prepare(ep, x, local, len) : KEEL_OK;
    if (status != KEEL_OK) {
        x->op = NULL;
        ofi_xfer_free(ofi_tp_of_ep(ep), x);
        return status;
    }
    op->ep = tp_ep;
    ofi_post_or_wait(ep, x);
    return KEEL_OK;
}

keel_status ofi_write(struct tp_ep *tp_ep, const void *src, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return rma(tp_ep, XFER_WRITE, (void *)(uintptr_t)src, len, key, offset, op);
}

keel_status ofi_read(struct tp_ep *tp_ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return rma(tp_ep, XFER_READ, dst, len, key, offset, op);
}
