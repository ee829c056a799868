/* Bytes on their way between copies that are made equal (agent/repair.h): the primary fetches those of another copy, or spreads its own. */
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

static inline struct wire msg_patch_of_encode(uint8_t type, const struct msg_patch_of *m)
{
    return (struct wire){.type = type,
                         .flags = m->around ? PATCH_F_AROUND : 0,
                         .slot = m->at.slot,
                         .seg = m->at.seg,
                         .offset = m->at.offset,
                         .identity = m->generation,
                         .step = m->class};
}

static inline struct msg_patch_of msg_patch_of_decode(const struct wire *w)
{
    return (struct msg_patch_of){
        .at = msg_at_decode(w), .class = w->step, .generation = w->identity, .around = w->flags & PATCH_F_AROUND};
}

/* Send me your bytes. */
struct msg_fetch {
    struct msg_patch_of of;
    uint32_t bytes;
};

static inline struct wire msg_fetch_encode(const struct msg_fetch *m)
{
    struct wire w = msg_patch_of_encode(WIRE_FETCH, &m->of);
    w.count = m->bytes;
    return w;
}

static inline struct msg_fetch msg_fetch_decode(const struct wire *w)
{
    return (struct msg_fetch){.of = msg_patch_of_decode(w), .bytes = w->count};
}

/* Here they are. */
struct msg_patch {
    struct msg_patch_of of;
    uint32_t len; /* bytes of body; 0: there are none of them */
    bool answer;  /* you asked for them */
};

static inline struct wire msg_patch_encode(const struct msg_patch *m)
{
    struct wire w = msg_patch_of_encode(WIRE_PATCH, &m->of);
    w.len = m->len;
    w.count = m->answer ? WIRE_PATCH_ANSWER : 0;
    return w;
}

static inline struct msg_patch msg_patch_decode(const struct wire *w)
{
    return (struct msg_patch){.of = msg_patch_of_decode(w), .len = w->len, .answer = w->count == WIRE_PATCH_ANSWER};
}
#endif
