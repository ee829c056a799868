/* The plan of an operation for one route: which nodes it goes to, how, and in what order its bytes go there. Pure.
 *
 *   put   one copy (no other node lives, or unreplicated)  plain stores, or one remote write; where that may tear
 *         words, up to
 *                                      PLAN_WHOLE_MAX in a message, for the agent stores words
 *         several copies, none here    up to 128 KiB: a message to each at once (an agent applies a message whole or
 *                                      not at
 *                                      all). More: remote writes of chunks, announced, each whole in one copy before it
 *                                      starts in the others (guarantee G1): even chunks go to the primary first, odd
 *                                      ones
 *                                      to the next copy, so that connections are busy
 *         one copy of several here     messages to the others; what they have is then stored here, piece by piece:
 *                                      should
 *                                      this node die, no other copy is torn
 *         many pieces in a message     to each copy at once; one here is stored to by its agent
 *         copies being made equal      messages through the primary
 *   get   plain loads, or one remote read, from the primary, or while that is in doubt from another copy that is as
 *         whole; by
 *         message while its bytes may be torn or are lost, if it is strong, for the primary asks the other copies, and
 *         up to
 *         PLAN_WHOLE_MAX where a remote read may tear words
 *   acc, rmw   messages to the primary */
#ifndef KEEL_CLIENT_OP_PLAN_H
#define KEEL_CLIENT_OP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/page.h"
#include "runtime/wire/stripe.h"

/* Bytes of a put or get whose aligned words are whole on any transport: said in rma.h. Each costs a copy at the agent
 * that a remote write or read does not make: up to here some 15 % of its time, 43 % for a get of twice as many. */
enum { PLAN_WHOLE_MAX = 64 * 1024 };

/* Bytes of a piece that goes together with others: of the longest a message has three. */
enum { PLAN_PACKED_MAX = WIRE_BULK_MAX / 4 };

enum op_kind { OP_PUT, OP_GET, OP_ACC, OP_RMW };

enum plan_way {
    PLAN_MESSAGES, /* in messages, the same pieces to every leg */
    PLAN_ACCESS,   /* one remote write or read */
    PLAN_CHUNKS,   /* announced remote writes, in the order of stripe.h */
    PLAN_PLAIN,    /* by loads and stores here, and nothing else */
};

struct plan_leg {
    int node;
    uint64_t posted, done; /* bytes */
    unsigned window;       /* pieces on their way */
};

struct plan {
    enum plan_way way;
    int legs;
    struct plan_leg leg[LEGS_MAX];
    bool through;  /* the primary passes it on */
    bool here;     /* and the copy on this node is stored to, or loaded from */
    bool noted;    /* the agents, and this node's intent page, keep notes of it */
    unsigned most; /* bytes of a message */
    unsigned skew; /* pieces end so many bytes earlier: at words of the memory, none of which is ever torn */
    struct stripe stripe;
};

struct plan_input {
    enum op_kind kind;
    uint64_t offset, len; /* in the slot's part */
    unsigned redundancy;
    bool always_through;
    bool strong;     /* get: of what all copies have */
    int from;        /* get: the copy of the route that it reads, if it is not strong */
    bool in_task;    /* whoever runs the task cuts it into the same pieces */
    bool packed;     /* many pieces in one message: never cut */
    bool by_message; /* an access under this route found no memory: an agent says why */
    bool bytewise;   /* remote writes and reads may tear words */
    int self;        /* this node */
};

/* Pieces of one operation of up to so many bytes go together, many in a message; longer ones are operations of their
 * own. 0: all are. Pieces that loads and stores reach here do not go together; accumulates do alike under each
 * route, as whoever runs a task again makes the same messages. */
size_t plan_packs(enum op_kind kind, const struct route *route, int self);
/* A plan for the route. */
void plan_make(struct plan *p, const struct plan_input *in, const struct route *route);
/* The next bytes for the leg; false: none now. Remote writes to one copy complete in the order in which they were
 * taken. */
bool plan_take(struct plan *p, uint64_t len, int leg, struct stripe_piece *piece);
#endif
