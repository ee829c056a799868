/* What goes down the chain of copies (agent/chain.h: forwards, patches, questions of strong gets) may ask who gets it
 * to tell when what it passes on is acknowledged; and what that one tells. */
#ifndef KEEL_WIRE_RELAYED_H
#define KEEL_WIRE_RELAYED_H

#include "runtime/wire/header.h"

enum { CHAIN_F_RELAY = 2 }; /* the same bit in all that go down the chain */

static inline bool chain_asks_for_word(const struct wire *wire)
{
    return (wire->type == WIRE_FORWARD || wire->type == WIRE_PATCH) && wire->flags & CHAIN_F_RELAY;
}

/* The message asks for that, or not. */
static inline void chain_ask_for_word(struct wire *wire, bool asks)
{
    wire->flags = (uint8_t)((wire->flags & ~CHAIN_F_RELAY) | (asks ? CHAIN_F_RELAY : 0));
}

struct msg_relayed {
    uint64_t up_to;  /* all up to there in your stream to me was passed on and is acknowledged; */
    uint64_t living; /* the same, but for nodes that I do not wait for */
};

static inline void msg_relayed_encode(const struct msg_relayed *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_RELAYED, .raw.offset = m->living, .raw.identity = m->up_to};
}

static inline void msg_relayed_decode(const struct wire *wire, struct msg_relayed *m)
{
    m->up_to = wire->raw.identity;
    m->living = wire->raw.offset;
}
#endif
