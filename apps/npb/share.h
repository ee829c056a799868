/* Shares of work. Pure. */
#ifndef KEEL_NPB_SHARE_H
#define KEEL_NPB_SHARE_H

#include <stdbool.h>
#include <stddef.h>

/* Things in a row are cut into runs of nearly the same length, one a rank, in the order of the ranks. */
struct share {
    size_t first, count;
};
struct share share_of(size_t total, int parts, int which);

bool is_power_of_two(int n);

#endif
