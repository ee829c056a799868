/* All sums over 27 points are made from two sums a row: of the 4 rows across a face of the row's, and of the 4
 * across an edge. Both serve three points in x. */
#include "apps/npb/mg_grid.h"

#include <string.h>

enum { ROW_MAX = 258 };

void grid_wrap_planes(const struct grid *grid, double *a)
{
    size_t n = grid->n, row = n + 2;
    for (size_t z = 1; z <= grid->planes; z++) {
        double *plane = a + z * grid_plane(grid);
        for (size_t y = 1; y <= n; y++) {
            plane[y * row] = plane[y * row + n];
            plane[y * row + n + 1] = plane[y * row + 1];
        }
        memcpy(plane, plane + n * row, row * sizeof *plane);
        memcpy(plane + (n + 1) * row, plane + row, row * sizeof *plane);
    }
}

/* The rows around one, each x of them added up. */
struct around {
    double face[ROW_MAX], edge[ROW_MAX];
};

static void add_around(const double *row, size_t length, size_t plane, struct around *out)
{
    const double *below = row - plane, *above = row + plane;
    for (size_t x = 0; x < length; x++) {
        out->face[x] = (row - length)[x] + row[x + length] + below[x] + above[x];
        out->edge[x] = (below - length)[x] + below[x + length] + (above - length)[x] + above[x + length];
    }
}

static inline double weigh(const double w[4], const double *row, const struct around *around, size_t x)
{
    const double *face = around->face, *edge = around->edge;
    return w[0] * row[x] + w[1] * (row[x - 1] + row[x + 1] + face[x]) + w[2] * (face[x - 1] + face[x + 1] + edge[x]) +
           w[3] * (edge[x - 1] + edge[x + 1]);
}

void grid_apply(const struct grid *grid, const struct weights *weights, double sign, const double *a,
                const double *base, double *out)
{
    size_t n = grid->n, length = n + 2, plane = grid_plane(grid);
    double w[4];
    struct around around = {.face = {0}, .edge = {0}};
    for (int i = 0; i < 4; i++)
        w[i] = sign * weights->of[i];
    for (size_t z = 1; z <= grid->planes; z++)
        for (size_t y = 1; y <= n; y++) {
            size_t at = z * plane + y * length;
            add_around(a + at, length, plane, &around);
            for (size_t x = 1; x <= n; x++)
                out[at + x] = base[at + x] + weigh(w, a + at, &around, x);
        }
}

void grid_restrict(const struct grid *fine_grid, const double *fine, double *coarse)
{
    static const double w[4] = {1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16};
    size_t half = fine_grid->n / 2, length = fine_grid->n + 2, plane = grid_plane(fine_grid);
    struct around around = {.face = {0}, .edge = {0}};
    for (size_t z = 1; z <= fine_grid->planes / 2; z++)
        for (size_t y = 1; y <= half; y++) {
            const double *row = fine + 2 * z * plane + 2 * y * length;
            double *out = coarse + (z * (half + 2) + y) * (half + 2);
            add_around(row, length, plane, &around);
            for (size_t x = 1; x <= half; x++)
                out[x] = weigh(w, row, &around, 2 * x);
        }
}

/* The coarse function on a fine row, still coarse in x: the mean of one, two or four coarse rows. */
static void mean_row(const double *coarse, size_t half, size_t z, size_t y, double *out)
{
    size_t length = half + 2, plane = length * length;
    const double *row = coarse + z / 2 * plane + y / 2 * length;
    size_t dz = z % 2 * plane, dy = y % 2 * length; /* 0: on a coarse plane, row */
    for (size_t x = 0; x < length; x++)
        out[x] = 0.25 * (row[x] + row[x + dy] + (row[x + dz] + row[x + dz + dy]));
}

void grid_interpolate(const struct grid *fine_grid, const double *coarse, double *fine)
{
    size_t half = fine_grid->n / 2, length = fine_grid->n + 2;
    double mean[ROW_MAX] = {0};
    for (size_t z = 0; z <= fine_grid->planes + 1; z++)
        for (size_t y = 0; y < length; y++) {
            double *row = fine + z * grid_plane(fine_grid) + y * length;
            mean_row(coarse, half, z, y, mean);
            for (size_t x = 0; x <= half; x++) {
                row[2 * x] += mean[x];
                row[2 * x + 1] += 0.5 * (mean[x] + mean[x + 1]);
            }
        }
}

double grid_sum_of_squares(const struct grid *grid, const double *a)
{
    double sum = 0;
    for (size_t z = 1; z <= grid->planes; z++)
        for (size_t y = 1; y <= grid->n; y++) {
            const double *row = a + z * grid_plane(grid) + y * (grid->n + 2);
            for (size_t x = 1; x <= grid->n; x++)
                sum += row[x] * row[x];
        }
    return sum;
}
