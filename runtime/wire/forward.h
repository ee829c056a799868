/* What an operation left at its patch in the primary's copy, to the other copies, each of which passes it to the next
 * one (agent/chain.h). The operation's identity travels along. */
#ifndef KEEL_WIRE_FORWARD_H
#define KEEL_WIRE_FORWARD_H

#include "runtime/wire/identity.h"
#include "runtime/wire/relayed.h"
#include "runtime/wire/request.h"

enum { FORWARD_F_AGAIN = 16, FORWARD_F_PACKED = REQUEST_F_PACKED, FORWARD_F_ANSWER = 128 };

struct msg_forward {
    struct msg_at at;
    uint32_t len;       /* bytes of body */
    bool packed;        /* body: pieces from `at` on */
    bool relay;         /* tell the sender when what you pass on is acknowledged (relayed.h) */
    bool again;         /* you may have it */
    bool answer;        /* the last copy answers the origin, */
    uint64_t request;   /* its request of that seq */
    uint32_t operation; /* WIRE_PUT, WIRE_ACC or WIRE_RMW */
    uint32_t number;    /* of the forward, among those of the copyset; counts modulo 2^32 */
    int64_t value;      /* of the answer */
    struct life origin;
    struct msg_identity identity;
};

static inline void msg_forward_encode(const struct msg_forward *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_FORWARD,
                          .flags = (uint8_t)((m->packed ? FORWARD_F_PACKED : 0) | (m->relay ? CHAIN_F_RELAY : 0) |
                                             (m->again ? FORWARD_F_AGAIN : 0) | (m->answer ? FORWARD_F_ANSWER : 0)),
                          .raw.slot = m->at.slot,
                          .raw.seg = m->at.seg,
                          .raw.offset = m->at.offset,
                          .len = m->len,
                          .raw.count = m->operation,
                          .raw.a = m->value,
                          .raw.b = (int64_t)m->request,
                          .raw.status = (int32_t)m->number,
                          .raw.rank = (uint32_t)m->origin.rank,
                          .raw.incarnation = m->origin.incarnation};
    msg_identity_encode(&m->identity, wire);
}

/* It is sent once more. */
static inline void msg_forward_is_again(struct wire *wire)
{
    wire->flags |= FORWARD_F_AGAIN;
}

static inline void msg_forward_decode(const struct wire *wire, struct msg_forward *m)
{
    msg_at_decode(wire, &m->at);
    m->len = wire->len;
    m->packed = wire->flags & FORWARD_F_PACKED;
    m->relay = wire->flags & CHAIN_F_RELAY;
    m->again = wire->flags & FORWARD_F_AGAIN;
    m->answer = wire->flags & FORWARD_F_ANSWER;
    m->request = (uint64_t)wire->raw.b;
    m->operation = wire->raw.count;
    m->number = (uint32_t)wire->raw.status;
    m->value = wire->raw.a;
    m->origin = wire_life(wire);
    msg_identity_decode(wire, &m->identity);
}
#endif
