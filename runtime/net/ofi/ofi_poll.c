/* Progress: what has happened since the last look, and going to sleep. */
#include "runtime/net/ofi/ofi_int.h"

#include <stdlib.h>

/* What the caller was looking at since the last poll goes back to work. */
static void recycle(struct ofi_tp *tp)
{
    struct xfer *x;
    struct ofi_ep *ep;
    while ((x = TAILQ_FIRST(&tp->held)) != NULL) {
        TAILQ_REMOVE(&tp->held, x, link);
        if (!x->ep || x->ep->state != EP_UP || !ofi_recv_post(x->ep, x))
            ofi_xfer_free(tp, x);
    }
    while (tp->held_wholes) {
        struct copybuf *copy = tp->held_wholes;
        tp->held_wholes = copy->next;
        ofi_copy_free(tp, copy);
    }
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, all);
        free(ep);
    }
}

static int tell_cm(struct ofi_tp *tp, struct tp_event *events, int max)
{
    int n = 0;
    struct cm_event *entry;
    while (n < max && (entry = STAILQ_FIRST(&tp->cm_events)) != NULL) {
        STAILQ_REMOVE_HEAD(&tp->cm_events, link);
        events[n++] = entry->event;
    }
    return n;
}

/* 1 if it became an event */
static int on_received(struct ofi_tp *tp, struct xfer *x, size_t len, struct tp_event *event)
{
    struct ofi_ep *ep = x->ep;
    if (tp->rdma)
        return rdma_on_frame(tp, x, len, event);
    if (ep)
        TAILQ_REMOVE(&ep->posted_recvs, x, link);
    if (!ep || ep->state > EP_DOWN) {
        ofi_xfer_free(tp, x);
        return 0;
    }
    TAILQ_INSERT_TAIL(&tp->held, x, link);
    *event = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = ((struct rbuf *)x)->data, .len = len};
    return 1;
}

static int on_finished(struct ofi_tp *tp, struct xfer *x, keel_status status, struct tp_event *event)
{
    struct tp_op *op = x->op;
    struct ofi_ep *ep = x->ep;
    if (tp->rdma && !rdma_finish(x, status == KEEL_OK))
        status = KEEL_ERR_LINK;
    ofi_xfer_done(tp, x);
    if (!op)
        return 0;
    *event = (struct tp_event){.type = TP_DONE, .status = status, .ep = &ep->base, .op = op};
    return 1;
}

static int on_cq_error(struct ofi_tp *tp, struct tp_event *event)
{
    struct fi_cq_err_entry err = {0};
    if (fi_cq_readerr(tp->cq, &err, 0) != 1)
        return 0;
    tp->eq_due = true;
    struct xfer *x = err.op_context;
    if (!x)
        return 0;
    if (x->ep)
        ofi_ep_lost(x->ep, KEEL_ERR_LINK);
    if (x->kind == XFER_RECV) {
        ofi_xfer_done(tp, x);
        return 0;
    }
    return on_finished(tp, x, KEEL_ERR_LINK, event);
}

/* *drained: the provider had nothing more to report */
static int poll_cq(struct ofi_tp *tp, struct tp_event *events, int max, bool *drained)
{
    struct fi_cq_msg_entry *entries = tp->entries;
    int n = 0;
    while (n < max) {
        size_t want = max - n < OFI_CQ_BATCH ? (size_t)(max - n) : OFI_CQ_BATCH;
        ssize_t got = fi_cq_read(tp->cq, entries, want);
        if (got == -FI_EAVAIL) {
            n += on_cq_error(tp, &events[n]);
            continue;
        }
        if (got <= 0) {
            *drained = got == -FI_EAGAIN;
            break;
        }
        for (ssize_t i = 0; i < got; i++) {
            struct xfer *x = entries[i].op_context;
            n += x->kind == XFER_RECV ? on_received(tp, x, entries[i].len, &events[n])
                                      : on_finished(tp, x, KEEL_OK, &events[n]);
        }
        if ((size_t)got < want && n > 0)
            break; /* another look at an empty queue costs a system call: the caller's events are worth more */
    }
    return n;
}

/* Ops first, then TP_CLOSED. */
static int tell_end(struct ofi_tp *tp, struct ofi_ep *ep, struct tp_event *events, int max)
{
    int n = 0;
    struct xfer *x;
    while (n < max && (x = TAILQ_FIRST(&ep->inflight)) != NULL) {
        struct tp_op *op = x->op;
        TAILQ_REMOVE(&ep->inflight, x, link);
        x->ep = NULL; /* its report, if one comes, meets an orphan */
        x->op = NULL;
        if (op)
            events[n++] = (struct tp_event){.type = TP_DONE, .status = KEEL_ERR_LINK, .ep = &ep->base, .op = op};
    }
    while (n < max && (x = TAILQ_FIRST(&ep->waiting)) != NULL) {
        struct tp_op *op = x->op;
        TAILQ_REMOVE(&ep->waiting, x, link);
        ofi_xfer_free(tp, x);
        if (op)
            events[n++] = (struct tp_event){.type = TP_DONE, .status = KEEL_ERR_LINK, .ep = &ep->base, .op = op};
    }
    if (ep->hidden) {
        ofi_ep_destroy(&ep->base);
    } else if (n < max) {
        TAILQ_REMOVE(&tp->ending, ep, end_link);
        ep->in_ending = false;
        ofi_ep_set_state(ep, EP_CLOSED);
        events[n++] = (struct tp_event){.type = TP_CLOSED, .status = ep->why, .ep = &ep->base};
    }
    return n;
}

/* Everything the provider had received for this lost ep has been told. It hands back what was posted when it ends an
 * endpoint, so this comes true even if other connections never let the completion queue run empty. */
static bool all_told(const struct ofi_ep *ep, bool drained)
{
    return drained || (ep->provider_down && TAILQ_EMPTY(&ep->inflight) && TAILQ_EMPTY(&ep->posted_recvs));
}

static void close_ended(struct ofi_tp *tp, bool drained)
{
    struct ofi_ep *ep;
    TAILQ_FOREACH(ep, &tp->ending, end_link) {
        if (ep->state == EP_DOWN && all_told(ep, drained)) {
            ofi_ep_shut(ep);
            ofi_ep_set_state(ep, EP_FLUSHING);
        }
    }
}

static int tell_ends(struct ofi_tp *tp, struct tp_event *events, int max)
{
    int n = 0;
    struct ofi_ep *ep, *next;
    for (ep = TAILQ_FIRST(&tp->ending); ep && n < max; ep = next) {
        next = TAILQ_NEXT(ep, end_link);
        if (ep->state != EP_FLUSHING)
            continue;
        ofi_ep_shut(ep);
        n += tell_end(tp, ep, events + n, max - n);
    }
    return n;
}

int ofi_poll(struct tp *base, struct tp_event *events, int max)
{
    struct ofi_tp *tp = ofi_tp_of(base);
    struct ofi_ep *ep, *next;
    bool drained = false;
    int n = 0;
    if (!TAILQ_EMPTY(&tp->held) || !TAILQ_EMPTY(&tp->graveyard) || tp->held_wholes)
        recycle(tp);
    if (tp->rdma && rdma_any_opened(tp))
        rdma_take_opened(tp);
    /* The event queue goes first: an endpoint's connected event is read before its first completion can be there. */
    uint32_t every = tp->opening ? OFI_EQ_EVERY_OPENING : OFI_EQ_EVERY;
    if (tp->eq_due || (++tp->polls & (every - 1)) == 0) {
        tp->eq_due = false;
        ofi_eq_drain(tp);
    }
    if (!STAILQ_EMPTY(&tp->cm_events))
        n = tell_cm(tp, events, max);
    if (!TAILQ_EMPTY(&tp->ending)) /* before what may fill every poll */
        n += tell_ends(tp, events + n, max - n);
    n += poll_cq(tp, events + n, max - n, &drained);
    for (ep = TAILQ_FIRST(&tp->waiting); ep; ep = next) {
        next = TAILQ_NEXT(ep, wait_link);
        if (ep->fid)
            ofi_ep_push(ep);
    }
    if (!TAILQ_EMPTY(&tp->ending)) {
        close_ended(tp, drained);
        n += tell_ends(tp, events + n, max - n);
    }
    if (n)
        tp->idle_arms = 0;
    return n;
}

bool ofi_arm(struct tp *base)
{
    struct ofi_tp *tp = ofi_tp_of(base);
    struct fid *fids[] = {&tp->cq->fid, &tp->eq->fid};
    struct ofi_ep *ep;
    tp->eq_due = true; /* whatever wakes us may be a connection event */
    if (++tp->idle_arms >= OFI_IDLE_ARMS) {
        tp->idle_arms = 0;
        ofi_sock_drop_unacceptable(tp);
    }
    if (!TAILQ_EMPTY(&tp->held) || !TAILQ_EMPTY(&tp->ending) || !STAILQ_EMPTY(&tp->cm_events) || tp->held_wholes ||
        (tp->rdma && rdma_any_opened(tp)))
        return false;
    TAILQ_FOREACH(ep, &tp->waiting, wait_link)
        if (ep->inflight_count == 0 && !(tp->rdma && (ep->asked || !ep->credits)))
            return false; /* nothing in flight whose end would wake us */
    ofi_sock_forget_room(tp);
    if (fi_trywait(tp->fabric, fids, 2) != 0)
        return false;
    ofi_eq_drain(tp);
    return TAILQ_EMPTY(&tp->ending) && STAILQ_EMPTY(&tp->cm_events);
}
