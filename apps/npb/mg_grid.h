/* A slab of a periodic cube, with a layer of points around it, and what a multigrid method does to it. Pure. */
#ifndef KEEL_NPB_MG_GRID_H
#define KEEL_NPB_MG_GRID_H

#include <stddef.h>

/* An array of a grid has planes + 2 planes of n + 2 rows of n + 2 numbers; 0 and the last of each are the layer. */
struct grid {
    size_t n, planes, first; /* points a side of the cube; planes of the slab, and which of the cube's its first is */
};

static inline size_t grid_plane(const struct grid *grid)
{
    return (grid->n + 2) * (grid->n + 2);
}

static inline size_t grid_points(const struct grid *grid)
{
    return (grid->planes + 2) * grid_plane(grid);
}

/* The layer of each plane of the slab, not the planes before and behind it. */
void grid_wrap_planes(const struct grid *grid, double *a);

/* Of a point itself, and of its 6, 12 and 8 neighbours at distances 1, sqrt 2 and sqrt 3. */
struct weights {
    double of[4];
};

/* out = base + sign * (weighted sum of a around each point), inside the layer. base may be out; a may not. */
void grid_apply(const struct grid *grid, const struct weights *weights, double sign, const double *a,
                const double *base, double *out);

/* coarse, of half as many planes, rows and points: point J lies at point 2 J of fine (with the layer, J = 1 is the
 * first), and becomes four times the weighted mean around it: the step, whose square divides the operator, doubles. */
void grid_restrict(const struct grid *fine_grid, const double *fine, double *coarse);

/* Adds the coarse function to the fine one, layer included: where there is no coarse point, the mean of the two,
 * four or eight around. */
void grid_interpolate(const struct grid *fine_grid, const double *coarse, double *fine);

/* Without the layer, point after point. */
double grid_sum_of_squares(const struct grid *grid, const double *a);

#endif
