/* What a replica remembers of its operations, so that replicas of a rank can say whether they did the same, and which
 * operation was the first that they did not do alike. Pure.
 *
 * Each operation (call, target, place, bytes) is hashed with what came before it: one number, `after`, stands for all
 * operations since the start. Replicas whose counts and numbers are equal have done the same, but for what two equal
 * hashes of 64 bits may hide (docs/adr/0180-wrong-bits.md). Beside that a replica keeps
 *
 *   the ring     the last operations themselves, each with the number after it; the bytes only as their hash
 *   the marks    of those since the last comparison that was equal, the number after each `stride`-th operation. The
 *                stride doubles when there is no place left, so marks cover all of them, however many
 *
 * so that the first operation that differs is named if both still have it in their rings, and else a range is named in
 * which it lies. Operations are counted from 1, since the start of the process.
 *
 *  threads   one at a time. */
#ifndef KEEL_CLIENT_REPLICA_CHECK_H
#define KEEL_CLIENT_REPLICA_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECK_REPLICAS_MAX = 3, CHECK_MARKS = 32 };

/* An operation, as it is compared: no pointers, and nothing that only one replica knows. */
struct check_op {
    uint32_t call;    /* which of the public calls */
    int32_t target;   /* rank, as the program sees it; -1: none */
    uint64_t segment; /* the caller's n-th allocation, from 1; 0: none */
    uint64_t place;   /* byte offset, tag or whatever says where */
    uint64_t len;     /* bytes */
    uint64_t bytes;   /* their hash */
};

struct check_entry {
    struct check_op op;
    uint64_t after; /* the hash of all operations up to this one */
};

struct check_mark {
    uint64_t number, after;
};

/* What is compared. */
struct check_sum {
    uint64_t count; /* operations since the start */
    uint64_t after; /* their hash */
};

struct check {
    struct check_sum now, equal; /* equal: as of the last comparison that was */
    struct check_entry *ring;    /* [places], the caller's */
    size_t places;               /* a power of two */
    struct check_mark mark[CHECK_MARKS];
    size_t marks;
    uint64_t stride;
};

/* ring: [places], which stays the caller's; a power of two. */
void check_init(struct check *c, struct check_entry *ring, size_t places);
void check_add(struct check *c, const struct check_op *op);
/* All that compared were equal. */
void check_was_equal(struct check *c);
/* From here on replicas are taken to be equal, which they were not: they go on with that sum. */
void check_settle(struct check *c, const struct check_sum *with);
/* The operation of that number; NULL: it is not in the ring any more, or not done yet. */
const struct check_entry *check_find(const struct check *c, uint64_t number);
/* The first one since the last equal comparison that is still there. */
uint64_t check_oldest(const struct check *c);

/* ---- the comparison ---- */

enum check_verdict {
    CHECK_EQUAL,
    CHECK_ONE_DIFFERS, /* from two others that are equal */
    CHECK_NO_MAJORITY,
};

struct check_outcome {
    enum check_verdict verdict;
    int odd;  /* CHECK_ONE_DIFFERS: which one */
    int a, b; /* not CHECK_EQUAL: the first two that differ */
};

/* sums [CHECK_REPLICAS_MAX], of which those count that `there` says. */
struct check_outcome check_compare(const struct check_sum *sums, const bool *there);

/* ---- the first that differs ---- */

enum check_found {
    CHECK_SAME,   /* as far as both go, and both go as far */
    CHECK_KNOWN,  /* operation `number`, which both have in their rings, or one of them has not done */
    CHECK_WITHIN, /* one of number ... until: it is not in the rings any more */
};

struct check_first {
    enum check_found found;
    uint64_t number, until;
};

/* Of two replicas whose last equal comparison was the same one. */
struct check_first check_first(const struct check *a, const struct check *b);
#endif
