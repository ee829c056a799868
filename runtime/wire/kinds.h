/* The types of messages, once: who sends them to whom, and which flags they have. What a stranger, or an agent of
 * another build, may have sent is looked at here before anybody decodes it. Pure. */
#ifndef KEEL_WIRE_KINDS_H
#define KEEL_WIRE_KINDS_H

#include <stddef.h>

#include "runtime/wire/header.h"

enum wire_path {
    WIRE_FROM_RANK = 1, /* a rank to an agent, or through it to a rank */
    WIRE_TO_RANK = 2,   /* an agent, or a rank, to a rank */
    WIRE_OF_AGENTS = 4, /* between agents */
};

struct wire_kind {
    const char *name; /* NULL: there is no such type */
    uint8_t flags;    /* those that it has */
    uint8_t paths;    /* enum wire_path */
    bool digested;    /* it may have an extension: digested.h */
};

extern const struct wire_kind wire_kinds[WIRE_TYPES];

/* It is of a type that goes this way, and has no flags but those of its type, and no extension but of a type that
 * may. */
static inline bool wire_is_known(const struct wire *wire, enum wire_path path)
{
    return wire->type < WIRE_TYPES && wire_kinds[wire->type].paths & path &&
           !(wire->flags & ~wire_kinds[wire->type].flags) && (!wire->extension || wire_kinds[wire->type].digested);
}

/* Bytes of the message at `bytes`, header and body, of which there are `len` at least; 0: it is cut short. */
static inline size_t wire_bytes(const struct wire *bytes, size_t len)
{
    return len < sizeof *bytes || len - sizeof *bytes < bytes->len ? 0 : sizeof *bytes + bytes->len;
}
#endif
