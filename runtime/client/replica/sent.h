/* What a replica has put since the last comparison, range by range with the hash of each, so that what lies there can
 * be looked at before it counts. Pure.
 *
 * A later put of the same rank may lie over an earlier one, and what the rank adds or exchanges there changes it too:
 * sent_settle leaves those ranges of which the bytes are known, each once. Of one that is written over in part nothing
 * is known by its hash, so the rest of it is not looked at. */
#ifndef KEEL_CLIENT_REPLICA_SENT_H
#define KEEL_CLIENT_REPLICA_SENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sent_range {
    uint64_t segment; /* the caller's n-th allocation, from 1 */
    uint64_t place;   /* bytes from the start of the part */
    uint64_t hash;    /* of the bytes */
    uint64_t number;  /* of the operation, since the start */
    uint64_t at;      /* where the caller keeps the bytes, if it does */
    uint32_t len;
    int32_t target; /* rank, as the program sees it */
    uint32_t call;
    uint32_t order; /* among those since the last comparison */
    bool changed;   /* by an operation that leaves what nobody knows here */
    uint8_t set;    /* where it was found to lie otherwise */
};

struct sent {
    struct sent_range *range; /* [room] */
    size_t n, room;
};

/* False: out of memory, and nothing was added. */
bool sent_add(struct sent *s, const struct sent_range *range);
/* Sorted by segment, target and place, and apart from each other. Nothing is added until sent_forget. */
void sent_settle(struct sent *s);
void sent_forget(struct sent *s);
/* How many of them are of the segment and target of the first one from i on. */
size_t sent_alike(const struct sent *s, size_t i);
#endif
