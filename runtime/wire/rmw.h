/* A read-modify-write of one word at `at`, which the answer says the old value of. */
#ifndef KEEL_WIRE_RMW_H
#define KEEL_WIRE_RMW_H

#include "runtime/wire/identity.h"
#include "runtime/wire/request.h"

enum { RMW_32 = 0x100 };

struct msg_rmw {
    struct msg_request request;
    struct msg_identity identity;
    uint32_t operation; /* arith.h: enum arith_rmw */
    uint32_t bytes;     /* of the word: 4 or 8 */
    int64_t a, b;       /* operands, as in arith_rmw */
};

static inline struct wire msg_rmw_encode(const struct msg_rmw *m)
{
    struct wire w = msg_request_encode(WIRE_RMW, &m->request);
    msg_identity_encode(&m->identity, &w);
    w.count = m->operation | (m->bytes == 4 ? RMW_32 : 0);
    w.a = m->a;
    w.b = m->b;
    return w;
}

static inline struct msg_rmw msg_rmw_decode(const struct wire *w)
{
    return (struct msg_rmw){.request = msg_request_decode(w),
                            .identity = msg_identity_decode(w),
                            .operation = w->count & ~(uint32_t)RMW_32,
                            .bytes = w->count & RMW_32 ? 4 : 8,
                            .a = w->a,
                            .b = w->b};
}
#endif
