/* Heartbeat connections: one to each node we watch, over which we read its heartbeat word, and one from each node that
 * watches us. A hello is authenticated; a node that is, or is being, declared dead is refused.
 *
 *            reach_watch, reach_keep        TP_CONNECTED
 *   DOWN ---------------------> CONNECTING --------------> UP      (struct way)
 *     ^                             |  TP_CLOSED            |  TP_CLOSED: member_broken, member_refused
 *     +-----------------------------+-----------------------+  reach_watch(off): dropped
 *
 * A probe is a connection that is never used: what counts is what the peer's kernel says. A peer that listens rejects
 * it at once (it knows probes by their hello). */
#include "detect/helper_internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

#define PROBE_NS (100 * KEEL_NS_PER_MS) /* a probe without any answer is given up */
enum { HEARTBEAT_KEY = 1 };
enum { HIGH = 250 }; /* the listener's descriptor, where a quarter of the limit is not less */

static size_t make_hello(void *user, const struct way *w, uint8_t *out)
{
    struct helper *h = user;
    return seal_close(&h->seal, SEAL_HELLO, w->key.node, ++h->peers[w->key.node].hellos_sent, NULL, 0, out);
}

void reach_init(struct helper *h)
{
    h->ways = (struct ways){.tp = h->tp,
                            .first_ns = 50 * KEEL_NS_PER_MS,
                            .max_ns = 50 * KEEL_NS_PER_MS,
                            .hello = make_hello,
                            .user = h,
                            .tell = way_log,
                            .whose = "node"};
    for (int i = 0; i < h->config.params.n; i++)
        way_init(&h->peers[i].way, &h->ways, way_direct(i));
}

/* Something is posted or closed: its transport is armed anew before the helper sleeps. */
static void touch(struct helper *h)
{
    h->ofi.links_armed = false;
}

/* Descriptors below `high`, as many as may be had: the next one is above them. The first sets the size of the table
 * once. */
static int hold_low(int held[HIGH], int high)
{
    int n = 0, fd = open("/dev/null", O_RDONLY | O_CLOEXEC), far = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, high - 1);
    if (far >= 0)
        close(far);
    for (; fd >= 0 && fd < high; fd = fcntl(fd, F_DUPFD_CLOEXEC, 0))
        held[n++] = fd;
    if (fd >= 0)
        close(fd);
    return n;
}

/* Linux closes what an ended process had from its highest descriptor down. The listener has a high one, so whoever sees
 * a connection to this process break, and knocks, is refused at once. (Otherwise it knocks again until the rest is
 * closed, the queue pairs of a device for instance: that is slower, and as right.) */
keel_status reach_listen(struct helper *h)
{
    struct rlimit limit;
    int held[HIGH], high = HIGH;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < HIGH)
        high = (int)(limit.rlim_cur / 4);
    int n = hold_low(held, high);
    keel_status status = addrs_listen(h->tp, &h->addrs);
    while (n > 0)
        close(held[--n]);
    return status;
}

const struct tp_addr *reach_next_rail(const struct reach *p, int *last)
{
    const struct tp_addr *next = &p->addrs.of[0];
    for (uint32_t i = 0; i < p->addrs.n; i++)
        if (p->addrs.of[i].rail == *last)
            next = &p->addrs.of[(i + 1) % p->addrs.n];
    *last = next->rail;
    return next;
}

bool reach_trusts(const struct reach *p, int rail)
{
    return rail == 0 || p->proved & 1u << rail || p->way.past.rail[rail].stood;
}

static void drop(struct reach *p)
{
    way_drop(&p->way);
    p->reading = false;
}

/* ---- another rail ----
 *
 * A read that is not answered for a third of what is late may be one over a cable that was cut. Where there is another
 * rail it is tried at once, before the heartbeat is late. */

static uint64_t patience(const struct helper *h)
{
    return h->config.params.late_ns / 3;
}

/* UINT64_MAX: nothing is on its way. */
static uint64_t late_at(const struct helper *h, const struct reach *p)
{
    return p->way.state == WAY_CONNECTING         ? p->way.begun_at + patience(h)
           : p->way.state == WAY_UP && p->reading ? p->read_at + patience(h)
                                                  : UINT64_MAX;
}

static void leave_late_rail(struct helper *h, struct reach *p)
{
    if (h->now < late_at(h, p) || !way_has_other(&p->way, &p->addrs, h->now))
        return;
    log_info("detect: node %d does not answer over rail %d: another one is tried", p->node, p->way.key.rail);
    way_failed(&p->way, h->now);
    p->reading = false;
}

uint64_t reach_deadline(const struct helper *h)
{
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < h->watch.n_reads; i++) {
        const struct reach *p = &h->peers[h->watch.reads[i]];
        uint64_t at = way_has_other(&p->way, &p->addrs, h->now) ? late_at(h, p) : UINT64_MAX;
        next = at < next ? at : next;
    }
    return next;
}

/* Whom that is looked at for. */
static void note_watched(struct helper *h, int node, bool on)
{
    int i = 0;
    while (i < h->watch.n_reads && h->watch.reads[i] != node)
        i++;
    if (!on && i < h->watch.n_reads)
        h->watch.reads[i] = h->watch.reads[--h->watch.n_reads];
    else if (on && h->rails > 1 && i == h->watch.n_reads && i < HELPER_WATCHED_MAX)
        h->watch.reads[h->watch.n_reads++] = node;
}

void reach_watch(struct helper *h, int node, bool on)
{
    struct reach *p = &h->peers[node];
    p->watched = on;
    note_watched(h, node, on);
    touch(h);
    if (!on)
        drop(p);
    else if (h->started)
        reach_keep(h, node);
}

void reach_keep(struct helper *h, int node)
{
    struct reach *p = &h->peers[node];
    touch(h);
    leave_late_rail(h, p);
    (void)way_try(&p->way, &h->ways, &p->addrs, p, h->now); /* else once more when it is wanted next */
}

bool reach_read(struct helper *h, int node)
{
    struct reach *p = &h->peers[node];
    reach_keep(h, node);
    if (p->way.state != WAY_UP || p->reading)
        return true; /* an old read stays posted: it completes when the peer or the path comes back */
    p->op.user = p;
    p->read_at = h->now;
    p->reading = tp_read(p->way.ep, &p->value, sizeof p->value, HEARTBEAT_KEY, 0, &p->op) == KEEL_OK;
    h->count.reads++;
    return p->reading;
}

void reach_probe(struct helper *h, int node)
{
    struct reach *p = &h->peers[node];
    if (p->probe && h->now < p->probe_until)
        return;
    touch(h);
    if (p->probe)
        tp_ep_destroy(p->probe);
    p->probe = NULL;
    uint8_t hello[SEAL_OVERHEAD];
    size_t len = seal_close(&h->seal, SEAL_PROBE, p->node, ++p->hellos_sent, NULL, 0, hello);
    p->probe_until = h->now + PROBE_NS;
    h->probing = true;
    if (h->tp->table->connect(h->tp, reach_next_rail(p, &p->probe_rail), hello, len, p, &p->probe) != KEEL_OK)
        p->probe = NULL;
}

void reach_fence(struct helper *h, int node)
{
    struct reach *p = &h->peers[node];
    touch(h);
    if (p->incoming)
        tp_ep_destroy(p->incoming);
    p->incoming = NULL;
    if (p->probe)
        tp_ep_destroy(p->probe);
    p->probe = NULL;
    drop(p);
}

/* ------------------------------------------------------------------------------------------------ events */

static void on_request(struct helper *h, const struct tp_event *e)
{
    struct seal_opened s;
    bool ours = seal_open(&h->seal, e->data, e->len, &s) && s.len == 0 && s.from < h->config.params.n &&
                s.from != h->config.params.self && meet_admits(h, s.from, s.incarnation) &&
                seal_window_take(&h->peers[s.from].hellos, s.number);
    if (!ours) {
        log_warn_some("detect: a connection that does not belong to this job was refused");
    }
    if (!ours || s.kind != SEAL_HELLO || member_believes_dead(h->m, s.from)) {
        h->tp->table->reject(h->tp, e->req);
        return;
    }
    struct reach *p = &h->peers[s.from];
    if (p->incoming)
        tp_ep_destroy(p->incoming);
    if (h->tp->table->accept(h->tp, e->req, p, &p->incoming) != KEEL_OK)
        p->incoming = NULL;
}

static void on_closed(struct helper *h, const struct tp_event *e)
{
    struct reach *p = tp_ep_user(e->ep);
    bool ours = e->ep == p->way.ep, probe = e->ep == p->probe;
    if (ours) {
        way_failed(&p->way, h->now);
        p->reading = false;
    } else if (probe || e->ep == p->incoming) {
        tp_ep_destroy(e->ep);
    }
    if (probe)
        p->probe = NULL;
    else if (e->ep == p->incoming)
        p->incoming = NULL;
    bool broken = ours && way_has_broken(&p->way, &p->addrs, h->now);
    if ((ours || probe) && e->status == KEEL_ERR_NODE_DEAD && reach_trusts(p, probe ? p->probe_rail : p->way.key.rail))
        member_refused(h->m, p->node, h->now);
    else if (broken && p->watched)
        member_broken(h->m, p->node, h->now);
    else if (ours && p->way.broke) /* over another rail, and the core hears of it if that fails */
        reach_keep(h, p->node);
}

static void on_done(struct helper *h, const struct tp_event *e)
{
    struct reach *p = e->op->user;
    if (e->ep != p->way.ep)
        return;
    p->reading = false;
    if (e->status == KEEL_OK) /* else its TP_CLOSED follows */
        member_heartbeat(h->m, p->node, p->value, h->now);
}

bool reach_poll(struct helper *h)
{
    struct tp_event events[16];
    int n = tp_poll(h->tp, events, 16);
    for (int i = 0; i < n; i++) {
        if (events[i].type == TP_CONNREQ) {
            on_request(h, &events[i]);
            continue;
        }
        struct reach *p = tp_ep_user(events[i].ep);
        switch (events[i].type) {
        case TP_CONNECTED:
            if (events[i].ep == p->way.ep) {
                way_connected(&p->way, &h->ways, h->now);
                reach_read(h, p->node);
            } else if (events[i].ep == p->probe) { /* cannot be: probes are rejected */
                tp_disconnect(p->probe);
            }
            break;
        case TP_CLOSED:
            if (events[i].ep == p->way.ep || events[i].ep == p->probe || events[i].ep == p->incoming)
                on_closed(h, &events[i]);
            break;
        case TP_DONE:
            on_done(h, &events[i]);
            break;
        default: /* TP_RECV: nobody sends messages here */
            tp_disconnect(events[i].ep);
            break;
        }
    }
    return n > 0;
}

void reach_tick(struct helper *h)
{
    bool any = false;
    for (int i = 0; h->probing && i < h->config.params.n; i++) {
        struct reach *p = &h->peers[i];
        if (p->probe && h->now >= p->probe_until) {
            touch(h);
            tp_ep_destroy(p->probe);
            p->probe = NULL;
        }
        any |= p->probe != NULL;
    }
    h->probing = any;
    for (int i = 0; i < h->watch.n_reads; i++)
        if (h->now >= late_at(h, &h->peers[h->watch.reads[i]]))
            reach_keep(h, h->watch.reads[i]);
}
