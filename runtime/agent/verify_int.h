/* Between verify.c, which asks for a block and compares, and verify_look.c, which says what a copy has. */
#ifndef KEEL_AGENT_VERIFY_INT_H
#define KEEL_AGENT_VERIFY_INT_H

#include "runtime/agent/verify.h"
#include "runtime/wire/hash.h"

enum { VERIFY_HASH = 32 }; /* bytes */

/* What a copy says of a block. */
struct said {
    bool here;
    int status; /* KEEL_OK; KEEL_ERR_DATA_LOST; KEEL_ERR_STATE: it has no such copy */
    uint64_t generation;
    uint32_t len;
    uint8_t hash[VERIFY_HASH], before[VERIFY_HASH]; /* of this try and of the one before it */
    uint8_t bytes[WIRE_BODY_MAX];
};

/* What the copy on this node has, if there is one. */
void verify_look(const struct agent *a, const struct msg_hash *m, struct said *said);
#endif
