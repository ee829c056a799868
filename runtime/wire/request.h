/* What the requests of a rank that touch a copy have in common: put, get, accumulate, read-modify-write (put.h,
 * get.h, acc.h, rmw.h). */
#ifndef KEEL_WIRE_REQUEST_H
#define KEEL_WIRE_REQUEST_H

#include "runtime/wire/header.h"

enum { REQUEST_F_PACKED = 32 };

struct msg_request {
    uint64_t seq; /* the answer has it, too */
    struct msg_at at;
    uint32_t len;        /* bytes of body */
    bool packed;         /* body: pieces from `at` on (wire/pack.h) */
    uint64_t generation; /* of the route that it was planned for */
    struct life origin;
    uint32_t
        doubted; /* how often the rank had given up what changes memory when it was sent (note.h); counts modulo 2^32 */
};

static inline void msg_request_encode(uint8_t type, const struct msg_request *m, struct wire *wire)
{
    *wire = (struct wire){.type = type,
                          .flags = m->packed ? REQUEST_F_PACKED : 0,
                          .raw.slot = m->at.slot,
                          .raw.seg = m->at.seg,
                          .seq = m->seq,
                          .raw.offset = m->at.offset,
                          .len = m->len,
                          .epoch = m->generation,
                          .raw.status = (int32_t)m->doubted,
                          .raw.rank = (uint32_t)m->origin.rank,
                          .raw.incarnation = m->origin.incarnation};
}

static inline void msg_request_decode(const struct wire *wire, struct msg_request *m)
{
    m->seq = wire->seq;
    msg_at_decode(wire, &m->at);
    m->len = wire->len;
    m->packed = wire->flags & REQUEST_F_PACKED;
    m->generation = wire->epoch;
    m->origin = wire_life(wire);
    m->doubted = (uint32_t)wire->raw.status;
}
#endif
