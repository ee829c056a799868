/* Limits that both ends of the data path must agree on, once. */
#ifndef KEEL_WIRE_LIMITS_H
#define KEEL_WIRE_LIMITS_H

#include <assert.h>

#include "runtime/net/transport.h"

enum {
    COPIES_MAX = 4,             /* of a part, with the one that is made where its slot is to go */
    LEGS_MAX = 3,               /* copies that are whole and equal, each of which writers write */
    CLASSES = 3,                /* redundancy classes: class c keeps c + 1 copies (enum keel_redundancy) */
    NOTES_MAX = 128,            /* puts of one rank that one agent remembers as perhaps not complete (wire/note.h) */
    LANES_MAX = 128,            /* exactly-once operations that one rank has on their way (agent/dedup.h) */
    MESSAGES_MAX = 96,          /* messages of one rank that wait for answers */
    WIRE_BODY_MAX = 16 * 1024,  /* bytes in one message, */
    WIRE_BULK_MAX = 128 * 1024, /* between nodes, where one message is cheaper than several */
    LARGE_MAX = 6,              /* announced puts of one rank at once */
};
static_assert(MESSAGES_MAX <= LANES_MAX, "nobody waits for a lane while there is room for messages");
#endif
