/* A grid of so many ranks for a field, without a job that would make one: the first that fits, in blocks or not. */
#ifndef KEEL_TESTS_STENCIL_CUT_H
#define KEEL_TESTS_STENCIL_CUT_H

#include "apps/stencil/block.h"

/* Of two dimensions: ranks along i and j; of three also along k. The ranks of a node are blocks of two by one where
 * that divides them. */
static inline bool cut_as(struct field *f, int i, int j, int k, bool blocks)
{
    keel_grid g = {.dims = f->dims, .size = {1, 1, 1, 1, 1, 1}, .block = {1, 1, 1, 1, 1, 1}};
    int along[STENCIL_DIMS] = {i, j, k};
    for (int d = 0; d < f->dims; d++)
        g.block[f->dims - 1 - d] = g.size[f->dims - 1 - d] = along[d];
    if (blocks)
        for (int d = 0; d < f->dims; d++)
            g.block[d] = d == 0 && g.size[d] % 2 == 0 ? 2 : 1;
    return field_arrange(f, &g);
}

static inline bool cut_field(struct field *f, int ranks, bool blocks)
{
    for (int i = ranks; i >= 1; i--)
        for (int j = 1; ranks % i == 0 && j <= ranks / i; j++)
            if (ranks / i % j == 0 && i * i <= ranks && (f->dims == 3 || i * j == ranks) &&
                cut_as(f, i, j, ranks / i / j, blocks))
                return true;
    return false;
}
#endif
