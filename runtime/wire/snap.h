/* A primary fills a copy (agent/repair.h): BEGIN, what is remembered of operations (ORIGIN, TASKS), bytes (BLOCK), END; the copy says HERE. They
 * count for the copy that was placed when they say. */
#ifndef KEEL_WIRE_SNAP_H
#define KEEL_WIRE_SNAP_H

#include "runtime/wire/header.h"

/* In all of them. */
struct msg_snap {
    uint16_t slot; /* of the copyset, */
    uint32_t class;
    uint64_t placed; /* epoch at which the copy was placed */
};

static inline struct wire msg_snap_encode(uint8_t type, const struct msg_snap *m)
{
    return (struct wire){.type = type, .slot = m->slot, .identity = m->placed, .step = m->class};
}

static inline struct msg_snap msg_snap_decode(const struct wire *w)
{
    return (struct msg_snap){.slot = w->slot, .class = w->step, .placed = w->identity};
}

struct msg_snap_begin {
    struct msg_snap snap;
    uint32_t forwards; /* number of the last forward that is in what follows */
};

static inline struct wire msg_snap_begin_encode(const struct msg_snap_begin *m)
{
    struct wire w = msg_snap_encode(WIRE_SNAP_BEGIN, &m->snap);
    w.status = (int32_t)m->forwards;
    return w;
}

static inline struct msg_snap_begin msg_snap_begin_decode(const struct wire *w)
{
    return (struct msg_snap_begin){.snap = msg_snap_decode(w), .forwards = (uint32_t)w->status};
}

/* Operations seen of one origin (body as agent/dedup.h has it), or of tasks (body: struct dedup_task, one or several). */
struct msg_snap_seen {
    struct msg_snap snap;
    uint32_t len; /* bytes of body */
};

static inline struct wire msg_snap_origin_encode(const struct msg_snap_seen *m)
{
    struct wire w = msg_snap_encode(WIRE_SNAP_ORIGIN, &m->snap);
    w.len = m->len;
    return w;
}

static inline struct wire msg_snap_tasks_encode(const struct msg_snap_seen *m)
{
    struct wire w = msg_snap_encode(WIRE_SNAP_TASKS, &m->snap);
    w.len = m->len;
    return w;
}

static inline struct msg_snap_seen msg_snap_seen_decode(const struct wire *w)
{
    return (struct msg_snap_seen){.snap = msg_snap_decode(w), .len = w->len};
}

enum { WIRE_BLOCK_LOST = 1 };

struct msg_snap_block {
    struct msg_snap snap;
    uint32_t seg;
    uint64_t offset; /* from the start of the slot's part */
    uint32_t len;    /* bytes of body */
    bool lost;       /* there are no bytes of the segment, they died with another node */
};

static inline struct wire msg_snap_block_encode(const struct msg_snap_block *m)
{
    struct wire w = msg_snap_encode(WIRE_SNAP_BLOCK, &m->snap);
    w.seg = m->seg;
    w.offset = m->offset;
    w.len = m->len;
    w.count = m->lost ? WIRE_BLOCK_LOST : 0;
    return w;
}

static inline struct msg_snap_block msg_snap_block_decode(const struct wire *w)
{
    return (struct msg_snap_block){.snap = msg_snap_decode(w),
                                   .seg = w->seg,
                                   .offset = w->offset,
                                   .len = w->len,
                                   .lost = w->count == WIRE_BLOCK_LOST};
}

/* All was sent. */
static inline struct wire msg_snap_end_encode(const struct msg_snap *m)
{
    return msg_snap_encode(WIRE_SNAP_END, m);
}

/* The copy to the primary: I have it all. */
static inline struct wire msg_snap_here_encode(const struct msg_snap *m)
{
    return msg_snap_encode(WIRE_SNAP_HERE, m);
}
#endif
