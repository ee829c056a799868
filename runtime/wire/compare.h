/* A strong get (agent/strong.h): the primary sends the bytes that it has down the chain, and each copy says which of them differ there. */
#ifndef KEEL_WIRE_COMPARE_H
#define KEEL_WIRE_COMPARE_H

#include "runtime/wire/header.h"

struct msg_compare {
    struct msg_at at;
    uint32_t len;        /* bytes of body */
    uint64_t round;      /* number of the question */
    uint64_t generation; /* of the copyset */
};

static inline struct wire msg_compare_encode(const struct msg_compare *m)
{
    return (struct wire){.type = WIRE_COMPARE,
                         .slot = m->at.slot,
                         .seg = m->at.seg,
                         .offset = m->at.offset,
                         .len = m->len,
                         .a = (int64_t)m->round,
                         .identity = m->generation};
}

static inline struct msg_compare msg_compare_decode(const struct wire *w)
{
    return (struct msg_compare){
        .at = msg_at_decode(w), .len = w->len, .round = (uint64_t)w->a, .generation = w->identity};
}

struct msg_compared {
    uint16_t slot;
    uint32_t len;   /* bytes of body: a bit for each aligned word that differs, in words of 64 */
    uint64_t round; /* as asked */
};

static inline struct wire msg_compared_encode(const struct msg_compared *m)
{
    return (struct wire){.type = WIRE_COMPARED, .slot = m->slot, .len = m->len, .a = (int64_t)m->round};
}

static inline struct msg_compared msg_compared_decode(const struct wire *w)
{
    return (struct msg_compared){.slot = w->slot, .len = w->len, .round = (uint64_t)w->a};
}
#endif
