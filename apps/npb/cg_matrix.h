/* CG's matrix: the sum of w_i x_i x_i^T over n sparse random vectors x_i, the weights w_i falling evenly in their
 * logarithms from 1 to 0.1, plus 0.1 - shift on the diagonal. */
#ifndef KEEL_NPB_CG_MATRIX_H
#define KEEL_NPB_CG_MATRIX_H

#include "apps/npb/common.h"

/* Some rows of it, compressed. */
struct cg_matrix {
    size_t rows;
    size_t *start; /* [rows + 1] */
    int *columns;
    double *values;
};

/* nonzeros: random elements of each vector x_i, which has 0.5 at place i besides. All ranks draw all vectors, as
 * each number depends on those before it; a rank keeps its rows. */
void cg_matrix_create(int n, int nonzeros, double shift, struct share rows, struct cg_matrix *out);
void cg_matrix_destroy(struct cg_matrix *matrix);

/* out = rows of the matrix times v, which has n elements. */
void cg_matrix_multiply(const struct cg_matrix *matrix, const double *v, double *out);

#endif
