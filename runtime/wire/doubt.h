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
                          .raw.slot = m->at.slot,
                          .raw.seg = m->at.seg,
                          .raw.offset = m->at.offset,
                          .raw.a = (int64_t)m->bytes,
                          .raw.b = (int64_t)m->put,
                          .raw.identity = m->generation,
                          .raw.rank = (uint32_t)m->writer.rank,
                          .raw.incarnation = m->writer.incarnation,
                          .raw.round = m->level};
}

static inline void msg_doubt_decode(const struct wire *wire, struct msg_doubt *m)
{
    msg_at_decode(wire, &m->at);
    m->bytes = (uint64_t)wire->raw.a;
    m->torn = wire->flags & DOUBT_F_TORN;
    m->living = wire->flags & DOUBT_F_LIVING;
    m->level = (uint16_t)wire->raw.round;
    m->put = (uint64_t)wire->raw.b;
    m->writer = wire_life(wire);
    m->generation = wire->raw.identity;
}

struct msg_doubt_end {
    uint16_t slot; /* of the copyset, */
    uint32_t class;
    uint64_t generation;
};

static inline void msg_doubt_end_encode(const struct msg_doubt_end *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_DOUBT,
                          .raw.slot = m->slot,
                          .raw.count = WIRE_DOUBT_END,
                          .raw.identity = m->generation,
                          .raw.step = m->class};
}

static inline bool msg_doubt_is_end(const struct wire *wire)
{
    return wire->raw.count == WIRE_DOUBT_END;
}

static inline void msg_doubt_end_decode(const struct wire *wire, struct msg_doubt_end *m)
{
    m->slot = wire->raw.slot;
    m->class = wire->raw.step;
    m->generation = wire->raw.identity;
}
#endif
