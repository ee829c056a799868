/* What a rank keeps where its death does not reach: its part of one replicated segment. From it the process that takes
 * the rank's place goes on.
 *
 *   done     sweeps whose result is in the part, whole
 *   field    the block after `done` sweeps, and after one less, in turns
 *   heard    for each direction, how many halos have come from there: a word that only this neighbour adds to
 *   halo     what came, in turns
 *   changed  what the sweep before the last look changed in the block, and before the one before, in turns: all ranks
 *            look before one can come to the next look but one
 *   told     for each rank, the last look that it has come to: only this rank sets the word, and never to less
 *
 * A halo of the field after t sweeps overwrites that of t - 2, and is sent when the sender has stored its block after
 * t. For that it needed the receiver's halo of t - 1, which went out when the receiver had stored its block after t -
 * 1, and so had used the halo of t - 2.
 *
 * All calls end the process with a line if Keel has an error. */
#ifndef APPS_STENCIL_STORE_H
#define APPS_STENCIL_STORE_H

#include <keel/keel.h>

#include "apps/stencil/block.h"

struct store {
    const struct field *field;
    struct block block; /* of this rank */
    keel_segment *segment;
    size_t block_bytes, halo_bytes;   /* room for each, the same on all ranks */
    int64_t done;                     /* as stored */
    int64_t sent[STENCIL_DIRECTIONS]; /* halos that the neighbour there has got from us */
    int64_t look;                     /* all look after so many sweeps */
    double *row;                      /* the largest halo, on its way */
};

/* Collective, and called by a process that takes a dead rank's place, before keel_resume. */
void store_open(struct store *s, const struct field *f, int64_t look, keel_redundancy redundancy);
void store_close(struct store *s);
/* Read the block after s->done sweeps. */
void store_load(const struct store *s, double *cells);
/* Store the block after so many sweeps, of which the last one changed so much: on all copies when it returns. */
void store_save(struct store *s, const double *cells, int64_t sweeps, double changed);
/* What the last sweep changed, as stored. */
double store_changed(const struct store *s);
/* Give the neighbours what they need of the block after s->done sweeps, and take what they give. */
void store_exchange(struct store *s, double *cells);
/* What that sweep changed in all blocks, summed in the order of the ranks. Tells all that this rank has stored its own,
 * and waits until each has: in keel_wait_until, so that it is said for whom. */
double store_changed_all(const struct store *s);
/* Read another rank's block after so many sweeps. Returns its cells, in memory that the next call uses again. */
const double *store_read(struct store *s, int rank, int64_t sweeps);
#endif
