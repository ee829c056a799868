/* The reads of the probe over libibverbs: one RC queue pair a watched node and direction, joined by ASK and ANSWER (the
 * diagram is at the top of verbs.c). */
#include <string.h>

#include "detect/verbs_int.h"
#include "runtime/base/log.h"

static void set_state(struct rc_conn *c, enum rc_state to)
{
    c->state = to;
    c->reading = false;
}

void verbs_drop(struct rc_conn *c)
{
    if (c->qp)
        verbs_ib.destroy_qp(c->qp);
    c->qp = NULL;
    set_state(c, CONN_DOWN);
}

void verbs_drop_incoming(struct rc_conn *c)
{
    if (c->incoming)
        verbs_ib.destroy_qp(c->incoming);
    c->incoming = NULL;
}

/* ------------------------------------------------------------------------------------------------ joining */

static void ask(struct verbs *v, int node, uint64_t now)
{
    struct rc_conn *c = &v->conns[node];
    if (!c->qp && !(c->qp = verbs_make_qp(v, IBV_QPT_RC))) {
        log_warn_some("detect: no queue pair to read node %d by the RDMA device: %m", node);
        return;
    }
    set_state(c, CONN_ASKED);
    c->since = now;
    verbs_send_setup(v, node, MSG_ASK, c->qp->qp_num, 0);
}

static void take_ask(struct verbs *v, int node, uint32_t qpn)
{
    struct rc_conn *c = &v->conns[node];
    if (!v->callbacks.admit(v->callbacks.user, node))
        return;
    if (!c->incoming || c->incoming_peer != qpn) {
        verbs_drop_incoming(c);
        c->incoming = verbs_make_qp(v, IBV_QPT_RC);
        c->incoming_peer = qpn;
        if (!c->incoming)
            log_warn_some("detect: no queue pair for node %d to read this one by the RDMA device: %m", node);
        else if (!verbs_join(v, c->incoming, &c->to, qpn)) {
            log_info("detect: node %d cannot be connected: %m", node);
            verbs_drop_incoming(c);
        }
    }
    if (c->incoming)
        verbs_send_setup(v, node, MSG_ANSWER, c->incoming->qp_num, qpn);
}

void verbs_control(struct probe *probe, int node, const void *data, size_t len, uint64_t now)
{
    struct verbs *v = (struct verbs *)probe;
    struct rc_conn *c = &v->conns[node];
    struct setup setup;
    if (len != sizeof setup || !v->usable || !c->ah || c->fenced)
        return;
    memcpy(&setup, data, sizeof setup);
    if (setup.type == MSG_ASK)
        take_ask(v, node, setup.qpn);
    else if (setup.type == MSG_ANSWER && c->state == CONN_ASKED && setup.asked == c->qp->qp_num) {
        if (verbs_join(v, c->qp, &c->to, setup.qpn)) {
            set_state(c, CONN_UP);
            probe->table->read(probe, node, now);
        } else {
            log_info("detect: node %d cannot be read: %m", node);
            verbs_drop(c);
        }
    }
}

/* ------------------------------------------------------------------------------------------------ reading */

void verbs_watch(struct probe *probe, int node, bool on, uint64_t now)
{
    struct verbs *v = (struct verbs *)probe;
    struct rc_conn *c = &v->conns[node];
    c->watched = on;
    if (!on)
        verbs_drop(c);
    else if (c->state == CONN_DOWN && v->usable && c->ah)
        ask(v, node, now);
}

/* Only a joined queue pair reads; until then the other probe does, and this one goes on asking. */
bool verbs_read(struct probe *probe, int node, uint64_t now)
{
    struct verbs *v = (struct verbs *)probe;
    struct rc_conn *c = &v->conns[node];
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
        verbs_drop(c);
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
        verbs_drop(c);
        return false;
    }
    c->reading = true;
    c->since = now;
    return true;
}

void verbs_fence(struct probe *probe, int node)
{
    struct rc_conn *c = &((struct verbs *)probe)->conns[node];
    c->fenced = true;
    verbs_drop_incoming(c);
    verbs_drop(c);
}

void verbs_read_done(struct verbs *v, const struct ibv_wc *wc)
{
    int node = (int)(wc->wr_id >> 8 & 0xffffff);
    struct rc_conn *c = &v->conns[node];
    if (!c->qp || c->qp->qp_num != wc->wr_id >> 32 || !c->reading)
        return; /* of a queue pair that was given up */
    c->reading = false;
    if (wc->status == IBV_WC_SUCCESS) {
        v->callbacks.heartbeat(v->callbacks.user, node, v->values[node]);
        return;
    }
    log_debug("detect: read of node %d: %s", node, verbs_ib.wc_status_str(wc->status));
    c->avoid = true; /* node, or only the device: what is sent the other way tells */
    verbs_drop(c);
    if (c->watched)
        v->callbacks.broken(v->callbacks.user, node);
}
