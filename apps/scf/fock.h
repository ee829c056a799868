/* The two-electron part of the Fock matrix, cut into numbered tasks that can be done by anybody in any order.
 *
 * G_ij = sum_kl D_kl ((ij|kl) - 1/2 (ik|jl)). A task is a range of shell pairs ij with all pairs kl up to them; it adds
 * its part to an n x n matrix that is not symmetric yet: when all tasks are summed, G = (sum + sum^T) / 2. */
#ifndef KEEL_SCF_FOCK_H
#define KEEL_SCF_FOCK_H

#include "apps/scf/basis.h"
#include "apps/scf/pair.h"

enum { FOCK_TASKS_WANTED = 160 };

struct fock_plan {
    int npairs;
    int *pairs; /* the pairs that can give an integral above the screening, by falling Schwarz bound */
    int ntasks;
    int *start; /* [ntasks + 1]: pairs of task t, the dearest tasks first */
};

/* Integrals whose Schwarz bound times the largest density element they meet is below screening are left out. */
void fock_plan_make(const struct pairs *pairs, double screening, struct fock_plan *out);
void fock_plan_fini(struct fock_plan *plan);

/* Largest element of each shell block of the density: out[nshells * nshells]. */
void fock_block_maxima(const struct basis *basis, const double *density, double *out);

/* Adds task's part of G(density) to g (n x n). Deterministic: the same bits for the same density. */
void fock_task(const struct basis *basis, const struct pairs *pairs, const struct fock_plan *plan, double screening,
               const double *density, const double *maxima, int task, double *g);

#endif
