/* The answer of an agent to a rank. */
#ifndef KEEL_WIRE_REPLY_H
#define KEEL_WIRE_REPLY_H

#include "runtime/wire/header.h"

/* Status of an agent that is not (yet, or any more) the right one: look at the view again and retry. */
enum { WIRE_RETRY = 1 };

struct msg_reply {
    uint64_t seq;  /* of the request */
    uint32_t len;  /* bytes of body: of a get */
    int status;    /* keel_status or WIRE_RETRY */
    int64_t value; /* of the word before a read-modify-write */
    /* 1 + the generation under which ranks of this node may do such operations themselves; 0: they may not */
    uint64_t shared;
    int forgot; /* the note that was forgotten; -1: this answers something else */
};

static inline void msg_reply_encode(const struct msg_reply *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_REPLY,
                          .seq = m->seq,
                          .len = m->len,
                          .raw.a = m->value,
                          .epoch = m->shared,
                          .raw.status = m->status,
                          .raw.note = (uint16_t)(m->forgot + 1)};
}

static inline void msg_reply_decode(const struct wire *wire, struct msg_reply *m)
{
    m->seq = wire->seq;
    m->len = wire->len;
    m->status = wire->raw.status;
    m->value = wire->raw.a;
    m->shared = wire->epoch;
    m->forgot = (int)wire->raw.note - 1;
}
#endif
