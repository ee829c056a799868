/* The scrubber (agent/scrub.h) asks a copy for the sums of blocks that follow each other. */
#ifndef KEEL_WIRE_SCRUB_H
#define KEEL_WIRE_SCRUB_H

#include "runtime/wire/header.h"

/* Of a block; in one question there are so many at most. A sum is XXH3 with 64 bits. */
enum { SCRUB_BLOCK = 64 * 1024, SCRUB_BLOCKS_MAX = 4 };

struct msg_scrub {
    struct msg_at at;
    uint32_t bytes;
    bool close;        /* one block: and is it being written? */
    uint64_t question; /* its number */
};

static inline void msg_scrub_encode(const struct msg_scrub *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_SCRUB,
                          .raw.slot = m->at.slot,
                          .raw.seg = m->at.seg,
                          .raw.offset = m->at.offset,
                          .raw.count = m->bytes,
                          .raw.a = (int64_t)m->question,
                          .raw.status = m->close};
}

static inline void msg_scrub_decode(const struct wire *wire, struct msg_scrub *m)
{
    msg_at_decode(wire, &m->at);
    m->bytes = wire->raw.count;
    m->close = wire->raw.status != 0;
    m->question = (uint64_t)wire->raw.a;
}

/* body: a sum of 8 bytes for each block */
struct msg_scrubbed {
    uint32_t len;        /* bytes of body */
    uint64_t question;   /* as asked */
    int status;          /* KEEL_OK; KEEL_ERR_DATA_LOST; KEEL_ERR_STATE: there is no such copy here */
    uint64_t generation; /* of the copyset, here */
    /* of a close question */
    bool stored;       /* programs may have stored there what only this copy has */
    bool written;      /* a write is noted that may have come here in part */
    uint64_t noted_ns; /* the last note of a write that came here as a whole is so old; UINT64_MAX: there is none */
};

static inline void msg_scrubbed_encode(const struct msg_scrubbed *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_SCRUBBED,
                          .len = m->len,
                          .raw.a = (int64_t)m->question,
                          .raw.b = (int64_t)m->noted_ns,
                          .raw.identity = m->generation,
                          .raw.status = m->status,
                          .raw.step = m->stored,
                          .raw.round = m->written};
}

static inline void msg_scrubbed_decode(const struct wire *wire, struct msg_scrubbed *m)
{
    m->len = wire->len;
    m->question = (uint64_t)wire->raw.a;
    m->noted_ns = (uint64_t)wire->raw.b;
    m->status = wire->raw.status;
    m->generation = wire->raw.identity;
    m->stored = wire->raw.step != 0;
    m->written = wire->raw.round != 0;
}
#endif
