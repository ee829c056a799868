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

static inline void msg_rmw_encode(const struct msg_rmw *m, struct wire *w)
{
    msg_request_encode(WIRE_RMW, &m->request, w);
    msg_identity_encode(&m->identity, w);
    w->count = m->operation | (m->bytes == 4 ? RMW_32 : 0);
    w->a = m->a;
    w->b = m->b;
}

static inline void msg_rmw_decode(const struct wire *w, struct msg_rmw *m)
{
    msg_request_decode(w, &m->request);
    msg_identity_decode(w, &m->identity);
    m->operation = w->count & ~(uint32_t)RMW_32;
    m->bytes = w->count & RMW_32 ? 4 : 8;
    m->a = w->a;
    m->b = w->b;
}
#endif
