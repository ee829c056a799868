/* The probe over libibverbs: RDMA READ of the heartbeat word over one RC queue pair per watched node and direction, all
 * datagrams over one UD queue pair whose address handles are made in advance (making one for a dead peer can block for a
 * second).
 *
 * The queue pairs of a watch are joined by two datagrams, sealed like all others:
 *
 *   reader                                   the node it reads
 *   DOWN --- ASK(my queue pair) ----------->  a queue pair for this reader, ready to send
 *   ASKED <-- ANSWER(yours, mine) ----------
 *   UP: reads                                 nothing to do: its device serves them
 *
 *   state   event                              next    action
 *   DOWN    read wanted                        ASKED   new queue pair, ASK
 *   ASKED   ANSWER to this ASK                 UP      ready to send
 *   ASKED   read wanted again, late            ASKED   ASK again
 *   UP      read fails, or is late             DOWN    told as broken: a suspicion; datagrams to it go the other way until
 *                                                      something comes from it by the device
 *   any     not watched, declared dead         DOWN
 *
 * A read is answered by the device as long as the process has its memory registered, so a process that was stopped is
 * seen by its heartbeat that stands still. Time-out and retries give up before late_ns; never 7 retries, which soft
 * devices take for infinitely many; our own deadline comes on top (a completion that never comes). A queue pair in error
 * is thrown away, its flushed completions are ignored by number. RC reads need no receive buffer, so there is no RNR.
 *
 * The library is opened at run time: a machine without it runs the rest. A device that fails or whose port goes down is
 * not used (until the port is back); the helper's other probe carries everything meanwhile. */
#include "detect/probe.h"

#include "runtime/base/log.h"

#ifndef KEEL_HAVE_VERBS

keel_status verbs_open(const struct verbs_config *config, const struct probe_callbacks *callbacks, struct probe **out,
                       struct probe_addr *addr)
{
    (void)callbacks;
    (void)out;
    addr->len = 0;
    if (config->required)
        log_error("detect: this build has no verbs probe: rdma-core's headers were not there");
    return KEEL_ERR_SYSTEM;
}

keel_status verbs_set_peers(struct probe *p, const struct probe_addr *addrs)
{
    (void)p;
    (void)addrs;
    return KEEL_ERR_SYSTEM;
}

void verbs_control(struct probe *p, int node, const void *data, size_t len, uint64_t now)
{
    (void)p;
    (void)node;
    (void)data;
    (void)len;
    (void)now;
}

void verbs_heard(struct probe *p, int node, bool by_device, size_t len)
{
    (void)p;
    (void)node;
    (void)by_device;
    (void)len;
}

#else

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "detect/seal.h"

enum {
    RECVS = 128,
    SENDS = 32,
    GRH = 40,
    SLOT = GRH + PROBE_DATAGRAM_MAX,
    CQ_DEPTH = 512,
    RETRIES = 3,
    QKEY = 0x6b65656c,
    TAG_READ = 1,
    TAG_SEND,
    TAG_RECV,
    MSG_ASK = 1,
    MSG_ANSWER
};

/* ------------------------------------------------------------------------------------------------ the library */

#define FUNCTIONS(X)                                                                                                   \
    X(struct ibv_device **, get_device_list, (int *))                                                                  \
    X(void, free_device_list, (struct ibv_device **))                                                                  \
    X(const char *, get_device_name, (struct ibv_device *))                                                            \
    X(struct ibv_context *, open_device, (struct ibv_device *))                                                        \
    X(int, close_device, (struct ibv_context *))                                                                       \
    X(int, query_port, (struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *))                                \
    X(int, query_gid, (struct ibv_context *, uint8_t, int, union ibv_gid *))                                           \
    X(struct ibv_pd *, alloc_pd, (struct ibv_context *))                                                               \
    X(int, dealloc_pd, (struct ibv_pd *))                                                                              \
    X(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, int))                                                 \
    X(int, dereg_mr, (struct ibv_mr *))                                                                                \
    X(struct ibv_comp_channel *, create_comp_channel, (struct ibv_context *))                                          \
    X(int, destroy_comp_channel, (struct ibv_comp_channel *))                                                          \
    X(struct ibv_cq *, create_cq, (struct ibv_context *, int, void *, struct ibv_comp_channel *, int))                 \
    X(int, destroy_cq, (struct ibv_cq *))                                                                              \
    X(int, get_cq_event, (struct ibv_comp_channel *, struct ibv_cq **, void **))                                       \
    X(void, ack_cq_events, (struct ibv_cq *, unsigned))                                                                \
    X(int, get_async_event, (struct ibv_context *, struct ibv_async_event *))                                          \
    X(void, ack_async_event, (struct ibv_async_event *))                                                               \
    X(const char *, event_type_str, (enum ibv_event_type))                                                             \
    X(struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))                                        \
    X(int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))                                                    \
    X(int, destroy_qp, (struct ibv_qp *))                                                                              \
    X(struct ibv_ah *, create_ah, (struct ibv_pd *, struct ibv_ah_attr *))                                             \
    X(int, destroy_ah, (struct ibv_ah *))                                                                              \
    X(const char *, wc_status_str, (enum ibv_wc_status))

static struct {
    void *library;
#define X(type, name, args) type(*name) args; // NOLINT(bugprone-macro-parentheses): a declaration
    FUNCTIONS(X)
#undef X
} ib;

static bool load_library(void)
{
    if (ib.library)
        return true;
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    bool all = library != NULL;
#define X(type, name, args)                                                                                            \
    if (all && !(*(void **)&ib.name = dlsym(library, "ibv_" #name)))                                                   \
        all = false;
    FUNCTIONS(X)
#undef X
    if (all)
        ib.library = library;
    else if (library)
        dlclose(library);
    return all;
}

/* ------------------------------------------------------------------------------------------------ what there is */

/* What every other node must know of this one; travels in the job's start-up exchange. */
struct address {
    union ibv_gid gid;
    uint64_t heartbeat;
    uint32_t rkey, ud_qpn;
    uint16_t lid;
    uint8_t global; /* the route needs gid */
    uint8_t mtu;    /* enum ibv_mtu */
};
_Static_assert(sizeof(struct address) <= PROBE_ADDR_MAX, "fits");

struct setup { /* ASK: qpn is the reader's. ANSWER: asked repeats it, qpn is the other end */
    uint8_t type, zero[3];
    uint32_t qpn, asked;
};

enum conn_state { CONN_DOWN, CONN_ASKED, CONN_UP };

struct conn {
    bool has_device, watched, avoid, fenced;
    struct address to;
    struct ibv_ah *ah;
    enum conn_state state;
    struct ibv_qp *qp; /* over which we read it */
    bool reading;
    uint64_t since;          /* asked, or the read posted */
    struct ibv_qp *incoming; /* over which it reads us, made for its queue pair incoming_peer */
    uint32_t incoming_peer;
};

struct memory { /* registered; the heartbeat words others read and what reads and datagrams need */
    uint64_t value;
    uint8_t send[SENDS][PROBE_DATAGRAM_MAX];
    uint8_t recv[RECVS][SLOT];
};

struct verbs {
    struct probe probe;
    struct verbs_config config;
    struct probe_callbacks callbacks;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *ud;
    struct memory *memory;
    struct ibv_mr *mr, *heartbeat_mr;
    uint64_t *values; /* destination of the read of each node */
    struct ibv_mr *values_mr;
    struct conn *conns;
    struct address self;
    uint8_t port, gid_index;
    enum ibv_mtu mtu;
    uint32_t ud_max;
    unsigned sends_free, next_send;
    bool usable; /* the device works, its port is up */
    bool dead;   /* the device is gone, for good, and released */
};

static void set_state(struct conn *c, enum conn_state to)
{
    c->state = to;
    c->reading = false;
}

static void drop(struct conn *c)
{
    if (c->qp)
        ib.destroy_qp(c->qp);
    c->qp = NULL;
    set_state(c, CONN_DOWN);
}

static void drop_incoming(struct conn *c)
{
    if (c->incoming)
        ib.destroy_qp(c->incoming);
    c->incoming = NULL;
}

/* ------------------------------------------------------------------------------------------------ queue pairs */

static struct ibv_qp *make_qp(struct verbs *v, enum ibv_qp_type type)
{
    bool ud = type == IBV_QPT_UD;
    struct ibv_qp_init_attr init = {
        .send_cq = v->cq,
        .recv_cq = v->cq,
        .cap = {.max_send_wr = ud ? SENDS : 2, .max_recv_wr = ud ? RECVS : 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type};
    struct ibv_qp *qp = ib.create_qp(v->pd, &init);
    if (!qp)
        return NULL;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = v->port, .qkey = QKEY, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    bool ok = ib.modify_qp(qp, &attr, mask) == 0;
    if (ok && ud) {
        attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
        ok = ib.modify_qp(qp, &attr, IBV_QP_STATE) == 0;
        attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
        ok = ok && ib.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
    }
    if (!ok) {
        ib.destroy_qp(qp);
        return NULL;
    }
    return qp;
}

static struct ibv_ah_attr route(const struct verbs *v, const struct address *to)
{
    struct ibv_ah_attr attr = {.is_global = to->global, .port_num = v->port, .dlid = to->lid};
    attr.grh.dgid = to->gid;
    attr.grh.sgid_index = v->gid_index;
    attr.grh.hop_limit = 64;
    return attr;
}

/* The device's own time-out is 4.096 us * 2^timeout for each of 1 + RETRIES tries: all of them before a read is late. */
static uint8_t timeout_for(uint64_t late_ns)
{
    uint8_t t = 1;
    while (t < 30 && (4096ull << (t + 1)) * (1 + RETRIES) <= late_ns)
        t++;
    return t;
}

static bool join(struct verbs *v, struct ibv_qp *qp, const struct address *to, uint32_t qpn)
{
    enum ibv_mtu mtu = to->mtu < v->mtu ? to->mtu : v->mtu;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = mtu,
                               .dest_qp_num = qpn,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .ah_attr = route(v, to)};
    if (ib.modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = timeout_for(v->config.late_ns),
                                .retry_cnt = RETRIES,
                                .rnr_retry = 1,
                                .max_rd_atomic = 1};
    return ib.modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

/* ------------------------------------------------------------------------------------------------ datagrams */

static bool post_recv(struct verbs *v, unsigned slot)
{
    struct ibv_sge sge = {.addr = (uintptr_t)v->memory->recv[slot], .length = SLOT, .lkey = v->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)slot << 8 | TAG_RECV, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(v->ud, &wr, &bad) == 0;
}

static bool send_datagram(struct verbs *v, struct conn *c, const void *data, size_t len)
{
    if (!v->usable || !c->ah || c->fenced || len > v->ud_max || len > (128u << c->to.mtu) || !v->sends_free)
        return false;
    unsigned slot = v->next_send++ % SENDS; /* completions come in order */
    memcpy(v->memory->send[slot], data, len);
    struct ibv_sge sge = {.addr = (uintptr_t)v->memory->send[slot], .length = (uint32_t)len, .lkey = v->mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = TAG_SEND, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.ud.ah = c->ah;
    wr.wr.ud.remote_qpn = c->to.ud_qpn;
    wr.wr.ud.remote_qkey = QKEY;
    if (ibv_post_send(v->ud, &wr, &bad))
        return false;
    v->sends_free--;
    return true;
}

static bool verbs_send(struct probe *probe, int node, const void *data, size_t len)
{
    struct verbs *v = (struct verbs *)probe;
    return !v->conns[node].avoid && send_datagram(v, &v->conns[node], data, len);
}

static void send_setup(struct verbs *v, int node, uint8_t type, uint32_t qpn, uint32_t asked)
{
    struct setup setup = {.type = type, .qpn = qpn, .asked = asked};
    uint8_t sealed[sizeof setup + SEAL_OVERHEAD];
    size_t len = v->callbacks.seal(v->callbacks.user, node, &setup, sizeof setup, sealed);
    send_datagram(v, &v->conns[node], sealed, len); /* also to one that went the other way: this brings it back */
}

/* ------------------------------------------------------------------------------------------------ connections */

static void ask(struct verbs *v, int node, uint64_t now)
{
    struct conn *c = &v->conns[node];
    if (!c->qp && !(c->qp = make_qp(v, IBV_QPT_RC)))
        return;
    set_state(c, CONN_ASKED);
    c->since = now;
    send_setup(v, node, MSG_ASK, c->qp->qp_num, 0);
}

static void take_ask(struct verbs *v, int node, uint32_t qpn)
{
    struct conn *c = &v->conns[node];
    if (!v->callbacks.admit(v->callbacks.user, node))
        return;
    if (!c->incoming || c->incoming_peer != qpn) {
        drop_incoming(c);
        c->incoming = make_qp(v, IBV_QPT_RC);
        c->incoming_peer = qpn;
        if (c->incoming && !join(v, c->incoming, &c->to, qpn)) {
            log_info("detect: node %d cannot be connected: %m", node);
            drop_incoming(c);
        }
    }
    if (c->incoming)
        send_setup(v, node, MSG_ANSWER, c->incoming->qp_num, qpn);
}

void verbs_control(struct probe *probe, int node, const void *data, size_t len, uint64_t now)
{
    struct verbs *v = (struct verbs *)probe;
    struct conn *c = &v->conns[node];
    struct setup setup;
    if (len != sizeof setup || !v->usable || !c->ah || c->fenced)
        return;
    memcpy(&setup, data, sizeof setup);
    if (setup.type == MSG_ASK)
        take_ask(v, node, setup.qpn);
    else if (setup.type == MSG_ANSWER && c->state == CONN_ASKED && setup.asked == c->qp->qp_num) {
        if (join(v, c->qp, &c->to, setup.qpn)) {
            set_state(c, CONN_UP);
            probe->table->read(probe, node, now);
        } else {
            log_info("detect: node %d cannot be read: %m", node);
            drop(c);
        }
    }
}

void verbs_heard(struct probe *probe, int node, bool by_device, size_t len)
{
    struct verbs *v = (struct verbs *)probe;
    struct conn *c = &v->conns[node];
    if (c->ah && (by_device || len <= (128u << c->to.mtu)))
        c->avoid = !by_device;
}

static void verbs_watch(struct probe *probe, int node, bool on, uint64_t now)
{
    struct verbs *v = (struct verbs *)probe;
    struct conn *c = &v->conns[node];
    c->watched = on;
    if (!on)
        drop(c);
    else if (c->state == CONN_DOWN && v->usable && c->ah)
        ask(v, node, now);
}

/* Only a joined queue pair reads; until then the other probe does, and this one goes on asking. */
static bool verbs_read(struct probe *probe, int node, uint64_t now)
{
    struct verbs *v = (struct verbs *)probe;
    struct conn *c = &v->conns[node];
    if (!v->usable || !c->ah || c->fenced)
        return false;
    if (c->state == CONN_DOWN || (c->state == CONN_ASKED && now - c->since >= v->config.late_ns / 2))
        ask(v, node, now);
    if (c->state != CONN_UP)
        return false;
    if (c->reading && now - c->since < v->config.late_ns)
        return true;
    if (c->reading) { /* no completion, not even an error */
        c->avoid = true;
        drop(c);
        return false;
    }
    struct ibv_sge sge = {.addr = (uintptr_t)&v->values[node], .length = sizeof(uint64_t), .lkey = v->values_mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)c->qp->qp_num << 32 | (uint64_t)node << 8 | TAG_READ,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = c->to.heartbeat;
    wr.wr.rdma.rkey = c->to.rkey;
    if (ibv_post_send(c->qp, &wr, &bad)) {
        drop(c);
        return false;
    }
    c->reading = true;
    c->since = now;
    return true;
}

static void verbs_fence(struct probe *probe, int node)
{
    struct conn *c = &((struct verbs *)probe)->conns[node];
    c->fenced = true;
    drop_incoming(c);
    drop(c);
}

/* ------------------------------------------------------------------------------------------------ events */

static void on_read_done(struct verbs *v, const struct ibv_wc *wc)
{
    int node = (int)(wc->wr_id >> 8 & 0xffffff);
    struct conn *c = &v->conns[node];
    if (!c->qp || c->qp->qp_num != wc->wr_id >> 32 || !c->reading)
        return; /* of a queue pair that was given up */
    c->reading = false;
    if (wc->status == IBV_WC_SUCCESS) {
        v->callbacks.heartbeat(v->callbacks.user, node, v->values[node]);
        return;
    }
    log_debug("detect: read of node %d: %s", node, ib.wc_status_str(wc->status));
    c->avoid = true; /* node, or only the device: what is sent the other way tells */
    drop(c);
    if (c->watched)
        v->callbacks.broken(v->callbacks.user, node);
}

static void on_datagram(struct verbs *v, const struct ibv_wc *wc)
{
    unsigned slot = (unsigned)(wc->wr_id >> 8);
    if (wc->status == IBV_WC_SUCCESS && wc->byte_len > GRH)
        v->callbacks.datagram(v->callbacks.user, v->memory->recv[slot] + GRH, wc->byte_len - GRH);
    if (wc->status != IBV_WC_WR_FLUSH_ERR && !post_recv(v, slot))
        log_warn("detect: a receive buffer could not be given to the device");
}

/* All that is of the device. A device that is taken away waits for this. */
static void release(struct verbs *v)
{
    for (int i = 0; v->conns && i < v->config.n; i++) {
        drop_incoming(&v->conns[i]);
        drop(&v->conns[i]);
        if (v->conns[i].ah)
            ib.destroy_ah(v->conns[i].ah);
        v->conns[i].ah = NULL;
    }
    if (v->ud)
        ib.destroy_qp(v->ud);
    if (v->cq)
        ib.destroy_cq(v->cq);
    if (v->channel)
        ib.destroy_comp_channel(v->channel);
    if (v->mr)
        ib.dereg_mr(v->mr);
    if (v->values_mr)
        ib.dereg_mr(v->values_mr);
    if (v->heartbeat_mr)
        ib.dereg_mr(v->heartbeat_mr);
    if (v->pd)
        ib.dealloc_pd(v->pd);
    if (v->context)
        ib.close_device(v->context);
    v->ud = NULL;
    v->cq = NULL;
    v->channel = NULL;
    v->mr = v->values_mr = v->heartbeat_mr = NULL;
    v->pd = NULL;
    v->context = NULL;
}

/* Everything goes the other way from here on; what was under way is not waited for. */
static void stop_using(struct verbs *v, const char *why)
{
    if (v->usable)
        log_warn("detect: the RDMA device is not used: %s", why);
    v->usable = false;
    for (int i = 0; i < v->config.n; i++)
        drop(&v->conns[i]);
}

static void take_async(struct verbs *v)
{
    struct ibv_async_event event;
    while (!v->dead && ib.get_async_event(v->context, &event) == 0) {
        const char *what = ib.event_type_str(event.event_type);
        if (event.event_type == IBV_EVENT_DEVICE_FATAL)
            v->dead = true;
        if (v->dead || event.event_type == IBV_EVENT_PORT_ERR || event.event_type == IBV_EVENT_CQ_ERR) {
            stop_using(v, what);
        } else if (event.event_type == IBV_EVENT_PORT_ACTIVE && !v->usable) {
            v->usable = true;
            log_info("detect: the RDMA device is used again: %s", what);
        }
        ib.ack_async_event(&event);
    }
}

static bool verbs_poll(struct probe *probe, uint64_t now)
{
    struct verbs *v = (struct verbs *)probe;
    (void)now;
    if (v->dead)
        return false;
    take_async(v);
    if (v->dead) {
        release(v);
        return true;
    }
    struct ibv_cq *cq;
    void *context;
    unsigned events = 0;
    while (ib.get_cq_event(v->channel, &cq, &context) == 0)
        events++;
    if (events)
        ib.ack_cq_events(v->cq, events);
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(v->cq, 16, wc);
    for (int i = 0; i < n; i++) {
        switch (wc[i].wr_id & 0xff) {
        case TAG_READ:
            on_read_done(v, &wc[i]);
            break;
        case TAG_RECV:
            on_datagram(v, &wc[i]);
            break;
        default:
            v->sends_free++;
            break;
        }
    }
    if (n < 0) {
        v->dead = true;
        stop_using(v, "its completion queue cannot be read");
        release(v);
    }
    return n > 0;
}

static bool verbs_arm(struct probe *probe)
{
    struct verbs *v = (struct verbs *)probe;
    if (v->dead)
        return true;
    if (ibv_req_notify_cq(v->cq, 0))
        return true;
    return !verbs_poll(probe, 0); /* what came before the request wakes nobody */
}

static int verbs_wait_fds(const struct probe *probe, int fds[2])
{
    const struct verbs *v = (const struct verbs *)probe;
    fds[0] = v->channel->fd;
    fds[1] = v->context->async_fd;
    return 2;
}

/* ------------------------------------------------------------------------------------------------ begin and end */

static void verbs_close(struct probe *probe)
{
    struct verbs *v = (struct verbs *)probe;
    release(v);
    free(v->conns);
    free(v->values);
    free(v->memory);
    free(v);
}

static const struct probe_table table = {.name = "verbs",
                                         .watch = verbs_watch,
                                         .read = verbs_read,
                                         .send = verbs_send,
                                         .fence = verbs_fence,
                                         .poll = verbs_poll,
                                         .arm = verbs_arm,
                                         .wait_fds = verbs_wait_fds,
                                         .close = verbs_close};

/* The GID that stands for `host` (RoCE). On InfiniBand any active port does. */
static bool find_port(struct verbs *v, struct ibv_context *context, const char *host)
{
    union ibv_gid want = {{0}}, gid;
    want.raw[10] = want.raw[11] = 0xff;
    if (inet_pton(AF_INET, host, want.raw + 12) != 1 && inet_pton(AF_INET6, host, want.raw) != 1)
        return false;
    for (uint8_t port = 1; port <= 8; port++) {
        struct ibv_port_attr attr;
        memset(&attr, 0, sizeof attr);
        if (ib.query_port(context, port, (struct _compat_ibv_port_attr *)&attr))
            return false;
        if (attr.state != IBV_PORT_ACTIVE)
            continue;
        v->port = port;
        v->mtu = attr.active_mtu;
        v->self.lid = attr.lid;
        v->self.global = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
        v->self.mtu = (uint8_t)attr.active_mtu;
        if (!v->self.global)
            return ib.query_gid(context, port, v->gid_index = 0, &v->self.gid) == 0;
        int found = -1; /* of several the last: RoCE v2 comes after v1 */
        for (int i = 0; i < attr.gid_tbl_len && i < 256; i++)
            if (ib.query_gid(context, port, i, &gid) == 0 && memcmp(&gid, &want, sizeof gid) == 0)
                found = i;
        if (found >= 0) {
            v->gid_index = (uint8_t)found;
            v->self.gid = want;
            return true;
        }
    }
    return false;
}

/* NULL, or what is missing. */
static const char *find_device(struct verbs *v, const char *host)
{
    int n = 0;
    struct ibv_device **list = ib.get_device_list(&n);
    const char *problem = n > 0 ? NULL : "there is no RDMA device";
    for (int i = 0; i < n && !v->context; i++) {
        struct ibv_context *context = ib.open_device(list[i]);
        if (!context)
            problem = "an RDMA device could not be opened (permission?)";
        else if (find_port(v, context, host))
            v->context = context;
        else
            ib.close_device(context);
    }
    if (list)
        ib.free_device_list(list);
    if (v->context)
        return NULL;
    return problem ? problem : "no active port of an RDMA device has this node's address";
}

static bool nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

static const char *open_all(struct verbs *v)
{
    const char *problem = load_library() ? find_device(v, v->config.host) : "libibverbs.so.1 cannot be loaded";
    if (problem)
        return problem;
    size_t values = ((size_t)v->config.n * sizeof *v->values + 63) / 64 * 64;
    v->memory = aligned_alloc(64, (sizeof *v->memory + 63) / 64 * 64);
    v->values = aligned_alloc(64, values);
    v->conns = calloc((size_t)v->config.n, sizeof *v->conns);
    if (!v->memory || !v->values || !v->conns)
        return "out of memory";
    v->pd = ib.alloc_pd(v->context);
    if (!v->pd)
        return "no protection domain";
    v->mr = ib.reg_mr(v->pd, v->memory, sizeof *v->memory, IBV_ACCESS_LOCAL_WRITE);
    v->values_mr = ib.reg_mr(v->pd, v->values, values, IBV_ACCESS_LOCAL_WRITE);
    v->heartbeat_mr =
        ib.reg_mr(v->pd, (void *)(uintptr_t)v->config.heartbeat, sizeof(uint64_t), IBV_ACCESS_REMOTE_READ);
    if (!v->mr || !v->values_mr || !v->heartbeat_mr)
        return errno == ENOMEM ? "memory cannot be registered: the limit of locked memory (ulimit -l) is too low"
                               : "memory cannot be registered";
    v->channel = ib.create_comp_channel(v->context);
    v->cq = v->channel ? ib.create_cq(v->context, CQ_DEPTH, NULL, v->channel, 0) : NULL;
    v->ud = v->cq ? make_qp(v, IBV_QPT_UD) : NULL;
    if (!v->ud || !nonblocking(v->channel->fd) || !nonblocking(v->context->async_fd))
        return "no datagram queue pair";
    for (unsigned i = 0; i < RECVS; i++)
        if (!post_recv(v, i))
            return "no receive buffers";
    return NULL;
}

keel_status verbs_open(const struct verbs_config *config, const struct probe_callbacks *callbacks, struct probe **out,
                       struct probe_addr *addr)
{
    struct verbs *v = calloc(1, sizeof *v);
    addr->len = 0;
    if (!v)
        return KEEL_ERR_NOMEM;
    v->probe.table = &table;
    v->config = *config;
    v->callbacks = *callbacks;
    v->sends_free = SENDS;
    const char *problem = open_all(v);
    if (problem) {
        LOG_AT(config->required ? LOG_ERROR : LOG_INFO, "detect: no verbs probe on %s: %s", config->host, problem);
        verbs_close(&v->probe);
        return KEEL_ERR_SYSTEM;
    }
    v->usable = true;
    v->ud_max = 128u << v->mtu;
    if (v->ud_max > PROBE_DATAGRAM_MAX)
        v->ud_max = PROBE_DATAGRAM_MAX;
    v->self.heartbeat = (uintptr_t)config->heartbeat;
    v->self.rkey = v->heartbeat_mr->rkey;
    v->self.ud_qpn = v->ud->qp_num;
    addr->len = sizeof v->self;
    memcpy(addr->bytes, &v->self, sizeof v->self);
    *out = &v->probe;
    return KEEL_OK;
}

keel_status verbs_set_peers(struct probe *probe, const struct probe_addr *addrs)
{
    struct verbs *v = (struct verbs *)probe;
    for (int i = 0; i < v->config.n; i++) {
        struct conn *c = &v->conns[i];
        if (addrs[i].len == 0 || i == v->config.self)
            continue;
        if (addrs[i].len != sizeof c->to)
            return KEEL_ERR_ARG;
        memcpy(&c->to, addrs[i].bytes, sizeof c->to);
        struct ibv_ah_attr attr = route(v, &c->to);
        c->ah = ib.create_ah(v->pd, &attr); /* else: the other way */
        if (!c->ah)
            log_info("detect: no RDMA path to node %d: %m", i);
    }
    return KEEL_OK;
}
#endif
