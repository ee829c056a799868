/* Connections over an RDMA device (provider verbs; docs/adr/0020).
 *
 * The device's connection manager carries 56 bytes with a request, too few for a hello. So a request is taken at once,
 * and the hello is the first frame; the caller is told of it, and its verdict is a frame, too:
 *
 *   connector                                     the one that listens
 *   CONNECTING: an address, a queue pair
 *     request ------------------------------>     CONNREQ of the provider: an endpoint, hidden from the caller
 *     <---------------------------------- accept
 *     HELLO frame --------------------------->     TP_CONNREQ
 *   UP  <------------------- ACCEPTED frame       tp_accept: UP
 *   or closed, KEEL_ERR_AUTH <- REJECTED frame    tp_reject: ended when the connector has left, or after a while
 *
 * To open an endpoint the provider (1.17) asks the network for the peer's address, and waits for it: two seconds, if
 * the peer is gone. A thread of its own does that for each connection that is made.
 *
 * The provider keeps memory registered that we have given up, for the next time (its cache), and a peer that has the
 * key could go on writing there. So the cache is switched off, by the only way there is, before libfabric starts;
 * rdma_open sees that it is off. */
#include "runtime/net/ofi/ofi_int.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/reserve.h"

enum {
    INVALID_SERVICE = 8, /* the connection manager's reason: nobody listens there */
};

/* One endpoint that a thread opens. */
struct opening {
    STAILQ_ENTRY(opening) link;
    struct openings *all;
    struct ofi_ep *ep; /* NULL: not wanted any more */
    struct fi_info *info;
    struct fid_domain *domain;
    struct fid_ep *fid;
    pthread_t thread;
    int rc;
    size_t len;
    uint8_t hello[TP_HELLO_MAX];
};
STAILQ_HEAD(opening_list, opening);

struct openings {
    pthread_mutex_t lock;
    struct opening_list done; /* under lock */
    atomic_int finished;      /* the number of done; by the threads and by whoever takes them */
    int running;              /* threads not joined */
    int event_fd;
};

void rdma_prepare_library(void)
{
    setenv("FI_MR_CACHE_MAX_COUNT", "0", 1);
}

void rdma_hints(struct fi_info *hints)
{
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->tx_attr->size = RDMA_SEND_QUEUE;
    hints->rx_attr->size = RDMA_CREDITS + RDMA_RESERVE;
}

/* With the provider's cache a second registration of the same memory is the first one again. Only what peers may
 * read has a key. */
static int register_scratch(struct ofi_tp *tp, struct fid_mr **mr)
{
    return fi_mr_reg(tp->domain, tp->device.scratch, sizeof tp->device.scratch, FI_READ | FI_REMOTE_READ, 0, 0, 0, mr,
                     NULL);
}

static bool cache_is_off(struct ofi_tp *tp)
{
    struct fid_mr *again;
    if (register_scratch(tp, &again))
        return false;
    bool off = fi_mr_key(again) != fi_mr_key(tp->device.scratch_mr);
    fi_close(&again->fid);
    return off;
}

/* May the receive buffers of so many connections be locked? Who has the privilege may lock more than the limit, so
 * it is tried. */
static int try_to_lock(struct ofi_tp *tp, int connections)
{
    size_t needed = (size_t)connections * (size_t)tp->recv_depth * tp->pools.rbuf_bytes;
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur >= needed)
        return 0;
    size_t len = limit.rlim_cur + (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -FI_ENOMEM;
    struct fid_mr *mr;
    int rc = fi_mr_reg(tp->domain, memory, len, FI_RECV, 0, 0, 0, &mr, NULL);
    if (!rc)
        fi_close(&mr->fid);
    munmap(memory, len);
    return rc;
}

int rdma_open(struct ofi_tp *tp, int connections)
{
    int rc = try_to_lock(tp, connections);
    if (!rc)
        rc = register_scratch(tp, &tp->device.scratch_mr);
    if (rc)
        return rc;
    if (!cache_is_off(tp)) {
        log_error("transport: libfabric keeps memory registered that was given up; set FI_MR_CACHE_MAX_COUNT=0");
        return -FI_EBUSY;
    }
    struct openings *all = calloc(1, sizeof *all);
    if (!all)
        return -FI_ENOMEM;
    pthread_mutex_init(&all->lock, NULL);
    STAILQ_INIT(&all->done);
    all->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tp->device.openings = all;
    struct epoll_event event = {.events = EPOLLIN};
    return all->event_fd >= 0 && epoll_ctl(tp->epoll_fd, EPOLL_CTL_ADD, all->event_fd, &event) == 0 ? 0 : -FI_EOTHER;
}

/* ---- connecting ---- */

static void *open_endpoint(void *arg)
{
    struct opening *o = arg;
    struct openings *all = o->all;
    o->rc = fi_endpoint(o->domain, o->info, &o->fid, NULL);
    if (o->rc && reserve_give(-o->rc)) /* one, until the endpoint has the event queue's channel */
        o->rc = fi_endpoint(o->domain, o->info, &o->fid, NULL);
    pthread_mutex_lock(&all->lock);
    STAILQ_INSERT_TAIL(&all->done, o, link);
    atomic_fetch_add(&all->finished, 1);
    eventfd_write(all->event_fd, 1);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static bool begin(struct opening *o)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool good = pthread_create(&o->thread, NULL, open_endpoint, o) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return good;
}

keel_status rdma_connect(struct ofi_ep *ep, const void *hello, size_t len)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    struct opening *o = calloc(1, sizeof *o);
    if (o)
        o->info = fabric_calls.dupinfo(tp->info);
    if (!o || !o->info || !(o->info->dest_addr = malloc(tp->info->src_addrlen))) {
        if (o)
            fabric_calls.freeinfo(o->info);
        free(o);
        ofi_ep_discard(ep);
        return KEEL_ERR_NOMEM;
    }
    memcpy(o->info->dest_addr, &ep->peer, tp->info->src_addrlen);
    o->info->dest_addrlen = tp->info->src_addrlen;
    o->domain = tp->domain;
    o->all = tp->device.openings;
    o->ep = ep;
    o->len = len;
    if (len)
        memcpy(o->hello, hello, len);
    if (!begin(o)) {
        fabric_calls.freeinfo(o->info);
        free(o);
        ofi_ep_discard(ep);
        return KEEL_ERR_SYSTEM;
    }
    tp->device.openings->running++;
    ep->opening = o;
    return KEEL_OK;
}

static void opening_free(struct opening *o)
{
    fabric_calls.freeinfo(o->info);
    free(o);
}

/* Nobody waits for it any more. Of an endpoint that is connected: nothing to do but to forget what it would have
 * said. */
void rdma_abandon(struct ofi_ep *ep)
{
    struct opening *o = ep->opening;
    ep->opening = NULL;
    if (!o)
        return;
    o->ep = NULL;
    if (!o->all) /* its thread has ended */
        opening_free(o);
}

bool rdma_any_opened(const struct ofi_tp *tp)
{
    return tp->device.openings && atomic_load_explicit(&tp->device.openings->finished, memory_order_relaxed) > 0;
}

static void go_on(struct opening *o)
{
    struct ofi_ep *ep = o->ep;
    int rc = o->rc;
    o->all = NULL;
    if (!ep) {
        if (!rc)
            fi_close(&o->fid->fid);
        opening_free(o);
        return;
    }
    if (!rc) {
        ep->fid = o->fid;
        ep->fid->fid.context = ep;
        rc = ofi_ep_open(ep, o->info);
    }
    if (!rc)
        rc = fi_connect(ep->fid, &ep->peer, NULL, 0);
    if (rc) {
        log_debug("transport: no RDMA path to a peer: %s", fabric_calls.strerror(-rc));
        ofi_ep_lost(ep, KEEL_ERR_LINK);
    }
}

static struct opening *take_one(struct openings *all)
{
    pthread_mutex_lock(&all->lock);
    struct opening *o = STAILQ_FIRST(&all->done);
    if (o) {
        STAILQ_REMOVE_HEAD(&all->done, link);
        atomic_fetch_sub(&all->finished, 1);
    } else {
        eventfd_t ignored;
        eventfd_read(all->event_fd, &ignored);
    }
    pthread_mutex_unlock(&all->lock);
    if (!o)
        return NULL;
    pthread_join(o->thread, NULL);
    all->running--;
    return o;
}

void rdma_take_opened(struct ofi_tp *tp)
{
    struct opening *o;
    while ((o = take_one(tp->device.openings)) != NULL)
        go_on(o);
    tp->eq_due = true;
}

/* All endpoints have been destroyed. */
void rdma_close(struct ofi_tp *tp)
{
    struct openings *all = tp->device.openings;
    while (all && all->running > 0) {
        struct opening *o = take_one(all);
        struct pollfd opened = {.fd = all->event_fd, .events = POLLIN};
        if (o)
            go_on(o);
        else
            (void)poll(&opened, 1, 100); /* each thread that ends writes */
    }
    if (all) {
        if (all->event_fd >= 0)
            close(all->event_fd);
        pthread_mutex_destroy(&all->lock);
        free(all);
    }
    if (tp->device.scratch_mr)
        fi_close(&tp->device.scratch_mr->fid);
}

void rdma_on_connected(struct ofi_ep *ep)
{
    struct opening *o = ep->opening;
    if (ep->state != EP_CONNECTING || !o)
        return;
    ep->credits = RDMA_CREDITS;
    rdma_tell(ep, FRAME_HELLO, o->hello, o->len);
    rdma_abandon(ep);
}

keel_status rdma_on_connect_error(const struct fi_eq_err_entry *err)
{
    bool nobody =
        err->err == FI_ECONNREFUSED && (err->prov_errno == INVALID_SERVICE || err->prov_errno == -INVALID_SERVICE);
    return nobody ? KEEL_ERR_NODE_DEAD : KEEL_ERR_LINK;
}

void rdma_on_verdict(struct ofi_ep *ep, bool accepted)
{
    if (ep->state != EP_CONNECTING)
        return;
    if (!accepted) {
        ofi_ep_lost(ep, KEEL_ERR_AUTH);
        return;
    }
    ofi_ep_set_state(ep, EP_UP);
    ofi_cm_tell(ofi_tp_of_ep(ep), &ep->connected, (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base});
}
