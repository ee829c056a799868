/* Collectives over all live ranks. A rank that dies is left out; a restarted rank takes part from keel_resume on.
 * All live ranks call the same collectives in the same order. None hangs on a dead rank. */
#ifndef KEEL_COLLECTIVE_H
#define KEEL_COLLECTIVE_H

#include <stddef.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fault-resilient hypercube barrier (FT-ARMCI, "non-data-moving collectives"), with an implicit keel_fence_all before.
 * Returns when every live rank has entered. */
KEEL_MUST_CHECK keel_status keel_barrier(void);

/* Copy len bytes (the same on all ranks, at most 64 KiB) from root's buffer into everybody's.
 * errors    KEEL_ERR_RANK_DEAD on all ranks if root died before its data was safe; KEEL_ERR_MISMATCH. */
KEEL_MUST_CHECK keel_status keel_bcast(int root, void *buffer, size_t len);

/* Sum, element by element, the n doubles (at most 8192) of every rank that entered alive into everybody's out; the same bits
 * everywhere, in the order of ranks. in and out may be the same. */
KEEL_MUST_CHECK keel_status keel_allreduce_sum(const double *in, double *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
