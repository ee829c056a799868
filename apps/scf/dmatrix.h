/* Distributed matrix ring: `matrices` square ones in one Keel segment, each cut into blocks of rows, one block a
 * rank. A rank's block stays readable and writable when the rank is dead, and with copies when its node is.
 * Calls return what Keel returned; buffers are whole n x n matrices, of which a block call uses its rows. */
#ifndef KEEL_SCF_DMATRIX_H
#define KEEL_SCF_DMATRIX_H

#include <keel/keel.h>

struct dmatrix {
    keel_segment *segment;
    int n;
    int matrices;
    int blocks; /* the number of ranks */
    int rows;   /* of a block; the last ones may be short or empty */
};

/* Collective. n may be 0. All zero at first. */
keel_status dmatrix_create(int n, int matrices, keel_redundancy redundancy, struct dmatrix *out);

/* Whole matrix. number is any number >= 0; it lives in place number % matrices. */
keel_status dmatrix_get(const struct dmatrix *matrix, int number, double *out);
keel_status dmatrix_accumulate(const struct dmatrix *matrix, int number, const double *part);
/* One block of rows; zeros where values is NULL. */
keel_status dmatrix_put_block(const struct dmatrix *matrix, int number, int block, const double *values);

#endif
