/* CG: the smallest eigenvalue of a sparse symmetric matrix by inverse power iteration, each step of which is 25
 * steps of the conjugate gradient method. A rank has a run of rows, and puts its part of each vector that is
 * multiplied to all. */
#include "apps/npb/cg_matrix.h"
#include "apps/npb/kernel.h"
#include "apps/npb/window.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OUTER = 15, INNER = 25 };

static const struct {
    int n, nonzeros;
    double shift, zeta;
} classes[CLASSES] = {[CLASS_S] = {1400, 7, 10, 8.5971775078648},
                      [CLASS_W] = {7000, 8, 12, 10.362595087124},
                      [CLASS_A] = {14000, 11, 20, 17.130235054029}};

struct cg {
    struct npb *npb;
    struct share mine; /* rows */
    struct cg_matrix matrix;
    struct window window;      /* a whole vector, of which lane r brings what rank r has */
    double *x, *z, *r, *p, *q; /* this rank's rows of vectors */
};

/* out = A v, this rank's rows. All put v to all; the sum that follows each product keeps the next v away until this
 * one was read. */
static void multiply(struct cg *cg, const double *v, double *out)
{
    const double *whole = cg->window.received;
    for (int i = 0; i < cg->npb->size; i++) /* each begins with another one */
        window_put(&cg->window, (cg->npb->rank + i) % cg->npb->size, cg->npb->rank, cg->mine.first * sizeof *v, v,
                   cg->mine.count * sizeof *v);
    window_wait_all(&cg->window);
    cg_matrix_multiply(&cg->matrix, whole, out);
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double dot_all(struct cg *cg, const double *a, const double *b)
{
    double sum = dot(a, b, cg->mine.count);
    npb_sum(cg->npb, &sum, 1);
    return sum;
}

/* Solve A z = x as well as 25 steps can; the length of what is left, |x - A z|. */
static double solve(struct cg *cg)
{
    size_t n = cg->mine.count;
    double *z = cg->z, *r = cg->r, *p = cg->p, *q = cg->q;
    memset(z, 0, n * sizeof *z);
    memcpy(r, cg->x, n * sizeof *r);
    memcpy(p, cg->x, n * sizeof *p);
    double rho = dot_all(cg, r, r);
    for (int step = 0; step < INNER; step++) {
        multiply(cg, p, q);
        double alpha = rho / dot_all(cg, p, q);
        for (size_t i = 0; i < n; i++) {
            z[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        double before = rho;
        rho = dot_all(cg, r, r);
        for (size_t i = 0; i < n; i++)
            p[i] = r[i] + rho / before * p[i];
    }
    multiply(cg, z, q);
    for (size_t i = 0; i < n; i++)
        q[i] = cg->x[i] - q[i];
    return sqrt(dot_all(cg, q, q));
}

/* One step of the inverse iteration: x becomes z / |z|; the estimate of the eigenvalue. */
static double improve(struct cg *cg, double shift)
{
    size_t n = cg->mine.count;
    (void)solve(cg);
    double sums[2] = {dot(cg->x, cg->z, n), dot(cg->z, cg->z, n)};
    npb_sum(cg->npb, sums, 2);
    for (size_t i = 0; i < n; i++)
        cg->x[i] = cg->z[i] / sqrt(sums[1]);
    return shift + 1 / sums[0];
}

static void start_with_ones(struct cg *cg)
{
    for (size_t i = 0; i < cg->mine.count; i++)
        cg->x[i] = 1;
}

static void prepare(struct npb *npb, struct cg *cg)
{
    size_t n = (size_t)classes[npb->class].n;
    *cg = (struct cg){.npb = npb, .mine = share_of(n, npb->size, npb->rank)};
    cg_matrix_create(classes[npb->class].n, classes[npb->class].nonzeros, classes[npb->class].shift, cg->mine,
                     &cg->matrix);
    window_open(npb, npb->size, n * sizeof(double), &cg->window);
    double **vectors[] = {&cg->x, &cg->z, &cg->r, &cg->p, &cg->q};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        *vectors[i] = reserve(cg->mine.count, sizeof(double));
}

static void discard(struct cg *cg)
{
    double *vectors[] = {cg->x, cg->z, cg->r, cg->p, cg->q};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        keel_local_free(vectors[i]);
    window_close(&cg->window);
    cg_matrix_destroy(&cg->matrix);
}

static bool fits(const struct npb *npb, struct npb_complaint *why)
{
    return npb->size <= classes[npb->class].n ||
           npb_complain(why, "class %c of CG has %d rows: not for %d ranks", npb_class_names[npb->class],
                        classes[npb->class].n, npb->size);
}

/* The specification's count of operations, per row. */
static double operations(double nonzeros)
{
    double row = nonzeros * (nonzeros + 1);
    return 2 * OUTER * (3 + row + INNER * (5 + row) + 3);
}

static void run(struct npb *npb, struct outcome *out)
{
    struct cg cg;
    double zeta = 0;
    prepare(npb, &cg);
    start_with_ones(&cg);
    (void)improve(&cg, classes[npb->class].shift); /* one step whose time does not count */
    start_with_ones(&cg);
    npb_start(npb);
    for (int step = 0; step < OUTER; step++) {
        keel_timestep((uint64_t)step + 1);
        zeta = improve(&cg, classes[npb->class].shift);
    }
    npb_stop(npb, out);
    discard(&cg);

    snprintf(out->size, sizeof out->size, "%d rows", classes[npb->class].n);
    out->iterations = OUTER;
    out->mops = 1e-6 * classes[npb->class].n * operations(classes[npb->class].nonzeros) / out->seconds;
    outcome_add(out, "zeta", zeta, classes[npb->class].zeta, 1e-10);
}

const struct npb_kernel npb_cg = {"cg", fits, run};
