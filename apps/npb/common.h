/* What the kernels share: the run and its traffic, shares of work, memory, time, and sums in a fixed order. */
#ifndef KEEL_NPB_COMMON_H
#define KEEL_NPB_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

#include "apps/lib/must.h"
#include "apps/npb/outcome.h"
#include "apps/npb/share.h"

enum npb_class { CLASS_S, CLASS_W, CLASS_A, CLASSES };
extern const char npb_class_names[CLASSES + 1]; /* a letter each */

/* The one line that says why a run cannot be. */
struct npb_complaint {
    char text[200];
};
/* Writes it and returns false. */
bool npb_complain(struct npb_complaint *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One run of a kernel on this rank. */
struct npb {
    int rank, size;
    enum npb_class class;
    keel_redundancy redundancy;          /* of what others write to */
    double started;                      /* seconds */
    double *terms;                       /* [NPB_SUM_MAX * size] room for npb_sum */
    uint64_t puts, bytes, sums, gathers; /* of this rank since npb_start */
};

/* Waits for all ranks, also for one that stands still (keel_group_patience): nobody can do its work. */
void npb_barrier(void);

/* The time from a moment when all ranks are ready to the one when the last has stopped, the same on all, and what
 * all have sent meanwhile. */
void npb_start(struct npb *npb);
void npb_stop(struct npb *npb, struct outcome *out);

/* Sum, element by element, in the order of the ranks: the bits depend on the number of ranks and on nothing else.
 * Nobody has the sums before all ranks have called: what others put to this rank after it, they put after this
 * rank's call. */
enum { NPB_SUM_MAX = 16 };
void npb_sum(struct npb *npb, double *values, size_t n);
/* The same of integers, whose order does not matter. */
void npb_sum_int(struct npb *npb, int32_t *values, size_t n);
/* The bytes of all ranks one after the other. */
void npb_gather(struct npb *npb, const void *in, void *out, size_t bytes);

#endif
