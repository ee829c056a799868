/* Deadlock avoidance. Multi-step paths turn in any direction, and even plain dimension-order routes close rings on a
 * torus, so full buffers can wait for each other in a circle. Every input link has one more slot, the deadlock
 * avoidance queue, used by these rules only, when an output A -> B has waited `stall_ns` for a free slot in B's input
 * buffer:
 *
 *   1. Let P be the oldest packet that waits for that output, in the output buffer or in A's input buffers (then it
 *      changes places with the youngest of the output buffer).
 *   2. bypass: if the output of B that P needs next has a free slot, that slot is taken for P and P is sent into the
 *      avoidance queue, from which it goes straight to that slot.
 *   3. exchange: if that output buffer is full, and the youngest packet Q with a slot of it is younger than P, then P
 *      and Q change places: P is sent into B's avoidance slot for the link A -> B and on into Q's slot, Q into A's slot
 *      for B -> A and on into P's. Both links must be idle; the one that is not is claimed for it and carries no
 *      further packet before.
 *
 * Why it suffices. A packet that enters an avoidance slot has its next slot already, so these slots empty within the
 * time of one hop whatever else is full: no circle of waiting can include one. Age (time of making, then number) is a
 * total order that no rule changes. Take the oldest packet in the network: it is never Q, and wherever it waits, rule
 * 1, 2 or 3 or plain progress moves it on, as ejection never blocks; it makes its finite path and is delivered. Then
 * the next oldest is, and so on: no deadlock, and no packet is pushed back for ever. It needs no knowledge of the
 * topology or of where the faults are, hence holds while links break and come back; it needs cables that fail in both
 * directions together. The paper takes its rules from an earlier article ([14] there) that we did not have: these are
 * our own. */
#include "sim/route/sim_internal.h"

#include <assert.h>
#include <stdlib.h>

static int32_t oldest_in(const struct sim *s, const int32_t head[2])
{
    int32_t best = NONE;
    for (int class = 0; class < 2; class ++)
        for (int32_t p = head[class]; p != NONE; p = s->packet[p].next)
            if (best == NONE || packet_is_older(s, p, best))
                best = p;
    return best;
}

static int32_t youngest_in(const struct sim *s, const int32_t head[2])
{
    int32_t best = NONE;
    for (int class = 0; class < 2; class ++)
        for (int32_t p = head[class]; p != NONE; p = s->packet[p].next)
            if (best == NONE || packet_is_older(s, best, p))
                best = p;
    return best;
}

static void out_remove(struct sim *s, int32_t o, int32_t p)
{
    int class = packet_class(&s->packet[p]);
    list_remove(s, &s->port[o].head[class], &s->port[o].tail[class], p);
}

/* Rule 1: the oldest packet that waits for this output, brought into its buffer if need be. */
static int32_t choose_oldest(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o];
    int32_t oldest = oldest_in(s, port->head), waiting = oldest_in(s, port->whead);
    if (waiting == NONE || packet_is_older(s, oldest, waiting))
        return oldest;
    int32_t out = youngest_in(s, port->head);
    struct packet *w = &s->packet[waiting], *y = &s->packet[out];
    int class = packet_class(w), out_class = packet_class(y);
    list_remove(s, &port->whead[class], &port->wtail[class], waiting);
    out_remove(s, o, out);
    router_swap_slots(s, waiting, out);
    list_append(s, &port->head[class], &port->tail[class], waiting);
    list_append(s, &port->whead[out_class], &port->wtail[out_class], out);
    s->r->swaps++;
    return waiting;
}

/* Send p over o into the avoidance queue; its slot at the far end, of output `place`, is held from now on. */
static void send_placed(struct sim *s, int32_t o, int32_t p, int32_t place, uint8_t sending)
{
    struct port *port = &s->port[o];
    assert(!port->daq_used && !port->sending);
    s->packet[p].hold = place;
    s->packet[p].hold_kind = HOLD_OUT;
    s->packet[p].flags |= FLAG_PLACED;
    s->packet[p].came = o;
    port->daq_used = 1;
    port->sending = sending;
    router_transmit(s, o, p);
    sim_port_at(s, o, port->busy_until);
}

/* The output that p, gone from A to B, needs there; NONE when that link is broken. */
static int32_t next_output(struct sim *s, int32_t p, int32_t b, int32_t *cable)
{
    struct packet *k = &s->packet[p];
    int32_t at = k->at, target = k->target;
    uint8_t step = k->step;
    k->at = b;
    int32_t o = s->eject0 + k->dst;
    if (!router_advance(s, p)) {
        o = b * s->f->ports + fabric_next(s->f, b, k->target, k->dst);
        if (s->port[o].down) {
            *cable = fabric_cable(s->f, o);
            o = NONE;
        }
    }
    k->at = at;
    k->target = target;
    k->step = step;
    return o;
}

/* The youngest packet with a slot of output o of router b: in its buffer, or waiting for another output (*at). */
static int32_t choose_youngest(const struct sim *s, int32_t b, int32_t o, int32_t *at)
{
    *at = NONE;
    int32_t q = youngest_in(s, s->port[o].head), x = NONE;
    int32_t other = s->port[o].stranded ? router_stranded(s, b, o, &x) : NONE;
    if (other == NONE || (q != NONE && packet_is_older(s, other, q)))
        return q;
    *at = x;
    return other;
}

/* Take q, with its slot of output o, out of whatever list it is in. */
static void take_out(struct sim *s, int32_t o, int32_t q, int32_t at)
{
    if (at == NONE) {
        out_remove(s, o, q);
        return;
    }
    int class = packet_class(&s->packet[q]);
    list_remove(s, &s->port[at].whead[class], &s->port[at].wtail[class], q);
    s->packet[q].flags &= (uint8_t)~FLAG_STRANDED;
    s->port[o].stranded--;
}

static void exchange(struct sim *s, int32_t o, int32_t p, int32_t next)
{
    int32_t back = s->f->reverse[o], b = s->port[o].to, at, q = choose_youngest(s, b, next, &at);
    if (q == NONE || !packet_is_older(s, p, q))
        return;
    if (s->port[back].sending && s->port[back].busy_until <= s->now)
        router_send(s, back);
    if (s->port[back].sending) {
        s->port[back].claimed = 1;
        sim_port_at(s, back, s->port[back].busy_until);
        return;
    }
    /* Ending the one before may have changed what is youngest there. */
    q = choose_youngest(s, b, next, &at);
    if (q == NONE || !packet_is_older(s, p, q) || s->port[back].daq_used || s->port[o].daq_used)
        return;
    out_remove(s, o, p);
    take_out(s, next, q, at);
    send_placed(s, o, p, next, 2);
    send_placed(s, back, q, o, 2);
    s->r->exchanges++;
}

static void try_rules(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o];
    if (port->sending || port->daq_used || (port->head[0] == NONE && port->head[1] == NONE))
        return;
    int32_t p = choose_oldest(s, o), b = port->to, cable = NONE;
    int32_t next = next_output(s, p, b, &cable);
    if (next == NONE) { /* B says that the way on is broken: p looks for another from here */
        out_remove(s, o, p);
        fault_replan(s, p, cable);
        return;
    }
    struct port *on = &s->port[next];
    if (on->sending && on->busy_until <= s->now)
        router_send(s, next);
    if (on->out_used < s->cap_out) {
        on->out_used++;
        out_remove(s, o, p);
        send_placed(s, o, p, next, 1);
        s->r->bypasses++;
    } else if (next < s->nlinks) {
        exchange(s, o, p, next);
    }
}

void avoid_stall(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o];
    port->stall_set = false;
    if (!port->blocked || port->down)
        return;
    if (s->now >= port->blocked_since + s->c.stall_ns)
        try_rules(s, o);
    if (port->blocked && !port->stall_set) {
        uint64_t due = port->blocked_since + s->c.stall_ns;
        port->stall_set = true;
        sim_at(s, due > s->now ? due : s->now + s->c.stall_ns, EV_STALL, o);
    }
}

void avoid_claimed(struct sim *s, int32_t o)
{
    struct port *port = &s->port[o], *other = &s->port[s->f->reverse[o]];
    if (port->sending && port->busy_until > s->now)
        return; /* the event at its end follows */
    if (port->sending)
        router_send(s, o); /* ends that; starts nothing, being claimed */
    port->claimed = 0;
    if (other->blocked && !other->down)
        try_rules(s, s->f->reverse[o]);
}

/* The head of a packet has come through the avoidance queue: into the slot held for it. */
void avoid_arrived(struct sim *s, int32_t p)
{
    int32_t o = s->packet[p].hold;
    s->packet[p].flags &= (uint8_t)~FLAG_PLACED;
    s->port[s->packet[p].came].daq_used = 0;
    if (s->port[o].down) {
        router_take(s, p);
        return;
    }
    router_advance(s, p);
    struct port *port = &s->port[o];
    int class = packet_class(&s->packet[p]);
    list_append(s, &port->head[class], &port->tail[class], p);
    router_send(s, o);
}

/* Marks spread from outputs that can move: what waits for such an output in an input buffer will leave it, so the
 * output that fills this buffer can move too. Outputs with packets and without a mark at the end wait for each other
 * only. */
int32_t avoid_knot(struct sim *s)
{
    int32_t n = 0, top = 0, *stack = malloc((size_t)s->nports * sizeof *stack);
    uint16_t *waiting = calloc((size_t)s->nports, sizeof *waiting);
    uint8_t *mark = calloc((size_t)s->nports, 1);
    if (!stack || !waiting || !mark)
        goto out;
    for (int32_t o = 0; o < s->nports; o++)
        for (int class = 0; class < 2; class ++)
            for (int32_t p = s->port[o].whead[class]; p != NONE; p = s->packet[p].next)
                if (s->packet[p].hold_kind == HOLD_IN)
                    waiting[s->packet[p].hold]++;
    for (int32_t o = 0; o < s->nports; o++) {
        const struct port *port = &s->port[o];
        bool free_slot = (o >= s->eject0 && o < s->inject0) || port->in_used < s->cap_in || port->in_used > waiting[o];
        if (!port->down && (port->sending || free_slot)) {
            mark[o] = 1;
            stack[top++] = o;
        }
    }
    while (top) {
        const struct port *port = &s->port[stack[--top]];
        for (int class = 0; class < 2; class ++)
            for (int32_t p = port->whead[class]; p != NONE; p = s->packet[p].next) {
                int32_t o = s->packet[p].hold;
                if (s->packet[p].hold_kind == HOLD_IN && !mark[o]) {
                    mark[o] = 1;
                    stack[top++] = o;
                }
            }
    }
    for (int32_t o = 0; o < s->nlinks; o++)
        n += !mark[o] && (s->port[o].head[0] != NONE || s->port[o].head[1] != NONE);
out:
    free(stack);
    free(waiting);
    free(mark);
    return n;
}
