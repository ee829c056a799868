/* Messages that say what they are: where a program has replicas an accumulate or atomic carries digests of its header
 * and body (extension.h), and the agent that gets it looks whether these are what was sent. Pure. */
#ifndef KEEL_WIRE_DIGESTED_H
#define KEEL_WIRE_DIGESTED_H

#include "runtime/wire/extension.h"
#include "runtime/wire/header.h"

/* What goes in front of the body. */
struct digested {
    struct wire wire;
    uint8_t extension[EXTENSION_MAX];
};
static_assert(offsetof(struct digested, extension) == sizeof(struct wire), "they go as one");

enum digested_is {
    DIGESTED_RIGHT,
    DIGESTED_BODY_WRONG, /* the header says whose it is, and which one */
    DIGESTED_WRONG,      /* nobody knows what it was */
};

/* wire is filled in, and has no extension yet; body: its bytes, wire.len of them. Returns how many bytes of m go in
 * front of these. */
size_t digested_make(struct digested *m, const void *body);
/* message: whole, as wire_bytes says it; its type may have an extension (kinds.h). Unless it is DIGESTED_WRONG *plain
 * is the header as it was without, and *body what is behind. */
enum digested_is digested_open(const struct wire *message, struct wire *plain, const void **body);
#endif
