/* An audit (agent/verify.h) asks a copy for the hash of a block, or for the bytes themselves. */
#ifndef KEEL_WIRE_HASH_H
#define KEEL_WIRE_HASH_H

#include "runtime/wire/header.h"

enum { WIRE_HASH_OF_BYTES, WIRE_HASH_BYTES };

struct msg_hash {
    struct msg_at at;
    uint32_t bytes;
    bool exact;        /* not the hash, the bytes themselves */
    uint64_t question; /* its number */
};

static inline void msg_hash_encode(const struct msg_hash *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_HASH,
                          .raw.slot = m->at.slot,
                          .raw.seg = m->at.seg,
                          .raw.offset = m->at.offset,
                          .raw.count = m->bytes,
                          .raw.a = (int64_t)m->question,
                          .raw.status = m->exact ? WIRE_HASH_BYTES : WIRE_HASH_OF_BYTES};
}

static inline void msg_hash_decode(const struct wire *wire, struct msg_hash *m)
{
    msg_at_decode(wire, &m->at);
    m->bytes = wire->raw.count;
    m->exact = wire->raw.status == WIRE_HASH_BYTES;
    m->question = (uint64_t)wire->raw.a;
}

struct msg_hashed {
    uint32_t len;        /* bytes of body */
    uint64_t question;   /* as asked */
    int status;          /* KEEL_OK; KEEL_ERR_DATA_LOST; KEEL_ERR_STATE: there is no such copy here */
    uint64_t generation; /* of the copyset, here */
};

static inline void msg_hashed_encode(const struct msg_hashed *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_HASHED,
                          .len = m->len,
                          .raw.a = (int64_t)m->question,
                          .raw.identity = m->generation,
                          .raw.status = m->status};
}

static inline void msg_hashed_decode(const struct wire *wire, struct msg_hashed *m)
{
    m->len = wire->len;
    m->question = (uint64_t)wire->raw.a;
    m->status = wire->raw.status;
    m->generation = wire->raw.identity;
}
#endif
