#include "sim/route/sim_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void router_admit(struct sim *s, int32_t o);

/* Give back the slot a packet fills. Who waited for that slot goes on at once: a sender by an event of its own. */
void router_release(struct sim *s, int32_t p)
{
    int32_t hold = s->packet[p].hold;
    enum hold kind = s->packet[p].hold_kind;
    s->packet[p].hold = NONE;
    s->packet[p].hold_kind = HOLD_NONE;
    if (s->packet[p].flags & FLAG_STRANDED) {
        s->packet[p].flags &= (uint8_t)~FLAG_STRANDED;
        s->port[hold].stranded--;
    }
    if (kind == HOLD_IN) {
        assert(s->port[hold].in_used > 0);
        s->port[hold].in_used--;
        if (s->port[hold].blocked)
            sim_port_at(s, hold, s->now);
    } else if (kind == HOLD_OUT) {
        assert(s->port[hold].out_used > 0);
        s->port[hold].out_used--;
        router_admit(s, hold);
    }
}

static void take_slot(struct sim *s, int32_t p, int32_t o)
{
    struct port *port = &s->port[o];
    router_release(s, p);
    s->packet[p].hold = o;
    s->packet[p].hold_kind = HOLD_OUT;
    list_append(s, &port->head[packet_class(&s->packet[p])], &port->tail[packet_class(&s->packet[p])], p);
}

/* Move waiting packets into free slots of an output buffer. */
static void router_admit(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o];
    while (port->out_used < s->cap_out && (port->whead[0] != NONE || port->whead[1] != NONE)) {
        int class = port->whead[0] == NONE;
        int32_t p = list_pop(s, &port->whead[class], &port->wtail[class]);
        port->out_used++; /* before take_slot: what that sets free must not be given away twice */
        take_slot(s, p, o);
    }
}

/* The slots of two packets of one router change owners. */
void router_swap_slots(struct sim *s, int32_t a, int32_t b)
{
    struct packet *p = &s->packet[a], *q = &s->packet[b];
    int32_t hold = p->hold;
    uint8_t kind = p->hold_kind, stranded = p->flags & FLAG_STRANDED;
    p->hold = q->hold;
    p->hold_kind = q->hold_kind;
    p->flags = (uint8_t)((p->flags & ~FLAG_STRANDED) | (q->flags & FLAG_STRANDED));
    q->hold = hold;
    q->hold_kind = kind;
    q->flags = (uint8_t)((q->flags & ~FLAG_STRANDED) | stranded);
}

bool packet_is_older(const struct sim *s, int32_t a, int32_t b)
{
    const struct packet *p = &s->packet[a], *q = &s->packet[b];
    return p->created != q->created ? p->created < q->created : a < b;
}

/* The youngest packet among the waiting ones of port x that holds a slot of port o, if younger than `than`. */
static int32_t stranded_at(const struct sim *s, int32_t x, int32_t o, int32_t than)
{
    for (int class = 0; class < 2; class ++)
        for (int32_t p = s->port[x].whead[class]; p != NONE; p = s->packet[p].next)
            if (s->packet[p].flags & FLAG_STRANDED && s->packet[p].hold == o &&
                (than == NONE || packet_is_older(s, than, p)))
                than = p;
    return than;
}

int32_t router_stranded(const struct sim *s, int32_t router, int32_t o, int32_t *at)
{
    const struct fabric *f = s->f;
    int32_t first = f->kind == FABRIC_GRID ? router : (router - (f->levels - 1) * f->row) * f->arity;
    int32_t n = f->kind == FABRIC_GRID ? 1 : first < 0 ? 0 : f->arity;
    int32_t found = NONE;
    for (int32_t i = 0; i < f->ports + n; i++) {
        int32_t x = i < f->ports ? router * f->ports + i : s->eject0 + first + i - f->ports;
        int32_t p = stranded_at(s, x, o, found);
        if (p != found)
            *at = x;
        found = p;
    }
    return found;
}

/* A waiting packet that met a broken link may still hold a slot of the output it was to leave by. Such a slot goes to
 * who waits for it, in exchange for that one's: otherwise two outputs full of each other's packets would stand still.
 */
static void offer_slot(struct sim *s, int32_t p)
{
    struct packet *packet = &s->packet[p];
    if (packet->hold_kind != HOLD_OUT || packet->flags & FLAG_STRANDED)
        return;
    int32_t left = packet->hold;
    struct port *was = &s->port[left];
    if (was->whead[0] == NONE && was->whead[1] == NONE) {
        packet->flags |= FLAG_STRANDED;
        was->stranded++;
        return;
    }
    int class = was->whead[0] == NONE;
    int32_t next = list_pop(s, &was->whead[class], &was->wtail[class]);
    router_swap_slots(s, p, next);
    list_append(s, &was->head[class], &was->tail[class], next);
    router_send(s, left);
}

static void wait_for_output(struct sim *s, int32_t p, int32_t o)
{
    struct port *port = &s->port[o];
    struct packet *packet = &s->packet[p];
    int class = packet_class(packet);
    if (!port->stranded) {
        list_append(s, &port->whead[class], &port->wtail[class], p);
        offer_slot(s, p);
        return;
    }
    int32_t where, other = router_stranded(s, packet->at, o, &where);
    router_swap_slots(s, p, other);
    packet->flags &= (uint8_t)~FLAG_STRANDED;
    port->stranded--;
    list_append(s, &port->head[class], &port->tail[class], p);
    offer_slot(s, other);
}

static void router_enqueue(struct sim *s, int32_t p, int32_t o)
{
    struct port *port = &s->port[o];
    int class = packet_class(&s->packet[p]);
    if (port->sending && port->busy_until <= s->now)
        router_send(s, o);
    if (s->packet[p].hold_kind == HOLD_OUT && s->packet[p].hold == o) { /* looked for another way and found the same */
        if (s->packet[p].flags & FLAG_STRANDED)
            port->stranded--;
        s->packet[p].flags &= (uint8_t)~FLAG_STRANDED;
        list_append(s, &port->head[class], &port->tail[class], p);
    } else if (port->out_used < s->cap_out && port->whead[0] == NONE && (class == 0 || port->whead[1] == NONE)) {
        port->out_used++;
        if (port->out_used > s->r->max_out)
            s->r->max_out = port->out_used;
        take_slot(s, p, o);
    } else {
        wait_for_output(s, p, o);
    }
    router_send(s, o);
}

/* Step through the intermediate routers reached. */
bool router_advance(struct sim *s, int32_t i)
{
    struct packet *p = &s->packet[i];
    int32_t home = fabric_home(s->f, p->dst);
    if (p->target == NONE)
        p->target = p->ext != NONE && s->ext[p->ext].way.nvia ? s->ext[p->ext].way.via[0] : home;
    while (p->at == p->target) {
        const struct detour_path *way = p->ext != NONE ? &s->ext[p->ext].way : NULL;
        if (!way || p->step >= way->nvia)
            return true;
        p->step++;
        p->target = p->step < way->nvia ? way->via[p->step] : home;
    }
    return false;
}

void router_take(struct sim *s, int32_t i)
{
    for (;;) {
        struct packet *p = &s->packet[i];
        if (router_advance(s, i)) {
            router_enqueue(s, i, s->eject0 + p->dst);
            return;
        }
        int32_t link = p->at * s->f->ports + fabric_next(s->f, p->at, p->target, p->dst);
        if (!s->port[link].down) {
            router_enqueue(s, i, link);
            return;
        }
        if (!fault_met(s, i, link))
            return;
    }
}

/* Put a packet on its link. The caller has taken it out of the output buffer's list and set where it holds a slot. */
void router_transmit(struct sim *s, int32_t o, int32_t i)
{
    struct port *port = &s->port[o];
    struct packet *p = &s->packet[i];
    uint64_t serial = serial_ns(s, p->bytes);
    assert(port->sending && !port->down);
    if (o >= s->inject0)
        p->started = s->now;
    else if (o < s->nlinks)
        p->hops++;
    p->at = port->to;
    port->busy_until = s->now + serial;
    port->busy_ns += serial;
    port->blocked = false;
    s->last_move = s->now;
    bool whole = p->at == NONE || s->c.store_forward;
    sim_at(s, s->now + s->c.hop_ns + (whole ? serial : 0), EV_HEAD, i);
}

/* The packet that was on the link has left; its slot, if it had one of its own here, is free. */
static void finish_sending(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o];
    if (port->sending == 1 && o < s->inject0)
        port->out_used--;
    port->sending = 0;
    if (o < s->inject0)
        router_admit(s, o);
}

static bool has_work(const struct port *port)
{
    return port->head[0] != NONE || port->head[1] != NONE || port->whead[0] != NONE || port->whead[1] != NONE;
}

static void wait_for_slot(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o];
    if (!port->blocked) {
        port->blocked = true;
        port->blocked_since = s->now;
    }
    if (s->c.avoidance && o < s->nlinks && !port->stall_set) {
        port->stall_set = true;
        sim_at(s, s->now + s->c.stall_ns, EV_STALL, o);
    }
}

void router_send(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o];
    if (port->sending) {
        if (port->busy_until > s->now) {
            if (has_work(port) || port->claimed)
                sim_port_at(s, o, port->busy_until);
            return;
        }
        finish_sending(s, o);
    }
    if (port->down || port->claimed || (port->head[0] == NONE && port->head[1] == NONE))
        return;
    bool ejects = o >= s->eject0 && o < s->inject0;
    if (!ejects && port->in_used >= s->cap_in) {
        wait_for_slot(s, o);
        return;
    }
    int class = port->head[0] == NONE;
    int32_t p = list_pop(s, &port->head[class], &port->tail[class]);
    s->packet[p].hold_kind = HOLD_NONE;
    if (!ejects) {
        s->packet[p].hold = o;
        s->packet[p].hold_kind = HOLD_IN;
        port->in_used++;
        if (port->in_used > s->r->max_in)
            s->r->max_in = port->in_used;
    }
    port->sending = 1;
    router_transmit(s, o, p);
    if (has_work(port))
        sim_port_at(s, o, port->busy_until);
}

void router_head(struct sim *s, int32_t i)
{
    struct packet *p = &s->packet[i];
    if (p->at == NONE)
        traffic_delivered(s, i);
    else if (p->flags & FLAG_PLACED)
        avoid_arrived(s, i);
    else
        router_take(s, i);
}

void router_port(struct sim *s, int32_t o)
{
    if (s->port[o].claimed)
        avoid_claimed(s, o);
    router_send(s, o);
}
