#include "apps/scf/dmatrix.h"

#include <stdlib.h>

keel_status dmatrix_create(int n, int matrices, keel_redundancy redundancy, struct dmatrix *out)
{
    int blocks = keel_size(), rows = (n + blocks - 1) / blocks;
    *out = (struct dmatrix){.n = n, .matrices = matrices, .blocks = blocks, .rows = rows};
    return keel_segment_alloc((size_t)matrices * (size_t)rows * (size_t)n * sizeof(double), redundancy, &out->segment);
}

/* Where a block lies: elements of it, and the place of its first element in a whole matrix. */
static size_t block_elements(const struct dmatrix *matrix, int block, size_t *first)
{
    int row = block * matrix->rows, rows = matrix->n - row;
    if (rows > matrix->rows)
        rows = matrix->rows;
    *first = (size_t)row * (size_t)matrix->n;
    return rows > 0 ? (size_t)rows * (size_t)matrix->n : 0;
}

static size_t matrix_at(const struct dmatrix *matrix, int number)
{
    return (size_t)(number % matrix->matrices) * (size_t)matrix->rows * (size_t)matrix->n * sizeof(double);
}

keel_status dmatrix_get(const struct dmatrix *matrix, int number, double *out)
{
    for (int block = 0; block < matrix->blocks; block++) {
        size_t first, count = block_elements(matrix, block, &first);
        if (count == 0)
            continue;
        keel_status status =
            keel_get(matrix->segment, block, matrix_at(matrix, number), out + first, count * sizeof *out);
        if (status != KEEL_OK)
            return status;
    }
    return KEEL_OK;
}

keel_status dmatrix_accumulate(const struct dmatrix *matrix, int number, const double *part)
{
    keel_handle all; /* blocks of several nodes are added at the same time */
    keel_status status = keel_handle_aggregate(&all);
    if (status != KEEL_OK)
        return status;
    for (int block = 0; block < matrix->blocks && status == KEEL_OK; block++) {
        size_t first, count = block_elements(matrix, block, &first);
        if (count > 0)
            status = keel_acc_nb(matrix->segment, block, matrix_at(matrix, number), KEEL_DOUBLE, NULL, part + first,
                                 count, &all);
    }
    keel_status waited = keel_wait(&all);
    return status != KEEL_OK ? status : waited;
}

keel_status dmatrix_put_block(const struct dmatrix *matrix, int number, int block, const double *values)
{
    size_t first, count = block_elements(matrix, block, &first);
    if (count == 0)
        return KEEL_OK;
    if (values != NULL)
        return keel_put(matrix->segment, block, matrix_at(matrix, number), values + first, count * sizeof *values);
    double *zeros = calloc(count, sizeof *zeros);
    if (zeros == NULL)
        return KEEL_ERR_NOMEM;
    keel_status status = keel_put(matrix->segment, block, matrix_at(matrix, number), zeros, count * sizeof *zeros);
    free(zeros);
    return status;
}
