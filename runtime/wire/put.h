/* A put: the body goes to `at`. */
#ifndef KEEL_WIRE_PUT_H
#define KEEL_WIRE_PUT_H

#include "runtime/wire/request.h"

enum { PUT_F_THROUGH = 1 };

struct msg_put {
    struct msg_request request;
    bool through; /* to the primary, which passes it to the other copies; else every copy gets it from the origin */
    int note;     /* of the origin at this agent, that covers it (wire/note.h); -1: none */
};

static inline void msg_put_encode(const struct msg_put *m, struct wire *wire)
{
    msg_request_encode(WIRE_PUT, &m->request, wire);
    wire->flags |= m->through ? PUT_F_THROUGH : 0;
    wire->raw.note = (uint16_t)(m->note + 1);
}

static inline void msg_put_decode(const struct wire *wire, struct msg_put *m)
{
    msg_request_decode(wire, &m->request);
    m->through = wire->flags & PUT_F_THROUGH;
    m->note = (int)wire->raw.note - 1;
}
#endif
