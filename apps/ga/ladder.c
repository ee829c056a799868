/* The particle ladder of a coupled-cluster program in Global Arrays: R[abij] = sum over cd of V[abcd] T[cdij],
 * four-dimensional arrays in tiles, and new amplitudes T made of R, some times over. Small whole numbers, so that the
 * sums are exact in any order, and each process knows what must come out. Goes on when processes and nodes die. Exit 0
 * if every element is right.
 *
 *   ga-ladder [VIRTUAL [OCCUPIED [TILE [ITERATIONS]]]] */
#include <mpi.h>

#include <ga.h>
#include <macdecls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks.h"

struct work {
    int v, o, tile, tiles; /* orbitals, of a tile, tiles of virtual ones */
    struct ga_array integrals, amplitudes, residual;
    double *x, *y, *z; /* tiles */
    double *whole;     /* an array */
};

static double integral_of(size_t at)
{
    return (double)(at * 7 % 11) - 5;
}

static double first_amplitude(size_t at)
{
    return (double)(at * 3 % 7) - 3;
}

static double next_amplitude(double residual)
{
    return (double)(((long)residual % 7 + 7) % 7 - 3);
}

static void range_of(const struct work *w, int tile, int *lo, int *hi)
{
    *lo = tile * w->tile;
    *hi = *lo + w->tile <= w->v ? *lo + w->tile - 1 : w->v - 1;
}

/* One tile of integrals with all pairs of occupied orbitals. */
static void contract(void *work, long task)
{
    struct work *w = work;
    int lo[4], hi[4];
    for (int d = 3; d >= 0; d--, task /= w->tiles)
        range_of(w, (int)(task % w->tiles), &lo[d], &hi[d]);
    int t_lo[4] = {lo[2], lo[3], 0, 0}, t_hi[4] = {hi[2], hi[3], w->o - 1, w->o - 1};
    int r_lo[4] = {lo[0], lo[1], 0, 0}, r_hi[4] = {hi[0], hi[1], w->o - 1, w->o - 1};
    int ab = (hi[0] - lo[0] + 1) * (hi[1] - lo[1] + 1), cd = (hi[2] - lo[2] + 1) * (hi[3] - lo[3] + 1),
        ij = w->o * w->o;
    ga_array_get(&w->integrals, lo, hi, w->x);
    ga_array_get(&w->amplitudes, t_lo, t_hi, w->y);
    for (int p = 0; p < ab; p++)
        for (int r = 0; r < ij; r++) {
            double sum = 0;
            for (int q = 0; q < cd; q++)
                sum += w->x[p * cd + q] * w->y[q * ij + r];
            w->z[p * ij + r] = sum;
        }
    ga_array_add(&w->residual, r_lo, r_hi, w->z);
}

static void iterate(struct work *w, keel_taskpool *pool, int iterations)
{
    size_t n = ga_array_size(&w->residual), all = ga_array_size(&w->integrals);
    ga_phase(1);
    for (size_t i = 0; i < all; i++)
        w->whole[i] = integral_of(i);
    ga_array_write(&w->integrals, w->whole);
    for (size_t i = 0; i < n; i++)
        w->whole[i] = first_amplitude(i);
    ga_array_write(&w->amplitudes, w->whole);
    for (int round = 0; round < iterations; round++) {
        memset(w->whole, 0, n * sizeof *w->whole);
        ga_array_write(&w->residual, w->whole);
        GA_Sync();
        ga_phase(2 + round);
        if (round)
            ga_check(keel_taskpool_reset(pool));
        ga_tasks_run(pool, contract, w);
        GA_Sync();
        ga_array_read(&w->residual, w->whole);
        GA_Sync(); /* all have read it */
        for (size_t i = 0; i < n; i++)
            w->whole[i] = next_amplitude(w->whole[i]);
        ga_array_write(&w->amplitudes, w->whole);
    }
    GA_Sync();
    ga_phase(2 + iterations);
}

/* By one process alone, beside what the arrays hold. */
static long wrong_elements(struct work *w, int iterations)
{
    size_t n = ga_array_size(&w->residual), vv = (size_t)w->v * (size_t)w->v, oo = (size_t)w->o * (size_t)w->o;
    double *t = ga_memory(2 * n), *r = t + n;
    long wrong = 0;
    for (size_t i = 0; i < n; i++)
        t[i] = first_amplitude(i);
    for (int round = 0; round < iterations; round++) {
        memset(r, 0, n * sizeof *r);
        for (size_t p = 0; p < vv; p++)
            for (size_t q = 0; q < vv; q++)
                for (size_t k = 0; k < oo; k++)
                    r[p * oo + k] += integral_of(p * vv + q) * t[q * oo + k];
        for (size_t i = 0; i < n; i++)
            t[i] = next_amplitude(r[i]);
    }
    ga_array_read(&w->residual, w->whole);
    for (size_t i = 0; i < n; i++)
        wrong += w->whole[i] != r[i];
    ga_array_read(&w->amplitudes, w->whole);
    for (size_t i = 0; i < n; i++)
        wrong += w->whole[i] != t[i];
    free(t);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    keel_survive();
    MA_init(C_DBL, 400000, 400000);
    struct work w = {
        .v = argc > 1 ? atoi(argv[1]) : 9, .o = argc > 2 ? atoi(argv[2]) : 4, .tile = argc > 3 ? atoi(argv[3]) : 3};
    int iterations = argc > 4 ? atoi(argv[4]) : 2;
    if (w.v < 1 || w.v > 40 || w.o < 1 || w.o > 20 || w.tile < 1 || iterations < 1)
        GA_Error("usage: ga-ladder [VIRTUAL [OCCUPIED [TILE [ITERATIONS]]]]", 1);
    w.tiles = (w.v + w.tile - 1) / w.tile;
    int v4[4] = {w.v, w.v, w.v, w.v}, t4[4] = {w.v, w.v, w.o, w.o};
    w.integrals = ga_array_create("integrals", 4, v4);
    w.amplitudes = ga_array_create("amplitudes", 4, t4);
    w.residual = ga_array_create("residual", 4, t4);
    size_t t2 = (size_t)w.tile * (size_t)w.tile, oo = (size_t)w.o * (size_t)w.o;
    size_t n = ga_array_size(&w.residual), all = ga_array_size(&w.integrals);
    double *memory = ga_memory(t2 * t2 + 2 * t2 * oo + (all > n ? all : n));
    w.x = memory;
    w.y = w.x + t2 * t2;
    w.z = w.y + t2 * oo;
    w.whole = w.z + t2 * oo;
    keel_taskpool *pool;
    ga_check(keel_taskpool_create((int64_t)w.tiles * w.tiles * w.tiles * w.tiles, &pool));
    iterate(&w, pool, iterations);
    long wrong = wrong_elements(&w, iterations);
    printf("ga-ladder: rank %d of %d, %ld wrong elements\n", GA_Nodeid(), GA_Nnodes(), wrong);
    fflush(stdout);
    ga_check(keel_taskpool_free(pool));
    free(memory);
    GA_Destroy(w.residual.handle);
    GA_Destroy(w.amplitudes.handle);
    GA_Destroy(w.integrals.handle);
    GA_Terminate();
    MPI_Finalize();
    return wrong != 0;
}
