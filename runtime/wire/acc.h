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

static inline struct wire msg_acc_encode(const struct msg_acc *m)
{
    struct wire w = msg_request_encode(WIRE_ACC, &m->request);
    msg_identity_encode(&m->identity, &w);
    w.count = m->type;
    w.a = m->scale[0];
    w.b = m->scale[1];
    return w;
}

static inline struct msg_acc msg_acc_decode(const struct wire *w)
{
    return (struct msg_acc){
        .request = msg_request_decode(w), .identity = msg_identity_decode(w), .type = w->count, .scale = {w->a, w->b}};
}
#endif
