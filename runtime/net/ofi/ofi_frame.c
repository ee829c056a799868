/* Transfers over an RDMA device (provider verbs).
 *
 * Local memory. The device reads and writes registered memory only. Messages, and writes and reads of up to TP_BULK_MAX
 * bytes, go through registered memory of our own; for a larger one the caller's is registered as long as the transfer
 * lasts.
 *
 * Messages. Each is one frame or, if it is long, several (a receive buffer is pinned memory, so it is not of the size
 * of the largest message). A frame for which the peer has posted no buffer would be refused and repeated by the
 * devices, again and again, so who sends needs a credit for each; what the ends tell each other needs none, there are
 * buffers beside.
 *
 * Remote memory. A write or read names a key of ours; the device wants its own key and an address. Who needs them asks
 * the peer once, and what was posted after that waits in order. Keys are not used for other memory later: the answer
 * stays true until the memory is not registered any more, and then the device refuses what comes.
 *
 * Delivery. The provider does not know FI_DELIVERY_COMPLETE. An acknowledged RDMA write has reached the other device;
 * that it is in memory, for whoever reads it there by whatever way, is certain when a later read over the same
 * connection has been answered. So each write is followed by a read of its last byte, and is done when that is
 * there. */
#include "runtime/net/ofi/ofi_int.h"

#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

static struct ofi_tp *tp_of(const struct ofi_ep *ep)
{
    return ofi_tp_of_ep(ep);
}

/* ---- frames out ---- */

static struct rdma_head *head_of(const struct xfer *x)
{
    return (struct rdma_head *)x->copy->data;
}

static struct xfer *frame_new(struct ofi_tp *tp, enum rdma_frame kind, size_t len)
{
    struct xfer *x = ofi_xfer_take(tp);
    if (!x)
        return NULL;
    x->kind = XFER_SEND;
    x->copy = ofi_copy_take(tp, sizeof(struct rdma_head) + len);
    if (!x->copy) {
        ofi_xfer_free(tp, x);
        return NULL;
    }
    *head_of(x) = (struct rdma_head){.kind = (uint8_t)kind};
    x->control = kind != FRAME_MESSAGE;
    x->iov[0] = (struct iovec){.iov_base = x->copy->data, .iov_len = sizeof(struct rdma_head) + len};
    x->iov_count = 1;
    return x;
}

void rdma_tell(struct ofi_ep *ep, enum rdma_frame kind, const void *data, size_t len)
{
    struct xfer *x = frame_new(tp_of(ep), kind, len);
    if (!x) { /* the peer would wait for it */
        ofi_ep_lost(ep, KEEL_ERR_LINK);
        return;
    }
    if (len)
        memcpy(head_of(x) + 1, data, len);
    ep->copied += x->copy->size;
    ofi_post_or_wait(ep, x);
}

/* Bytes [at, at + len) of header and body together. */
static void gather(uint8_t *to, const void *header, size_t hlen, const void *body, size_t at, size_t len)
{
    size_t of_header = at < hlen ? (hlen - at < len ? hlen - at : len) : 0;
    if (of_header)
        memcpy(to, (const uint8_t *)header + at, of_header);
    if (len > of_header)
        memcpy(to + of_header, (const uint8_t *)body + (at + of_header - hlen), len - of_header);
}

keel_status rdma_send(struct ofi_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                      struct tp_op *op)
{
    struct ofi_tp *tp = tp_of(ep);
    struct xfer_list frames = TAILQ_HEAD_INITIALIZER(frames);
    size_t all = hlen + len, at = 0;
    struct xfer *x;
    if (!op && ep->copied >= OFI_QUEUE_MAX) {
        ofi_disconnect(&ep->base);
        return KEEL_ERR_LINK;
    }
    do {
        size_t piece = all - at < TP_MSG_MAX ? all - at : TP_MSG_MAX;
        x = frame_new(tp, FRAME_MESSAGE, piece);
        if (!x)
            break;
        gather((uint8_t *)(head_of(x) + 1), header, hlen, body, at, piece);
        at += piece;
        head_of(x)->more = at < all;
        TAILQ_INSERT_TAIL(&frames, x, link);
    } while (at < all);
    bool whole = x != NULL;
    while ((x = TAILQ_FIRST(&frames)) != NULL) {
        TAILQ_REMOVE(&frames, x, link);
        if (!whole) {
            ofi_xfer_free(tp, x);
            continue;
        }
        x->op = TAILQ_EMPTY(&frames) ? op : NULL;
        ep->copied += x->copy->size;
        ofi_post_or_wait(ep, x);
    }
    if (whole && op)
        op->ep = &ep->base;
    return whole ? KEEL_OK : KEEL_ERR_NOMEM;
}

static ssize_t post_frame(struct ofi_ep *ep, struct xfer *x)
{
    if (!x->control && !ep->credits)
        return -FI_EAGAIN;
    struct fi_msg msg = {.msg_iov = x->iov, .desc = &x->copy->desc, .iov_count = 1, .context = x};
    head_of(x)->credits = ep->owed;
    ssize_t rc = fi_sendmsg(ep->fid, &msg, FI_COMPLETION);
    if (rc == 0) {
        ep->credits -= !x->control;
        ep->owed = 0;
    }
    return rc;
}

/* ---- writes and reads ---- */

keel_status rdma_prepare(struct ofi_ep *ep, struct xfer *x, void *local, size_t len)
{
    struct ofi_tp *tp = tp_of(ep);
    if (len > TP_BULK_MAX) {
        int rc = fi_mr_reg(tp->domain, local, len, x->kind == XFER_READ ? FI_READ : FI_WRITE, 0, 0, 0, &x->mr, NULL);
        char why[REFUSAL_MAX];
        if (rc)
            log_error("transport: %zu bytes cannot be registered with the RDMA device: %s", len,
                      refusal_locking(-rc, why));
        return rc == 0 ? KEEL_OK : rc == -FI_ENOMEM ? KEEL_ERR_NOMEM : KEEL_ERR_SYSTEM;
    }
    x->copy = ofi_copy_take(tp, len);
    if (!x->copy)
        return KEEL_ERR_NOMEM;
    ep->copied += x->copy->size;
    x->iov[0].iov_base = x->copy->data;
    if (x->kind == XFER_READ)
        x->dst = local;
    else if (len)
        memcpy(x->copy->data, local, len);
    return KEEL_OK;
}

void rdma_give_up(struct xfer *x)
{
    if (x->mr)
        fi_close(&x->mr->fid);
    x->mr = NULL;
    x->dst = NULL;
    x->given_up = true;
}

bool rdma_finish(struct xfer *x, bool good)
{
    good = good && !x->given_up;
    if (good && x->dst && x->iov[0].iov_len)
        memcpy(x->dst, x->copy->data, x->iov[0].iov_len);
    rdma_give_up(x);
    return good;
}

static const struct rdma_region *find(const struct ofi_ep *ep, uint64_t key)
{
    for (uint32_t i = 1; i <= RDMA_KEYS; i++) { /* the newest first */
        const struct rdma_region *r = &ep->regions[(ep->next_region - i) % RDMA_KEYS];
        if (r->there && r->key == key)
            return r;
    }
    return NULL;
}

/* A write, and the read that tells of its arrival. */
static ssize_t post_write(struct ofi_ep *ep, struct xfer *x, const struct fi_msg_rma *write)
{
    if (!x->iov[0].iov_len)
        return fi_writemsg(ep->fid, write, FI_COMPLETION);
    ssize_t rc = x->written ? 0 : fi_writemsg(ep->fid, write, 0);
    if (rc)
        return rc;
    x->written = true;
    struct ofi_tp *tp = tp_of(ep);
    const struct fi_rma_iov *to = write->rma_iov;
    struct fi_rma_iov last = {.addr = to->addr + to->len - 1, .len = 1, .key = to->key};
    struct iovec here = {.iov_base = tp->device.scratch, .iov_len = 1};
    void *desc = fi_mr_desc(tp->device.scratch_mr);
    struct fi_msg_rma read = {
        .msg_iov = &here, .desc = &desc, .iov_count = 1, .rma_iov = &last, .rma_iov_count = 1, .context = x};
    return fi_readmsg(ep->fid, &read, FI_COMPLETION);
}

static ssize_t post_access(struct ofi_ep *ep, struct xfer *x)
{
    const struct rdma_region *region = find(ep, x->key);
    size_t len = x->iov[0].iov_len;
    if (!region) {
        if (!ep->asked) {
            ep->asked = true;
            rdma_tell(ep, FRAME_ASK, &x->key, sizeof x->key);
        }
        return -FI_EAGAIN;
    }
    if (x->offset > region->len || len > region->len - x->offset) {
        ofi_ep_lost(ep, KEEL_ERR_LINK); /* as the device would have it */
        return -FI_EAGAIN;
    }
    void *desc = x->mr ? fi_mr_desc(x->mr) : x->copy->desc;
    struct fi_rma_iov remote = {.addr = region->base + x->offset, .len = len, .key = region->provider_key};
    struct fi_msg_rma msg = {
        .msg_iov = x->iov, .desc = &desc, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1, .context = x};
    return x->kind == XFER_WRITE ? post_write(ep, x, &msg) : fi_readmsg(ep->fid, &msg, FI_COMPLETION);
}

ssize_t rdma_post(struct ofi_ep *ep, struct xfer *x)
{
    if (!ep->fid || ep->state >= EP_DOWN)
        return -FI_EAGAIN;
    return x->kind == XFER_SEND ? post_frame(ep, x) : post_access(ep, x);
}

/* ---- frames in ---- */

void rdma_reposted(struct ofi_ep *ep, struct rbuf *buf)
{
    ep->owed += buf->counts;
    buf->counts = false;
    if (ep->owed >= RDMA_CREDITS / 2 && ep->state == EP_UP)
        rdma_tell(ep, FRAME_CREDIT, NULL, 0);
}

static void on_ask(struct ofi_ep *ep, const uint8_t *data, size_t len)
{
    struct rdma_region answer = {0};
    const struct region *r;
    if (len != sizeof answer.key)
        return;
    memcpy(&answer.key, data, len);
    LIST_FOREACH(r, &tp_of(ep)->regions, link)
        if (r->key == answer.key)
            answer = (struct rdma_region){r->key, fi_mr_key(r->mr), (uintptr_t)r->memory, r->len, 1};
    rdma_tell(ep, FRAME_REGION, &answer, sizeof answer);
}

static void on_region(struct ofi_ep *ep, const uint8_t *data, size_t len)
{
    struct rdma_region *r = &ep->regions[ep->next_region % RDMA_KEYS];
    if (len != sizeof *r || !ep->asked)
        return;
    ep->asked = false;
    ep->next_region++;
    memcpy(r, data, len);
    if (!r->there)
        ofi_ep_lost(ep, KEEL_ERR_LINK);
}

/* A frame of a message of several: 1 when it is whole. */
static int append(struct ofi_tp *tp, struct ofi_ep *ep, const uint8_t *data, size_t len, bool more,
                  struct tp_event *event)
{
    if (!ep->whole) {
        ep->whole = ofi_copy_take(tp, TP_BULK_MAX);
        ep->whole_len = 0;
    }
    if (!ep->whole || len > TP_BULK_MAX - ep->whole_len) {
        ofi_ep_lost(ep, KEEL_ERR_LINK);
        return 0;
    }
    memcpy(ep->whole->data + ep->whole_len, data, len);
    ep->whole_len += len;
    if (more)
        return 0;
    *event = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = ep->whole->data, .len = ep->whole_len};
    ep->whole->next = tp->held_wholes;
    tp->held_wholes = ep->whole;
    ep->whole = NULL;
    return 1;
}

static void on_control(struct ofi_ep *ep, uint8_t kind, const uint8_t *data, size_t len)
{
    switch (kind) {
    case FRAME_CREDIT:
        return;
    case FRAME_HELLO:
        rdma_on_hello(ep, data, len);
        return;
    case FRAME_ACCEPTED:
    case FRAME_REJECTED:
        rdma_on_verdict(ep, kind == FRAME_ACCEPTED);
        return;
    case FRAME_ASK:
        on_ask(ep, data, len);
        return;
    case FRAME_REGION:
        on_region(ep, data, len);
        return;
    default:
        log_warn("transport: a frame of kind %d came, which there is not", kind);
        ofi_ep_lost(ep, KEEL_ERR_LINK);
    }
}

int rdma_on_frame(struct ofi_tp *tp, struct xfer *x, size_t len, struct tp_event *event)
{
    struct ofi_ep *ep = x->ep;
    struct rbuf *buf = (struct rbuf *)x;
    const struct rdma_head *head = (const struct rdma_head *)buf->data;
    const uint8_t *data = buf->data + sizeof *head;
    int told = 0;
    if (ep)
        TAILQ_REMOVE(&ep->posted_recvs, x, link);
    if (!ep || ep->state > EP_DOWN || len < sizeof *head) {
        ofi_xfer_free(tp, x);
        return 0;
    }
    len -= sizeof *head;
    ep->credits += head->credits;
    buf->counts = head->kind == FRAME_MESSAGE;
    if (!buf->counts) {
        on_control(ep, head->kind, data, len);
    } else if (ep->state < EP_UP) {
        ofi_ep_lost(ep, KEEL_ERR_LINK);
    } else if (!head->more && !ep->whole) {
        TAILQ_INSERT_TAIL(&tp->held, x, link);
        *event = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = data, .len = len};
        return 1;
    } else {
        told = append(tp, ep, data, len, head->more, event);
    }
    if (ep->state >= EP_DOWN || !ofi_recv_post(ep, x))
        ofi_xfer_free(tp, x);
    return told;
}
