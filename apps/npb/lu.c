/* LU: steps towards the steady flow of a gas in a cube, each by symmetric successive over-relaxation: a sweep
 * upwards through the points in x, y and z, in which a point needs those before it, and one downwards. Ranks have
 * slabs of y. A sweep goes through them as a wave: a rank puts the last row of each plane z to the next rank as soon
 * as it has it, and goes on with the next plane. */
#include "apps/npb/kernel.h"
#include "apps/npb/lu_flow.h"
#include "apps/npb/window.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HALO = 2 };
#define RELAXATION 1.2

static const struct {
    int n, steps;
    double dt, residual[LU_PARTS], error[LU_PARTS], surface;
} classes[CLASSES] = {
    [CLASS_S] = {12,
                 50,
                 0.5,
                 {1.6196343210976702e-2, 2.1976745164821318e-3, 1.5179927653399185e-3, 1.5029584435994323e-3,
                  3.4264073155896461e-2},
                 {6.4223319957960924e-4, 8.4144342047347926e-5, 5.8588269616485186e-5, 5.8474222595157350e-5,
                  1.3103347914111294e-3},
                 7.8418928865937083},
    [CLASS_W] = {33,
                 300,
                 1.5e-3,
                 {12.36511638192, 1.317228477799, 2.550120713095, 2.326187750252, 28.26799444189},
                 {0.4867877144216, 5.064652880982e-2, 9.281818101960e-2, 8.570126542733e-2, 1.084277417792},
                 11.61399311023},
    [CLASS_A] = {64,
                 250,
                 2.0,
                 {779.02107606689367, 63.402765259692870, 194.99249727292479, 178.45301160418537, 1838.4760349464247},
                 {29.964085685471943, 2.8194576365003349, 7.3473412698774742, 6.7139225687777051, 70.715315688392578},
                 26.030925604886277},
};

/* Lanes: the gas next to the slab from below and above in y; rows of the upward and of the downward sweep. */
enum lane { GAS_BELOW, GAS_ABOVE, SWEEP_UP, SWEEP_DOWN, LANES };

struct lu {
    struct npb *npb;
    int n;
    double dt;
    struct share slab; /* rows y of this rank */
    int from, to;      /* those of them that are on no face */
    gas *u, *right,
        *residual; /* [n][slab.count + 2 HALO][n]; right: what the exact solution's residual is without it */
    struct window window;
};

/* z, y in the cube; y from HALO before the slab. */
static size_t row(const struct lu *lu, int z, int y)
{
    return ((size_t)z * (lu->slab.count + 2 * HALO) + (size_t)(y + HALO - (int)lu->slab.first)) * (size_t)lu->n;
}

/* Of window data: those of the gas hold HALO rows for each z, those of sweeps one. */
static size_t place(const struct lu *lu, enum lane lane, int z)
{
    size_t one = (size_t)lu->n * sizeof(gas), n = (size_t)lu->n, gases = HALO * n * one;
    size_t base[LANES] = {0, gases, 2 * gases, 2 * gases + n * one};
    return base[lane] + (size_t)z * (lane < SWEEP_UP ? HALO : 1) * one;
}

static gas at(const struct lu *lu, gas (*function)(double, double, double), int x, int y, int z)
{
    double h = lu->n - 1;
    return function(x / h, y / h, z / h);
}

static bool on_face(const struct lu *lu, int i)
{
    return i == 0 || i == lu->n - 1;
}

/* Of the slab and the rows next to it, which no neighbour need send then. */
static void fill(struct lu *lu, gas (*inside)(double, double, double), gas *out)
{
    int last = (int)(lu->slab.first + lu->slab.count) - 1;
    for (int z = 0; z < lu->n; z++)
        for (int y = (int)lu->slab.first - HALO; y <= last + HALO; y++)
            for (int x = 0; x < lu->n && y >= 0 && y < lu->n; x++) {
                bool face = on_face(lu, x) || on_face(lu, y) || on_face(lu, z);
                out[row(lu, z, y) + (size_t)x] = at(lu, face ? lu_exact : inside, x, y, z);
            }
}

/* Add one direction's part to the points on a line of the slab. step: from one point to the next in u and out. */
static void add_line(struct lu_line line, const gas *u, size_t step, gas *out)
{
    gas points[LU_POINTS_MAX], sums[LU_POINTS_MAX] = {{{0}}};
    int end = line.to + HALO < line.n ? line.to + HALO : line.n;
    for (int i = line.first; i < end; i++)
        points[i - line.first] = u[(size_t)(i - line.first) * step];
    lu_line_add(&line, points, sums);
    for (int i = line.from; i < line.to; i++)
        for (int m = 0; m < LU_PARTS; m++)
            out[(size_t)(i - line.first) * step].part[m] += sums[i - line.from].part[m];
}

/* out += what the equations make of u, inside the cube. */
static void add_changes(const struct lu *lu, const gas *u, gas *out)
{
    int n = lu->n, first = lu->from - HALO > 0 ? lu->from - HALO : 0;
    struct lu_line x = {n, 0, 0, 1, n - 1}, y = {n, 1, first, lu->from, lu->to}, z = {n, 2, 0, 1, n - 1};
    size_t plane = row(lu, 1, 0) - row(lu, 0, 0);
    for (int a = 1; a < n - 1; a++) {
        for (int b = lu->from; b < lu->to; b++) {
            add_line(x, u + row(lu, a, b), 1, out + row(lu, a, b));
            add_line(z, u + row(lu, 0, b) + a, plane, out + row(lu, 0, b) + a);
        }
        for (int b = 1; b < n - 1 && lu->from < lu->to; b++)
            add_line(y, u + row(lu, a, first) + b, (size_t)n, out + row(lu, a, first) + b);
    }
}

static size_t points(const struct lu *lu)
{
    return (size_t)lu->n * (lu->slab.count + 2 * HALO) * (size_t)lu->n;
}

static void find_residual(struct lu *lu)
{
    memset(lu->residual, 0, points(lu) * sizeof(gas));
    add_changes(lu, lu->u, lu->residual);
    for (int z = 1; z < lu->n - 1; z++)
        for (int y = lu->from; y < lu->to; y++)
            for (size_t i = row(lu, z, y); i < row(lu, z, y) + (size_t)lu->n; i++)
                for (int m = 0; m < LU_PARTS; m++)
                    lu->residual[i].part[m] -= lu->right[i].part[m];
}

static bool has_below(const struct lu *lu)
{
    return lu->npb->rank > 0;
}

static bool has_above(const struct lu *lu)
{
    return lu->npb->rank < lu->npb->size - 1;
}

/* HALO rows of all planes, from y on, of the gas. */
static void put_gas(struct lu *lu, int rank, enum lane lane, int y)
{
    size_t piece = HALO * (size_t)lu->n * sizeof(gas);
    struct pieces pieces = {piece, (size_t)lu->n, (row(lu, 1, y) - row(lu, 0, y)) * sizeof(gas), piece};
    window_put_pieces(&lu->window, rank, lane, place(lu, lane, 0), lu->u + row(lu, 0, y), pieces);
}

static void take_gas(struct lu *lu, int rank, enum lane lane, int y)
{
    window_wait(&lu->window, lane, rank);
    for (int z = 0; z < lu->n; z++)
        memcpy(lu->u + row(lu, z, y), (const char *)lu->window.received + place(lu, lane, z),
               HALO * (size_t)lu->n * sizeof(gas));
}

/* What a neighbour has read of this rank's last put here it has said by its rows of the sweeps since then. */
static void exchange_gas(struct lu *lu)
{
    int rank = lu->npb->rank, end = (int)(lu->slab.first + lu->slab.count);
    if (has_below(lu))
        put_gas(lu, rank - 1, GAS_ABOVE, (int)lu->slab.first);
    if (has_above(lu))
        put_gas(lu, rank + 1, GAS_BELOW, end - HALO);
    if (has_below(lu))
        take_gas(lu, rank - 1, GAS_BELOW, (int)lu->slab.first - HALO);
    if (has_above(lu))
        take_gas(lu, rank + 1, GAS_ABOVE, end);
}

/* Rows of a sweep: each plane has its place, which is put again only after a sweep the other way has come back. */
static void put_row(struct lu *lu, int rank, enum lane lane, int z, int y)
{
    window_put(&lu->window, rank, lane, place(lu, lane, z), lu->residual + row(lu, z, y), (size_t)lu->n * sizeof(gas));
}

static void take_row(struct lu *lu, int rank, enum lane lane, int z, int y)
{
    window_wait(&lu->window, lane, rank);
    memcpy(lu->residual + row(lu, z, y), (const char *)lu->window.received + place(lu, lane, z),
           (size_t)lu->n * sizeof(gas));
}

/* What the three neighbours of a point that are on the side (-1: before it, 1: behind it) make of their residuals. */
static gas of_neighbours(const struct lu *lu, size_t i, int side)
{
    size_t step[] = {1, (size_t)lu->n, row(lu, 1, 0) - row(lu, 0, 0)};
    gas sum = {{0}};
    for (int d = 0; d < 3; d++) {
        size_t other = side < 0 ? i - step[d] : i + step[d];
        lu_neighbour_add(lu->n, lu->dt, d, side, &lu->u[other], &lu->residual[other], &sum);
    }
    for (int m = 0; m < LU_PARTS; m++)
        sum.part[m] *= RELAXATION;
    return sum;
}

static void sweep_up(struct lu *lu)
{
    for (int z = 1; z < lu->n - 1; z++) {
        if (has_below(lu))
            take_row(lu, lu->npb->rank - 1, SWEEP_UP, z, lu->from - 1);
        for (int y = lu->from; y < lu->to; y++)
            for (size_t i = row(lu, z, y) + 1; i < row(lu, z, y) + (size_t)lu->n - 1; i++) {
                gas right = lu->residual[i], sum = of_neighbours(lu, i, -1);
                for (int m = 0; m < LU_PARTS; m++)
                    right.part[m] = lu->dt * right.part[m] - sum.part[m];
                lu->residual[i] = lu_own_solve(lu->n, lu->dt, &lu->u[i], &right);
            }
        if (has_above(lu))
            put_row(lu, lu->npb->rank + 1, SWEEP_UP, z, lu->to - 1);
    }
}

static void sweep_down(struct lu *lu)
{
    for (int z = lu->n - 2; z > 0; z--) {
        if (has_above(lu))
            take_row(lu, lu->npb->rank + 1, SWEEP_DOWN, z, lu->to);
        for (int y = lu->to - 1; y >= lu->from; y--)
            for (size_t i = row(lu, z, y) + (size_t)lu->n - 2; i > row(lu, z, y); i--) {
                gas sum = of_neighbours(lu, i, 1), less = lu_own_solve(lu->n, lu->dt, &lu->u[i], &sum);
                for (int m = 0; m < LU_PARTS; m++)
                    lu->residual[i].part[m] -= less.part[m];
            }
        if (has_below(lu))
            put_row(lu, lu->npb->rank - 1, SWEEP_DOWN, z, lu->from);
    }
}

static void correct(struct lu *lu)
{
    for (int z = 1; z < lu->n - 1; z++)
        for (int y = lu->from; y < lu->to; y++)
            for (size_t i = row(lu, z, y) + 1; i < row(lu, z, y) + (size_t)lu->n - 1; i++)
                for (int m = 0; m < LU_PARTS; m++)
                    lu->u[i].part[m] += lu->residual[i].part[m] / (RELAXATION * (2 - RELAXATION));
}

/* Root mean squares over the inside of the cube of a - b, or of a. */
static void mean_squares(struct lu *lu, const gas *a, const gas *b, double out[LU_PARTS])
{
    memset(out, 0, LU_PARTS * sizeof *out);
    for (int z = 1; z < lu->n - 1; z++)
        for (int y = lu->from; y < lu->to; y++)
            for (size_t i = row(lu, z, y) + 1; i < row(lu, z, y) + (size_t)lu->n - 1; i++)
                for (int m = 0; m < LU_PARTS; m++) {
                    double x = a[i].part[m] - (b != NULL ? b[i].part[m] : 0);
                    out[m] += x * x;
                }
    npb_sum(lu->npb, out, LU_PARTS);
    for (int m = 0; m < LU_PARTS; m++)
        out[m] = sqrt(out[m] / pow(lu->n - 2, 3));
}

static double pressure(const struct lu *lu, int x, int y, int z)
{
    return lu_pressure(&lu->u[row(lu, z, y) + (size_t)x]);
}

/* Pressures at the corners of the squares that lie on a box inside the cube. */
static double surface(struct lu *lu)
{
    int n = lu->n, low_z = 2, high_x = n - 2, high_y = n - 3, high_z = n - 2;
    int first = (int)lu->slab.first, end = first + (int)lu->slab.count;
    double sum = 0;
    for (int y = first > 1 ? first : 1; y < end && y <= high_y; y++) {
        bool square = y < high_y, side = y == 1 || y == high_y;
        for (int x = 1; x < high_x && square; x++)
            for (int c = 0; c < 4; c++)
                sum += pressure(lu, x + c % 2, y + c / 2, low_z) + pressure(lu, x + c % 2, y + c / 2, high_z);
        for (int z = low_z; z < high_z && square; z++)
            for (int c = 0; c < 4; c++)
                sum += pressure(lu, 1, y + c % 2, z + c / 2) + pressure(lu, high_x, y + c % 2, z + c / 2);
        for (int z = low_z; z < high_z && side; z++)
            for (int x = 1; x < high_x; x++)
                for (int c = 0; c < 4; c++)
                    sum += pressure(lu, x + c % 2, y, z + c / 2);
    }
    npb_sum(lu->npb, &sum, 1);
    return 0.25 * sum / ((n - 1) * (n - 1));
}

static void prepare(struct npb *npb, struct lu *lu)
{
    int n = classes[npb->class].n;
    *lu = (struct lu){
        .npb = npb, .n = n, .dt = classes[npb->class].dt, .slab = share_of((size_t)n, npb->size, npb->rank)};
    int end = (int)(lu->slab.first + lu->slab.count);
    lu->from = has_below(lu) ? (int)lu->slab.first : 1;
    lu->to = has_above(lu) ? end : end - 1;
    lu->u = reserve(points(lu), sizeof(gas));
    lu->right = reserve(points(lu), sizeof(gas));
    lu->residual = reserve(points(lu), sizeof(gas));
    window_open(npb, LANES, place(lu, SWEEP_DOWN, n), &lu->window);
    fill(lu, lu_exact, lu->u);
    add_changes(lu, lu->u, lu->right);
    fill(lu, lu_start, lu->u);
}

static void discard(struct lu *lu)
{
    window_close(&lu->window);
    keel_local_free(lu->u);
    keel_local_free(lu->right);
    keel_local_free(lu->residual);
}

static bool fits(const struct npb *npb, struct npb_complaint *why)
{
    int most = classes[npb->class].n / HALO;
    return npb->size <= most || npb_complain(why, "class %c of LU has rows for at most %d ranks, not %d",
                                             npb_class_names[npb->class], most, npb->size);
}

static double operations(double n)
{
    return ((1984.77 * n - 10923.3) * n + 27770.9) * n - 144010;
}

static void verify(struct lu *lu, struct outcome *out)
{
    double residual[LU_PARTS], error[LU_PARTS];
    int class = lu->npb->class;
    mean_squares(lu, lu->residual, NULL, residual);
    double pressures = surface(lu);
    fill(lu, lu_exact, lu->right); /* which is not needed any more */
    mean_squares(lu, lu->u, lu->right, error);
    for (int m = 0; m < LU_PARTS; m++) {
        char name[16];
        snprintf(name, sizeof name, "residual %d", m + 1);
        outcome_add(out, name, residual[m], classes[class].residual[m], 1e-8);
        snprintf(name, sizeof name, "error %d", m + 1);
        outcome_add(out, name, error[m], classes[class].error[m], 1e-8);
    }
    outcome_add(out, "surface", pressures, classes[class].surface, 1e-8);
}

static void run(struct npb *npb, struct outcome *out)
{
    struct lu lu;
    prepare(npb, &lu);
    npb_start(npb);
    find_residual(&lu);
    for (int step = 0; step < classes[npb->class].steps; step++) {
        keel_timestep((uint64_t)step + 1);
        sweep_up(&lu);
        sweep_down(&lu);
        correct(&lu);
        exchange_gas(&lu);
        find_residual(&lu);
    }
    npb_stop(npb, out);
    snprintf(out->size, sizeof out->size, "%d x %d x %d", lu.n, lu.n, lu.n);
    out->iterations = classes[npb->class].steps;
    out->mops = 1e-6 * out->iterations * operations(lu.n) / out->seconds;
    verify(&lu, out);
    discard(&lu);
}

const struct npb_kernel npb_lu = {"lu", fits, run};
