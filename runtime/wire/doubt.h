/* A copy to its primary: patches that may not be the same in all copies (agent/repair.h), then that these were all. */
#ifndef KEEL_WIRE_DOUBT_H
#define KEEL_WIRE_DOUBT_H

#include "runtime/wire/header.h"

enum { DOUBT_F_LIVING = 16, DOUBT_F_TORN = 64 };
enum { WIRE_DOUBT_END = 1 };

struct msg_doubt {
    struct msg_at at;
    uint64_t bytes;
    bool torn;      /* the sender's copy may have a part of them */
    bool living;    /* by a writer that lives, and will repeat it */
    uint16_t level; /* torn: so many copies had them whole (wire/note.h) */
    uint64_t put;   /* torn: the number of the writer's put */
    struct life writer;
    uint64_t generation; /* of the copyset, for which this counts */
};

static inline void msg_doubt_encode(const struct msg_doubt *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_DOUBT,
                          .flags = (uint8_t)((m->torn ? DOUBT_F_TORN : 0) | (m->living ? DOUBT_F_LIVING : 0)),
                          .slot = m->at.slot,
                          .seg = m->at.seg,
                          .offset = m->at.offset,
                          .a = (int64_t)m->bytes,
                          .b = (int64_t)m->put,
                          .identity = m->generation,
                          .rank = (uint32_t)m->writer.rank,
                          .incarnation = m->writer.incarnation,
                          .lane = m->level};
}

static inline void msg_doubt_decode(const struct wire *wire, struct msg_doubt *m)
{
    msg_at_decode(wire, &m->at);
    m->bytes = (uint64_t)wire->a;
    m->torn = wire->flags & DOUBT_F_TORN;
    m->living = wire->flags & DOUBT_F_LIVING;
    m->level = wire->lane;
    m->put = (uint64_t)wire->b;
    m->writer = wire_life(wire);
    m->generation = wire->identity;
}

struct msg_doubt_end {
    uint16_t slot; /* of the copyset, */
    uint32_t class;
    uint64_t generation;
};

static inline void msg_doubt_end_encode(const struct msg_doubt_end *m, struct wire *wire)
{
    *wire = (struct wire){
        .type = WIRE_DOUBT, .slot = m->slot, .count = WIRE_DOUBT_END, .identity = m->generation, .step = m->class};
}

static inline bool msg_doubt_is_end(const struct wire *wire)
{
    return wire->count == WIRE_DOUBT_END;
}

static inline void msg_doubt_end_decode(const struct wire *wire, struct msg_doubt_end *m)
{
    m->slot = wire->slot;
    m->class = wire->step;
    m->generation = wire->identity;
}
#endif
