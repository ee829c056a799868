/* What a rank is writing, told to its agent: the ring of guarantee G2. One page of shared memory per rank, written by the
 * rank, read by the agent after the rank's death. An entry covers a put that stores into a copy on this node with plain
 * stores; the other copy gets the same bytes in whole messages, or has them already, so after a death it is the good one. */
#ifndef KEEL_CORE_INTENT_H
#define KEEL_CORE_INTENT_H

#include <stdatomic.h>
#include <stdint.h>

enum { INTENT_MAX = 64 };

struct intent {
    _Atomic uint32_t active; /* set before the first store, cleared when every copy holds the bytes */
    uint32_t seg;
    uint32_t slot;
    uint32_t pad;
    uint64_t offset;
    uint64_t len;
};

struct intent_page {
    struct intent entry[INTENT_MAX];
};
#endif
