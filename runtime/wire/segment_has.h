/* What became of a segment at a node that was told of it, and asked (segment_told.h): an agent to the one that asked,
 * and to all when it has later what it had no memory for. An acknowledgement says less, and may come before it: it
 * travels on another connection. */
#ifndef KEEL_WIRE_SEGMENT_HAS_H
#define KEEL_WIRE_SEGMENT_HAS_H

#include "runtime/wire/header.h"

struct msg_segment_has {
    uint32_t seg;
    int32_t status; /* KEEL_OK: its copies are there, if it is to have any */
};

static inline void msg_segment_has_encode(const struct msg_segment_has *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_SEGMENT_HAS, .raw.seg = m->seg, .raw.status = m->status};
}

static inline void msg_segment_has_decode(const struct wire *wire, struct msg_segment_has *m)
{
    m->seg = wire->raw.seg;
    m->status = wire->raw.status;
}
#endif
