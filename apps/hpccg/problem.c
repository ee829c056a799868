#include "apps/hpccg/problem.h"

size_t problem_rows(size_t nx, size_t ny, size_t nz)
{
    size_t plane, reach;
    if (__builtin_mul_overflow(nx, ny, &plane) || __builtin_mul_overflow(plane, nz + 2, &reach) ||
        reach > INT32_MAX / PROBLEM_COUPLINGS)
        return 0;
    return plane * nz;
}

/* One coordinate less or more; false: there is nothing. */
static bool step(size_t at, int by, size_t n, size_t *to)
{
    *to = at + (size_t)by;
    return *to < n; /* -1 is a large one */
}

static void fill_row(struct problem *p, size_t x, size_t y, size_t z, bool lowest, bool highest)
{
    size_t row = (z * p->ny + y) * p->nx + x;
    double *value = p->value + row * PROBLEM_COUPLINGS;
    int32_t *column = p->column + row * PROBLEM_COUPLINGS;
    p->right[row] = 0;
    for (int n = 0; n < PROBLEM_COUPLINGS; n++) {
        size_t to_x, to_y, level = z + (size_t)(n / 9); /* of planes with the one below */
        bool is = step(x, n % 3 - 1, p->nx, &to_x) && step(y, n / 3 % 3 - 1, p->ny, &to_y) && (level > 0 || !lowest) &&
                  (level <= p->nz || !highest);
        bool diagonal = n == PROBLEM_COUPLINGS / 2;
        value[n] = !is ? 0 : diagonal ? PROBLEM_COUPLINGS : -1;
        column[n] = is ? (int32_t)((level * p->ny + to_y) * p->nx + to_x) : (int32_t)(row + p->plane);
        p->right[row] += value[n];
    }
}

void problem_fill(struct problem *p, bool lowest, bool highest)
{
    for (size_t z = 0; z < p->nz; z++)
        for (size_t y = 0; y < p->ny; y++)
            for (size_t x = 0; x < p->nx; x++)
                fill_row(p, x, y, z, lowest, highest);
}

void problem_multiply(const struct problem *p, const double *v, double *out)
{
    for (size_t row = 0; row < p->rows; row++) {
        const double *value = p->value + row * PROBLEM_COUPLINGS;
        const int32_t *column = p->column + row * PROBLEM_COUPLINGS;
        double sum = 0;
        for (int n = 0; n < PROBLEM_COUPLINGS; n++)
            sum += value[n] * v[column[n]];
        out[row] = sum;
    }
}
