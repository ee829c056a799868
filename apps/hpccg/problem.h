/* The system that keel-hpccg solves, of one rank. Pure.
 *
 * Each rank has a box of nx by ny by nz points; boxes are stacked along z, rank 0's is the lowest. A point is coupled
 * to the points around it, 27 with itself: 27 on the diagonal, -1 beside it; over the border of the whole stack there
 * is nothing. The right side is such that all unknowns are 1.
 *
 * A vector that is multiplied has the rank's points and one plane of each neighbour: below, own points, above, z
 * slowest, nx * ny * (nz + 2) in all. */
#ifndef APPS_HPCCG_PROBLEM_H
#define APPS_HPCCG_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBLEM_COUPLINGS = 27 };

struct problem {
    size_t nx, ny, nz;
    size_t plane, rows; /* nx * ny; nx * ny * nz */
    double *value;      /* [rows][PROBLEM_COUPLINGS]; those that a row does not have are 0 */
    int32_t *column;    /* [rows][PROBLEM_COUPLINGS] index into a vector that is multiplied */
    double *right;      /* [rows] */
};

/* Elements of a vector that is multiplied. */
static inline size_t problem_reach(const struct problem *p)
{
    return p->rows + 2 * p->plane;
}

/* Numbers of the box, 0 if they do not fit an index. value, column and right are the caller's, of `rows` each. */
size_t problem_rows(size_t nx, size_t ny, size_t nz);
void problem_fill(struct problem *p, bool lowest, bool highest);
/* out [rows] = A v; v [problem_reach]. */
void problem_multiply(const struct problem *p, const double *v, double *out);
#endif
