/* Looking into the copies. */
#ifndef KEEL_TESTS_SIM_DATA_CHECK_H
#define KEEL_TESTS_SIM_DATA_CHECK_H

#include "tests/sim/data/model.h"

/* A live node's copy of the slot's part of a planned segment, or NULL. */
const uint8_t *check_copy(const struct world *w, int node, int segment, int slot, size_t *bytes);
/* Where a rank's part begins in a copy. */
size_t check_part_at(const struct world *w, int segment, int rank);

/* The whole copies of the rank's part that live. */
struct check_parts {
    int n;
    int node[COPIES_MAX];
    const uint8_t *part[COPIES_MAX];
};
struct check_parts check_parts(const struct world *w, int segment, int rank);

enum { WORD = 8 };

/* The bytes of a region that are in one aligned word of memory: from, until. A region begins and ends where it
 * likes. */
static inline size_t word_from(const struct region *g, size_t at)
{
    size_t skew = g->offset % WORD, from = (at + skew) / WORD * WORD;
    return from > skew ? from - skew : 0;
}
static inline size_t word_until(const struct region *g, size_t at)
{
    size_t skew = g->offset % WORD, until = ((at + skew) / WORD + 1) * WORD - skew;
    return until < g->len ? until : g->len;
}

/* A breach: the word of a region is not what it may be. */
void check_region_failed(struct world *w, const char *when, const struct region *g, const struct check_parts *p,
                         size_t word, size_t len, const char *what);
#endif
