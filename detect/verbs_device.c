/* The device of the probe over libibverbs: the library, opened at run time, the port that has this node's address, what
 * is made of it and released, and queue pairs as they are made and joined. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect/verbs_int.h"
#include "runtime/base/refusal.h"

struct verbs_library verbs_ib;

static bool load_library(void)
{
    if (verbs_ib.library)
        return true;
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    bool all = library != NULL;
#define X(type, name, args)                                                                                            \
    if (all && !(*(void **)&verbs_ib.name = dlsym(library, "ibv_" #name)))                                             \
        all = false;
    VERBS_FUNCTIONS(X)
#undef X
    if (all)
        verbs_ib.library = library;
    else if (library)
        dlclose(library);
    return all;
}

/* ------------------------------------------------------------------------------------------------ queue pairs */

/* Ready to be joined; one for datagrams: ready to send. */
static bool begin(struct verbs *v, struct ibv_qp *qp, bool ud)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = v->port, .qkey = QKEY, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    if (verbs_ib.modify_qp(qp, &attr, mask))
        return false;
    if (!ud)
        return true;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
    if (verbs_ib.modify_qp(qp, &attr, IBV_QP_STATE))
        return false;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
    return verbs_ib.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
}

struct ibv_qp *verbs_make_qp(struct verbs *v, enum ibv_qp_type type)
{
    bool ud = type == IBV_QPT_UD;
    struct ibv_qp_init_attr init = {
        .send_cq = v->cq,
        .recv_cq = v->cq,
        .cap = {.max_send_wr = ud ? SENDS : 2, .max_recv_wr = ud ? RECVS : 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type};
    struct ibv_qp *qp = verbs_ib.create_qp(v->pd, &init);
    if (!qp)
        return NULL;
    if (!begin(v, qp, ud)) {
        verbs_ib.destroy_qp(qp);
        return NULL;
    }
    return qp;
}

static bool post_receives(struct verbs *v)
{
    for (unsigned i = 0; i < RECVS; i++)
        if (!verbs_post_recv(v, i))
            return false;
    return true;
}

bool verbs_renew_datagrams(struct verbs *v)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    if (verbs_ib.modify_qp(v->ud, &attr, IBV_QP_STATE) || !begin(v, v->ud, true))
        return false;
    v->ud_round++;
    v->sends_free = SENDS;
    return post_receives(v);
}

struct ibv_ah_attr verbs_route(const struct verbs *v, const struct address *to)
{
    struct ibv_ah_attr attr = {.is_global = to->global, .port_num = v->port, .dlid = to->lid};
    attr.grh.dgid = to->gid;
    attr.grh.sgid_index = v->gid_index;
    attr.grh.hop_limit = 64;
    return attr;
}

/* The device's own time-out is 4.096 us * 2^timeout for each of 1 + RETRIES tries: all of them before a read is
 * late. */
static uint8_t timeout_for(uint64_t late_ns)
{
    uint8_t t = 1;
    while (t < 30 && (4096ull << (t + 1)) * (1 + RETRIES) <= late_ns)
        t++;
    return t;
}

bool verbs_join(struct verbs *v, struct ibv_qp *qp, const struct address *to, uint32_t qpn)
{
    enum ibv_mtu mtu = to->mtu < v->mtu ? to->mtu : v->mtu;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = mtu,
                               .dest_qp_num = qpn,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .ah_attr = verbs_route(v, to)};
    if (verbs_ib.modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = timeout_for(v->config.late_ns),
                                .retry_cnt = RETRIES,
                                .rnr_retry = 1,
                                .max_rd_atomic = 1};
    return verbs_ib.modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                  IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

/* ------------------------------------------------------------------------------------------------ the device */

void verbs_release(struct verbs *v)
{
    for (int i = 0; v->conns && i < v->config.n; i++) {
        verbs_drop_incoming(&v->conns[i]);
        verbs_drop(&v->conns[i]);
        if (v->conns[i].ah)
            verbs_ib.destroy_ah(v->conns[i].ah);
        v->conns[i].ah = NULL;
    }
    if (v->ud)
        verbs_ib.destroy_qp(v->ud);
    if (v->cq)
        verbs_ib.destroy_cq(v->cq);
    if (v->channel)
        verbs_ib.destroy_comp_channel(v->channel);
    if (v->mr)
        verbs_ib.dereg_mr(v->mr);
    if (v->values_mr)
        verbs_ib.dereg_mr(v->values_mr);
    if (v->heartbeat_mr)
        verbs_ib.dereg_mr(v->heartbeat_mr);
    if (v->pd)
        verbs_ib.dealloc_pd(v->pd);
    if (v->context)
        verbs_ib.close_device(v->context);
    v->ud = NULL;
    v->cq = NULL;
    v->channel = NULL;
    v->mr = v->values_mr = v->heartbeat_mr = NULL;
    v->pd = NULL;
    v->context = NULL;
}

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
        if (verbs_ib.query_port(context, port, (struct _compat_ibv_port_attr *)&attr))
            return false;
        if (attr.state != IBV_PORT_ACTIVE)
            continue;
        v->port = port;
        v->mtu = attr.active_mtu;
        v->self.lid = attr.lid;
        v->self.global = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
        v->self.mtu = (uint8_t)attr.active_mtu;
        if (!v->self.global)
            return verbs_ib.query_gid(context, port, v->gid_index = 0, &v->self.gid) == 0;
        int found = -1; /* of several the last: RoCE v2 comes after v1 */
        for (int i = 0; i < attr.gid_tbl_len && i < 256; i++)
            if (verbs_ib.query_gid(context, port, i, &gid) == 0 && memcmp(&gid, &want, sizeof gid) == 0)
                found = i;
        if (found >= 0) {
            v->gid_index = (uint8_t)found;
            v->self.gid = want;
            return true;
        }
    }
    return false;
}

/* The text is static. */
static const char *not_registered(int error)
{
    static char text[REFUSAL_MAX + 32];
    char why[REFUSAL_MAX];
    snprintf(text, sizeof text, "memory cannot be registered: %s", refusal_locking(error, why));
    return text;
}

/* NULL, or what is missing. */
static const char *find_device(struct verbs *v, const char *host)
{
    int n = 0;
    struct ibv_device **list = verbs_ib.get_device_list(&n);
    const char *problem = n > 0 ? NULL : "there is no RDMA device";
    for (int i = 0; i < n && !v->context; i++) {
        struct ibv_context *context = verbs_ib.open_device(list[i]);
        if (!context)
            problem = "an RDMA device could not be opened (permission?)";
        else if (find_port(v, context, host))
            v->context = context;
        else
            verbs_ib.close_device(context);
    }
    if (list)
        verbs_ib.free_device_list(list);
    if (v->context)
        return NULL;
    return problem ? problem : "no active port of an RDMA device has this node's address";
}

static bool nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

const char *verbs_device_open(struct verbs *v)
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
    v->pd = verbs_ib.alloc_pd(v->context);
    if (!v->pd)
        return "no protection domain";
    v->mr = verbs_ib.reg_mr(v->pd, v->memory, sizeof *v->memory, IBV_ACCESS_LOCAL_WRITE);
    v->values_mr = verbs_ib.reg_mr(v->pd, v->values, values, IBV_ACCESS_LOCAL_WRITE);
    v->heartbeat_mr =
        verbs_ib.reg_mr(v->pd, (void *)(uintptr_t)v->config.heartbeat, sizeof(uint64_t), IBV_ACCESS_REMOTE_READ);
    if (!v->mr || !v->values_mr || !v->heartbeat_mr)
        return not_registered(errno);
    v->channel = verbs_ib.create_comp_channel(v->context);
    v->cq = v->channel ? verbs_ib.create_cq(v->context, CQ_DEPTH, NULL, v->channel, 0) : NULL;
    v->ud = v->cq ? verbs_make_qp(v, IBV_QPT_UD) : NULL;
    if (!v->ud || !nonblocking(v->channel->fd) || !nonblocking(v->context->async_fd))
        return "no datagram queue pair";
    return post_receives(v) ? NULL : "no receive buffers";
}
