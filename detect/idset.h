/* A set of ids that is small beside what it is drawn from, or lies together: ranges in ascending order. `has`, `below`
 * and `nth_out` take the logarithm of their number, changes its length. One of many ranges that lie close (a tenth of
 * all nodes, at random) becomes bits, with a count for each block of them.
 *
 * memory    12 bytes a range; or as bits, from SPARSE_MAX ranges on where that is less, 72 bytes for each 512 ids up to
 *           the highest
 *           that was in it. idset_free gives it back. All zero is the empty set.
 * errors    false: out of memory, the set is as it was. */
#ifndef KEEL_DETECT_IDSET_H
#define KEEL_DETECT_IDSET_H

#include <stdbool.h>
#include <stdint.h>

struct idrange {
    int lo, hi; /* both in it */
    int before; /* ids in the ranges before this one */
};
enum { IDBLOCK_WORDS = 8, IDBLOCK_IDS = 64 * IDBLOCK_WORDS };
struct idblock {
    uint64_t word[IDBLOCK_WORDS];
    int before; /* ids in the blocks before this one */
};
struct idset {
    struct idrange *r;
    int n, cap;
    int n_blocks;
    struct idblock *b; /* not NULL: it is bits, and has no ranges */
    int count;         /* ids */
};

bool idset_add(struct idset *s, int id);
bool idset_del(struct idset *s, int id);
bool idset_copy(struct idset *to, const struct idset *from);
/* `to` becomes `from` and n ids more, which ascend. */
bool idset_union(struct idset *to, const struct idset *from, const int *ids, int n);
void idset_clear(struct idset *s);
void idset_free(struct idset *s);

bool idset_has(const struct idset *s, int id);
int idset_below(const struct idset *s, int id);                 /* ids in it that are less than id */
int idset_next(const struct idset *s, int from);                /* the least in it that is >= from, or -1 */
int idset_next_out(const struct idset *s, int from);            /* the least not in it that is >= from */
int idset_nth_out(const struct idset *s, int k);                /* of the ids 0, 1, ... not in it the k-th, from 0 */
int idset_common(const struct idset *a, const struct idset *b); /* ids in both */
#endif
