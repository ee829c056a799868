#include "runtime/net/ofi/ofi_int.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/base/reserve.h"

/* Looks at a stream that has been shut down, until the provider has read it to its end: usually a few. No time: on a
 * busy machine all of it may pass before the first look. */
enum { FORGET_LOOKS = 100000 };

/* ---- state ---- */

static bool is_opening(enum ep_state state)
{
    return state == EP_CONNECTING || state == EP_ACCEPTING;
}

void ofi_ep_set_state(struct ofi_ep *ep, enum ep_state state)
{
    assert(state > ep->state); /* see the diagram: only ever forward */
    ofi_tp_of_ep(ep)->opening += is_opening(state) - is_opening(ep->state);
    ep->state = state;
}

static void ep_begin_end(struct ofi_ep *ep, enum ep_state state, keel_status why)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    ofi_ep_set_state(ep, state);
    ep->why = why;
    if (!ep->in_ending) {
        ep->in_ending = true;
        TAILQ_INSERT_TAIL(&tp->ending, ep, end_link);
    }
}

void ofi_ep_lost(struct ofi_ep *ep, keel_status why)
{
    if (ep->state <= EP_UP)
        ep_begin_end(ep, EP_DOWN, why);
}

/* Provider trap (tcp, 1.17): closing an endpoint while the answer to a read is half received frees one of its
 * entries twice, and later transfers of any endpoint corrupt each other. The path on which the provider itself sees the
 * end of the stream does not. So first end the stream under it, and let it notice. */
static void provider_forget_reads(struct ofi_ep *ep)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    if (!ofi_sock_shutdown(ep))
        log_debug("transport: socket of a closing connection not found");
    for (int looks = 0; !ep->provider_down && looks < FORGET_LOOKS; looks++) {
        (void)fi_cq_read(tp->cq, NULL, 0); /* progress only: takes no completion */
        ofi_eq_drain(tp);
    }
    if (!ep->provider_down)
        log_warn("transport: the provider did not notice the end of a connection");
}

void ofi_ep_shut(struct ofi_ep *ep)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    struct xfer *x;
    rdma_abandon(ep);
    if (!ep->fid)
        return;
    if (ep->reads && !ep->provider_down && !tp->rdma)
        provider_forget_reads(ep);
    fi_close(&ep->fid->fid);
    ep->fid = NULL;
    TAILQ_FOREACH(x, &ep->inflight, link)
        rdma_give_up(x);
    TAILQ_FOREACH(x, &ep->waiting, link)
        rdma_give_up(x);
    while ((x = TAILQ_FIRST(&ep->posted_recvs)) != NULL) {
        TAILQ_REMOVE(&ep->posted_recvs, x, link);
        x->ep = NULL; /* back to the pool when the provider's report comes */
    }
    if (ep->in_waiting) {
        TAILQ_REMOVE(&tp->waiting, ep, wait_link);
        ep->in_waiting = false;
    }
}

/* ---- endpoints ---- */

struct ofi_ep *ofi_ep_new(struct ofi_tp *tp, void *user, enum ep_state state)
{
    struct ofi_ep *ep = tp->kept ? tp->kept : malloc(sizeof *ep);
    tp->kept = NULL;
    if (!ep)
        return NULL;
    *ep = (struct ofi_ep){.base = {.tp = &tp->base, .user = user}, .state = state};
    tp->opening += is_opening(state);
    TAILQ_INIT(&ep->inflight);
    TAILQ_INIT(&ep->waiting);
    TAILQ_INIT(&ep->posted_recvs);
    TAILQ_INSERT_TAIL(&tp->eps, ep, all);
    return ep;
}

int ofi_ep_open(struct ofi_ep *ep, struct fi_info *info)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    if (!tp->rdma &&
        info->rx_attr->size < (size_t)tp->recv_depth) /* FI_TCP_RX_SIZE is the user's, for other programs */
        info->rx_attr->size = (size_t)tp->recv_depth;
    int rc = ep->fid ? 0 : fi_endpoint(tp->domain, info, &ep->fid, ep);
    if (rc)
        return rc;
    if ((rc = fi_ep_bind(ep->fid, &tp->eq->fid, 0)) != 0 ||
        (rc = fi_ep_bind(ep->fid, &tp->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION)) != 0 ||
        (rc = fi_ep_bind(ep->fid, &tp->cq->fid, FI_RECV)) != 0 || (rc = fi_enable(ep->fid)) != 0)
        return rc;
    return ofi_recv_fill(ep) ? 0 : -FI_ENOMEM;
}

void ofi_ep_discard(struct ofi_ep *ep)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    ofi_ep_shut(ep);
    ofi_ep_set_state(ep, EP_CLOSED);
    TAILQ_REMOVE(&tp->eps, ep, all);
    if (tp->kept)
        free(ep);
    else
        tp->kept = ep;
}

keel_status ofi_status_of_connect_error(int err, bool rejected)
{
    if (err == FI_ECONNREFUSED)
        return rejected ? KEEL_ERR_AUTH : KEEL_ERR_NODE_DEAD;
    return KEEL_ERR_LINK;
}

keel_status ofi_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                        struct tp_ep **out)
{
    struct ofi_tp *tp = ofi_tp_of(base);
    if (len > TP_HELLO_MAX || to->rail >= tp->rails || to->len != tp->rail[to->rail].info->src_addrlen ||
        to->len > sizeof(struct sockaddr_in6))
        return KEEL_ERR_ARG;
    struct ofi_ep *ep = ofi_ep_new(tp, user, EP_CONNECTING);
    if (!ep)
        return KEEL_ERR_NOMEM;
    memcpy(&ep->peer, to->bytes, to->len);
    if (tp->rdma) {
        *out = &ep->base;
        return rdma_connect(ep, hello, len);
    }
    int rc = ofi_ep_open(ep, tp->rail[to->rail].info);
    if (rc && reserve_give(-rc))
        rc = ofi_ep_open(ep, tp->rail[to->rail].info);
    if (rc) {
        log_warn_some("transport: cannot open an endpoint: %s", fabric_calls.strerror(-rc));
        ofi_ep_discard(ep);
        return refusal_note(-rc);
    }
    struct ofi_hello whole = {.len = (uint8_t)len};
    if (len > 0)
        memcpy(whole.bytes, hello, len);
    rc = fi_connect(ep->fid, &ep->peer, &whole, sizeof(whole));
    ep->base.error = -rc;
    if (rc) /* refused or unreachable at once: the event follows as in the other cases */
        ep_begin_end(ep, EP_FLUSHING, ofi_status_of_connect_error(-rc, false));
    else
        ofi_sock_setup_connecting(ep);
    tp->eq_due = true;
    *out = &ep->base;
    return KEEL_OK;
}

keel_status ofi_listen(struct tp *base, struct tp_addr *out)
{
    struct ofi_tp *tp = ofi_tp_of(base);
    if (tp->listening == tp->rails)
        return KEEL_ERR_STATE;
    struct ofi_rail *rail = &tp->rail[tp->listening];
    size_t len = sizeof(out->bytes);
    int rc = fi_passive_ep(tp->fabric, rail->info, &rail->pep, tp);
    if (!rc)
        rc = fi_pep_bind(rail->pep, &tp->eq->fid, 0);
    if (!rc)
        rc = fi_listen(rail->pep);
    if (!rc)
        rc = fi_getname(&rail->pep->fid, out->bytes, &len);
    if (rc) {
        log_warn("transport: cannot listen: %s", fabric_calls.strerror(-rc));
        if (rail->pep)
            fi_close(&rail->pep->fid);
        rail->pep = NULL;
        return refusal_note(-rc);
    }
    out->len = (uint16_t)len;
    out->rail = (uint16_t)tp->listening++;
    memcpy(&rail->listen_addr, out->bytes, len < sizeof(rail->listen_addr) ? len : sizeof(rail->listen_addr));
    if (!tp->rdma)
        ofi_sock_setup_listener(tp, rail);
    return KEEL_OK;
}

keel_status ofi_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    struct ofi_tp *tp = ofi_tp_of(base);
    if (tp->rdma)
        return rdma_accept(tp, req, user, out);
    struct ofi_ep *ep = ofi_ep_new(tp, user, EP_ACCEPTING);
    if (!ep)
        return KEEL_ERR_NOMEM;
    struct sockaddr_in6 peer = {0};
    memcpy(&peer, req->info->dest_addr,
           req->info->dest_addrlen < sizeof(peer) ? req->info->dest_addrlen : sizeof(peer));
    int rc = ofi_ep_open(ep, req->info);
    if (!rc)
        rc = fi_accept(ep->fid, NULL, 0);
    if (rc) {
        log_warn_some("transport: cannot accept a connection: %s", fabric_calls.strerror(-rc));
        ofi_ep_discard(ep);
        ofi_reject(base, req);
        return KEEL_ERR_SYSTEM;
    }
    LIST_REMOVE(req, link);
    fabric_calls.freeinfo(req->info);
    free(req);
    if (!ofi_sock_setup_accepted(ep, &peer)) {
        log_warn_some("transport: the socket of an accepted connection was not found");
        ofi_ep_discard(ep);
        return KEEL_ERR_SYSTEM;
    }
    tp->eq_due = true;
    *out = &ep->base;
    return KEEL_OK;
}

void ofi_reject(struct tp *base, struct tp_connreq *req)
{
    struct ofi_tp *tp = ofi_tp_of(base);
    if (tp->rdma) {
        rdma_reject(tp, req);
        return;
    }
    ofi_refuse(req->pep, req->info->handle);
    LIST_REMOVE(req, link);
    fabric_calls.freeinfo(req->info);
    free(req);
}

void ofi_disconnect(struct tp_ep *tp_ep)
{
    struct ofi_ep *ep = (struct ofi_ep *)tp_ep;
    if (ep->state >= EP_FLUSHING)
        return;
    ofi_ep_shut(ep);
    ep_begin_end(ep, EP_FLUSHING, KEEL_ERR_LINK);
}

static void orphan_all(struct ofi_tp *tp, struct ofi_ep *ep)
{
    struct xfer *x;
    while ((x = TAILQ_FIRST(&ep->inflight)) != NULL) {
        TAILQ_REMOVE(&ep->inflight, x, link);
        x->ep = NULL;
        x->op = NULL;
    }
    while ((x = TAILQ_FIRST(&ep->waiting)) != NULL) {
        TAILQ_REMOVE(&ep->waiting, x, link);
        ofi_xfer_free(tp, x);
    }
    TAILQ_FOREACH(x, &tp->held, link)
        if (x->ep == ep)
            x->ep = NULL;
}

void ofi_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    struct ofi_ep *ep = (struct ofi_ep *)tp_ep;
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    ofi_ep_shut(ep);
    orphan_all(tp, ep);
    if (ep->req)
        ep->req->ep = NULL;
    tp->device.hidden -= ep->hidden;
    if (ep->whole)
        ofi_copy_free(tp, ep->whole);
    struct cm_event *event = STAILQ_FIRST(&tp->cm_events), *next;
    for (; event; event = next) {
        next = STAILQ_NEXT(event, link);
        if (event->event.ep == tp_ep)
            STAILQ_REMOVE(&tp->cm_events, event, cm_event, link);
    }
    if (ep->in_ending)
        TAILQ_REMOVE(&tp->ending, ep, end_link);
    TAILQ_REMOVE(&tp->eps, ep, all);
    if (ep->state != EP_CLOSED)
        ofi_ep_set_state(ep, EP_CLOSED);
    /* events of the batch the caller is working on may still name it */
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, all);
}
