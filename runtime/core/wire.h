/* Messages between ranks and agents, and between agents. One fixed header, then `len` bytes of body.
 * All fields are in host order: a job runs on machines of one byte order (checked in the connect hello). */
#ifndef KEEL_CORE_WIRE_H
#define KEEL_CORE_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "runtime/transport/transport.h"

enum wire_type {
    /* a rank to an agent; answered by WIRE_REPLY with the same seq, except for WIRE_INTENT */
    WIRE_PUT = 1, /* body to (seg, slot, offset); WIRE_F_THROUGH: the primary also passes it to the shadow */
    WIRE_GET,     /* count bytes from (seg, slot, offset) */
    WIRE_ACC,     /* body: doubles; scale in f */
    WIRE_ADD,     /* fetch-and-add a */
    WIRE_CAS,     /* compare with a, store b */
    WIRE_INTENT, /* a remote write of count bytes at (seg, slot, offset) follows on this connection; count 0: both copies
                  * have it. seq: the put's number; a: of the oldest put that is not complete */
    WIRE_ENTER, /* barrier instance seq: the local rank has entered; flags WIRE_F_INTERNAL if the user did not call it */
    WIRE_REPLY, /* status, a; body of a get */
    /* an agent to an agent, inside the reliable stream of core/peer.h */
    WIRE_PEER_ACK,    /* seq: everything up to it was processed (itself outside the stream) */
    WIRE_FORWARD,     /* the bytes a primary holds now at (seg, slot, offset), and the identity of the operation */
    WIRE_SNAP_BEGIN,  /* rebuild of slot, generation a */
    WIRE_SNAP_ORIGIN, /* operations seen of one origin (redundancy/dedup.h) */
    WIRE_SNAP_TASKS,  /* operations seen of tasks */
    WIRE_SNAP_BLOCK,  /* body to (seg, slot, offset) */
    WIRE_SNAP_END,
    WIRE_SEGMENT, /* segment seg exists: a = bytes per rank, b = redundancy, count = alloc instance; body none */
    WIRE_DOUBT,   /* patches in doubt of a dead origin, shadow to primary */
    WIRE_FETCH,   /* send me your bytes of this patch */
    WIRE_PATCH,   /* here they are: a = 1 if the receiver must pass them to nobody */
    WIRE_BARRIER, /* body: a message of collectives/barrier.h */
};

enum {
    WIRE_F_THROUGH = 1,  /* through the primary */
    WIRE_F_INTERNAL = 2, /* barrier of the runtime's own */
    WIRE_F_TASK = 4,     /* task and step identify the operation */
    WIRE_F_FREED = 8,    /* the segment was freed */
    WIRE_F_ALWAYS = 16,  /* with THROUGH: whatever the slot's mode */
    WIRE_F_SECOND = 32,  /* the other copy has these bytes already */
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
    uint64_t task;
    uint32_t step;
    int32_t status;
    uint32_t rank;        /* origin */
    uint32_t incarnation; /* of the origin */
};
static_assert(sizeof(struct wire) == 72, "the header is read by other nodes");

/* Status of an agent that is not (yet, or any more) the right one: look at the view again and retry. */
enum { WIRE_RETRY = 1 };

enum { WIRE_BODY_MAX = 16 * 1024 };
static_assert(sizeof(struct wire) + WIRE_BODY_MAX <= TP_MSG_MAX, "a full body fits a message");

/* Connect data of every connection to an agent. mac covers all before it under the job's secret. A sender counts its
 * attempts to reach a node, and the receiver takes each number once, in rising order: a recorded hello opens nothing
 * (docs/adr/0024-attempts-that-count-up.md). */
#define WIRE_HELLO_MAGIC 0x6b65656c68690003ull
struct wire_hello {
    uint64_t magic;
    uint64_t job;
    uint64_t incarnation; /* of the agent, or of the rank */
    int32_t node;         /* from */
    int32_t rank;         /* -1: an agent */
    int32_t to_node;
    uint32_t pad;
    uint64_t to_incarnation;
    uint64_t attempt; /* from 1, of this sender to this node */
    uint8_t mac[32];
};
static_assert(sizeof(struct wire_hello) <= TP_HELLO_MAX, "fits the connect data");

/* Fill magic and mac. The secret has 32 bytes. */
void wire_hello_sign(struct wire_hello *hello, const uint8_t secret[32]);
/* Whoever made it knows the secret and meant this incarnation of this agent; out then holds it. */
bool wire_hello_open(const void *data, size_t len, const uint8_t secret[32], uint64_t job, int self,
                     uint64_t incarnation, struct wire_hello *out);
/* False for a number that was there before, or is older. last: the sender's newest, 0 at first. */
bool wire_hello_is_new(const struct wire_hello *hello, uint64_t *last);

/* The remote key of a slot's part of a segment. */
static inline uint64_t wire_key(uint32_t seg, int slot)
{
    return (uint64_t)seg << 16 | (uint16_t)slot;
}
#endif
