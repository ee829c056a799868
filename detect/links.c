/* Heartbeat connections: one to each node we watch, over which we read its heartbeat word, and one from each node that
 * watches us. A hello is authenticated; a node that is, or is being, declared dead is refused.
 *
 *            links_watch, retry             TP_CONNECTED
 *   DOWN ---------------------> CONNECTING --------------> UP
 *     ^                             |  TP_CLOSED            |  TP_CLOSED: member_broken, member_refused
 *     +-----------------------------+-----------------------+  links_watch(off): dropped
 *
 * A probe is a connection that is never used: what counts is what the peer's kernel says. A peer that listens rejects it
 * at once (it knows probes by their hello). */
#include "detect/helper_internal.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

#define RETRY_NS (50 * KEEL_NS_PER_MS)
#define PROBE_NS (100 * KEEL_NS_PER_MS) /* a probe without any answer is given up */
enum { HEARTBEAT_KEY = 1 };

static void set_state(struct peer *p, enum link_state to)
{
    assert(to == LINK_DOWN || (to == LINK_CONNECTING && p->state == LINK_DOWN) ||
           (to == LINK_UP && p->state == LINK_CONNECTING));
    p->state = to;
}

static void drop(struct peer *p)
{
    if (p->ep)
        tp_ep_destroy(p->ep);
    p->ep = NULL;
    p->reading = false;
    set_state(p, LINK_DOWN);
}

static void connect_peer(struct helper *h, struct peer *p)
{
    uint8_t hello[SEAL_OVERHEAD];
    size_t len = seal_close(&h->seal, SEAL_HELLO, p->node, ++p->hellos_sent, NULL, 0, hello);
    p->connect_at = h->now + RETRY_NS;
    if (h->tp->table->connect(h->tp, &p->addr, hello, len, p, &p->ep) == KEEL_OK)
        set_state(p, LINK_CONNECTING);
}

void links_watch(struct helper *h, int node, bool on)
{
    struct peer *p = &h->peers[node];
    p->watched = on;
    if (!on)
        drop(p);
    else if (h->started && p->state == LINK_DOWN)
        connect_peer(h, p);
}

void links_keep(struct helper *h, int node)
{
    struct peer *p = &h->peers[node];
    if (p->state == LINK_DOWN && h->now >= p->connect_at)
        connect_peer(h, p);
}

bool links_read(struct helper *h, int node)
{
    struct peer *p = &h->peers[node];
    links_keep(h, node);
    if (p->state != LINK_UP || p->reading)
        return true; /* an old read stays posted: it completes when the peer or the path comes back */
    p->op.user = p;
    p->reading = tp_read(p->ep, &p->value, sizeof p->value, HEARTBEAT_KEY, 0, &p->op) == KEEL_OK;
    h->count.reads++;
    return p->reading;
}

void links_probe(struct helper *h, int node)
{
    struct peer *p = &h->peers[node];
    if (p->probe && h->now < p->probe_until)
        return;
    if (p->probe)
        tp_ep_destroy(p->probe);
    p->probe = NULL;
    uint8_t hello[SEAL_OVERHEAD];
    size_t len = seal_close(&h->seal, SEAL_PROBE, p->node, ++p->hellos_sent, NULL, 0, hello);
    p->probe_until = h->now + PROBE_NS;
    if (h->tp->table->connect(h->tp, &p->addr, hello, len, p, &p->probe) != KEEL_OK)
        p->probe = NULL;
}

void links_fence(struct helper *h, int node)
{
    struct peer *p = &h->peers[node];
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
                s.from != h->config.params.self && s.incarnation == h->peers[s.from].incarnation &&
                seal_window_take(&h->peers[s.from].hellos, s.number);
    if (!ours) {
        h->count.rejected++;
        log_warn_some("detect: a connection that does not belong to this job was refused");
    }
    if (!ours || s.kind != SEAL_HELLO || member_believes_dead(h->m, s.from)) {
        h->tp->table->reject(h->tp, e->req);
        return;
    }
    struct peer *p = &h->peers[s.from];
    if (p->incoming)
        tp_ep_destroy(p->incoming);
    if (h->tp->table->accept(h->tp, e->req, p, &p->incoming) != KEEL_OK)
        p->incoming = NULL;
}

static void on_closed(struct helper *h, const struct tp_event *e)
{
    struct peer *p = tp_ep_user(e->ep);
    bool ours = e->ep == p->ep, probe = e->ep == p->probe, was_up = ours && p->state == LINK_UP;
    if (ours)
        drop(p);
    else if (probe || e->ep == p->incoming)
        tp_ep_destroy(e->ep);
    if (probe)
        p->probe = NULL;
    else if (e->ep == p->incoming)
        p->incoming = NULL;
    if ((ours || probe) && e->status == KEEL_ERR_NODE_DEAD)
        member_refused(h->m, p->node, h->now);
    else if (was_up && p->watched)
        member_broken(h->m, p->node, h->now);
}

static void on_done(struct helper *h, const struct tp_event *e)
{
    struct peer *p = e->op->user;
    if (e->ep != p->ep)
        return;
    p->reading = false;
    if (e->status == KEEL_OK)
        member_heartbeat(h->m, p->node, p->value, h->now);
    else
        h->count.reads_failed++; /* its TP_CLOSED follows */
}

bool links_poll(struct helper *h)
{
    struct tp_event events[16];
    int n = tp_poll(h->tp, events, 16);
    for (int i = 0; i < n; i++) {
        if (events[i].type == TP_CONNREQ) {
            on_request(h, &events[i]);
            continue;
        }
        struct peer *p = tp_ep_user(events[i].ep);
        switch (events[i].type) {
        case TP_CONNECTED:
            if (events[i].ep == p->ep) {
                set_state(p, LINK_UP);
                links_read(h, p->node);
            } else if (events[i].ep == p->probe) { /* cannot be: probes are rejected */
                tp_disconnect(p->probe);
            }
            break;
        case TP_CLOSED:
            if (events[i].ep == p->ep || events[i].ep == p->probe || events[i].ep == p->incoming)
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

void links_tick(struct helper *h)
{
    for (int i = 0; i < h->config.params.n; i++) {
        struct peer *p = &h->peers[i];
        if (p->probe && h->now >= p->probe_until) {
            tp_ep_destroy(p->probe);
            p->probe = NULL;
        }
    }
}
