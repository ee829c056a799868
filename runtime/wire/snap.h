/* A primary fills a copy (agent/repair.h): BEGIN, what is remembered of operations (ORIGIN, TASKS), bytes (BLOCK), END;
 * the copy says HERE. They count for the copy that was placed when they say. */
#ifndef KEEL_WIRE_SNAP_H
#define KEEL_WIRE_SNAP_H

#include "runtime/wire/header.h"

/* In all of them. */
struct msg_snap {
    uint16_t slot; /* of the copyset, */
    uint32_t class;
    uint64_t placed; /* epoch at which the copy was placed */
};

static inline void msg_snap_encode(uint8_t type, const struct msg_snap *m, struct wire *wire)
{
    *wire = (struct wire){.type = type, .raw.slot = m->slot, .raw.identity = m->placed, .raw.step = m->class};
}

static inline void msg_snap_decode(const struct wire *wire, struct msg_snap *m)
{
    m->slot = wire->raw.slot;
    m->class = wire->raw.step;
    m->placed = wire->raw.identity;
}

struct msg_snap_begin {
    struct msg_snap snap;
    uint32_t forwards; /* number of the last forward that is in what follows */
};

static inline void msg_snap_begin_encode(const struct msg_snap_begin *m, struct wire *wire)
{
    msg_snap_encode(WIRE_SNAP_BEGIN, &m->snap, wire);
    wire->raw.status = (int32_t)m->forwards;
}

static inline void msg_snap_begin_decode(const struct wire *wire, struct msg_snap_begin *m)
{
    msg_snap_decode(wire, &m->snap);
    m->forwards = (uint32_t)wire->raw.status;
}

/* Operations seen of one origin (body as agent/dedup.h has it), or of tasks (body: struct dedup_task, one or
 * several). */
struct msg_snap_seen {
    struct msg_snap snap;
    uint32_t len; /* bytes of body */
};

static inline void msg_snap_origin_encode(const struct msg_snap_seen *m, struct wire *wire)
{
    msg_snap_encode(WIRE_SNAP_ORIGIN, &m->snap, wire);
    wire->len = m->len;
}

static inline void msg_snap_tasks_encode(const struct msg_snap_seen *m, struct wire *wire)
{
    msg_snap_encode(WIRE_SNAP_TASKS, &m->snap, wire);
    wire->len = m->len;
}

static inline void msg_snap_seen_decode(const struct wire *wire, struct msg_snap_seen *m)
{
    msg_snap_decode(wire, &m->snap);
    m->len = wire->len;
}

enum { WIRE_BLOCK_LOST = 1 };

struct msg_snap_block {
    struct msg_snap snap;
    uint32_t seg;
    uint64_t offset; /* from the start of the slot's part */
    uint32_t len;    /* bytes of body */
    bool lost;       /* there are no bytes of the segment, they died with another node */
};

static inline void msg_snap_block_encode(const struct msg_snap_block *m, struct wire *wire)
{
    msg_snap_encode(WIRE_SNAP_BLOCK, &m->snap, wire);
    wire->raw.seg = m->seg;
    wire->raw.offset = m->offset;
    wire->len = m->len;
    wire->raw.count = m->lost ? WIRE_BLOCK_LOST : 0;
}

static inline void msg_snap_block_decode(const struct wire *wire, struct msg_snap_block *m)
{
    msg_snap_decode(wire, &m->snap);
    m->seg = wire->raw.seg;
    m->offset = wire->raw.offset;
    m->len = wire->len;
    m->lost = wire->raw.count == WIRE_BLOCK_LOST;
}

/* All was sent. */
static inline void msg_snap_end_encode(const struct msg_snap *m, struct wire *wire)
{
    msg_snap_encode(WIRE_SNAP_END, m, wire);
}

/* The copy to the primary: I have it all. */
static inline void msg_snap_here_encode(const struct msg_snap *m, struct wire *wire)
{
    msg_snap_encode(WIRE_SNAP_HERE, m, wire);
}
#endif
