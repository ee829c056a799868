/* What was given up while it may still come, or be in some copies only: told to the agent, until a view takes it up.
 * Lock held. */
#ifndef KEEL_CLIENT_OP_DOUBT_H
#define KEEL_CLIENT_OP_DOUBT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/client/stream/connection.h"

struct client;
struct op;

struct doubts {
    bool untold;     /* the agent was not told of the last one, which is tried again */
    uint32_t behind; /* the number of the last one, 0: there is none. It may still be on its way */
    /* What they hold, and their notes (link.given_up), until it is taken up: a process without memory gets these back,
     * too, and so does one that goes on giving up. */
    struct given_up {
        bool any;
        uint32_t number;  /* of the last doubt */
        uint64_t intents; /* bit set: an entry of the page */
        uint32_t open;    /* in intents->open */
    } given_up[GIVEN_UP];
};

/* The operation ends, and may be in some copies only. */
void doubt_give_up(struct op *op);
/* What was given up may still be on its way: until a view has taken up the doubt, what is written now could come
 * first. */
bool doubt_is_behind(const struct client *c);
/* The agent is told, if it was not. */
void doubt_tell(struct client *c);
/* Those that a view has taken up. */
void doubt_taken_up(struct client *c);
#endif
