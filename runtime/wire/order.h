/* In which order the replicas of a part execute what does not commute (agent/order.h), between the agents that hold it:
 * entries of the log to the next set, and how far that has them. The part is told by its class: an agent holds that of
 * the slot that begins on its node. */
#ifndef KEEL_WIRE_ORDER_H
#define KEEL_WIRE_ORDER_H

#include "runtime/wire/header.h"

/* Body: records, the first of which has the number `first`. */
struct msg_order {
    uint32_t class;
    uint64_t first;
    uint32_t len; /* bytes of body */
};

struct order_record {
    uint64_t origin, number, step, what;
};

static inline void msg_order_encode(const struct msg_order *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_ORDER, .len = m->len, .raw.count = m->class, .raw.identity = m->first};
}

static inline void msg_order_decode(const struct wire *wire, struct msg_order *m)
{
    m->class = wire->raw.count;
    m->first = wire->raw.identity;
    m->len = wire->len;
}

/* All from the sender on have the entries up to this one. */
struct msg_ordered {
    uint32_t class;
    uint64_t upto;
};

static inline void msg_ordered_encode(const struct msg_ordered *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_ORDERED, .raw.count = m->class, .raw.identity = m->upto};
}

static inline void msg_ordered_decode(const struct wire *wire, struct msg_ordered *m)
{
    m->class = wire->raw.count;
    m->upto = wire->raw.identity;
}
#endif
