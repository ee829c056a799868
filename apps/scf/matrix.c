#include "apps/scf/matrix.h"

#include <dlfcn.h>
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void matrix_use_one_thread(void)
{
    /* Only OpenBLAS has this; with another BLAS there is nothing to do. */
    union {
        void *object;
        void (*function)(int);
    } set = {.object = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")};
    if (set.object != NULL)
        set.function(1);
}

double *matrix_new(int rows, int columns)
{
    double *matrix = calloc((size_t)rows * (size_t)columns + 1, sizeof *matrix);
    if (matrix == NULL) {
        fprintf(stderr, "keel-scf: out of memory\n");
        abort();
    }
    return matrix;
}

void matrix_multiply(int n, int k, int m, const double *a, const double *b, double *c)
{
    memset(c, 0, (size_t)n * (size_t)m * sizeof *c);
    for (int i = 0; i < n; i++)
        for (int l = 0; l < k; l++) {
            double f = a[i * k + l];
            for (int j = 0; j < m; j++)
                c[i * m + j] += f * b[l * m + j];
        }
}

/* c (n x m) = a^T b, a (k x n), b (k x m) */
static void matrix_multiply_transposed(int n, int k, int m, const double *a, const double *b, double *c)
{
    memset(c, 0, (size_t)n * (size_t)m * sizeof *c);
    for (int l = 0; l < k; l++)
        for (int i = 0; i < n; i++) {
            double f = a[l * n + i];
            for (int j = 0; j < m; j++)
                c[i * m + j] += f * b[l * m + j];
        }
}

void matrix_transform(int n, int m, const double *a, const double *x, double *out)
{
    double *ax = matrix_new(n, m);
    matrix_multiply(n, n, m, a, x, ax);
    matrix_multiply_transposed(m, n, m, x, ax, out);
    free(ax);
}

double matrix_dot(size_t count, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

double matrix_largest(size_t count, const double *a)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(a[i]));
    return largest;
}

bool matrix_eigen(int n, const double *a, double *values, double *vectors)
{
    memcpy(vectors, a, (size_t)n * (size_t)n * sizeof *a);
    return LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'L', n, vectors, n, values) == 0;
}

bool matrix_solve(int n, double *a, double *b)
{
    lapack_int *pivots = calloc((size_t)n, sizeof *pivots);
    double norm = LAPACKE_dlange(LAPACK_ROW_MAJOR, '1', n, n, a, n), condition = 0;
    bool good = LAPACKE_dgetrf(LAPACK_ROW_MAJOR, n, n, a, n, pivots) == 0 &&
                LAPACKE_dgecon(LAPACK_ROW_MAJOR, '1', n, a, n, norm, &condition) == 0 && condition > 1e-15 &&
                LAPACKE_dgetrs(LAPACK_ROW_MAJOR, 'N', n, 1, a, n, pivots, b, 1) == 0;
    free(pivots);
    return good;
}

bool matrix_orthogonaliser(int n, const double *s, double smallest, double *x, int *m)
{
    double *values = matrix_new(n, 1), *vectors = matrix_new(n, n);
    bool good = matrix_eigen(n, s, values, vectors);
    int first = 0;
    while (first < n && values[first] < smallest)
        first++;
    *m = n - first;
    for (int j = first; j < n && good; j++)
        for (int i = 0; i < n; i++)
            x[i * *m + j - first] = vectors[i * n + j] / sqrt(values[j]);
    free(values);
    free(vectors);
    return good;
}
