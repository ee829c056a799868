/* Electron repulsion integrals over contracted shells. */
#ifndef KEEL_SCF_ERI_H
#define KEEL_SCF_ERI_H

#include "apps/scf/pair.h"

/* out[ab * nket + cd] = (ab|cd) for all functions a, b of the bra pair and c, d of the ket pair, nket = ket products.
 * Quartets of primitives whose contribution cannot exceed 1e-16 are left out. */
void eri_quartet(const struct pair *bra, const struct pair *ket, double *out);

#endif
