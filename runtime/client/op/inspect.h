/* What lies in another rank's part is looked at by the agent that holds it: its hash, or whether it is equal to bytes
 * that come with the question (wire/digest.h). Of many ranges in one message. A part that this process reaches by plain
 * loads it looks at itself. */
#ifndef KEEL_CLIENT_OP_INSPECT_H
#define KEEL_CLIENT_OP_INSPECT_H

#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

struct client;

enum { INSPECT_MAX = 32 * 1024 }; /* bytes of a range */

struct inspected {
    uint64_t offset;
    uint32_t len;
    const void *bytes; /* to compare with; NULL, in all ranges of a call: the hash is wanted */
    uint64_t found;    /* digest, or digest_difference */
};

/* blocks   until all are answered. Not under the lock. */
keel_status inspect_parts(struct client *c, keel_segment *s, int rank, struct inspected *part, size_t n);
#endif
