/* A piece, or some, of the stream from one rank to another (client/stream/courier.h): through the hall, over a
 * connection of the two, or through the agent of the receiver's node. The same header comes back (BACK) where the
 * receiver is not there, or has no memory for it. */
#ifndef KEEL_WIRE_PARCEL_H
#define KEEL_WIRE_PARCEL_H

#include "runtime/wire/header.h"

enum { PARCEL_F_CREATING = 1, PARCEL_F_HOLLOW = 2, PARCEL_F_TELL = 128 };

/* Whom a parcel is for, in one word. */
static inline int64_t parcel_to(struct life life)
{
    return (int64_t)((uint64_t)life.incarnation << 32 | (uint32_t)life.rank);
}
static inline struct life parcel_life(int64_t to)
{
    return life_of((int)(uint32_t)to, (uint32_t)((uint64_t)to >> 32));
}

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
                          .raw.offset = m->at,
                          .len = m->len,
                          .raw.count = m->hollows,
                          .raw.a = parcel_to(m->receiver),
                          .raw.b = (int64_t)m->received,
                          .raw.identity = m->total,
                          .raw.step = m->kind,
                          .raw.rank = (uint32_t)m->sender.rank,
                          .raw.incarnation = m->sender.incarnation};
}

static inline void msg_parcel_decode(const struct wire *wire, struct msg_parcel *m)
{
    m->sender = wire_life(wire);
    m->receiver = parcel_life(wire->raw.a);
    m->received = (uint64_t)wire->raw.b;
    m->piece = wire->seq;
    m->kind = wire->raw.step;
    m->creating = wire->flags & PARCEL_F_CREATING;
    m->tell = wire->flags & PARCEL_F_TELL;
    m->hollow = wire->flags & PARCEL_F_HOLLOW;
    m->hollows = wire->raw.count;
    m->total = wire->raw.identity;
    m->at = wire->raw.offset;
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
