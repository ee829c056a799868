/* A strong get (agent/strong.h): the primary sends the bytes that it has down the chain, and each copy says which of
 * them differ there. */
#ifndef KEEL_WIRE_COMPARE_H
#define KEEL_WIRE_COMPARE_H

#include "runtime/wire/header.h"

struct msg_compare {
    struct msg_at at;
    uint32_t len;        /* bytes of body */
    uint64_t round;      /* number of the question */
    uint64_t generation; /* of the copyset */
};

static inline void msg_compare_encode(const struct msg_compare *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_COMPARE,
                          .raw.slot = m->at.slot,
                          .raw.seg = m->at.seg,
                          .raw.offset = m->at.offset,
                          .len = m->len,
                          .raw.a = (int64_t)m->round,
                          .raw.identity = m->generation};
}

static inline void msg_compare_decode(const struct wire *wire, struct msg_compare *m)
{
    msg_at_decode(wire, &m->at);
    m->len = wire->len;
    m->round = (uint64_t)wire->raw.a;
    m->generation = wire->raw.identity;
}

struct msg_compared {
    uint16_t slot;
    uint32_t len;   /* bytes of body: a bit for each aligned word that differs, in words of 64 */
    uint64_t round; /* as asked */
};

static inline void msg_compared_encode(const struct msg_compared *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_COMPARED, .raw.slot = m->slot, .len = m->len, .raw.a = (int64_t)m->round};
}

static inline void msg_compared_decode(const struct wire *wire, struct msg_compared *m)
{
    m->slot = wire->raw.slot;
    m->len = wire->len;
    m->round = (uint64_t)wire->raw.a;
}
#endif
