/* A piece, or some, of the stream from one rank to another (client/stream/courier.h): through the hall, over a connection of the two, or through
 * the agent of the receiver's node. The same header comes back (BACK) where the receiver is not there, or has no memory for it. */
#ifndef KEEL_WIRE_PARCEL_H
#define KEEL_WIRE_PARCEL_H

#include "runtime/wire/header.h"

enum { PARCEL_F_CREATING = 1, PARCEL_F_HOLLOW = 2, PARCEL_F_TELL = 128 };

struct msg_parcel {
    struct life sender, receiver;
    uint64_t received; /* of the other direction's pieces all up to there are here */
    uint64_t piece;    /* number of the first one; 0: there is none, only `received` */
    uint32_t kind;     /* enum parcel_kind of the message */
    bool creating;     /* of a group that is being created */
    bool tell;         /* acknowledge at once */
    bool hollow;       /* in the place of so many pieces, which nobody needs any more: */
    uint32_t hollows;
    uint64_t total; /* bytes of the message */
    uint64_t at;    /* and where in it the body belongs */
    uint32_t len;   /* bytes of body */
};

static inline void msg_parcel_encode(const struct msg_parcel *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_PARCEL,
                          .flags = (uint8_t)((m->creating ? PARCEL_F_CREATING : 0) | (m->hollow ? PARCEL_F_HOLLOW : 0) |
                                             (m->tell ? PARCEL_F_TELL : 0)),
                          .seq = m->piece,
                          .offset = m->at,
                          .len = m->len,
                          .count = m->hollows,
                          .a = (int64_t)((uint64_t)m->receiver.incarnation << 32 | (uint32_t)m->receiver.rank),
                          .b = (int64_t)m->received,
                          .identity = m->total,
                          .step = m->kind,
                          .rank = (uint32_t)m->sender.rank,
                          .incarnation = m->sender.incarnation};
}

static inline void msg_parcel_decode(const struct wire *wire, struct msg_parcel *m)
{
    m->sender = wire_life(wire);
    m->receiver = life_of((int)(uint32_t)wire->a, (uint32_t)((uint64_t)wire->a >> 32));
    m->received = (uint64_t)wire->b;
    m->piece = wire->seq;
    m->kind = wire->step;
    m->creating = wire->flags & PARCEL_F_CREATING;
    m->tell = wire->flags & PARCEL_F_TELL;
    m->hollow = wire->flags & PARCEL_F_HOLLOW;
    m->hollows = wire->count;
    m->total = wire->identity;
    m->at = wire->offset;
    m->len = wire->len;
}

/* The same, on its way back: without a body. */
static inline void msg_parcel_back_encode(const struct msg_parcel *m, struct wire *wire)
{
    msg_parcel_encode(m, wire);
    wire->type = WIRE_PARCEL_BACK;
    wire->len = 0;
}
#endif
