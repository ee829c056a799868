/* Restricted Hartree-Fock for one molecule and basis: everything that does not change from one iteration to the next,
 * and the steps of an iteration as functions of matrices. Knows nothing of ranks. Read-only after hf_init. */
#ifndef KEEL_SCF_HF_H
#define KEEL_SCF_HF_H

#include <stdbool.h>

#include "apps/scf/basis.h"
#include "apps/scf/complaint.h"
#include "apps/scf/fock.h"
#include "apps/scf/molecule.h"
#include "apps/scf/pair.h"

struct hf {
    const struct molecule *molecule;
    struct basis basis;
    struct pairs pairs;
    struct fock_plan plan;
    double screening;         /* Hartree; integrals that cannot change a Fock element by more are left out */
    int n;                    /* basis functions */
    int m;                    /* orbitals: n less the linearly dependent combinations */
    int nocc;                 /* doubly occupied orbitals */
    double nuclear_repulsion; /* Hartree */
    double *overlap;          /* n x n */
    double *core;             /* n x n: kinetic energy and attraction by the nuclei */
    double *orthogonaliser;   /* n x m */
};

/* Keeps pointers to molecule and library. On false *why says what is wrong and there is nothing to free. */
bool hf_init(const struct molecule *molecule, const struct basis_library *library, double screening, struct hf *out,
             struct complaint *why);
void hf_fini(struct hf *hf);

/* fock = core + (g + g^T) / 2; g as the tasks leave it. */
void hf_fock(const struct hf *hf, const double *g, double *fock);
/* Total energy of the density whose Fock matrix this is, Hartree. */
double hf_energy(const struct hf *hf, const double *density, const double *fock);
/* error (m x m) = X^T (F D S - S D F) X, which is zero at convergence; returns its largest element. */
double hf_error(const struct hf *hf, const double *density, const double *fock, double *error);
/* Twice the projector on the lowest nocc orbitals of fock. False if the diagonalisation fails. */
bool hf_density(const struct hf *hf, const double *fock, double *density);
/* The part of G that one task gives is added to g (fock_task). */
void hf_task(const struct hf *hf, const double *density, const double *maxima, int task, double *g);

/* A start: the sum of spherical densities of the neutral atoms, each from a small Hartree-Fock calculation with
 * fractional occupation in the same basis. Deterministic. */
bool guess_density(const struct hf *hf, const struct basis_library *library, double *density, struct complaint *why);

#endif
