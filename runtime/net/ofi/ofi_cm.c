#include "runtime/net/ofi/ofi_int.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/base/reserve.h"

/* What a rejecting side says. The provider reports a rejection and a closed port with the same error; only a
 * rejection carries data. */
static const char REJECTED[] = "keel: rejected";

/* Steps of handshakes in one go, before transfers get their turn again. */
enum { EQ_ROUNDS = 64 };
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

static keel_status ofi_status_of_connect_error(int err, bool rejected)
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
    fi_reject(req->pep, req->info->handle, REJECTED, sizeof(REJECTED));
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
    tp->hidden -= ep->hidden;
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

/* ---- the event queue ---- */

void ofi_cm_tell(struct ofi_tp *tp, struct cm_event *entry, struct tp_event event)
{
    entry->event = event;
    STAILQ_INSERT_TAIL(&tp->cm_events, entry, link);
}

static void on_connreq(struct ofi_tp *tp, const struct fi_eq_cm_entry *cm, size_t data_len)
{
    struct fid_pep *pep = container_of(cm->fid, struct fid_pep, fid);
    struct ofi_hello hello = {0};
    if (data_len == sizeof(hello))
        memcpy(&hello, cm->data, sizeof(hello));
    bool good = data_len == sizeof(hello) && hello.len <= TP_HELLO_MAX;
    struct tp_connreq *req = good ? calloc(1, sizeof(*req)) : NULL;
    if (!req) {
        fi_reject(pep, cm->info->handle, REJECTED, sizeof(REJECTED));
        fabric_calls.freeinfo(cm->info);
        return;
    }
    req->info = cm->info;
    req->pep = pep;
    req->len = hello.len;
    memcpy(req->hello, hello.bytes, hello.len);
    LIST_INSERT_HEAD(&tp->reqs, req, link);
    ofi_cm_tell(tp, &req->told, (struct tp_event){.type = TP_CONNREQ, .req = req, .data = req->hello, .len = req->len});
}

static void on_connected(struct ofi_tp *tp, struct ofi_ep *ep)
{
    if (tp->rdma) {
        rdma_on_connected(ep);
        return;
    }
    if (ep->state != EP_CONNECTING && ep->state != EP_ACCEPTING)
        return;
    if (!ofi_sock_watch(ep)) {
        log_warn_some("transport: the socket of a new connection cannot be watched: it ends");
        ofi_ep_lost(ep, KEEL_ERR_LINK);
        return;
    }
    ofi_ep_set_state(ep, EP_UP);
    ofi_cm_tell(tp, &ep->connected, (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base});
}

static void on_shutdown(struct ofi_ep *ep)
{
    if (ofi_tp_of_ep(ep)->rdma && ep->fid)
        fi_shutdown(ep->fid, 0); /* what is posted comes back */
    ep->provider_down = true;
    ofi_ep_lost(ep, KEEL_ERR_LINK);
}

static void on_error(struct ofi_tp *tp)
{
    struct fi_eq_err_entry err = {0};
    if (fi_eq_readerr(tp->eq, &err, 0) < 0)
        return;
    if (err.err == FI_ENODEV && tp->rdma && !tp->gone) { /* each connection and the listener say it */
        tp->gone = true;
        ofi_cm_tell(tp, &tp->told_gone, (struct tp_event){.type = TP_GONE});
    }
    if (!err.fid || err.fid->fclass != FI_CLASS_EP)
        return;
    struct ofi_ep *ep = err.fid->context;
    bool connecting = ep->state == EP_CONNECTING;
    ep->provider_down = true;
    ep->base.error = connecting ? err.err : 0;
    ofi_ep_lost(ep, connecting && tp->rdma ? rdma_on_connect_error(&err)
                    : connecting           ? ofi_status_of_connect_error(err.err, err.err_data_size > 0)
                                           : KEEL_ERR_LINK);
}

static void read_events(struct ofi_tp *tp)
{
    union {
        struct fi_eq_cm_entry cm;
        uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 256];
    } entry;
    for (;;) {
        uint32_t type;
        /* Provider trap (tcp, 1.17): when a peer closes before its hello is whole, the provider takes errno for the
         * reason, and a stale EAGAIN there makes it keep the dead socket, readable, for ever. */
        errno = 0;
        ssize_t n = fi_eq_read(tp->eq, &type, &entry, sizeof(entry), 0);
        if (n == -FI_EAVAIL) {
            on_error(tp);
            continue;
        }
        if (n < 0)
            break;
        if (type == FI_CONNREQ && tp->rdma)
            rdma_on_connreq(tp, entry.cm.info);
        else if (type == FI_CONNREQ)
            on_connreq(tp, &entry.cm, (size_t)n - sizeof(entry.cm));
        else if (type == FI_CONNECTED)
            on_connected(tp, entry.cm.fid->context);
        else if (type == FI_SHUTDOWN)
            on_shutdown(entry.cm.fid->context);
    }
}

static bool eq_has_something(struct ofi_tp *tp)
{
    struct pollfd fd = {.fd = tp->eq_fd, .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

/* One read takes one step of each handshake and accepts one connection: go on while there is something to do. The
 * descriptor of tcp's queue says whether there is, in one system call for the three of a look in vain. */
void ofi_eq_drain(struct ofi_tp *tp)
{
    struct fid *fid = &tp->eq->fid;
    int rounds = 0;
    while (rounds < EQ_ROUNDS && ((tp->rdma && rounds == 0) || eq_has_something(tp))) {
        read_events(tp);
        (void)fi_trywait(tp->fabric, &fid, 1); /* takes back the wake-up of what we have just read */
        rounds++;
    }
    tp->eq_due |= rounds == EQ_ROUNDS;
    if (tp->rdma)
        rdma_guard(tp);
    else if (tp->listening)
        ofi_sock_guard(tp, rounds == EQ_ROUNDS ? GUARD_NOW : GUARD_IF_DUE); /* many: a flood */
}
