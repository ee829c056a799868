/* A read-modify-write of one word at `at`, which the answer says the old value of. */
#ifndef KEEL_WIRE_RMW_H
#define KEEL_WIRE_RMW_H

#include "runtime/wire/identity.h"
#include "runtime/wire/request.h"

enum { RMW_32 = 0x100, RMW_UNORDERED = 0x200 };

struct msg_rmw {
    struct msg_request request;
    struct msg_identity identity;
    uint32_t operation; /* arith.h: enum arith_rmw */
    uint32_t bytes;     /* of the word: 4 or 8 */
    bool unordered;     /* an addition of which nobody is told what it found */
    int64_t a, b;       /* operands, as in arith_rmw */
};

static inline void msg_rmw_encode(const struct msg_rmw *m, struct wire *wire)
{
    msg_request_encode(WIRE_RMW, &m->request, wire);
    msg_identity_encode(&m->identity, wire);
    wire->raw.count = m->operation | (m->bytes == 4 ? RMW_32 : 0) | (m->unordered ? RMW_UNORDERED : 0);
    wire->raw.a = m->a;
    wire->raw.b = m->b;
}

static inline void msg_rmw_decode(const struct wire *wire, struct msg_rmw *m)
{
    msg_request_decode(wire, &m->request);
    msg_identity_decode(wire, &m->identity);
    m->operation = wire->raw.count & ~(uint32_t)(RMW_32 | RMW_UNORDERED);
    m->bytes = wire->raw.count & RMW_32 ? 4 : 8;
    m->unordered = wire->raw.count & RMW_UNORDERED;
    m->a = wire->raw.a;
    m->b = wire->raw.b;
}
#endif
