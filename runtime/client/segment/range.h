/* The address range: where the parts of segments lie, at the same addresses in every process. Pure.
 *
 * Segments come and go in the same order in every process (allocation and freeing are collective, and a restarted
 * process repeats them), so that first fit gives everybody the same places without a word being said; the allocation
 * compares them. */
#ifndef KEEL_CLIENT_SEGMENT_RANGE_H
#define KEEL_CLIENT_SEGMENT_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANGE_PAGE = 4096 };

struct range_place {
    uint64_t base, bytes;
    void *owner;
};

struct range {
    uint64_t base, bytes;      /* bytes 0: there is no range */
    struct range_place *place; /* in the order of their addresses */
    size_t n, max;
};

/* The lowest free place above the range, `from` or later, in as many bytes again: those are for segments of groups,
 * whose members choose a place together. 0: there is none. */
uint64_t range_above(const struct range *r, uint64_t bytes, uint64_t from);
/* Take a place that range_above has given. False: no memory. */
bool range_take_above(struct range *r, uint64_t base, uint64_t bytes, void *owner);
/* The lowest free place of that many bytes, with a page behind it that nobody has; 0: there is none, or no memory. */
uint64_t range_take(struct range *r, uint64_t bytes, void *owner);
void range_give(struct range *r, uint64_t base);
/* Whose place the address is in, or NULL. O(log n). */
void *range_find(const struct range *r, uint64_t address);
void range_fini(struct range *r);
#endif
