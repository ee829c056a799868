/* The board: the small shared facts of a run, in one Keel segment.
 *
 *  decision words  (rank 0's part) one per iteration: go on, converged or given up, and the rank whose record counts.
 *                  Set once,
 *                  by compare-and-swap, so that all ranks, also later ones, take the same way.
 *  block tags      (rank 0's part) one per block of rows: the last density whose block is complete
 *  lines printed, and when the report was closed: the number of collectives completed then  (rank 0's part)
 *  fingerprint     (rank 0's part) of the input
 *  records         (every rank's part) what this rank found in an iteration, before it asks for the decision
 *
 * Words and records of the last BOARD_SLOTS iterations are kept. */
#ifndef KEEL_SCF_BOARD_H
#define KEEL_SCF_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/keel.h>

#include "apps/scf/diis.h"

enum { BOARD_SLOTS = DIIS_MAX + 2 };

/* What came out of an iteration. Lies in the segment as it is here. */
struct record {
    int64_t iteration; /* 1.. */
    double energy;     /* Hartree */
    double delta;      /* change since the last iteration, Hartree; 0 in the first */
    double rms;        /* root mean square change of the density; 0 in the first */
    double error;      /* largest element of F D S - S D F in the orthogonal basis */
    double seconds;    /* the deciding rank's time for the iteration */
    int64_t oldest;    /* first iteration of the DIIS window */
    double coefficients[DIIS_MAX];
};

enum verdict { VERDICT_NONE, VERDICT_GO_ON, VERDICT_CONVERGED, VERDICT_GIVEN_UP };

struct decision {
    int iteration; /* 0: no decision */
    enum verdict verdict;
    int rank; /* whose record counts */
};

struct board {
    keel_segment *segment;
    int size; /* ranks */
};

/* Collective. */
keel_status board_create(keel_redundancy redundancy, struct board *out);

/* The decision on an iteration, with verdict VERDICT_NONE if it is still open. */
keel_status board_decision(const struct board *board, int iteration, struct decision *out);
/* Propose; *out is the decision, which may be another rank's. */
keel_status board_decide(const struct board *board, struct decision proposal, struct decision *out);
/* The iteration that ended the run (0 if none did so far), out of those on the board. */
keel_status board_final(const struct board *board, struct decision *out);

keel_status board_put_record(const struct board *board, const struct record *record);
keel_status board_get_record(const struct board *board, struct decision decision, struct record *out);

keel_status board_get_tag(const struct board *board, int block, int64_t *tag);
keel_status board_put_tag(const struct board *board, int block, int64_t tag);

keel_status board_get_printed(const struct board *board, int64_t *lines);
keel_status board_put_printed(const struct board *board, int64_t lines);
/* 0: not closed */
keel_status board_get_closed(const struct board *board, int64_t *collectives);
keel_status board_put_closed(const struct board *board, int64_t collectives);
keel_status board_get_fingerprint(const struct board *board, uint64_t *fingerprint);
keel_status board_put_fingerprint(const struct board *board, uint64_t fingerprint);

#endif
