/* What the provider says of connections. */
#include "runtime/net/ofi/ofi_int.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"

/* Steps of handshakes in one go, before transfers get their turn again. */
enum { EQ_ROUNDS = 64 };

/* The provider reports a rejection and a closed port with the same error; only a rejection carries data. */
void ofi_refuse(struct fid_pep *pep, fid_t handle)
{
    static const char said[] = "keel: rejected";
    fi_reject(pep, handle, said, sizeof(said));
}

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
        ofi_refuse(pep, cm->info->handle);
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
    if (err.err == FI_ENODEV && tp->rdma && !tp->device.gone) { /* each connection and the listener say it */
        tp->device.gone = true;
        ofi_cm_tell(tp, &tp->device.told_gone, (struct tp_event){.type = TP_GONE});
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
