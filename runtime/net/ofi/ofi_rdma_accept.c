/* Being connected to over an RDMA device: ofi_rdma.c says how. */
#include "runtime/net/ofi/ofi_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

enum { HIDDEN_MAX = 128, HELLO_MS = 1000 };

void rdma_on_connreq(struct ofi_tp *tp, struct fi_info *info)
{
    struct ofi_ep *ep = tp->device.hidden < HIDDEN_MAX ? ofi_ep_new(tp, NULL, EP_ACCEPTING) : NULL;
    if (!ep) {
        fi_reject(tp->rail[0].pep, info->handle, NULL, 0);
        fabric_calls.freeinfo(info);
        return;
    }
    info->tx_attr->size = RDMA_SEND_QUEUE;
    info->rx_attr->size = RDMA_CREDITS + RDMA_RESERVE;
    ep->credits = RDMA_CREDITS;
    ep->since_ns = clock_now_ns();
    int rc = ofi_ep_open(ep, info);
    if (!rc)
        rc = fi_accept(ep->fid, NULL, 0);
    if (rc) {
        log_warn("transport: cannot accept a connection: %s", fabric_calls.strerror(-rc));
        if (!ep->fid)
            fi_reject(tp->rail[0].pep, info->handle, NULL, 0);
        ofi_ep_discard(ep);
    } else {
        ep->hidden = true;
        tp->device.hidden++;
    }
    fabric_calls.freeinfo(info);
}

void rdma_on_hello(struct ofi_ep *ep, const void *hello, size_t len)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    if (!ep->hidden || ep->req || len > TP_HELLO_MAX || ep->state != EP_ACCEPTING)
        return;
    struct tp_connreq *req = calloc(1, sizeof *req);
    if (!req) {
        ofi_ep_lost(ep, KEEL_ERR_LINK);
        return;
    }
    req->ep = ep;
    req->len = len;
    memcpy(req->hello, hello, len);
    ep->req = req;
    LIST_INSERT_HEAD(&tp->reqs, req, link);
    ofi_cm_tell(tp, &req->told, (struct tp_event){.type = TP_CONNREQ, .req = req, .data = req->hello, .len = req->len});
}

static struct ofi_ep *req_end(struct tp_connreq *req)
{
    struct ofi_ep *ep = req->ep;
    LIST_REMOVE(req, link);
    free(req);
    if (ep)
        ep->req = NULL;
    return ep;
}

keel_status rdma_accept(struct ofi_tp *tp, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    struct ofi_ep *ep = req_end(req);
    if (!ep || ep->state != EP_ACCEPTING)
        return KEEL_ERR_LINK; /* the connector has left */
    ep->hidden = false;
    tp->device.hidden--;
    ep->base.user = user;
    rdma_tell(ep, FRAME_ACCEPTED, NULL, 0);
    if (ep->state == EP_ACCEPTING) {
        ofi_ep_set_state(ep, EP_UP);
        ofi_cm_tell(tp, &ep->connected, (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base});
    }
    *out = &ep->base;
    return KEEL_OK;
}

void rdma_reject(struct ofi_tp *tp, struct tp_connreq *req)
{
    struct ofi_ep *ep = req_end(req);
    (void)tp;
    if (!ep || ep->state != EP_ACCEPTING)
        return;
    ep->since_ns = clock_now_ns();
    rdma_tell(ep, FRAME_REJECTED, NULL, 0);
}

/* Who has not said hello in time, or has been rejected and stays. */
void rdma_guard(struct ofi_tp *tp)
{
    if (!tp->device.hidden)
        return;
    uint64_t now = clock_now_ns();
    struct ofi_ep *ep, *next;
    for (ep = TAILQ_FIRST(&tp->eps); ep; ep = next) {
        next = TAILQ_NEXT(ep, all);
        if (ep->hidden && !ep->req && now - ep->since_ns >= HELLO_MS * KEEL_NS_PER_MS)
            ofi_ep_destroy(&ep->base);
    }
}
