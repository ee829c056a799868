/* Messages between ranks and agents, and between agents. One fixed header, then `len` bytes of body.
 * All fields are in host order: a job runs on machines of one byte order (checked in the connect hello). */
#ifndef KEEL_WIRE_WIRE_H
#define KEEL_WIRE_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "runtime/wire/limits.h"
#include "runtime/net/transport.h"

enum wire_type {
    /* a rank to an agent; answered by WIRE_REPLY with the same seq, except for a WIRE_INTENT with a count */
    WIRE_PUT = 1, /* body to (seg, slot, offset); WIRE_F_THROUGH: the primary also passes it to the other copies */
    WIRE_GET,     /* count bytes from (seg, slot, offset) */
    WIRE_ACC,     /* body: elements of type count (keel_type); scale in a, b */
    WIRE_RMW,     /* count: arith.h's operation, and WIRE_RMW_32 for words of 32 bits; with a, b */
    WIRE_INTENT, /* note: a remote write of count bytes at (seg, slot, offset) follows on this connection; count 0: every
                   * copy has it, the answer (same note) says that the agent forgot it. identity: the put's number */
    WIRE_REPLY, /* status, a; body of a get; epoch: 1 + the generation under which ranks of this node may add themselves, or 0 */
    /* an agent to an agent, inside the reliable stream of agent/peer.h */
    WIRE_PEER_ACK, /* seq: everything up to it was processed (itself outside the stream) */
    WIRE_FORWARD, /* the bytes a primary holds now at (seg, slot, offset), and the identity of the operation; status: its
                    * number in the copyset */
    WIRE_RELAYED, /* identity: up to there all in your stream to me was passed on and is acknowledged; offset: the same,
                       * but for nodes that I do not wait for */
    WIRE_SNAP_BEGIN, /* a copy of the copyset of (slot, step = class) is filled, placed at epoch identity; status: number of the last
                       * forward */
    WIRE_SNAP_ORIGIN, /* operations seen of one origin (agent/dedup.h) */
    WIRE_SNAP_TASKS,  /* operations seen of tasks */
    WIRE_SNAP_BLOCK,  /* body to (seg, slot, offset) */
    WIRE_SNAP_END,
    WIRE_SNAP_HERE, /* the copy to the primary: I have it all */
    WIRE_SEGMENT, /* segment seg exists: a = bytes per rank, b = redundancy, identity = number of its allocation among allocations and
                   * frees; body none. FREED: identity = number of the call that freed it, a: or the status for which it never came to be */
    WIRE_DOUBT,    /* patches in doubt, a copy to the primary */
    WIRE_FETCH,    /* send me your bytes of this patch */
    WIRE_PATCH,    /* here they are: count WIRE_PATCH_ANSWER if they were asked for */
    WIRE_COMPARE,  /* for a strong get, a primary to the copies: the bytes that it has; a: number of the question */
    WIRE_COMPARED, /* which aligned words of them differ here: a bit each */
    WIRE_HASH,     /* for an audit: the hash of your count bytes at (seg, slot, offset)? a: number of the question */
    WIRE_HASHED,   /* it is this; identity: the copyset's generation here */
    WIRE_RANK_ASK, /* how is the process of (rank, incarnation)? a: when that was asked. count 1: and somebody leaves without it (note.h: behind):
                     * identity: group, b: returned, offset: begun */
    WIRE_RANK_SAYS, /* count: enum page_process; identity: processor time it has used; a as asked, 0: nobody has */
    /* a rank to a rank, through the agent of the receiver's node: runtime/client/stream/courier.h */
    WIRE_PARCEL,      /* a piece of the stream from rank to parcel_rank(a) */
    WIRE_PARCEL_BACK, /* the same header back to the sender: the receiver is not there, or has no memory for it */
};

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

struct wire {
    uint8_t type;
    uint8_t flags;
    uint16_t slot;
    uint32_t seg;
    uint64_t seq;
    uint64_t offset; /* bytes from the start of the slot's part of the segment */
    uint32_t len;    /* bytes of body */
    uint32_t count;
    union {
        int64_t a;
        double f;
    };
    int64_t b;
    uint64_t identity; /* of an exactly-once operation: its number in the lane, or with WIRE_F_TASK the task */
    uint32_t step;     /* with WIRE_F_TASK */
    uint32_t round;    /* with WIRE_F_TASK */
    uint64_t epoch; /* of a rank's request: the generation of the route it was planned for; of an agent's message: the
                        * sender's view */
    int32_t status; /* of an answer; of a rank's request that changes memory: how often the rank had given something up
                     * (note.h: doubted) when it was sent */
    uint32_t rank;  /* origin */
    uint32_t incarnation; /* of the origin */
    uint16_t note;        /* 1 + the note that covers this put or write, 0: none; in an answer: that was forgotten */
    uint16_t lane;        /* WIRE_INTENT, WIRE_DOUBT: the patch's level (wire/note.h) */
};
static_assert(sizeof(struct wire) == 88, "the header is read by other nodes");

/* Status of an agent that is not (yet, or any more) the right one: look at the view again and retry. */
enum { WIRE_RETRY = 1 };

static_assert(sizeof(struct wire) + WIRE_BODY_MAX <= TP_MSG_MAX, "a full body fits a message");
static_assert(sizeof(struct wire) + WIRE_BULK_MAX <= TP_BULK_MAX, "between nodes, too");

/* Whom a parcel is for, in wire.a. */
static inline int64_t parcel_to(int rank, uint32_t incarnation)
{
    return (int64_t)((uint64_t)incarnation << 32 | (uint32_t)rank);
}
static inline int parcel_rank(int64_t to)
{
    return (int)(uint32_t)to;
}
static inline uint32_t parcel_incarnation(int64_t to)
{
    return (uint32_t)((uint64_t)to >> 32);
}

/* The remote key of a slot's part of a segment under one generation of its route: a write that was planned for an older
 * one finds no memory. */
static inline uint64_t wire_key(uint32_t seg, int slot, uint64_t generation)
{
    return (uint64_t)seg << 32 | (uint64_t)(uint16_t)slot << 16 | (generation & 0xffff);
}
#endif
