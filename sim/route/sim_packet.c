#include "sim/route/sim_internal.h"

#include <assert.h>
#include <stdlib.h>

/* Packets: a growing array with a free list; indices stay valid when it moves. */
int32_t packet_make(struct sim *s, enum packet_kind kind, int32_t src, int32_t dst, uint32_t bytes)
{
    if (s->free_packet == NONE && s->npackets == s->cap_packets) {
        int32_t cap = s->cap_packets ? 2 * s->cap_packets : 1024;
        struct packet *more = realloc(s->packet, (size_t)cap * sizeof *more);
        if (!more) {
            s->failed = true;
            return NONE;
        }
        s->packet = more;
        s->cap_packets = cap;
    }
    int32_t i = s->free_packet;
    if (i != NONE)
        s->free_packet = s->packet[i].next;
    else
        i = s->npackets++;
    s->packet[i] = (struct packet){.created = s->now,
                                   .next = NONE,
                                   .src = src,
                                   .dst = dst,
                                   .target = NONE,
                                   .hold = NONE,
                                   .ext = NONE,
                                   .bytes = (uint16_t)bytes,
                                   .kind = (uint8_t)kind};
    s->live++;
    if ((uint32_t)s->live > s->r->max_packets)
        s->r->max_packets = (uint32_t)s->live;
    return i;
}

struct ext *packet_ext(struct sim *s, int32_t p)
{
    if (s->packet[p].ext != NONE)
        return &s->ext[s->packet[p].ext];
    if (s->free_ext == NONE && s->next_ext == s->cap_ext) {
        int32_t cap = s->cap_ext ? 2 * s->cap_ext : 256;
        struct ext *more = realloc(s->ext, (size_t)cap * sizeof *more);
        if (!more) {
            s->failed = true;
            return NULL;
        }
        s->ext = more;
        s->cap_ext = cap;
    }
    int32_t i = s->free_ext;
    if (i != NONE)
        s->free_ext = s->ext[i].next_free;
    else
        i = s->next_ext++;
    s->ext[i].sent.nvia = s->ext[i].way.nvia = 0;
    s->ext[i].nknown = s->ext[i].nnews = 0;
    s->packet[p].ext = i;
    return &s->ext[i];
}

void packet_free(struct sim *s, int32_t i)
{
    struct packet *p = &s->packet[i];
    assert(p->hold_kind == HOLD_NONE && p->src != NONE);
    if (p->ext != NONE) {
        s->ext[p->ext].next_free = s->free_ext;
        s->free_ext = p->ext;
    }
    if (p->kind == PACKET_RUMOUR)
        rumour_free(s, p->info);
    p->src = NONE; /* marks a free one: a packet can be freed, so delivered, once only */
    p->next = s->free_packet;
    s->free_packet = i;
    s->live--;
}
