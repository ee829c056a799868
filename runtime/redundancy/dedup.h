/* Exactly once (guarantees G3, G4): what a copy of a slot remembers of the operations it has seen. Pure.
 *
 * An operation outside a task is (origin rank, incarnation, seq). An origin has at most DEDUP_WINDOW operations in flight
 * towards one slot, so the last DEDUP_WINDOW sequence numbers (with the values returned) decide every retry; an older one
 * that is not among them was completed long ago and cannot come again.
 * An operation in a task is (task, step) whatever process runs it; a task's steps towards one slot are made one after the
 * other in rising order, so the highest step seen decides. Task ids carry (pool, round) above the number; the steps of a
 * round are forgotten when its pool is two rounds further. */
#ifndef KEEL_REDUNDANCY_DEDUP_H
#define KEEL_REDUNDANCY_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEDUP_WINDOW = 128 };

struct dedup_entry {
    uint64_t seq;
    int64_t result;
};

struct dedup_origin {
    uint32_t rank;
    uint32_t incarnation;
    uint64_t last;  /* highest seq seen */
    uint32_t next;  /* place of the next entry */
    uint32_t count; /* entries in use */
    struct dedup_entry entry[DEDUP_WINDOW];
};

struct dedup_task {
    uint64_t task;
    uint32_t steps; /* highest step seen + 1; 0: the place is empty */
    uint32_t pad;
};

struct dedup {
    int ranks;
    struct dedup_origin **origin; /* [ranks], NULL until first seen */
    struct dedup_task *task;      /* open addressing */
    size_t task_capacity;         /* power of two, or 0 */
    size_t task_count;
};

bool dedup_init(struct dedup *d, int ranks);
void dedup_fini(struct dedup *d);

/* True if (rank, incarnation, seq) was recorded; *result gets the value it returned. Also true for an incarnation older than
 * the newest one seen: it is dead, its operations must not count any more. */
bool dedup_seen(const struct dedup *d, uint32_t rank, uint32_t incarnation, uint64_t seq, int64_t *result);
/* Record it. False when out of memory (nothing changed). */
bool dedup_record(struct dedup *d, uint32_t rank, uint32_t incarnation, uint64_t seq, int64_t result);

bool dedup_task_seen(const struct dedup *d, uint64_t task, uint32_t step);
bool dedup_task_record(struct dedup *d, uint64_t task, uint32_t step);

/* For the snapshot of a slot: replace what is known of an origin, or of a task. */
bool dedup_origin_load(struct dedup *d, const struct dedup_origin *origin);
#endif
