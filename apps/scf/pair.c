#include "apps/scf/pair.h"

#include <math.h>
#include <stdlib.h>

#include "apps/scf/eri.h"

/* A pair of primitives whose terms are smaller than this in every integral is left out. */
static const double negligible = 1e-18;

static void expand(const struct shell *a, const struct shell *b, double alpha, double beta, const double *r,
                   double factor, hermite_1d e[3])
{
    double p = alpha + beta;
    for (int x = 0; x < 3; x++) {
        double ab = a->r[x] - b->r[x];
        double e0 = exp(-alpha * beta / p * ab * ab) * (x == 0 ? factor : 1);
        hermite_expand(a->l, b->l, r[x] - a->r[x], r[x] - b->r[x], p, e0, e[x]);
    }
}

/* Writes the terms and the signed terms; returns the bound. An R of degree n is of the size (2 alpha)^(n/2) with alpha
 * below p, and the quartet's prefactor has 1/p for each side. */
static double write_terms(const struct hermite_product *product, hermite_1d e[3], double p, double *terms,
                          double *signed_terms)
{
    int nb = shell_functions(product->lb);
    double bound = 0;
    for (int ab = 0; ab < product->nproducts; ab++) {
        int i[3], j[3];
        shell_powers(product->la, ab / nb, i);
        shell_powers(product->lb, ab % nb, j);
        double sum = 0;
        for (int k = product->start[ab]; k < product->start[ab + 1]; k++) {
            int tuv[3];
            hermite_powers(product->order[k], tuv);
            double term = e[0][i[0]][j[0]][tuv[0]] * e[1][i[1]][j[1]][tuv[1]] * e[2][i[2]][j[2]][tuv[2]];
            int degree = tuv[0] + tuv[1] + tuv[2];
            terms[k] = term;
            signed_terms[k] = degree % 2 == 0 ? term : -term;
            sum += fabs(term) * pow(2 * p, 0.5 * degree);
        }
        bound = fmax(bound, sum);
    }
    return bound / p;
}

void pair_build(const struct basis *basis, int a, int b, struct pair *out)
{
    const struct shell *sa = &basis->shells[a], *sb = &basis->shells[b];
    const struct hermite_product *product = hermite_product(sa->l, sb->l);
    size_t most = (size_t)sa->nprimitives * (size_t)sb->nprimitives, nterms = (size_t)product->nterms;
    *out = (struct pair){.a = a, .b = b, .product = product};
    out->primitives = calloc(most, sizeof *out->primitives);
    out->storage = calloc(most * 2 * nterms, sizeof *out->storage);
    for (int i = 0; i < sa->nprimitives; i++)
        for (int j = 0; j < sb->nprimitives; j++) {
            struct primitive_pair *pp = &out->primitives[out->nprimitives];
            double alpha = sa->exponents[i], beta = sb->exponents[j];
            double *terms = out->storage + (size_t)out->nprimitives * 2 * nterms;
            hermite_1d e[3];
            pp->p = alpha + beta;
            for (int x = 0; x < 3; x++)
                pp->r[x] = (alpha * sa->r[x] + beta * sb->r[x]) / pp->p;
            expand(sa, sb, alpha, beta, pp->r, sa->coefficients[i] * sb->coefficients[j], e);
            pp->terms = terms;
            pp->signed_terms = terms + nterms;
            pp->bound = write_terms(product, e, pp->p, terms, terms + nterms);
            if (pp->bound > negligible)
                out->nprimitives++;
        }
}

void pair_fini(struct pair *pair)
{
    free(pair->primitives);
    free(pair->storage);
    *pair = (struct pair){0};
}

static double schwarz_bound(const struct pair *pair)
{
    double block[PAIR_FUNCTIONS_MAX * PAIR_FUNCTIONS_MAX], largest = 0;
    int n = pair->product->nproducts;
    eri_quartet(pair, pair, block);
    for (int ab = 0; ab < n; ab++)
        largest = fmax(largest, fabs(block[ab * n + ab]));
    return sqrt(largest);
}

void pairs_build(const struct basis *basis, struct pairs *out)
{
    *out = (struct pairs){0};
    out->list = calloc((size_t)basis->nshells * ((size_t)basis->nshells + 1) / 2, sizeof *out->list);
    for (int a = 0; a < basis->nshells; a++)
        for (int b = 0; b <= a; b++) {
            struct pair *pair = &out->list[out->count++];
            pair_build(basis, a, b, pair);
            pair->schwarz = schwarz_bound(pair);
        }
}

void pairs_fini(struct pairs *pairs)
{
    for (int i = 0; i < pairs->count; i++)
        pair_fini(&pairs->list[i]);
    free(pairs->list);
    *pairs = (struct pairs){0};
}
