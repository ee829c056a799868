/* The probe over libibverbs: RDMA READ of the heartbeat word over one RC queue pair per watched node and direction, all
 * datagrams over one UD queue pair whose address handles are made in advance (making one for a dead peer can block for
 * a second).
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
 *   UP      read fails                         DOWN    told as broken: a suspicion; datagrams to it go the other way
 *           until
 *                                                      something comes from it by the device
 *   UP      read is late                       DOWN    the same, but that it is late the core finds by itself
 *   any     not watched, declared dead         DOWN
 *
 * A read is answered by the device as long as the process has its memory registered, so a process that was stopped is
 * seen by its heartbeat that stands still. Time-out and retries give up before late_ns; never 7 retries, which soft
 * devices take for infinitely many; our own deadline comes on top (a completion that never comes). A queue pair in
 * error is thrown away, its flushed completions are ignored by number. RC reads need no receive buffer; a device that
 * says all the same that the receiver is not ready (RNR) is one whose read failed.
 *
 * The library is opened at run time: a machine without it runs the rest. The device is used while it has no fault; the
 * helper's other probe carries everything meanwhile, and a line in the log says so:
 *
 *   fault                                          the device is used again
 *   its port is down                               when the port is active
 *   its datagrams fail: the queue pair is flushed  after late_ns and not while the port is down, the queue pair reset
 *   it is taken away; its completion queue or its  never: all that was made of it is released at once (who takes it
 *   away
 *   events fail; the reset above fails             waits for that) */
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

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/verbs_int.h"

/* ------------------------------------------------------------------------------------------------ events */

void verbs_stop(struct verbs *v)
{
    v->usable = false;
    for (int i = 0; i < v->config.n; i++)
        verbs_drop(&v->conns[i]);
}

/* For good. The poll of which this is a part releases it. */
static void give_up(struct verbs *v, const char *why)
{
    log_warn("detect: the RDMA device is given up: %s", why);
    v->dead = true;
    verbs_stop(v);
}

static void port_is_down(struct verbs *v, const char *why)
{
    if (v->usable)
        log_warn("detect: the RDMA device is not used: %s", why);
    v->port_down = true;
    verbs_stop(v);
}

static void use_again(struct verbs *v, const char *why)
{
    if (v->usable || v->port_down || v->ud_failed)
        return;
    v->usable = true;
    log_info("detect: the RDMA device is used again: %s", why);
}

static void take_event(struct verbs *v, const struct ibv_async_event *event)
{
    const char *what = verbs_ib.event_type_str(event->event_type);
    bool ours = event->element.port_num == v->port; /* in events of a port */
    switch (event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
        give_up(v, what);
        break;
    case IBV_EVENT_QP_FATAL: /* of others their reads tell, at one end or the other */
        if (event->element.qp == v->ud)
            verbs_datagrams_failed(v, what);
        break;
    case IBV_EVENT_PORT_ERR:
        if (ours)
            port_is_down(v, what);
        break;
    case IBV_EVENT_PORT_ACTIVE:
        if (ours) {
            v->port_down = false;
            use_again(v, what);
        }
        break;
    default:
        break;
    }
}

/* A descriptor of the library that has nothing, now; one that fails always has something, and would never let us
 * sleep. */
static void nothing_more(struct verbs *v, const char *failure)
{
    if (errno != EAGAIN && errno != EINTR)
        give_up(v, failure);
}

static void take_events(struct verbs *v)
{
    struct ibv_async_event event;
    while (!v->dead && verbs_ib.get_async_event(v->context, &event) == 0) {
        verbs_ib.ack_async_event(&event); /* first: who destroys what it is about waits for this */
        take_event(v, &event);
    }
    if (!v->dead)
        nothing_more(v, "its events cannot be read");
}

/* Not at once: what made it fail, a route that went with the port, may last. */
static void renew_datagrams(struct verbs *v)
{
    if (!v->ud_failed || v->port_down || v->now - v->ud_failed < v->config.late_ns)
        return;
    v->ud_failed = 0;
    if (verbs_renew_datagrams(v))
        use_again(v, "its datagram queue pair is ready again");
    else
        give_up(v, "its datagram queue pair cannot be made ready again");
}

static bool take_completions(struct verbs *v)
{
    struct ibv_cq *cq;
    void *context;
    unsigned events = 0;
    while (verbs_ib.get_cq_event(v->channel, &cq, &context) == 0)
        events++;
    nothing_more(v, "its completion events cannot be read");
    if (events)
        verbs_ib.ack_cq_events(v->cq, events);
    struct ibv_wc wc[16];
    int n = v->dead ? 0 : ibv_poll_cq(v->cq, 16, wc);
    for (int i = 0; i < n; i++)
        if ((wc[i].wr_id & 0xff) == TAG_READ)
            verbs_read_done(v, &wc[i]);
        else
            verbs_datagram_done(v, &wc[i]);
    if (n < 0)
        give_up(v, "its completion queue cannot be read");
    return n > 0;
}

static bool verbs_poll(struct probe *probe, uint64_t now)
{
    struct verbs *v = (struct verbs *)probe;
    if (v->dead)
        return false;
    v->now = now;
    take_events(v);
    if (!v->dead)
        renew_datagrams(v);
    bool more = !v->dead && take_completions(v);
    if (v->dead)
        verbs_release(v);
    return more || v->dead;
}

static bool verbs_arm(struct probe *probe)
{
    struct verbs *v = (struct verbs *)probe;
    if (v->dead)
        return true;
    if (ibv_req_notify_cq(v->cq, 0)) {
        give_up(v, "its completion queue cannot be armed");
        verbs_release(v);
        return true;
    }
    return !verbs_poll(probe, v->now); /* what came before the request wakes nobody */
}

static int verbs_wait_fds(const struct probe *probe, int fds[PROBE_FDS_MAX])
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
        struct rc_conn *c = &v->conns[i];
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
