/* An accumulate: scale times the elements of the body are added to what is at `at`. */
#ifndef KEEL_WIRE_ACC_H
#define KEEL_WIRE_ACC_H

#include "runtime/wire/identity.h"
#include "runtime/wire/request.h"

struct msg_acc {
    struct msg_request request;
    struct msg_identity identity;
    uint32_t type;    /* of an element: keel_type */
    int64_t scale[2]; /* the bytes of one element of that type */
};

static inline void msg_acc_encode(const struct msg_acc *m, struct wire *wire)
{
    msg_request_encode(WIRE_ACC, &m->request, wire);
    msg_identity_encode(&m->identity, wire);
    wire->raw.count = m->type;
    wire->raw.a = m->scale[0];
    wire->raw.b = m->scale[1];
}

static inline void msg_acc_decode(const struct wire *wire, struct msg_acc *m)
{
    msg_request_decode(wire, &m->request);
    msg_identity_decode(wire, &m->identity);
    m->type = wire->raw.count;
    m->scale[0] = wire->raw.a;
    m->scale[1] = wire->raw.b;
}
#endif
