/* The datagrams of the probe over libibverbs: one UD queue pair, receive buffers that go back to the device at once.
 * A send or a receive that fails takes the queue pair with it: all that is posted is flushed, and all that will be. So
 * the device is not used until the queue pair was made ready again (verbs.c). What is still told of a former round
 * is ignored. */
#include <string.h>

#include "detect/seal.h"
#include "detect/verbs_int.h"
#include "runtime/base/log.h"

static uint64_t number(const struct verbs *v, unsigned buffer, unsigned tag)
{
    return (uint64_t)v->ud_round << 32 | buffer << 8 | tag;
}

bool verbs_post_recv(struct verbs *v, unsigned buffer)
{
    struct ibv_sge sge = {.addr = (uintptr_t)v->memory->recv[buffer], .length = BUFFER, .lkey = v->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = number(v, buffer, TAG_RECV), .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(v->ud, &wr, &bad) == 0;
}

static bool send_datagram(struct verbs *v, struct rc_conn *c, const void *data, size_t len)
{
    if (!v->usable || !c->ah || c->fenced || len > v->ud_max || len > (128u << c->to.mtu) || !v->sends_free)
        return false;
    unsigned buffer = v->next_send % SENDS; /* completions come in order */
    memcpy(v->memory->send[buffer], data, len);
    struct ibv_sge sge = {.addr = (uintptr_t)v->memory->send[buffer], .length = (uint32_t)len, .lkey = v->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = number(v, buffer, TAG_SEND),
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.ud.ah = c->ah;
    wr.wr.ud.remote_qpn = c->to.ud_qpn;
    wr.wr.ud.remote_qkey = QKEY;
    if (ibv_post_send(v->ud, &wr, &bad))
        return false;
    v->next_send++;
    v->sends_free--;
    return true;
}

bool verbs_send(struct probe *probe, int node, const void *data, size_t len)
{
    struct verbs *v = (struct verbs *)probe;
    return !v->conns[node].avoid && send_datagram(v, &v->conns[node], data, len);
}

void verbs_send_setup(struct verbs *v, int node, uint8_t type, uint32_t qpn, uint32_t asked)
{
    struct setup setup = {.type = type, .qpn = qpn, .asked = asked};
    uint8_t sealed[sizeof setup + SEAL_OVERHEAD];
    size_t len = v->callbacks.seal(v->callbacks.user, node, &setup, sizeof setup, sealed);
    send_datagram(v, &v->conns[node], sealed, len); /* also to one that went the other way: this brings it back */
}

void verbs_heard(struct probe *probe, int node, bool by_device, size_t len)
{
    struct verbs *v = (struct verbs *)probe;
    struct rc_conn *c = &v->conns[node];
    if (c->ah && (by_device || len <= (128u << c->to.mtu)))
        c->avoid = !by_device;
}

void verbs_datagrams_failed(struct verbs *v, const char *why)
{
    if (v->ud_failed)
        return;
    if (v->usable)
        log_warn_some("detect: the RDMA device is not used: its datagrams: %s", why);
    v->ud_failed = v->now;
    verbs_stop(v);
}

void verbs_datagram_done(struct verbs *v, const struct ibv_wc *wc)
{
    unsigned buffer = (unsigned)(wc->wr_id >> 8 & 0xffffff);
    bool received = (wc->wr_id & 0xff) == TAG_RECV;
    if (wc->wr_id >> 32 != v->ud_round)
        return;
    v->sends_free += !received;
    if (wc->status != IBV_WC_SUCCESS) {
        verbs_datagrams_failed(v, verbs_ib.wc_status_str(wc->status));
    } else if (received) {
        if (wc->byte_len > GRH)
            v->callbacks.datagram(v->callbacks.user, v->memory->recv[buffer] + GRH, wc->byte_len - GRH);
        if (!verbs_post_recv(v, buffer))
            verbs_datagrams_failed(v, "a receive buffer cannot be given to it");
    }
}
