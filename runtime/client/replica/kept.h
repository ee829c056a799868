/* What a replica has written since it left the last meeting, and keeps until it leaves the next one: who acts for one
 * more set does it again there (partner.h). Pure.
 *
 * It is done again in two passes. First all that was put, in its order; when that is complete what has names, in its
 * order: a lower number behind a higher one would be taken for done.
 *
 *  threads   one at a time.   blocks   never. */
#ifndef KEEL_CLIENT_REPLICA_KEPT_H
#define KEEL_CLIENT_REPLICA_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/client/op/rma.h"

enum kept_pass { KEPT_PUTS, KEPT_NAMED, KEPT_PASSES };

/* Of the program's ranks and segments, so that it says the same of each set. */
struct kept_write {
    enum kept_pass pass;
    int rank;
    uint64_t segment; /* by number */
    uint64_t place;
    struct rma_named once; /* KEPT_NAMED; its src is `bytes` */
    uint64_t letter;       /* a message, which has that number, and its tag in `place`; 0: it is none */
    size_t len;            /* KEPT_PUTS, and of accumulates and messages */
    const void *bytes;
};

struct kept_block;
/* Zeroed at first. */
struct kept {
    struct kept_block *first, *last;
};

/* The write's bytes are copied. False: no memory; nothing is kept of it. */
bool kept_add(struct kept *k, const struct kept_write *write);
/* One after the other of a pass, in order: *at is NULL at first. NULL: there are no more. What is returned holds until
 * kept_forget; more may be added meanwhile, which come, too. */
const struct kept_write *kept_next(const struct kept *k, enum kept_pass pass, const struct kept_block **at);
/* All of it. */
void kept_forget(struct kept *k);
#endif
