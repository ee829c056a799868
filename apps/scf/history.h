/* The last iterations as DIIS needs them. Nothing of it is lost with a rank: it follows from the densities D_i and the
 * two-electron matrices G_i, which stay in global memory for as long as the window reaches, so a rank that lacks an
 * entry makes it from there. */
#ifndef KEEL_SCF_HISTORY_H
#define KEEL_SCF_HISTORY_H

#include "apps/scf/board.h"
#include "apps/scf/dmatrix.h"
#include "apps/scf/hf.h"

struct entry {
    int iteration;      /* 0: empty */
    double *density;    /* n x n */
    double *fock;       /* n x n */
    double *commutator; /* m x m */
    double energy;      /* Hartree */
    double error;       /* largest element of commutator */
};

struct history {
    const struct hf *hf;
    const struct dmatrix *densities, *twoelectron;
    struct entry entries[BOARD_SLOTS];
};

void history_init(const struct hf *hf, const struct dmatrix *densities, const struct dmatrix *twoelectron,
                  struct history *out);
void history_fini(struct history *history);

/* Fill in all of *out but seconds for an iteration. */
keel_status history_record(struct history *history, int iteration, struct record *out);
/* The extrapolated Fock matrix of a record (n x n). */
keel_status history_extrapolate(struct history *history, const struct record *record, double *fock);

#endif
