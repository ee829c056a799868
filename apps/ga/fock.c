/* Fock matrices in Global Arrays, as in a Hartree-Fock program: in each iteration F = H + 2 J(D) - K(D) is built of
 * integrals that nobody stores, then a new density is made of F. Integrals and densities are small whole numbers, so
 * that the sums are exact in any order, and each process knows what must come out. Goes on when processes and nodes
 * die. Exit 0 if every element is right.
 *
 *   ga-fock [N [BLOCK [ITERATIONS]]] */
#include <mpi.h>

#include <ga.h>
#include <macdecls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks.h"

struct work {
    int n, size, side; /* functions, of a block, blocks in a row */
    struct ga_array density, fock;
    double *d_kl, *d_jl, *f_ij, *f_ik; /* blocks */
    double *whole;                     /* a matrix */
};

/* (ij|kl), with the symmetries that integrals have. */
static double integral(int i, int j, int k, int l)
{
    return 1 + ((i + j) * (k + l) + i * j + k * l) % 7;
}

static double core(int i, int j)
{
    return (i + j) % 5 - 2;
}

static double density_of(double fock)
{
    return (double)(((long)fock % 5 + 5) % 5 - 1);
}

static void range_of(const struct work *w, int block, int *lo, int *hi)
{
    *lo = block * w->size;
    *hi = *lo + w->size <= w->n ? *lo + w->size - 1 : w->n - 1;
}

/* The integrals of four blocks, computed once: they add to two blocks of F. */
static void quartet(void *work, long task)
{
    struct work *w = work;
    int lo[4], hi[4];
    for (int d = 3; d >= 0; d--, task /= w->side)
        range_of(w, (int)(task % w->side), &lo[d], &hi[d]);
    int nj = hi[1] - lo[1] + 1, nk = hi[2] - lo[2] + 1, nl = hi[3] - lo[3] + 1;
    int kl_lo[2] = {lo[2], lo[3]}, kl_hi[2] = {hi[2], hi[3]}, jl_lo[2] = {lo[1], lo[3]}, jl_hi[2] = {hi[1], hi[3]};
    int ij_lo[2] = {lo[0], lo[1]}, ij_hi[2] = {hi[0], hi[1]}, ik_lo[2] = {lo[0], lo[2]}, ik_hi[2] = {hi[0], hi[2]};
    size_t block = (size_t)w->size * (size_t)w->size * sizeof(double);
    ga_array_get(&w->density, kl_lo, kl_hi, w->d_kl);
    ga_array_get(&w->density, jl_lo, jl_hi, w->d_jl);
    memset(w->f_ij, 0, block);
    memset(w->f_ik, 0, block);
    for (int i = 0; i <= hi[0] - lo[0]; i++)
        for (int j = 0; j < nj; j++)
            for (int k = 0; k < nk; k++)
                for (int l = 0; l < nl; l++) {
                    double v = integral(lo[0] + i, lo[1] + j, lo[2] + k, lo[3] + l);
                    w->f_ij[i * nj + j] += 2 * v * w->d_kl[k * nl + l];
                    w->f_ik[i * nk + k] -= v * w->d_jl[j * nl + l];
                }
    ga_array_add(&w->fock, ij_lo, ij_hi, w->f_ij);
    ga_array_add(&w->fock, ik_lo, ik_hi, w->f_ik);
}

/* By one process alone. */
static void expected(int n, int iterations, double *d, double *f)
{
    for (int i = 0; i < n * n; i++)
        d[i] = density_of(core(i / n, i % n));
    for (int round = 0; round < iterations; round++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double sum = core(i, j);
                for (int k = 0; k < n; k++)
                    for (int l = 0; l < n; l++)
                        sum += (2 * integral(i, j, k, l) - integral(i, k, j, l)) * d[k * n + l];
                f[i * n + j] = sum;
            }
        for (int i = 0; i < n * n; i++)
            d[i] = density_of(f[i]);
    }
}

static void iterate(struct work *w, keel_taskpool *pool, int iterations)
{
    size_t n = ga_array_size(&w->fock);
    for (size_t i = 0; i < n; i++)
        w->whole[i] = density_of(core((int)i / w->n, (int)i % w->n));
    ga_phase(1);
    ga_array_write(&w->density, w->whole);
    for (int round = 0; round < iterations; round++) {
        for (size_t i = 0; i < n; i++)
            w->whole[i] = core((int)i / w->n, (int)i % w->n);
        ga_array_write(&w->fock, w->whole);
        GA_Sync();
        ga_phase(2 + round);
        if (round)
            ga_check(keel_taskpool_reset(pool));
        ga_tasks_run(pool, quartet, w);
        GA_Sync();
        ga_array_read(&w->fock, w->whole);
        GA_Sync(); /* all have read it */
        for (size_t i = 0; i < n; i++)
            w->whole[i] = density_of(w->whole[i]);
        ga_array_write(&w->density, w->whole);
    }
    GA_Sync();
    ga_phase(2 + iterations);
}

static long wrong_elements(struct work *w, int iterations)
{
    size_t n = ga_array_size(&w->fock);
    double *d = ga_memory(2 * n), *f = d + n;
    long wrong = 0;
    expected(w->n, iterations, d, f);
    ga_array_read(&w->fock, w->whole);
    for (size_t i = 0; i < n; i++)
        wrong += w->whole[i] != f[i];
    ga_array_read(&w->density, w->whole);
    for (size_t i = 0; i < n; i++)
        wrong += w->whole[i] != d[i];
    free(d);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    keel_survive();
    MA_init(C_DBL, 200000, 200000);
    struct work w = {.n = argc > 1 ? atoi(argv[1]) : 12, .size = argc > 2 ? atoi(argv[2]) : 4};
    int iterations = argc > 3 ? atoi(argv[3]) : 2;
    if (w.n < 1 || w.size < 1 || w.n > 200 || iterations < 1)
        GA_Error("usage: ga-fock [N [BLOCK [ITERATIONS]]]", 1);
    w.side = (w.n + w.size - 1) / w.size;
    int dims[2] = {w.n, w.n};
    size_t block = (size_t)w.size * (size_t)w.size, all = (size_t)w.n * (size_t)w.n;
    double *memory = ga_memory(4 * block + all);
    w.d_kl = memory;
    w.d_jl = memory + block;
    w.f_ij = memory + 2 * block;
    w.f_ik = memory + 3 * block;
    w.whole = memory + 4 * block;
    w.density = ga_array_create("density", 2, dims);
    w.fock = ga_array_create("fock", 2, dims);
    keel_taskpool *pool;
    ga_check(keel_taskpool_create((int64_t)w.side * w.side * w.side * w.side, &pool));
    iterate(&w, pool, iterations);
    long wrong = wrong_elements(&w, iterations);
    printf("ga-fock: rank %d of %d, %ld wrong elements\n", GA_Nodeid(), GA_Nnodes(), wrong);
    fflush(stdout);
    ga_check(keel_taskpool_free(pool));
    free(memory);
    GA_Destroy(w.fock.handle);
    GA_Destroy(w.density.handle);
    GA_Terminate();
    MPI_Finalize();
    return wrong != 0;
}
