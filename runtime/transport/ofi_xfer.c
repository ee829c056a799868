#include "runtime/transport/ofi_int.h"

#include <stdlib.h>
#include <string.h>

enum { XFERS_PER_BLOCK = 64, RBUFS_PER_BLOCK = 8 };

/* ---- pools: grow by blocks, shrink only when the tp closes ---- */

static void *block_add(struct ofi_tp *tp, size_t size)
{
    struct pool_block *block = calloc(1, sizeof(struct pool_block) + sizeof(max_align_t) + size);
    if (!block)
        return NULL;
    block->next = tp->blocks;
    tp->blocks = block;
    return (uint8_t *)block + sizeof(max_align_t);
}

static struct xfer *xfer_take(struct ofi_tp *tp)
{
    struct xfer *x = TAILQ_FIRST(&tp->free_xfers);
    if (!x) {
        struct xfer *fresh = block_add(tp, XFERS_PER_BLOCK * sizeof(*fresh));
        if (!fresh)
            return NULL;
        for (int i = 0; i < XFERS_PER_BLOCK; i++)
            TAILQ_INSERT_TAIL(&tp->free_xfers, &fresh[i], link);
        x = fresh;
    }
    TAILQ_REMOVE(&tp->free_xfers, x, link);
    return x;
}

static struct xfer *rbuf_take(struct ofi_tp *tp)
{
    struct xfer *x = TAILQ_FIRST(&tp->free_rbufs);
    if (!x) {
        struct rbuf *fresh = block_add(tp, RBUFS_PER_BLOCK * sizeof(*fresh));
        if (!fresh)
            return NULL;
        for (int i = 0; i < RBUFS_PER_BLOCK; i++) {
            fresh[i].x.kind = XFER_RECV;
            TAILQ_INSERT_TAIL(&tp->free_rbufs, &fresh[i].x, link);
        }
        x = &fresh->x;
    }
    TAILQ_REMOVE(&tp->free_rbufs, x, link);
    return x;
}

static struct copybuf **copies_of(struct ofi_tp *tp, uint32_t size)
{
    return size == OFI_SMALL_COPY ? &tp->free_small : size == TP_MSG_MAX ? &tp->free_large : &tp->free_bulk;
}

static struct copybuf *copy_take(struct ofi_tp *tp, size_t len)
{
    uint32_t size = len <= OFI_SMALL_COPY ? OFI_SMALL_COPY : len <= TP_MSG_MAX ? TP_MSG_MAX : TP_BULK_MAX;
    struct copybuf **list = copies_of(tp, size), *copy = *list;
    if (copy) {
        *list = copy->next;
        return copy;
    }
    copy = block_add(tp, sizeof(*copy) + size);
    if (copy)
        copy->size = size;
    return copy;
}

static void copy_free(struct ofi_tp *tp, struct copybuf *copy)
{
    struct copybuf **list = copies_of(tp, copy->size);
    copy->next = *list;
    *list = copy;
}

void ofi_pools_free(struct ofi_tp *tp)
{
    while (tp->blocks) {
        struct pool_block *next = tp->blocks->next;
        free(tp->blocks);
        tp->blocks = next;
    }
}

void ofi_xfer_free(struct ofi_tp *tp, struct xfer *x)
{
    x->ep = NULL;
    x->op = NULL;
    if (x->kind == XFER_RECV) {
        TAILQ_INSERT_HEAD(&tp->free_rbufs, x, link);
        return;
    }
    if (x->copy) {
        copy_free(tp, x->copy);
        x->copy = NULL;
    }
    TAILQ_INSERT_HEAD(&tp->free_xfers, x, link);
}

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
    if (fi_recv(ep->fid, buf->data, sizeof(buf->data), NULL, FI_ADDR_UNSPEC, x) != 0)
        return false;
    x->ep = ep;
    TAILQ_INSERT_TAIL(&ep->posted_recvs, x, link);
    return true;
}

bool ofi_recv_fill(struct ofi_ep *ep)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    for (int i = 0; i < tp->recv_depth; i++) {
        struct xfer *x = rbuf_take(tp);
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

/* 0 if the provider took it. Plain completions mean "left my buffer", which is all a message promises; a write must be
 * in the target's memory, which only FI_DELIVERY_COMPLETE says; a read completes with its bytes. */
static ssize_t provider_post(struct ofi_ep *ep, struct xfer *x)
{
    if (x->kind == XFER_SEND) {
        struct fi_msg msg = {.msg_iov = x->iov, .iov_count = x->iov_count, .context = x};
        return fi_sendmsg(ep->fid, &msg, FI_COMPLETION);
    }
    struct fi_rma_iov remote = {.addr = x->offset, .len = x->iov[0].iov_len, .key = x->key};
    struct fi_msg_rma msg = {.msg_iov = x->iov, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1, .context = x};
    if (x->kind == XFER_WRITE)
        return fi_writemsg(ep->fid, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    return fi_readmsg(ep->fid, &msg, FI_COMPLETION);
}

static bool try_post(struct ofi_ep *ep, struct xfer *x)
{
    if (ep->inflight_count >= OFI_WINDOW || provider_post(ep, x) != 0)
        return false;
    TAILQ_INSERT_TAIL(&ep->inflight, x, link);
    ep->inflight_count++;
    ep->injected = 0;
    ep->reads += x->kind == XFER_READ;
    return true;
}

static void post_or_wait(struct ofi_ep *ep, struct xfer *x)
{
    x->ep = ep;
    if (TAILQ_EMPTY(&ep->waiting) && try_post(ep, x))
        return;
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

static uint8_t *gather(uint8_t *to, const void *header, size_t hlen, const void *body, size_t len)
{
    if (hlen)
        memcpy(to, header, hlen);
    if (len)
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
    struct xfer *x = xfer_take(tp);
    if (!x)
        return KEEL_ERR_NOMEM;
    x->kind = XFER_SEND;
    x->copy = copy_take(tp, hlen + len);
    if (!x->copy) {
        ofi_xfer_free(tp, x);
        return KEEL_ERR_NOMEM;
    }
    ep->copied += x->copy->size;
    x->iov[0] = (struct iovec){.iov_base = gather(x->copy->data, header, hlen, body, len), .iov_len = hlen + len};
    x->iov_count = 1;
    post_or_wait(ep, x);
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
    if (!op)
        return send_copy(ep, header, hlen, body, len);
    struct xfer *x = xfer_take(ofi_tp_of_ep(ep));
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
    post_or_wait(ep, x);
    return KEEL_OK;
}

static keel_status rma(struct tp_ep *tp_ep, enum xfer_kind kind, void *local, size_t len, uint64_t key, uint64_t offset,
                       struct tp_op *op)
{
    struct ofi_ep *ep = (struct ofi_ep *)tp_ep;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    struct xfer *x = xfer_take(ofi_tp_of_ep(ep));
    if (!x)
        return KEEL_ERR_NOMEM;
    x->kind = kind;
    x->op = op;
    x->iov[0] = (struct iovec){.iov_base = local, .iov_len = len};
    x->iov_count = 1;
    x->key = key;
    x->offset = offset;
    op->ep = tp_ep;
    post_or_wait(ep, x);
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
