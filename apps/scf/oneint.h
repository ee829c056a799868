/* One-electron integrals: overlap, kinetic energy, attraction by the nuclei. */
#ifndef KEEL_SCF_ONEINT_H
#define KEEL_SCF_ONEINT_H

#include "apps/scf/basis.h"
#include "apps/scf/pair.h"

/* All outputs are full symmetric n x n matrices, n = basis->nfunctions. */
void oneint_overlap(const struct basis *basis, double *out);
void oneint_kinetic(const struct basis *basis, double *out);
void oneint_nuclear(const struct basis *basis, const struct pairs *pairs, const struct molecule *molecule, double *out);

#endif
