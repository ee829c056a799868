/* (ab|cd) = sum over primitives of 2 pi^(5/2) / (p q sqrt(p + q)) sum_tuv E^ab_tuv sum_TUV (-1)^(T+U+V) E^cd_TUV
 * R_(t+T,u+U,v+V). The ket's sum goes first, into h[tuv][cd], which collects all ket primitives, so that the bra's sum,
 * which grows with the square of the number of functions, is done once per bra primitive. */
#include "apps/scf/eri.h"

#include <math.h>
#include <string.h>

#include "apps/scf/boys.h"

static const double negligible = 1e-16;
static const double two_pi_52 = 34.986836655249725; /* 2 pi^(5/2) */

/* h[tuv][cd] += sum_TUV E^cd_TUV R_(tuv+TUV) */
static void ket_sum(const struct hermite_product *ket, const double *terms, int norders, const double *r, double *h)
{
    for (int tuv = 0; tuv < norders; tuv++) {
        const uint8_t *sums = hermite_sums(tuv);
        double *row = h + tuv * ket->nproducts;
        for (int cd = 0; cd < ket->nproducts; cd++) {
            double sum = 0;
            for (int k = ket->start[cd]; k < ket->start[cd + 1]; k++)
                sum += terms[k] * r[sums[ket->order[k]]];
            row[cd] += sum;
        }
    }
}

static void bra_sum(const struct hermite_product *bra, const double *terms, int nket, const double *h, double *out)
{
    for (int ab = 0; ab < bra->nproducts; ab++)
        for (int k = bra->start[ab]; k < bra->start[ab + 1]; k++) {
            const double *row = h + bra->order[k] * nket;
            double term = terms[k];
            for (int cd = 0; cd < nket; cd++)
                out[ab * nket + cd] += term * row[cd];
        }
}

/* All four shells are s: no recursion, no tables. */
static double eri_ssss(const struct pair *bra, const struct pair *ket)
{
    double sum = 0;
    for (int i = 0; i < bra->nprimitives; i++) {
        const struct primitive_pair *b = &bra->primitives[i];
        for (int j = 0; j < ket->nprimitives; j++) {
            const struct primitive_pair *k = &ket->primitives[j];
            double total = 1 / (b->p + k->p);
            double scale = two_pi_52 * sqrt(total);
            if (b->bound * k->bound * scale < negligible)
                continue;
            double x = b->r[0] - k->r[0], y = b->r[1] - k->r[1], z = b->r[2] - k->r[2], f;
            boys(0, b->p * k->p * total * (x * x + y * y + z * z), &f);
            sum += scale / (b->p * k->p) * b->terms[0] * k->terms[0] * f;
        }
    }
    return sum;
}

void eri_quartet(const struct pair *bra, const struct pair *ket, double *out)
{
    const struct hermite_product *bp = bra->product, *kp = ket->product;
    int lbra = bp->la + bp->lb, l = lbra + kp->la + kp->lb;
    if (l == 0) {
        out[0] = eri_ssss(bra, ket);
        return;
    }
    double r[HERMITE_COUNT], h[HERMITE_PAIR_COUNT * PAIR_FUNCTIONS_MAX];
    memset(out, 0, (size_t)(bp->nproducts * kp->nproducts) * sizeof *out);
    for (int i = 0; i < bra->nprimitives; i++) {
        const struct primitive_pair *b = &bra->primitives[i];
        bool any = false;
        for (int j = 0; j < ket->nprimitives; j++) {
            const struct primitive_pair *k = &ket->primitives[j];
            double total = 1 / (b->p + k->p), scale = two_pi_52 * sqrt(total);
            if (b->bound * k->bound * scale < negligible)
                continue;
            double d[3] = {b->r[0] - k->r[0], b->r[1] - k->r[1], b->r[2] - k->r[2]};
            if (!any)
                memset(h, 0, (size_t)(bp->norders * kp->nproducts) * sizeof *h);
            any = true;
            hermite_integrals(l, b->p * k->p * total, d, scale / (b->p * k->p), r);
            ket_sum(kp, k->signed_terms, bp->norders, r, h);
        }
        if (any)
            bra_sum(bp, b->terms, kp->nproducts, h, out);
    }
}
