/* Shell pairs: the product of two contracted shells as a sum of Hermite Gaussians, one set of terms for each pair of
 * primitives that matters. Made once for a geometry; all integrals are built on them. */
#ifndef KEEL_SCF_PAIR_H
#define KEEL_SCF_PAIR_H

#include "apps/scf/basis.h"
#include "apps/scf/hermite.h"

struct primitive_pair {
    double p;                   /* sum of the exponents */
    double r[3];                /* centre of the product, bohr */
    double bound;               /* of the size of its terms; products of two of them tell whether a quartet matters */
    const double *terms;        /* [product->nterms], contraction coefficients included */
    const double *signed_terms; /* the same times (-1)^(t+u+v), for the ket side */
};

struct pair {
    int a, b; /* shells, a >= b */
    const struct hermite_product *product;
    int nprimitives; /* 0 if the shells are too far apart to overlap */
    struct primitive_pair *primitives;
    double *storage;
    double schwarz; /* sqrt of the largest (ab|ab); set by pairs_build */
};

struct pairs {
    int count;
    struct pair *list; /* pair (a, b) at a (a + 1) / 2 + b */
};

void pair_build(const struct basis *basis, int a, int b, struct pair *out);
void pair_fini(struct pair *pair);
/* All pairs with their Schwarz bounds. */
void pairs_build(const struct basis *basis, struct pairs *out);
void pairs_fini(struct pairs *pairs);

#endif
