/* What every message between ranks and agents, and between agents, begins with. The messages themselves are a file
 * each, or a family each:
 *
 *   a rank to an agent         request.h (what these have in common), put.h, get.h, acc.h, rmw.h, identity.h, intent.h;
 *                              reply.h
 *   a primary to the copies    forward.h, relayed.h; compare.h (strong gets)
 *   copies are made equal      doubt.h, patch.h (fetch and patch), snap.h (a copy is filled)
 *   agent to agent, otherwise  segment_told.h, segment_has.h, hash.h (audits), rank_ask.h, order.h (replicas)
 *   a rank to a rank           parcel.h
 *
 * Each has a struct of its own, whose members say what they mean in that message, a msg_NAME_encode that makes the
 * bytes and a msg_NAME_decode that reads them; all are inline, so that nothing is stored that is not sent and nothing
 * loaded that is not used. Nobody else looks at the members of struct wire below, but for these, which mean the same in
 * all messages: type, flags (the bits are the message's own), extension, len, seq, epoch. All fields are in host
 * order: a job runs on machines of one byte order (checked in the connect hello). Pure. */
#ifndef KEEL_WIRE_HEADER_H
#define KEEL_WIRE_HEADER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/life.h"
#include "runtime/net/transport.h"
#include "runtime/wire/limits.h"

enum wire_type {
    /* a rank to an agent; answered by WIRE_REPLY with the same seq, except for a WIRE_INTENT that announces */
    WIRE_PUT = 1,
    WIRE_GET,
    WIRE_ACC,
    WIRE_RMW,
    WIRE_INTENT,
    WIRE_REPLY,
    /* an agent to an agent, inside the reliable stream of agent/peer.h */
    WIRE_PEER_ACK, /* seq: everything up to it was processed (itself outside the stream) */
    WIRE_FORWARD,
    WIRE_RELAYED,
    WIRE_SNAP_BEGIN,
    WIRE_SNAP_ORIGIN,
    WIRE_SNAP_TASKS,
    WIRE_SNAP_BLOCK,
    WIRE_SNAP_END,
    WIRE_SNAP_HERE,
    WIRE_SEGMENT,
    WIRE_SEGMENT_HAS,
    WIRE_DOUBT,
    WIRE_FETCH,
    WIRE_PATCH,
    WIRE_COMPARE,
    WIRE_COMPARED,
    WIRE_HASH,
    WIRE_HASHED,
    WIRE_SCRUB,
    WIRE_SCRUBBED,
    WIRE_RANK_ASK,
    WIRE_RANK_SAYS,
    WIRE_ORDER,
    WIRE_ORDERED,
    /* a rank to a rank, through the agent of the receiver's node: runtime/client/stream/courier.h */
    WIRE_PARCEL,
    WIRE_PARCEL_BACK,
    WIRE_TYPES
};

struct wire {
    uint8_t type;       /* enum wire_type */
    uint8_t flags;      /* of the type: NAME_F_ in its file */
    uint16_t extension; /* bytes between this header and the body, counted in len (extension.h) */
    uint32_t len;       /* bytes behind the header */
    uint64_t seq;       /* of a request, and of its answer; of a message in a stream: its place there */
    uint64_t epoch;     /* of an agent's message: the sender's view; of a rank's: as its struct says */
    /* What the type makes of it. Only encode and decode of the messages touch it (tests/lint/wire.py). */
    struct {
        uint32_t seg;
        uint16_t slot;
        uint16_t note;
        uint64_t offset;
        uint32_t count;
        int32_t status;
        int64_t a, b;
        uint64_t identity;
        uint32_t step, round;
        uint32_t rank, incarnation;
    } raw;
};
static_assert(sizeof(struct wire) == 88, "the header is read by other nodes");

/* Where bytes are: in a slot's part of a segment, from its start. */
struct msg_at {
    uint32_t seg;
    uint16_t slot;
    uint64_t offset;
};

static inline void msg_at_decode(const struct wire *wire, struct msg_at *m)
{
    m->seg = wire->raw.seg;
    m->slot = wire->raw.slot;
    m->offset = wire->raw.offset;
}

/* Of which process the origin is, or who is asked about. No message names a replica: a rank has one. */
static inline struct life wire_life(const struct wire *wire)
{
    return life_of((int)wire->raw.rank, wire->raw.incarnation);
}

static_assert(sizeof(struct wire) + WIRE_BODY_MAX <= TP_MSG_MAX, "a full body fits a message");
static_assert(sizeof(struct wire) + WIRE_BULK_MAX <= TP_BULK_MAX, "between nodes, too");
#endif
