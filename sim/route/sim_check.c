/* Every invariant of the routers, from scratch: each packet in exactly one place, each slot counted by exactly one
 * packet, no buffer over its size, avoidance queues of one slot, nothing dropped while there was a way. Time linear
 * in ports and packets. */
#include "sim/route/sim_internal.h"

#include <stdlib.h>

struct tally {
    uint32_t *in, *out, *daq, *stranded; /* [port] slots held according to the packets */
    uint8_t *seen;                       /* [packet] times met in a list */
    int32_t listed;
};

static const char *walk(struct sim *s, struct tally *t, int32_t o, const int32_t head[2], const int32_t tail[2],
                        bool waits)
{
    for (int class = 0; class < 2; class ++) {
        int32_t last = NONE;
        for (int32_t i = head[class]; i != NONE; i = s->packet[i].next) {
            const struct packet *p = &s->packet[i];
            if (p->src == NONE)
                return "a freed packet is in a buffer";
            if (t->seen[i]++)
                return "a packet is in two buffers";
            if (packet_class(p) != class)
                return "a packet is in the list of the other class";
            if (!waits && o < s->inject0 && (p->hold_kind != HOLD_OUT || p->hold != o))
                return "a packet in an output buffer has no slot of it";
            t->listed++;
            last = i;
        }
        if (tail[class] != last)
            return "a list does not end where it says";
    }
    return NULL;
}

static const char *tally_packets(struct sim *s, struct tally *t)
{
    int32_t live = 0;
    for (int32_t i = 0; i < s->npackets; i++) {
        const struct packet *p = &s->packet[i];
        if (p->src == NONE)
            continue;
        live++;
        if (p->hold_kind == HOLD_IN)
            t->in[p->hold]++;
        else if (p->hold_kind == HOLD_OUT)
            t->out[p->hold]++;
        if (p->flags & FLAG_STRANDED)
            t->stranded[p->hold]++;
        if (p->flags & FLAG_PLACED)
            t->daq[p->came]++;
    }
    return live == s->live ? NULL : "packets were lost or duplicated";
}

static const char *check_port(struct sim *s, const struct tally *t, int32_t o)
{
    const struct port *port = &s->port[o];
    bool ejects = o >= s->eject0 && o < s->inject0;
    if (port->in_used > s->cap_in || (o < s->inject0 && port->out_used > s->cap_out))
        return "a buffer is over its size";
    if (t->in[o] != port->in_used && !ejects)
        return "an input buffer's count is wrong";
    if (t->daq[o] > 1 || t->daq[o] != port->daq_used)
        return "an avoidance queue's count is wrong";
    /* A packet on the link fills its output slot until its tail has left, and the next slot already. */
    uint32_t leaving = port->sending == 1 && o < s->inject0;
    if (o < s->inject0 && t->out[o] + leaving != port->out_used)
        return "an output buffer's count is wrong";
    if (port->down &&
        (port->head[0] != NONE || port->head[1] != NONE || port->whead[0] != NONE || port->whead[1] != NONE))
        return "packets wait for a broken link";
    return NULL;
}

const char *sim_check(struct sim *s)
{
    s->r->checks++;
    size_t ports = (size_t)s->nports;
    struct tally t = {.in = calloc(ports, 4),
                      .out = calloc(ports, 4),
                      .daq = calloc(ports, 4),
                      .stranded = calloc(ports, 4),
                      .seen = calloc((size_t)s->npackets + 1, 1)};
    const char *wrong = t.in && t.out && t.daq && t.stranded && t.seen ? tally_packets(s, &t) : "out of memory";
    for (int32_t o = 0; o < s->nports && !wrong; o++) {
        const struct port *port = &s->port[o];
        wrong = walk(s, &t, o, port->head, port->tail, false);
        if (!wrong)
            wrong = walk(s, &t, o, port->whead, port->wtail, true);
        if (!wrong)
            wrong = check_port(s, &t, o);
    }
    const struct sim_result *r = s->r;
    uint64_t data = 0;
    for (int32_t i = 0; i < s->npackets && !wrong; i++)
        data += s->packet[i].src != NONE && s->packet[i].kind == PACKET_DATA;
    if (!wrong && r->created != r->delivered + r->lost + r->undeliverable + data)
        wrong = "messages made are not those delivered, lost, undeliverable and under way";
    if (!wrong && r->dropped_connected)
        wrong = "a packet was dropped although the network had a way to its destination";
    free(t.in);
    free(t.out);
    free(t.daq);
    free(t.stranded);
    free(t.seen);
    return wrong;
}
