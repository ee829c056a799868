#include "apps/scf/oneint.h"

#include <math.h>
#include <string.h>

/* 1-D overlaps s[axis][i][j] of two primitives, for powers up to la and lb. */
typedef double overlaps_1d[3][HERMITE_1D_MAX + 1][HERMITE_1D_MAX + 1];

static void primitive_overlaps(const struct shell *a, const struct shell *b, double alpha, double beta, int lb,
                               overlaps_1d out)
{
    double p = alpha + beta;
    for (int x = 0; x < 3; x++) {
        hermite_1d e;
        double ab = a->r[x] - b->r[x], centre = (alpha * a->r[x] + beta * b->r[x]) / p;
        double e0 = exp(-alpha * beta / p * ab * ab) * sqrt(M_PI / p);
        hermite_expand(a->l, lb, centre - a->r[x], centre - b->r[x], p, e0, e);
        for (int i = 0; i <= a->l; i++)
            for (int j = 0; j <= lb; j++)
                out[x][i][j] = e[i][j][0];
    }
}

static double overlap_of(overlaps_1d s, double beta, const int i[3], const int j[3])
{
    (void)beta; /* the kinetic part needs it */
    return s[0][i[0]][j[0]] * s[1][i[1]][j[1]] * s[2][i[2]][j[2]];
}

/* -1/2 d^2/dx^2 lowers and raises the power of the second function by two. */
static double kinetic_1d(double s[HERMITE_1D_MAX + 1][HERMITE_1D_MAX + 1], double beta, int i, int j)
{
    double lower = j >= 2 ? j * (j - 1) * s[i][j - 2] : 0;
    return -0.5 * lower + beta * (2 * j + 1) * s[i][j] - 2 * beta * beta * s[i][j + 2];
}

static double kinetic_of(overlaps_1d s, double beta, const int i[3], const int j[3])
{
    double sx = s[0][i[0]][j[0]], sy = s[1][i[1]][j[1]], sz = s[2][i[2]][j[2]];
    return kinetic_1d(s[0], beta, i[0], j[0]) * sy * sz + sx * kinetic_1d(s[1], beta, i[1], j[1]) * sz +
           sx * sy * kinetic_1d(s[2], beta, i[2], j[2]);
}

typedef double integral_of(overlaps_1d s, double beta, const int i[3], const int j[3]);

static void shell_block(const struct basis *basis, int sa, int sb, int raise, integral_of *integral, double *out)
{
    const struct shell *a = &basis->shells[sa], *b = &basis->shells[sb];
    int n = basis->nfunctions;
    for (int pa = 0; pa < a->nprimitives; pa++)
        for (int pb = 0; pb < b->nprimitives; pb++) {
            overlaps_1d s;
            primitive_overlaps(a, b, a->exponents[pa], b->exponents[pb], b->l + raise, s);
            double c = a->coefficients[pa] * b->coefficients[pb];
            for (int ia = 0; ia < shell_functions(a->l); ia++)
                for (int ib = 0; ib < shell_functions(b->l); ib++) {
                    int i[3], j[3];
                    shell_powers(a->l, ia, i);
                    shell_powers(b->l, ib, j);
                    out[(a->first + ia) * n + b->first + ib] += c * integral(s, b->exponents[pb], i, j);
                }
        }
}

static void mirror(int n, double *matrix)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            matrix[j * n + i] = matrix[i * n + j];
}

static void all_blocks(const struct basis *basis, int raise, integral_of *integral, double *out)
{
    memset(out, 0, (size_t)basis->nfunctions * (size_t)basis->nfunctions * sizeof *out);
    for (int a = 0; a < basis->nshells; a++)
        for (int b = 0; b <= a; b++)
            shell_block(basis, a, b, raise, integral, out);
    mirror(basis->nfunctions, out);
}

void oneint_overlap(const struct basis *basis, double *out)
{
    all_blocks(basis, 0, overlap_of, out);
}

void oneint_kinetic(const struct basis *basis, double *out)
{
    all_blocks(basis, 2, kinetic_of, out);
}

void oneint_nuclear(const struct basis *basis, const struct pairs *pairs, const struct molecule *molecule, double *out)
{
    int n = basis->nfunctions;
    memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
    for (int i = 0; i < pairs->count; i++) {
        const struct pair *pair = &pairs->list[i];
        const struct hermite_product *product = pair->product;
        const struct shell *a = &basis->shells[pair->a], *b = &basis->shells[pair->b];
        int nb = shell_functions(product->lb);
        for (int k = 0; k < pair->nprimitives; k++) {
            const struct primitive_pair *pp = &pair->primitives[k];
            double sum[HERMITE_PAIR_COUNT] = {0}, r[HERMITE_COUNT];
            for (int c = 0; c < molecule->natoms; c++) {
                const struct atom *atom = &molecule->atoms[c];
                double d[3] = {pp->r[0] - atom->r[0], pp->r[1] - atom->r[1], pp->r[2] - atom->r[2]};
                hermite_integrals(product->la + product->lb, pp->p, d, -2 * M_PI / pp->p * atom->z, r);
                for (int t = 0; t < product->norders; t++)
                    sum[t] += r[t];
            }
            for (int ab = 0; ab < product->nproducts; ab++)
                for (int t = product->start[ab]; t < product->start[ab + 1]; t++)
                    out[(a->first + ab / nb) * n + b->first + ab % nb] += pp->terms[t] * sum[product->order[t]];
        }
    }
    mirror(n, out);
}
