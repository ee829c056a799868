/* The three phases of the method at a router and at the source (FT-routing section 2): the message that meets a broken
 * link takes an escape path at once; a notification with the link goes back to its source; the source changes its paths
 * (that part is runtime/topo/detour.h).
 *
 * A message carries the broken cables it has met, with the times from when to when each is known to be out, and every
 * escape avoids them, with the router's own broken ones. Cables come back while it is under way, so what it knows may
 * cut it off although there is a way. It is given up only on proof: all cables of the cut were out at one instant. As
 * long as there is none it forgets all but what the router sees now, and begins again; one that has made as many hops
 * as there are routers does so by way of a random endpoint, else it could be in step with what flaps for ever. So
 * nothing is dropped while the network is in one piece; that something was, without proof and with a way left, is a
 * broken invariant. */
#include "sim/route/sim_internal.h"

#include <assert.h>
#include <stdlib.h>

/* Can a packet get from one router to another over links that are whole now? Floods from the destination, which is the
 * smaller part where a network is cut. */
static bool is_connected(struct sim *s, int32_t from, int32_t to)
{
    const struct fabric *f = s->f;
    int32_t *queue = malloc((size_t)f->routers * sizeof *queue), head = 0, tail = 0;
    uint8_t *seen = calloc((size_t)f->routers, 1);
    bool reached = false;
    s->failed |= !queue || !seen;
    if (queue && seen) {
        seen[to] = 1;
        queue[tail++] = to;
        while (head < tail && !seen[from]) {
            int32_t r = queue[head++];
            for (int p = 0; p < f->ports; p++) {
                int32_t link = r * f->ports + p, next = f->neighbor[link];
                if (next < 0 || seen[next] || s->port[link].down)
                    continue;
                seen[next] = 1;
                queue[tail++] = next;
            }
        }
        reached = seen[from];
    }
    free(queue);
    free(seen);
    return reached;
}

static void drop(struct sim *s, int32_t p, uint64_t *counter)
{
    if (s->packet[p].kind == PACKET_DATA)
        ++*counter;
    router_release(s, p);
    packet_free(s, p);
}

static void notify(struct sim *s, int32_t p, int32_t cable)
{
    int32_t at = s->packet[p].at, src = s->packet[p].src;
    int32_t ack = packet_make(s, PACKET_FAULT, s->packet[p].dst, src, s->c.ack_bytes);
    if (ack == NONE)
        return;
    s->packet[ack].info = (uint32_t)cable;
    s->packet[ack].started = s->port[cable].down_since;
    s->packet[ack].at = at;
    s->r->fault_acks++;
    router_take(s, ack);
}

static uint32_t clip(uint64_t ns)
{
    return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void learn(const struct sim *s, const struct packet *p, struct ext *e, int32_t cable)
{
    uint64_t since = s->port[cable].down_since;
    const struct known k = {.cable = cable,
                            .since = since > p->created ? clip(since - p->created) : 0,
                            .seen = clip(s->now - p->created),
                            .out = clip(s->now - since)};
    for (int i = 0; i < e->nknown; i++)
        if (e->known[i].cable == cable) {
            e->known[i] = k;
            return;
        }
    if (e->nknown == KNOWN_MAX) { /* forget the one learnt first */
        e->nknown--;
        for (int i = 0; i < e->nknown; i++)
            e->known[i] = e->known[i + 1];
    }
    e->known[e->nknown++] = k;
    if (p->kind == PACKET_DATA) /* news when it arrives; until then age_ns is the time it was seen at */
        e->news[e->nnews++ % NEWS_MAX] =
            (struct detour_news){.cable = cable, .out_ns = s->now - since, .age_ns = s->now, .known_ns = s->now};
}

/* What the router sees of its own links. */
static void look_around(const struct sim *s, const struct packet *p, struct ext *e)
{
    for (int port = 0; port < s->f->ports; port++) {
        int32_t link = p->at * s->f->ports + port;
        if (s->port[link].down)
            learn(s, p, e, fabric_cable(s->f, link));
    }
}

/* Were all these out at one instant: when the last of them had gone out? */
static bool proves_cut(const struct known *k, int n)
{
    uint32_t since = 0, seen = UINT32_MAX;
    for (int i = 0; i < n; i++) {
        since = k[i].since > since ? k[i].since : since;
        seen = k[i].seen < seen ? k[i].seen : seen;
    }
    return n > 0 && since <= seen;
}

/* A way to an endpoint that avoids what the packet knows. Where faults are forgotten by time, also by the packet: as
 * the source does. */
static bool way_around(struct sim *s, const struct packet *p, struct ext *e, int32_t dest, bool *proof)
{
    struct known k[KNOWN_MAX];
    int32_t avoid[KNOWN_MAX];
    int n = 0;
    for (int i = 0; i < e->nknown; i++) {
        uint64_t age = s->now - p->created - e->known[i].seen;
        if (s->c.detour.forget && age > e->known[i].out && age > s->c.detour.retry_ns)
            continue;
        avoid[n] = e->known[i].cable;
        k[n++] = e->known[i];
    }
    *proof = proves_cut(k, n);
    return detour_escape(&s->detour, p->at, dest, avoid, n, &s->rng, &e->way);
}

static bool begin_again(struct sim *s, const struct packet *p, struct ext *e, bool *proof)
{
    s->r->fresh_starts++;
    e->nknown = 0;
    look_around(s, p, e);
    if (p->hops >= (uint32_t)s->f->routers) {
        int32_t over = (int32_t)rng_below(&s->rng, (uint64_t)s->f->endpoints), home = fabric_home(s->f, over);
        if (home != p->at && over != p->dst && way_around(s, p, e, over, proof) && e->way.nvia < DETOUR_MAX_VIA) {
            e->way.via[e->way.nvia++] = home;
            return true;
        }
    }
    return way_around(s, p, e, p->dst, proof);
}

static bool find_way(struct sim *s, const struct packet *p, struct ext *e)
{
    bool proof;
    if (way_around(s, p, e, p->dst, &proof) || (!proof && begin_again(s, p, e, &proof)))
        return true;
    s->r->dropped_connected += !proof && is_connected(s, p->at, fabric_home(s->f, p->dst));
    return false;
}

static bool escape(struct sim *s, int32_t i, int32_t cable)
{
    struct ext *e = packet_ext(s, i);
    struct packet *p = &s->packet[i];
    if (!e)
        return false;
    learn(s, p, e, cable);
    look_around(s, p, e);
    if (!find_way(s, p, e))
        return false;
    p->step = 0;
    p->target = e->way.nvia ? e->way.via[0] : fabric_home(s->f, p->dst);
    ++*(p->kind == PACKET_DATA ? &s->r->escapes : &s->r->ack_escapes);
    return true;
}

static bool met(struct sim *s, int32_t i, int32_t cable)
{
    bool first = !(s->packet[i].flags & FLAG_FAULTED);
    s->packet[i].flags |= FLAG_FAULTED;
    bool rumour = s->packet[i].kind == PACKET_RUMOUR;
    if (s->packet[i].kind == PACKET_DATA || rumour) {
        s->r->hit += first && !rumour;
        if (s->c.notify && first) /* "only one of those ACK messages is sent for each data message" */
            notify(s, i, cable);
    }
    if (!s->c.escape) {
        drop(s, i, &s->r->lost);
        return false;
    }
    if (escape(s, i, cable))
        return true;
    drop(s, i, &s->r->undeliverable);
    return false;
}

bool fault_met(struct sim *s, int32_t p, int32_t link)
{
    return met(s, p, fabric_cable(s->f, link));
}

void fault_replan(struct sim *s, int32_t p, int32_t cable)
{
    if (met(s, p, cable))
        router_take(s, p);
}

/* Take a list of packets from a port. They wait no longer, so what they hold of other outputs is not up for exchange
 * until they wait again. */
static int32_t detach(struct sim *s, int32_t *head, int32_t *tail)
{
    int32_t list = *head;
    *head = *tail = NONE;
    for (int32_t p = list; p != NONE; p = s->packet[p].next)
        if (s->packet[p].flags & FLAG_STRANDED) {
            s->packet[p].flags &= (uint8_t)~FLAG_STRANDED;
            s->port[s->packet[p].hold].stranded--;
        }
    return list;
}

/* Everything that was to leave by this link looks for another way. It keeps the slot it fills until it has a new one.
 */
static void evacuate(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o];
    int32_t list[4];
    for (int i = 0; i < 2; i++) {
        list[i] = detach(s, &port->head[i], &port->tail[i]);
        list[2 + i] = detach(s, &port->whead[i], &port->wtail[i]);
    }
    for (int i = 0; i < 4; i++)
        for (int32_t p = list[i], next; p != NONE; p = next) {
            next = s->packet[p].next;
            router_take(s, p);
        }
    port->blocked = false;
}

static void change_link(struct sim *s, int32_t link, bool breaks)
{
    struct port *port = &s->port[link];
    if (breaks) {
        if (port->down++ == 0) {
            port->down_since = s->now;
            port->claimed = 0;
            evacuate(s, link);
        }
    } else {
        assert(port->down > 0);
        if (--port->down == 0)
            sim_port_at(s, link, s->now);
    }
}

static void change_cable(struct sim *s, int32_t cable, bool breaks)
{
    change_link(s, cable, breaks);
    change_link(s, s->f->reverse[cable], breaks);
}

static void repair_push(struct sim *s, uint64_t at, int32_t cable)
{
    size_t i = s->nrepair++;
    for (; i && at < s->repair[(i - 1) / 2].at; i = (i - 1) / 2)
        s->repair[i] = s->repair[(i - 1) / 2];
    s->repair[i].at = at;
    s->repair[i].cable = cable;
}

static void repair_pop(struct sim *s)
{
    size_t last = --s->nrepair, i = 0;
    for (size_t child; (child = 2 * i + 1) < last; i = child) {
        if (child + 1 < last && s->repair[child + 1].at < s->repair[child].at)
            child++;
        if (s->repair[child].at >= s->repair[last].at)
            break;
        s->repair[i] = s->repair[child];
    }
    s->repair[i] = s->repair[last];
}

/* The next change of any link, as one event. */
void fault_schedule(struct sim *s)
{
    const struct outages *o = s->c.outages;
    uint64_t at = UINT64_MAX;
    if (o && s->next_outage < o->n)
        at = o->list[s->next_outage].start_ns;
    if (s->nrepair && s->repair[0].at < at)
        at = s->repair[0].at;
    if (at != UINT64_MAX)
        sim_at(s, at > s->now ? at : s->now, EV_OUTAGE, 0);
}

void fault_event(struct sim *s)
{
    const struct outages *o = s->c.outages;
    while (s->nrepair && s->repair[0].at <= s->now) {
        int32_t cable = s->repair[0].cable;
        repair_pop(s);
        change_cable(s, cable, false);
    }
    while (s->next_outage < o->n && o->list[s->next_outage].start_ns <= s->now) {
        const struct outage *out = &o->list[s->next_outage++];
        change_cable(s, out->cable, true);
        if (out->end_ns != OUTAGE_FOREVER)
            repair_push(s, out->end_ns, out->cable);
    }
    fault_schedule(s);
}
