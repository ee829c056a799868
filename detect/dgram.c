#include "detect/dgram.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/net/ofi/fabric.h"
#include "runtime/net/ofi/ofi_init.h"

enum { BUFFERS = 256 };

struct buffer {
    struct fi_context2 context;
    uint8_t data[DGRAM_MAX];
};

struct dgram {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    int fd;
    fi_addr_t *peers;
    struct buffer *held; /* what the caller looks at */
    struct buffer buffers[BUFFERS];
};

static struct fi_info *find(const char *host)
{
    if (!ofi_init(false))
        return NULL; /* which has been said */
    struct fi_info *hints = fabric_calls.dupinfo(NULL), *info = NULL;
    if (!hints)
        return NULL;
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_DGRAM;
    hints->fabric_attr->prov_name = strdup("udp");
    int rc = fabric_find(host, hints, &info);
    fabric_calls.freeinfo(hints);
    if (rc == 0 && strcmp(info->fabric_attr->prov_name, "udp") == 0)
        return info;
    log_error("detect: libfabric has no provider \"udp\" for address %s: %s", host, fabric_calls.strerror(-rc));
    if (rc == 0)
        fabric_calls.freeinfo(info);
    return NULL;
}

static int open_all(struct dgram *d, struct dgram_addr *addr)
{
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD, .size = 2 * BUFFERS};
    size_t len = sizeof addr->bytes;
    int rc;
    if ((rc = fabric_calls.fabric(d->info->fabric_attr, &d->fabric, NULL)) != 0 ||
        (rc = fi_domain(d->fabric, d->info, &d->domain, NULL)) != 0 ||
        (rc = fi_av_open(d->domain, &av_attr, &d->av, NULL)) != 0 ||
        (rc = fi_cq_open(d->domain, &cq_attr, &d->cq, NULL)) != 0 ||
        (rc = fi_endpoint(d->domain, d->info, &d->ep, NULL)) != 0 || (rc = fi_ep_bind(d->ep, &d->av->fid, 0)) != 0 ||
        (rc = fi_ep_bind(d->ep, &d->cq->fid, FI_RECV | FI_TRANSMIT)) != 0 || (rc = fi_enable(d->ep)) != 0 ||
        (rc = fi_control(&d->cq->fid, FI_GETWAIT, &d->fd)) != 0 ||
        (rc = fi_getname(&d->ep->fid, addr->bytes, &len)) != 0)
        return rc;
    addr->len = (uint32_t)len;
    for (int i = 0; i < BUFFERS - 1 && !rc; i++)
        rc = (int)fi_recv(d->ep, d->buffers[i].data, DGRAM_MAX, NULL, FI_ADDR_UNSPEC, &d->buffers[i].context);
    d->held = &d->buffers[BUFFERS - 1];
    return rc == -FI_EAGAIN ? 0 : rc;
}

keel_status dgram_open(const char *host, struct dgram **out, struct dgram_addr *addr)
{
    struct dgram *d = calloc(1, sizeof *d);
    if (!d)
        return KEEL_ERR_NOMEM;
    memset(addr, 0, sizeof *addr);
    d->info = find(host);
    int rc = d->info ? open_all(d, addr) : -FI_ENODATA;
    if (rc) {
        if (d->info)
            log_error("detect: cannot open a datagram endpoint on %s: %s", host, fabric_calls.strerror(-rc));
        dgram_close(d);
        return refusal_note(-rc);
    }
    *out = d;
    return KEEL_OK;
}

static void close_fid(struct fid *fid)
{
    if (fid)
        fi_close(fid);
}

void dgram_close(struct dgram *d)
{
    if (!d)
        return;
    close_fid(d->ep ? &d->ep->fid : NULL);
    close_fid(d->cq ? &d->cq->fid : NULL);
    close_fid(d->av ? &d->av->fid : NULL);
    close_fid(d->domain ? &d->domain->fid : NULL);
    close_fid(d->fabric ? &d->fabric->fid : NULL);
    if (d->info)
        fabric_calls.freeinfo(d->info);
    free(d->peers);
    free(d);
}

keel_status dgram_set_peers(struct dgram *d, const struct dgram_addr *addrs, int n)
{
    d->peers = calloc((size_t)n, sizeof *d->peers);
    if (!d->peers)
        return KEEL_ERR_NOMEM;
    for (int i = 0; i < n; i++)
        d->peers[i] = FI_ADDR_UNSPEC;
    for (int i = 0; i < n; i++)
        if (addrs[i].len && !dgram_set_peer(d, i, &addrs[i]))
            return KEEL_ERR_ARG;
    return KEEL_OK;
}

bool dgram_set_peer(struct dgram *d, int peer, const struct dgram_addr *addr)
{
    fi_addr_t known = FI_ADDR_UNSPEC;
    if (!addr->len || addr->len > sizeof addr->bytes || fi_av_insert(d->av, addr->bytes, 1, &known, 0, NULL) != 1)
        return false;
    if (d->peers[peer] != FI_ADDR_UNSPEC)
        fi_av_remove(d->av, &d->peers[peer], 1, 0);
    d->peers[peer] = known;
    return true;
}

void dgram_send(struct dgram *d, int peer, const void *data, size_t len)
{
    if (d->peers[peer] == FI_ADDR_UNSPEC)
        return;
    ssize_t rc = fi_inject(d->ep, data, len, d->peers[peer]);
    if (rc)
        log_debug("detect: datagram to node %d not sent: %s", peer, fabric_calls.strerror((int)-rc));
}

const void *dgram_recv(struct dgram *d, size_t *len)
{
    struct fi_cq_msg_entry entry;
    ssize_t got;
    while ((got = fi_cq_read(d->cq, &entry, 1)) == -FI_EAVAIL) {
        struct fi_cq_err_entry err = {0};
        if (fi_cq_readerr(d->cq, &err, 0) != 1)
            return NULL;
        struct buffer *bad = err.op_context;
        if (bad)
            fi_recv(d->ep, bad->data, DGRAM_MAX, NULL, FI_ADDR_UNSPEC, &bad->context);
    }
    if (got != 1)
        return NULL;
    struct buffer *buffer = entry.op_context;
    fi_recv(d->ep, d->held->data, DGRAM_MAX, NULL, FI_ADDR_UNSPEC, &d->held->context);
    d->held = buffer;
    *len = entry.len;
    return buffer->data;
}

int dgram_wait_fd(const struct dgram *d)
{
    return d->fd;
}

bool dgram_arm(struct dgram *d)
{
    struct fid *fid = &d->cq->fid;
    return fi_trywait(d->fabric, &fid, 1) == 0;
}
