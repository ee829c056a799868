/* A note of a remote write that follows on this connection (wire/note.h); or the same note is to be forgotten, as every
 * copy has the bytes: only that is answered. */
#ifndef KEEL_WIRE_INTENT_H
#define KEEL_WIRE_INTENT_H

#include "runtime/wire/header.h"

struct msg_intent {
    uint64_t seq; /* of what is to be answered */
    struct msg_at at;
    uint32_t bytes;      /* 0: forget it */
    int note;            /* of the origin at this agent; -1: none, which is nonsense */
    uint64_t put;        /* the put's number, the same at every copy */
    uint64_t generation; /* of the route that it was planned for */
    uint16_t level;      /* so many copies have the bytes whole */
};

static inline void msg_intent_encode(const struct msg_intent *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_INTENT,
                          .raw.slot = m->at.slot,
                          .raw.seg = m->at.seg,
                          .seq = m->seq,
                          .raw.offset = m->at.offset,
                          .raw.count = m->bytes,
                          .raw.identity = m->put,
                          .epoch = m->generation,
                          .raw.note = (uint16_t)(m->note + 1),
                          .raw.round = m->level};
}

static inline void msg_intent_decode(const struct wire *wire, struct msg_intent *m)
{
    m->seq = wire->seq;
    msg_at_decode(wire, &m->at);
    m->bytes = wire->raw.count;
    m->note = (int)wire->raw.note - 1;
    m->put = wire->raw.identity;
    m->generation = wire->epoch;
    m->level = (uint16_t)wire->raw.round;
}
#endif
