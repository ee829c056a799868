/* Connections between nodes: libfabric 1.17, FI_EP_MSG, exactly the provider asked for (docs/adr/0020).
 *
 * Memory keys. The tcp provider registers in "scalable" mode: the key is ours and remote addresses are offsets from 0.
 * That of RDMA devices, verbs, gives its own keys and takes virtual addresses: who writes or reads asks the peer for
 * them (ofi_frame.c). */
#include "runtime/net/ofi/ofi_init.h"
#include "runtime/net/ofi/ofi_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

/* ---- open and close ---- */

static bool is_rdma(const char *provider)
{
    return strcmp(provider, "verbs") == 0;
}

/* The one line that says what is missing. */
static void complain(const struct tp_config *config, const char *host, int rc)
{
    bool rdma = is_rdma(config->provider);
    char why[REFUSAL_MAX];
    const char *hint =
        rc == -FI_ENODATA && rdma ? " (is there an RDMA device with this address, and permission to open it?)" : "";
    LOG_AT(config->optional ? LOG_INFO : LOG_ERROR, "transport: libfabric's provider \"%s\" cannot be used on %s: %s%s",
           config->provider, host,
           rc <= -FI_EOTHER ? fabric_calls.strerror(-rc)
           : rdma           ? refusal_locking(-rc, why)
                            : refusal_error(-rc, why),
           hint);
}

/* What libfabric says of no memory is what the caller hears; all else is a refusal of the system's. */
static keel_status refused(int rc)
{
    return rc == -FI_ENOMEM ? KEEL_ERR_NOMEM : KEEL_ERR_SYSTEM;
}

/* Without, a line has said what is missing. */
static keel_status find_provider(const struct tp_config *config, const char *host, struct fi_info **out)
{
    const char *provider = config->provider;
    *out = NULL;
    if (is_rdma(provider))
        rdma_prepare_library();
    if (!ofi_init(is_rdma(provider)))
        return KEEL_ERR_SYSTEM;
    struct fi_info *hints = fabric_calls.dupinfo(NULL), *info = NULL;
    if (!hints) {
        complain(config, host, -FI_ENOMEM);
        return KEEL_ERR_NOMEM;
    }
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->mr_mode = 0;
    hints->fabric_attr->prov_name = strdup(provider);
    if (is_rdma(provider))
        rdma_hints(hints);
    int rc = fabric_find(host, hints, &info);
    fabric_calls.freeinfo(hints);
    if (rc == 0 && strcmp(info->fabric_attr->prov_name, provider) == 0 && info->src_addr &&
        info->src_addrlen <= sizeof(struct sockaddr_in6)) {
        *out = info;
        return KEEL_OK;
    }
    complain(config, host, rc ? rc : -FI_ENODATA);
    fabric_calls.freeinfo(info);
    return refused(rc);
}

/* A device is one rail: its memory is registered with it, and its connections are those of one address. */
static keel_status find_rails(struct ofi_tp *tp, const struct tp_config *config)
{
    int rails = tp->rdma ? 1 : tp_config_rails(config);
    for (int i = 0; i < rails; i++) {
        struct fi_info *info;
        keel_status status = find_provider(config, i ? config->more[i - 1] : config->host, &info);
        tp->rail[i] = (struct ofi_rail){.info = info, .listen_fd = -1};
        if (status != KEEL_OK)
            return status;
        tp->rails++;
    }
    tp->info = tp->rail[0].info;
    return KEEL_OK;
}

static int open_queues(struct ofi_tp *tp)
{
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD, .size = tp->rdma ? RDMA_CQ : 4096};
    int rc;
    if ((rc = fabric_calls.fabric(tp->info->fabric_attr, &tp->fabric, tp)) != 0 ||
        (rc = fi_domain(tp->fabric, tp->info, &tp->domain, tp)) != 0 ||
        (rc = fi_eq_open(tp->fabric, &eq_attr, &tp->eq, tp)) != 0 ||
        (rc = fi_cq_open(tp->domain, &cq_attr, &tp->cq, tp)) != 0 ||
        (rc = fi_control(&tp->eq->fid, FI_GETWAIT, &tp->eq_fd)) != 0 ||
        (rc = fi_control(&tp->cq->fid, FI_GETWAIT, &tp->cq_fd)) != 0)
        return rc;
    struct epoll_event event = {.events = EPOLLIN};
    tp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (tp->epoll_fd < 0 || epoll_ctl(tp->epoll_fd, EPOLL_CTL_ADD, tp->eq_fd, &event) ||
        epoll_ctl(tp->epoll_fd, EPOLL_CTL_ADD, tp->cq_fd, &event))
        return -errno;
    if (tp->rdma)
        return 0;
    tp->room_fd = epoll_create1(EPOLL_CLOEXEC);
    if (tp->room_fd < 0 || epoll_ctl(tp->epoll_fd, EPOLL_CTL_ADD, tp->room_fd, &event))
        return -errno;
    ofi_sock_mute(tp);
    return 0;
}

static void close_fid(void *fid_holder)
{
    if (fid_holder)
        fi_close((struct fid *)fid_holder);
}

/* Provider trap (tcp, 1.17): closing the listener leaves the handshakes of those whom it let in and who have not said
 * hello, and the next look at the event queue uses the listener that is gone. So it is closed when nobody will look
 * any more. */
static void end_waiting_connections(struct ofi_tp *tp)
{
    if (!tp->listening)
        return;
    struct tp_connreq *req;
    if (!tp->rdma) {
        ofi_eq_drain(tp);
        ofi_sock_guard(tp, GUARD_ALL);
        ofi_eq_drain(tp);
    }
    while ((req = LIST_FIRST(&tp->reqs)) != NULL)
        ofi_reject(&tp->base, req);
    while (tp->listening > 0)
        fi_close(&tp->rail[--tp->listening].pep->fid);
}

static void ofi_close(struct tp *base)
{
    struct ofi_tp *tp = ofi_tp_of(base);
    struct ofi_ep *ep;
    struct region *region;
    while ((ep = TAILQ_FIRST(&tp->eps)) != NULL)
        ofi_ep_destroy(&ep->base);
    if (tp->eq)
        end_waiting_connections(tp);
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, all);
        free(ep);
    }
    while ((region = LIST_FIRST(&tp->regions)) != NULL) {
        LIST_REMOVE(region, link);
        fi_close(&region->mr->fid);
        free(region);
    }
    if (tp->rdma)
        rdma_close(tp);
    close_fid(tp->cq);
    close_fid(tp->eq);
    ofi_pools_free(tp);
    free(tp->kept);
    if (tp->spare_fd >= 0)
        close(tp->spare_fd);
    close_fid(tp->domain);
    close_fid(tp->fabric);
    if (tp->room_fd >= 0)
        close(tp->room_fd);
    if (tp->epoll_fd >= 0)
        close(tp->epoll_fd);
    for (int i = 0; i < tp->rails; i++)
        fabric_calls.freeinfo(tp->rail[i].info);
    free(tp);
}

static keel_status ofi_open(const struct tp_config *config, struct tp **out)
{
    if (!config->host || !config->provider)
        return KEEL_ERR_ARG;
    struct ofi_tp *tp = calloc(1, sizeof(*tp));
    if (!tp)
        return KEEL_ERR_NOMEM;
    tp->base.table = &tp_ofi;
    tp->epoll_fd = tp->room_fd = tp->spare_fd = -1;
    TAILQ_INIT(&tp->eps);
    TAILQ_INIT(&tp->waiting);
    TAILQ_INIT(&tp->ending);
    TAILQ_INIT(&tp->graveyard);
    STAILQ_INIT(&tp->cm_events);
    TAILQ_INIT(&tp->held);
    TAILQ_INIT(&tp->pools.free_xfers);
    TAILQ_INIT(&tp->pools.free_rbufs);
    tp->rdma = is_rdma(config->provider);
    tp->recv_depth = tp->rdma                 ? RDMA_CREDITS + RDMA_RESERVE
                     : config->recv_depth > 0 ? config->recv_depth
                                              : OFI_RECV_DEPTH;
    tp->pools.rbuf_bytes = tp->rdma ? RDMA_FRAME : TP_BULK_MAX;
    keel_status status = find_rails(tp, config);
    int rc = status == KEEL_OK ? open_queues(tp) : 0;
    if (!rc && status == KEEL_OK && tp->rdma)
        rc = rdma_open(tp, config->connections);
    if (rc) {
        complain(config, config->host, rc);
        refusal_keep(-rc);
        status = refused(rc);
    }
    if (status != KEEL_OK) {
        ofi_close(&tp->base);
        return status;
    }
    tp->inject_max = tp->info->tx_attr->inject_size;
    if (tp->inject_max > OFI_INJECT_MAX)
        tp->inject_max = OFI_INJECT_MAX;
    *out = &tp->base;
    return KEEL_OK;
}

/* ---- memory ---- */

static keel_status ofi_reg(struct tp *base, void *memory, size_t len, uint64_t key)
{
    struct ofi_tp *tp = ofi_tp_of(base);
    struct region *region;
    if (tp->rdma) /* the provider keeps keys of its own */
        LIST_FOREACH(region, &tp->regions, link)
            if (region->key == key)
                return KEEL_ERR_ARG;
    region = calloc(1, sizeof(*region));
    if (!region)
        return KEEL_ERR_NOMEM;
    int rc = fi_mr_reg(tp->domain, memory, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &region->mr, NULL);
    if (rc) {
        free(region);
        return rc == -FI_ENOKEY ? KEEL_ERR_ARG : rc == -FI_ENOMEM ? KEEL_ERR_NOMEM : KEEL_ERR_SYSTEM;
    }
    region->key = key;
    region->memory = memory;
    region->len = len;
    LIST_INSERT_HEAD(&tp->regions, region, link);
    return KEEL_OK;
}

static void ofi_unreg(struct tp *base, uint64_t key)
{
    struct region *region;
    LIST_FOREACH(region, &ofi_tp_of(base)->regions, link) {
        if (region->key != key)
            continue;
        LIST_REMOVE(region, link);
        fi_close(&region->mr->fid);
        free(region);
        return;
    }
}

static int ofi_wait_fd(struct tp *base)
{
    return ofi_tp_of(base)->epoll_fd;
}

const struct tp_table tp_ofi = {
    .name = "ofi",
    .open = ofi_open,
    .close = ofi_close,
    .listen = ofi_listen,
    .connect = ofi_connect,
    .accept = ofi_accept,
    .reject = ofi_reject,
    .disconnect = ofi_disconnect,
    .ep_destroy = ofi_ep_destroy,
    .reg = ofi_reg,
    .unreg = ofi_unreg,
    .send = ofi_send,
    .place = ofi_place,
    .write = ofi_write,
    .read = ofi_read,
    .room = ofi_room,
    .moved = ofi_sock_moved,
    .poll = ofi_poll,
    .wait_fd = ofi_wait_fd,
    .arm = ofi_arm,
};
