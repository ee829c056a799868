/* What both ends of the data path say to each other: the header of all messages (header.h), and remote keys. */
#ifndef KEEL_WIRE_WIRE_H
#define KEEL_WIRE_WIRE_H

#include "runtime/base/life.h"
#include "runtime/base/limits.h"
#include "runtime/wire/header.h"
#include "runtime/wire/reply.h"

enum { WIRE_RMW_32 = 0x100 };

enum {
    WIRE_F_THROUGH = 1, /* through the primary */
    WIRE_F_RELAY =
        2, /* WIRE_FORWARD, WIRE_PATCH: tell the sender when what is passed on is acknowledged (WIRE_RELAYED) */
    WIRE_F_TASK = 4,     /* task and step identify the operation */
    WIRE_F_FREED = 8,    /* the segment was freed */
    WIRE_F_AGAIN = 16,   /* WIRE_FORWARD: the receiver may have it */
    WIRE_F_PACKED = 32,  /* WIRE_PUT, WIRE_GET, WIRE_ACC, WIRE_FORWARD: body: pieces from offset on (wire/pack.h) */
    WIRE_F_STRONG = 128, /* WIRE_GET: what is answered is never taken back */
    WIRE_F_ANSWER = 128, /* WIRE_FORWARD: the last copy answers the origin's request of seq b */
    WIRE_F_TORN = 64,    /* WIRE_DOUBT: the sender's copy may be torn there */
    WIRE_F_LIVING =
        16, /* WIRE_DOUBT: by a writer that lives, and will repeat it. WIRE_FETCH, WIRE_PATCH: for copies that are filled */
    WIRE_F_TELL = 128,   /* WIRE_PARCEL: acknowledge at once */
    WIRE_F_CREATING = 1, /* WIRE_PARCEL: of a group that is being created */
    WIRE_F_HOLLOW = 2,   /* WIRE_PARCEL: in the place of count pieces, which nobody needs any more */
};

/* Whom a parcel is for, in wire.a. */
static inline int64_t parcel_to(struct life life)
{
    return (int64_t)((uint64_t)life.incarnation << 32 | (uint32_t)life.rank);
}
static inline struct life parcel_life(int64_t to)
{
    return life_of((int)(uint32_t)to, (uint32_t)((uint64_t)to >> 32));
}

_Static_assert(LIMIT_NODES - 1 <= UINT16_MAX, "a slot's number fits it, and a message's header");

/* The remote key of a slot's part of a segment under one generation of its route: a write that was planned for an older
 * one finds no memory. */
static inline uint64_t wire_key(uint32_t seg, int slot, uint64_t generation)
{
    return (uint64_t)seg << 32 | (uint64_t)(uint16_t)slot << 16 | (generation & 0xffff);
}
#endif
