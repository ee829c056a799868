/* How many collectives of all live ranks are complete, where the death of every node that runs ranks leaves it.
 *
 * Who joins is told by the agents that live then, and each knows what ranks of its node have completed. Where as few
 * nodes run ranks as may die together while the program's data survive, nobody else would know: so a rank writes the
 * number into its part of the runtime's segment (wire/system.h), of which other nodes have copies, before the call
 * returns. Then nothing follows from a collective that a successor is not told of.
 *
 * Whether they are few is seen on the view page. A view that is being made may leave fewer than the page says, and its
 * agents may have said already how far their ranks are: so the rank writes then, too. */
#ifndef KEEL_CLIENT_GROUP_WITNESS_H
#define KEEL_CLIENT_GROUP_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/client/op/op.h"

struct client;

struct witness {
    /* what was found out for a view */
    uint64_t view; /* 1 + its epoch, 0: of none */
    int most;      /* nodes that may die together */
    bool few;
    /* a number on its way */
    bool any;
    uint64_t value;
    struct op op;
};

/* All under the lock. c->collectives has grown, and intents->collectives with it. */
void witness_begin(struct client *c);
/* Have all copies the number, or is there nobody to tell? Looks what has come. */
bool witness_is_over(struct client *c);
/* Waits until then; the lock is given back meanwhile. */
void witness_await(struct client *c);
#endif
