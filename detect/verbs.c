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

#include <stdlib.h>
#include <string.h>

#include "detect/verbs_int.h"

/* ------------------------------------------------------------------------------------------------ events */

/* Everything goes the other way from here on; what was under way is not waited for. */
static void stop_using(struct verbs *v, const char *why)
{
    if (v->usable)
        log_warn("detect: the RDMA device is not used: %s", why);
    v->usable = false;
    for (int i = 0; i < v->config.n; i++)
        verbs_drop(&v->conns[i]);
}

static void take_async(struct verbs *v)
{
    struct ibv_async_event event;
    while (!v->dead && verbs_ib.get_async_event(v->context, &event) == 0) {
        const char *what = verbs_ib.event_type_str(event.event_type);
        if (event.event_type == IBV_EVENT_DEVICE_FATAL)
            v->dead = true;
        if (v->dead || event.event_type == IBV_EVENT_PORT_ERR || event.event_type == IBV_EVENT_CQ_ERR) {
            stop_using(v, what);
        } else if (event.event_type == IBV_EVENT_PORT_ACTIVE && !v->usable) {
            v->usable = true;
            log_info("detect: the RDMA device is used again: %s", what);
        }
        verbs_ib.ack_async_event(&event);
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
        verbs_release(v);
        return true;
    }
    struct ibv_cq *cq;
    void *context;
    unsigned events = 0;
    while (verbs_ib.get_cq_event(v->channel, &cq, &context) == 0)
        events++;
    if (events)
        verbs_ib.ack_cq_events(v->cq, events);
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(v->cq, 16, wc);
    for (int i = 0; i < n; i++) {
        switch (wc[i].wr_id & 0xff) {
        case TAG_READ:
            verbs_read_done(v, &wc[i]);
            break;
        case TAG_RECV:
            verbs_datagram_done(v, &wc[i]);
            break;
        default:
            v->sends_free++;
            break;
        }
    }
    if (n < 0) {
        v->dead = true;
        stop_using(v, "its completion queue cannot be read");
        verbs_release(v);
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
    verbs_release(v);
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
    const char *problem = verbs_device_open(v);
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
        struct ibv_ah_attr attr = verbs_route(v, &c->to);
        c->ah = verbs_ib.create_ah(v->pd, &attr); /* else: the other way */
        if (!c->ah)
            log_info("detect: no RDMA path to node %d: %m", i);
    }
    return KEEL_OK;
}
#endif
