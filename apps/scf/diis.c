#include "apps/scf/diis.h"

#include <assert.h>
#include <string.h>

#include "apps/scf/matrix.h"

/* Solve the equations for the errors from number `first` on; false if they are singular. */
static bool solve_from(int first, int n, double b[DIIS_MAX][DIIS_MAX], double *out)
{
    double a[(DIIS_MAX + 1) * (DIIS_MAX + 1)], x[DIIS_MAX + 1] = {0};
    int m = n - first, width = m + 1;
    double scale = 1 / b[n - 1][n - 1];
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++)
            a[i * width + j] = b[first + i][first + j] * scale;
        a[i * width + m] = a[m * width + i] = -1;
    }
    a[m * width + m] = 0;
    x[m] = -1;
    if (!matrix_solve(width, a, x))
        return false;
    memset(out, 0, (size_t)n * sizeof *out);
    memcpy(out + first, x, (size_t)m * sizeof *out);
    return true;
}

void diis_coefficients(int n, size_t length, const double *const errors[], double *out)
{
    double b[DIIS_MAX][DIIS_MAX];
    assert(n >= 1 && n <= DIIS_MAX);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            b[i][j] = b[j][i] = matrix_dot(length, errors[i], errors[j]);
    for (int first = 0; first < n - 1 && b[n - 1][n - 1] > 0; first++)
        if (solve_from(first, n, b, out))
            return;
    memset(out, 0, (size_t)n * sizeof *out);
    out[n - 1] = 1;
}
