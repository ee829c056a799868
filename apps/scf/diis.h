/* Direct inversion in the iterative subspace (Pulay, J. Comput. Chem. 3, 556 (1982)). */
#ifndef KEEL_SCF_DIIS_H
#define KEEL_SCF_DIIS_H

#include <stddef.h>

enum { DIIS_MAX = 8 };

/* The coefficients, with sum 1, for which sum_i c_i errors[i] is smallest; errors[i] has length doubles, the newest is
 * last. If the errors are linearly dependent the oldest are left out (coefficient 0). n is 1..DIIS_MAX. */
void diis_coefficients(int n, size_t length, const double *const errors[], double *out);

#endif
