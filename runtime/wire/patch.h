/* Bytes on their way between copies that are made equal (agent/repair.h): the primary fetches those of another copy,
 * or spreads its own. */
#ifndef KEEL_WIRE_PATCH_H
#define KEEL_WIRE_PATCH_H

#include "runtime/wire/header.h"
#include "runtime/wire/relayed.h"

enum { PATCH_F_AROUND = 16 };
enum { WIRE_PATCH_ANSWER = 1 };

/* Which bytes, and under which generation they count. */
struct msg_patch_of {
    struct msg_at at;
    uint32_t class;      /* with at.slot: the copyset, also of a segment that was freed meanwhile */
    uint64_t generation; /* of it */
    bool around;         /* not for the primary's own copy: for those that it fills */
};

static inline void msg_patch_of_encode(uint8_t type, const struct msg_patch_of *m, struct wire *wire)
{
    *wire = (struct wire){.type = type,
                          .flags = m->around ? PATCH_F_AROUND : 0,
                          .raw.slot = m->at.slot,
                          .raw.seg = m->at.seg,
                          .raw.offset = m->at.offset,
                          .raw.identity = m->generation,
                          .raw.step = m->class};
}

static inline void msg_patch_of_decode(const struct wire *wire, struct msg_patch_of *m)
{
    msg_at_decode(wire, &m->at);
    m->class = wire->raw.step;
    m->generation = wire->raw.identity;
    m->around = wire->flags & PATCH_F_AROUND;
}

/* Send me your bytes. */
struct msg_fetch {
    struct msg_patch_of of;
    uint32_t bytes;
};

static inline void msg_fetch_encode(const struct msg_fetch *m, struct wire *wire)
{
    msg_patch_of_encode(WIRE_FETCH, &m->of, wire);
    wire->raw.count = m->bytes;
}

static inline void msg_fetch_decode(const struct wire *wire, struct msg_fetch *m)
{
    msg_patch_of_decode(wire, &m->of);
    m->bytes = wire->raw.count;
}

/* Here they are. */
struct msg_patch {
    struct msg_patch_of of;
    uint32_t len; /* bytes of body; 0: there are none of them */
    bool answer;  /* you asked for them */
};

static inline void msg_patch_encode(const struct msg_patch *m, struct wire *wire)
{
    msg_patch_of_encode(WIRE_PATCH, &m->of, wire);
    wire->len = m->len;
    wire->raw.count = m->answer ? WIRE_PATCH_ANSWER : 0;
}

static inline void msg_patch_decode(const struct wire *wire, struct msg_patch *m)
{
    msg_patch_of_decode(wire, &m->of);
    m->len = wire->len;
    m->answer = wire->raw.count == WIRE_PATCH_ANSWER;
}
#endif
