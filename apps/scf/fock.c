#include "apps/scf/fock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/scf/eri.h"

/* What a pair costs in a quartet, up to a factor: primitives, and a share for each function and term. */
static double pair_cost(const struct pair *pair)
{
    return pair->nprimitives * (2.0 + pair->product->nproducts + 0.25 * pair->product->nterms);
}

struct ranked {
    int number;
    double schwarz;
};

static int by_falling_schwarz(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->schwarz != y->schwarz)
        return x->schwarz < y->schwarz ? 1 : -1;
    return x->number < y->number ? -1 : 1;
}

static void rank_pairs(const struct pairs *pairs, double screening, struct fock_plan *out)
{
    struct ranked *ranked = calloc((size_t)pairs->count, sizeof *ranked);
    double largest = 0;
    for (int i = 0; i < pairs->count; i++)
        largest = fmax(largest, pairs->list[i].schwarz);
    for (int i = 0; i < pairs->count; i++)
        /* a density element is rarely above 2; 1 % of the screening leaves room */
        if (pairs->list[i].schwarz * largest > 0.01 * screening)
            ranked[out->npairs++] = (struct ranked){i, pairs->list[i].schwarz};
    qsort(ranked, (size_t)out->npairs, sizeof *ranked, by_falling_schwarz);
    out->pairs = calloc((size_t)out->npairs, sizeof *out->pairs);
    for (int i = 0; i < out->npairs; i++)
        out->pairs[i] = ranked[i].number;
    free(ranked);
}

/* The last pairs meet the most others: task 0 gets the end of the list, the next what is before it, and so on. */
void fock_plan_make(const struct pairs *pairs, double screening, struct fock_plan *out)
{
    *out = (struct fock_plan){0};
    rank_pairs(pairs, screening, out);
    double *cost = calloc((size_t)out->npairs + 1, sizeof *cost), before = 0, total = 0;
    for (int i = 0; i < out->npairs; i++) {
        double own = pair_cost(&pairs->list[out->pairs[i]]);
        before += own;
        cost[i] = own * before;
        total += cost[i];
    }
    out->start = calloc((size_t)out->npairs + 1, sizeof *out->start);
    out->start[0] = out->npairs;
    double sum = 0;
    for (int i = out->npairs - 1; i >= 0; i--) {
        sum += cost[i];
        if (sum >= total / FOCK_TASKS_WANTED || i == 0) {
            out->start[++out->ntasks] = i;
            sum = 0;
        }
    }
    free(cost);
}

void fock_plan_fini(struct fock_plan *plan)
{
    free(plan->pairs);
    free(plan->start);
    *plan = (struct fock_plan){0};
}

void fock_block_maxima(const struct basis *basis, const double *density, double *out)
{
    int n = basis->nfunctions;
    for (int a = 0; a < basis->nshells; a++)
        for (int b = 0; b < basis->nshells; b++) {
            const struct shell *sa = &basis->shells[a], *sb = &basis->shells[b];
            double largest = 0;
            for (int i = 0; i < shell_functions(sa->l); i++)
                for (int j = 0; j < shell_functions(sb->l); j++)
                    largest = fmax(largest, fabs(density[(sa->first + i) * n + sb->first + j]));
            out[a * basis->nshells + b] = largest;
        }
}

static double largest_met(const struct pair *ij, const struct pair *kl, int nshells, const double *maxima)
{
    const double *row_a = maxima + ij->a * nshells, *row_b = maxima + ij->b * nshells;
    double coulomb = fmax(row_a[ij->b], maxima[kl->a * nshells + kl->b]);
    double exchange = fmax(fmax(row_a[kl->a], row_a[kl->b]), fmax(row_b[kl->a], row_b[kl->b]));
    return fmax(coulomb, 0.25 * exchange);
}

/* Spread one block of integrals over the six density elements each of them meets. */
static void digest(const struct basis *basis, const struct pair *bra, const struct pair *ket, const double *block,
                   const double *d, double *g)
{
    const struct shell *sa = &basis->shells[bra->a], *sb = &basis->shells[bra->b];
    const struct shell *sc = &basis->shells[ket->a], *sd = &basis->shells[ket->b];
    size_t n = (size_t)basis->nfunctions;
    double degeneracy = (bra->a == bra->b ? 1 : 2) * (ket->a == ket->b ? 1 : 2) * (bra == ket ? 1 : 2) * 0.5;
    for (int ia = 0; ia < shell_functions(sa->l); ia++)
        for (int ib = 0; ib < shell_functions(sb->l); ib++)
            for (int ic = 0; ic < shell_functions(sc->l); ic++)
                for (int id = 0; id < shell_functions(sd->l); id++) {
                    double v = *block++ * degeneracy, x = 0.25 * v;
                    size_t a = (size_t)(sa->first + ia), b = (size_t)(sb->first + ib);
                    size_t c = (size_t)(sc->first + ic), e = (size_t)(sd->first + id);
                    g[a * n + b] += v * d[c * n + e];
                    g[c * n + e] += v * d[a * n + b];
                    g[a * n + c] -= x * d[b * n + e];
                    g[b * n + e] -= x * d[a * n + c];
                    g[a * n + e] -= x * d[b * n + c];
                    g[b * n + c] -= x * d[a * n + e];
                }
}

void fock_task(const struct basis *basis, const struct pairs *pairs, const struct fock_plan *plan, double screening,
               const double *density, const double *maxima, int task, double *g)
{
    double block[PAIR_FUNCTIONS_MAX * PAIR_FUNCTIONS_MAX];
    for (int i = plan->start[task + 1]; i < plan->start[task]; i++)
        for (int j = 0; j <= i; j++) {
            const struct pair *ij = &pairs->list[plan->pairs[i]], *kl = &pairs->list[plan->pairs[j]];
            if (ij->schwarz * kl->schwarz * largest_met(ij, kl, basis->nshells, maxima) < screening)
                continue;
            /* the side with the higher angular momentum as bra is the cheaper order */
            bool swap = kl->product->norders > ij->product->norders;
            const struct pair *bra = swap ? kl : ij, *ket = swap ? ij : kl;
            eri_quartet(bra, ket, block);
            digest(basis, bra, ket, block, density, g);
        }
}
