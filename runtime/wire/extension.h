/* What a message may carry between header and body, beyond what its type says. Those that do are accumulates and
 * atomics of programs with replicas (digested.h); wire_is_known refuses all others, and who makes use of one lets it
 * through there.
 *
 *   header | extension (header.extension bytes) | body (header.len less these)
 *
 * header.len counts both, so whoever only passes a message on, or skips it in a stream, needs to know nothing of it.
 * Messages without one are as long as ever. An extension says which parts it has, which follow in the order of their
 * bits:
 *
 *   what, a bit each: 4 bytes | zero: 4 | envelope: 8, the nodes that it comes from and is for | digests: 16, of the
 *   header and of the body
 *
 *   envelope  the message is on its way through a node that is neither (a relay, a rail that ends elsewhere)
 *   digests   what header and body came to when they were sent (digest.h), so that who gets them can tell whether
 *             they are still that
 *
 * Pure. */
#ifndef KEEL_WIRE_EXTENSION_H
#define KEEL_WIRE_EXTENSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { EXTENSION_ENVELOPE = 1, EXTENSION_DIGESTS = 2, EXTENSION_MAX = 32 };

struct msg_extension {
    bool has_envelope;
    int32_t from, to; /* nodes: of the sender, and of the receiver, who may not be who gets it next */
    bool has_digests;
    uint64_t digest[2]; /* of the header, of the body */
};

/* Into EXTENSION_MAX bytes; how many it has: a multiple of 8, 0 if there is nothing to say. */
static inline size_t msg_extension_encode(const struct msg_extension *m, uint8_t *bytes)
{
    uint32_t what[2] = {(m->has_envelope ? EXTENSION_ENVELOPE : 0) | (m->has_digests ? EXTENSION_DIGESTS : 0), 0};
    const int32_t envelope[2] = {m->from, m->to};
    size_t len = sizeof what;
    if (!what[0])
        return 0;
    memcpy(bytes, what, sizeof what);
    if (m->has_envelope) {
        memcpy(bytes + len, envelope, sizeof envelope);
        len += sizeof envelope;
    }
    if (m->has_digests) {
        memcpy(bytes + len, m->digest, sizeof m->digest);
        len += sizeof m->digest;
    }
    return len;
}

/* Of just so many bytes. False: it is none, or has a part that nobody knows here, or nodes that cannot be. */
static inline bool msg_extension_decode(const uint8_t *bytes, size_t len, struct msg_extension *m)
{
    uint32_t what[2];
    int32_t envelope[2] = {0, 0};
    *m = (struct msg_extension){0};
    if (len == 0)
        return true;
    if (len < sizeof what)
        return false;
    memcpy(what, bytes, sizeof what);
    m->has_envelope = what[0] & EXTENSION_ENVELOPE;
    m->has_digests = what[0] & EXTENSION_DIGESTS;
    size_t at = sizeof what,
           all = at + (m->has_envelope ? sizeof envelope : 0) + (m->has_digests ? sizeof m->digest : 0);
    if (what[0] & ~(uint32_t)(EXTENSION_ENVELOPE | EXTENSION_DIGESTS) || !what[0] || what[1] || len != all)
        return false;
    if (m->has_envelope) {
        memcpy(envelope, bytes + at, sizeof envelope);
        at += sizeof envelope;
    }
    if (m->has_digests)
        memcpy(m->digest, bytes + at, sizeof m->digest);
    m->from = envelope[0];
    m->to = envelope[1];
    return m->from >= 0 && m->to >= 0;
}
#endif
