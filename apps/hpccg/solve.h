/* The conjugate gradient method on the ranks of a job. */
#ifndef APPS_HPCCG_SOLVE_H
#define APPS_HPCCG_SOLVE_H

#include <keel/keel.h>

#include "apps/hpccg/problem.h"
#include "apps/lib/must.h"

struct solve {
    int iterations;  /* done */
    double residual; /* |b - A x| / |b| as the method computes it */
    double error;    /* the largest difference of an unknown from 1 */
    uint64_t sent;   /* messages of this rank, */
    uint64_t bytes;  /* and what was in them */
};

/* All ranks call it with the same limits. x, from 0, until the residual is at most `tolerance`, or for so many
 * iterations. A call of Keel's that fails ends the process with a line. */
void solve(const struct problem *p, int iterations, double tolerance, struct solve *out);
#endif
