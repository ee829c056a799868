/* Hermite Gaussians (McMurchie and Davidson, J. Comput. Phys. 26, 218 (1978)): the numbering of their orders (t, u, v),
 * the integrals R_tuv over them, and which orders the product of two cartesian functions has. */
#ifndef KEEL_SCF_HERMITE_H
#define KEEL_SCF_HERMITE_H

#include <stdint.h>

#include "apps/scf/basis.h"

enum {
    HERMITE_L_MAX = 4 * SHELL_L_MAX,                                                                /* (dd|dd) */
    HERMITE_COUNT = (HERMITE_L_MAX + 1) * (HERMITE_L_MAX + 2) * (HERMITE_L_MAX + 3) / 6,            /* t+u+v <= 8 */
    HERMITE_PAIR_COUNT = (2 * SHELL_L_MAX + 1) * (2 * SHELL_L_MAX + 2) * (2 * SHELL_L_MAX + 3) / 6, /* t+u+v <= 4 */
    PAIR_FUNCTIONS_MAX = SHELL_FUNCTIONS_MAX * SHELL_FUNCTIONS_MAX,
    PAIR_TERMS_MAX = 400,
};

/* The orders that occur in the product of shells of angular momenta la and lb. Product number ab = a * functions(lb) +
 * b has the terms start[ab] .. start[ab+1]-1, each with the number of its order. */
struct hermite_product {
    int la, lb;
    int nproducts;
    int norders; /* orders with t+u+v <= la+lb, numbered first */
    int nterms;
    uint16_t start[PAIR_FUNCTIONS_MAX + 1];
    uint8_t order[PAIR_TERMS_MAX];
};

/* Orders are numbered by rising t+u+v. */
static inline int hermite_count(int l)
{
    return (l + 1) * (l + 2) * (l + 3) / 6;
}
void hermite_powers(int order, int tuv[3]);
/* Number of the order that is the sum of two, each of degree up to 2 * SHELL_L_MAX: row [HERMITE_PAIR_COUNT]. */
const uint8_t *hermite_sums(int order);
/* Static storage; any thread. */
const struct hermite_product *hermite_product(int la, int lb);

/* R_tuv for all orders of degree up to l, times scale: out[hermite_count(l)]. d is the vector between the two centres
 * (bohr), alpha the reduced exponent. */
void hermite_integrals(int l, double alpha, const double d[3], double scale, double *out);

/* E_t of the product of two 1-D functions (powers i, j; distances xa, xb of the product's centre from theirs; p the sum
 * of exponents), for all i <= la, j <= lb, t <= i + j, times e0. out[i][j][t]. */
enum { HERMITE_1D_MAX = SHELL_L_MAX + 2 };
typedef double hermite_1d[HERMITE_1D_MAX + 1][HERMITE_1D_MAX + 1][2 * HERMITE_1D_MAX + 1];
void hermite_expand(int la, int lb, double xa, double xb, double p, double e0, hermite_1d out);

#endif
