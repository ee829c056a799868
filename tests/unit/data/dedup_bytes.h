/* How much memory an agent's table of what has been done takes. */
#ifndef KEEL_TESTS_DATA_DEDUP_BYTES_H
#define KEEL_TESTS_DATA_DEDUP_BYTES_H

#include "runtime/agent/dedup.h"

static inline size_t dedup_bytes(const struct dedup *d)
{
    size_t bytes = d->task_capacity * sizeof *d->task;
    for (int r = 0; r < d->ranks; r++)
        if (d->origin[r])
            bytes += dedup_origin_bytes(d->origin[r]);
    return bytes;
}
#endif
