/* A segment exists, or was freed: an agent to all others (agent/segments.h). Calls that allocate and free have
 * numbers, which count both. */
#ifndef KEEL_WIRE_SEGMENT_TOLD_H
#define KEEL_WIRE_SEGMENT_TOLD_H

#include "runtime/wire/header.h"

enum { SEGMENT_F_FREED = 8, SEGMENT_F_ASKS = 16, SEGMENT_F_AGREED = 32 };

struct msg_segment {
    uint32_t seg;
    uint64_t number; /* of the call that allocated it */
    uint64_t bytes_per_rank;
    uint32_t redundancy;
    bool uneven; /* its ranks asked for parts of different lengths */
    bool asks;   /* whether the receiver has its copies: it answers (segment_has.h) */
    bool agreed; /* all ranks have agreed on it: who cannot have it ends */
    bool before; /* it was there before the view that bore who is told */
};

static inline void msg_segment_encode(const struct msg_segment *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_SEGMENT,
                          .flags = (uint8_t)((m->asks ? SEGMENT_F_ASKS : 0) | (m->agreed ? SEGMENT_F_AGREED : 0)),
                          .raw.seg = m->seg,
                          .raw.count = m->uneven | (uint32_t)m->before << 1,
                          .raw.a = (int64_t)m->bytes_per_rank,
                          .raw.b = m->redundancy,
                          .raw.identity = m->number};
}

static inline void msg_segment_decode(const struct wire *wire, struct msg_segment *m)
{
    m->seg = wire->raw.seg;
    m->number = wire->raw.identity;
    m->bytes_per_rank = (uint64_t)wire->raw.a;
    m->redundancy = (uint32_t)wire->raw.b;
    m->uneven = wire->raw.count & 1;
    m->before = wire->raw.count >> 1 & 1;
    m->asks = wire->flags & SEGMENT_F_ASKS;
    m->agreed = wire->flags & SEGMENT_F_AGREED;
}

struct msg_segment_freed {
    uint32_t seg;
    uint64_t number; /* of the call that freed it */
    int64_t status;  /* KEEL_OK, or that for which it never came to be */
};

static inline void msg_segment_freed_encode(const struct msg_segment_freed *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_SEGMENT,
                          .flags = SEGMENT_F_FREED,
                          .raw.seg = m->seg,
                          .raw.a = m->status,
                          .raw.identity = m->number};
}

static inline bool msg_segment_is_freed(const struct wire *wire)
{
    return wire->flags & SEGMENT_F_FREED;
}

static inline void msg_segment_freed_decode(const struct wire *wire, struct msg_segment_freed *m)
{
    m->seg = wire->raw.seg;
    m->number = wire->raw.identity;
    m->status = wire->raw.a;
}
#endif
