/* A get: the answer's body is what is at `at`. An inspection (packed): 8 bytes for each piece, its hash or where it
 * differs from the bytes that the request brings (digest.h). */
#ifndef KEEL_WIRE_GET_H
#define KEEL_WIRE_GET_H

#include "runtime/wire/request.h"

enum { GET_F_COMPARES = 2, GET_F_INSPECTS = 4, GET_F_STRONG = 128 };

struct msg_get {
    struct msg_request request; /* its body, if it is packed: which pieces */
    uint32_t bytes;             /* asked for; of all pieces */
    bool strong;                /* what is answered is never taken back (agent/strong.h) */
    bool inspects, compares;    /* an inspection; with the bytes behind its pieces, as in a put's body */
};

static inline void msg_get_encode(const struct msg_get *m, struct wire *wire)
{
    msg_request_encode(WIRE_GET, &m->request, wire);
    wire->flags |= (uint8_t)((m->strong ? GET_F_STRONG : 0) | (m->inspects ? GET_F_INSPECTS : 0) |
                             (m->compares ? GET_F_COMPARES : 0));
    wire->raw.count = m->bytes;
}

static inline void msg_get_decode(const struct wire *wire, struct msg_get *m)
{
    msg_request_decode(wire, &m->request);
    m->bytes = wire->raw.count;
    m->strong = wire->flags & GET_F_STRONG;
    m->inspects = wire->flags & GET_F_INSPECTS;
    m->compares = wire->flags & GET_F_COMPARES;
}
#endif
