/* MG: four V-cycles of a multigrid method for the Poisson equation in a periodic cube, with ten charges of each
 * sign. Ranks have slabs of planes as long as a level gives each two planes or more; coarser levels all ranks
 * compute as a whole, each for itself: an exchange of their few points would take longer. */
#include "apps/npb/halo.h"
#include "apps/npb/kernel.h"
#include "apps/npb/mg_charges.h"
#include "apps/npb/mg_grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CYCLES = 4, LEVELS_MAX = 8 };

static const struct {
    int log_n;
    double norm;
} classes[CLASSES] = {
    [CLASS_S] = {5, 0.5307707005734e-4}, [CLASS_W] = {7, 0.6467329375339e-5}, [CLASS_A] = {8, 0.2433365309069e-5}};

/* Of the operator, and of the smoother: at a point, and at its neighbours across a face, an edge, a corner. */
static const struct weights laplacian = {{-8.0 / 3, 0, 1.0 / 6, 1.0 / 12}};
static const struct weights smoother = {{-3.0 / 8, 1.0 / 32, -1.0 / 64, 0}};

/* One level: a solution u, and what is left of the right side. */
struct level {
    struct grid grid;
    bool whole; /* on each rank */
    double *u, *r;
};

struct mg {
    struct npb *npb;
    int top;
    struct level levels[LEVELS_MAX]; /* 0 has 2 points a side, each further one twice as many */
    double *v;                       /* the right side, on the top level */
    double *part;                    /* this rank's planes of the finest whole level */
    struct halo halo;
};

/* The points around the grid become what the other end has. */
static void wrap(struct mg *mg, const struct level *level, double *a)
{
    const struct grid *grid = &level->grid;
    size_t plane = grid_plane(grid);
    double *lowest = a + plane, *highest = a + grid->planes * plane, *above = highest + plane;
    grid_wrap_planes(grid, a);
    if (level->whole) {
        memcpy(a, highest, plane * sizeof *a);
        memcpy(above, lowest, plane * sizeof *a);
    } else {
        halo_exchange(&mg->halo, lowest, highest, a, above, plane * sizeof *a);
    }
}

/* r = v - A u; v may be r. */
static void residual(struct mg *mg, const struct level *level, const double *v)
{
    grid_apply(&level->grid, &laplacian, -1, level->u, v, level->r);
    wrap(mg, level, level->r);
}

static void smooth(struct mg *mg, const struct level *level)
{
    grid_apply(&level->grid, &smoother, 1, level->r, level->u, level->u);
    wrap(mg, level, level->u);
}

/* The residual of the next coarser level. Where slabs end each rank makes its planes, and all get all. */
static void restrict_residual(struct mg *mg, int from)
{
    const struct level *fine = &mg->levels[from], *coarse = &mg->levels[from - 1];
    if (fine->whole == coarse->whole) {
        grid_restrict(&fine->grid, fine->r, coarse->r);
    } else {
        size_t plane = grid_plane(&coarse->grid);
        grid_restrict(&fine->grid, fine->r, mg->part);
        npb_gather(mg->npb, mg->part + plane, coarse->r + plane, fine->grid.planes / 2 * plane * sizeof(double));
    }
    wrap(mg, coarse, coarse->r);
}

/* Adds the coarser level's solution to the finer one's. */
static void correct(struct mg *mg, int to)
{
    const struct level *fine = &mg->levels[to], *coarse = &mg->levels[to - 1];
    size_t skip = fine->whole == coarse->whole ? 0 : fine->grid.first / 2; /* planes of other ranks before this one's */
    grid_interpolate(&fine->grid, coarse->u + skip * grid_plane(&coarse->grid), fine->u);
}

static void clear(const struct level *level)
{
    memset(level->u, 0, grid_points(&level->grid) * sizeof *level->u);
}

static void cycle(struct mg *mg)
{
    for (int l = mg->top; l > 0; l--)
        restrict_residual(mg, l);
    clear(&mg->levels[0]);
    smooth(mg, &mg->levels[0]);
    for (int l = 1; l <= mg->top; l++) {
        const struct level *level = &mg->levels[l];
        if (l < mg->top)
            clear(level);
        correct(mg, l);
        residual(mg, level, l < mg->top ? level->r : mg->v);
        smooth(mg, level);
    }
}

static void prepare(struct npb *npb, struct mg *mg)
{
    size_t size = (size_t)npb->size, part = 1;
    *mg = (struct mg){.npb = npb, .top = classes[npb->class].log_n - 1};
    for (int l = 0; l <= mg->top; l++) {
        struct level *level = &mg->levels[l];
        size_t n = (size_t)2 << l;
        level->whole = size == 1 || n < 2 * size;
        level->grid = (struct grid){.n = n, .planes = level->whole ? n : n / size};
        level->grid.first = level->whole ? 0 : level->grid.planes * (size_t)npb->rank;
        level->u = reserve(grid_points(&level->grid), sizeof(double));
        level->r = reserve(grid_points(&level->grid), sizeof(double));
        if (level->whole)
            part = grid_points(&level->grid);
    }
    const struct level *top = &mg->levels[mg->top];
    mg->part = reserve(part, sizeof(double));
    mg->v = reserve(grid_points(&top->grid), sizeof(double));
    halo_open(npb, grid_plane(&top->grid) * sizeof(double), &mg->halo);
    mg_charges_place(npb, &top->grid, mg->v);
    wrap(mg, top, mg->v);
}

static void discard(struct mg *mg)
{
    halo_close(&mg->halo);
    for (int l = 0; l <= mg->top; l++) {
        keel_local_free(mg->levels[l].u);
        keel_local_free(mg->levels[l].r);
    }
    keel_local_free(mg->part);
    keel_local_free(mg->v);
}

static bool fits(const struct npb *npb, struct npb_complaint *why)
{
    int most = 1 << (classes[npb->class].log_n - 1);
    return (is_power_of_two(npb->size) && npb->size <= most) ||
           npb_complain(why, "class %c of MG needs a power of two of ranks, at most %d, not %d",
                        npb_class_names[npb->class], most, npb->size);
}

static void run(struct npb *npb, struct outcome *out)
{
    struct mg mg;
    prepare(npb, &mg);
    const struct level *top = &mg.levels[mg.top];
    double points = pow((double)top->grid.n, 3);
    npb_start(npb);
    residual(&mg, top, mg.v);
    for (int i = 0; i < CYCLES; i++) {
        keel_timestep((uint64_t)i + 1);
        cycle(&mg);
        residual(&mg, top, mg.v);
    }
    double norm = grid_sum_of_squares(&top->grid, top->r);
    npb_sum(npb, &norm, 1);
    npb_stop(npb, out);
    snprintf(out->size, sizeof out->size, "%zu x %zu x %zu", top->grid.n, top->grid.n, top->grid.n);
    discard(&mg);

    out->iterations = CYCLES;
    out->mops = 58e-6 * CYCLES * points / out->seconds;
    outcome_add(out, "norm", sqrt(norm / points), classes[npb->class].norm, 1e-8);
}

const struct npb_kernel npb_mg = {"mg", fits, run};
