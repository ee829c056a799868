#include "runtime/wire/kinds.h"

#include "runtime/wire/doubt.h"
#include "runtime/wire/forward.h"
#include "runtime/wire/get.h"
#include "runtime/wire/parcel.h"
#include "runtime/wire/patch.h"
#include "runtime/wire/put.h"
#include "runtime/wire/segment_told.h"

enum {
    RANK = WIRE_FROM_RANK,
    AGENT = WIRE_OF_AGENTS,
    REPLY = WIRE_TO_RANK,
    BOTH = WIRE_FROM_RANK | WIRE_TO_RANK,
    OF_TASK = IDENTITY_F_TASK,
    PACKED = REQUEST_F_PACKED,
    FORWARD = OF_TASK | PACKED | CHAIN_F_RELAY | FORWARD_F_AGAIN | FORWARD_F_ANSWER,
    SEGMENT = SEGMENT_F_FREED | SEGMENT_F_ASKS | SEGMENT_F_AGREED,
    PARCEL = PARCEL_F_CREATING | PARCEL_F_HOLLOW | PARCEL_F_TELL,
};

const struct wire_kind wire_kinds[WIRE_TYPES] = {
    [WIRE_PUT] = {"put", PACKED | PUT_F_THROUGH, RANK, false},
    [WIRE_GET] = {"get", PACKED | GET_F_STRONG | GET_F_INSPECTS | GET_F_COMPARES, RANK, false},
    [WIRE_ACC] = {"accumulate", PACKED | OF_TASK, RANK, true},
    [WIRE_RMW] = {"read-modify-write", PACKED | OF_TASK, RANK, true}, /* packed: refused with an answer */
    [WIRE_INTENT] = {"intent", 0, RANK, false},
    [WIRE_REPLY] = {"reply", 0, REPLY, false},
    [WIRE_PEER_ACK] = {"acknowledgement", 0, AGENT, false},
    [WIRE_FORWARD] = {"forward", FORWARD, AGENT, false},
    [WIRE_RELAYED] = {"relayed", 0, AGENT, false},
    [WIRE_SNAP_BEGIN] = {"begin of a copy", 0, AGENT, false},
    [WIRE_SNAP_ORIGIN] = {"operations of a rank", 0, AGENT, false},
    [WIRE_SNAP_TASKS] = {"operations of tasks", 0, AGENT, false},
    [WIRE_SNAP_BLOCK] = {"block of a copy", 0, AGENT, false},
    [WIRE_SNAP_END] = {"end of a copy", 0, AGENT, false},
    [WIRE_SNAP_HERE] = {"copy is here", 0, AGENT, false},
    [WIRE_SEGMENT] = {"segment", SEGMENT, AGENT, false},
    [WIRE_SEGMENT_HAS] = {"segment is here", 0, AGENT, false},
    [WIRE_DOUBT] = {"doubt", DOUBT_F_LIVING | DOUBT_F_TORN, AGENT, false},
    [WIRE_FETCH] = {"fetch", PATCH_F_AROUND, AGENT, false},
    [WIRE_PATCH] = {"patch", PATCH_F_AROUND | CHAIN_F_RELAY, AGENT, false},
    [WIRE_COMPARE] = {"compare", CHAIN_F_RELAY, AGENT, false},
    [WIRE_COMPARED] = {"compared", 0, AGENT, false},
    [WIRE_HASH] = {"hash", 0, AGENT, false},
    [WIRE_HASHED] = {"hashed", 0, AGENT, false},
    [WIRE_SCRUB] = {"scrub", 0, AGENT, false},
    [WIRE_SCRUBBED] = {"scrubbed", 0, AGENT, false},
    [WIRE_RANK_ASK] = {"question about a rank", 0, AGENT, false},
    [WIRE_RANK_SAYS] = {"word about a rank", 0, AGENT, false},
    [WIRE_ORDER] = {"order", 0, AGENT, false},
    [WIRE_ORDERED] = {"order is known", 0, AGENT, false},
    [WIRE_PARCEL] = {"parcel", PARCEL, BOTH, false},
    [WIRE_PARCEL_BACK] = {"parcel that comes back", PARCEL, BOTH, false},
};
