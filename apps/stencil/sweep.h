/* One sweep of a Jacobi iteration: each cell becomes a weighted mean of its neighbours. Pure.
 *
 *   5 points   the four beside it
 *   9 points   4 for those, 1 for the four at the corners, of 20
 *   7 points   the six beside it
 *   27 points  14 for those, 3 for the twelve across edges, 1 for the eight at corners, of 128
 *
 * The terms of a cell are added in one order, whatever block it lies in: the field has the same bits however it is
 * cut. */
#ifndef APPS_STENCIL_SWEEP_H
#define APPS_STENCIL_SWEEP_H

#include "apps/stencil/block.h"

enum stencil { STENCIL_5P, STENCIL_9P, STENCIL_7P, STENCIL_27P };

/* "5p", "9p", "7p", "27p"; false for anything else. */
bool stencil_parse(const char *text, enum stencil *out);
const char *stencil_name(enum stencil s);
int stencil_dims(enum stencil s);
bool stencil_has_corners(enum stencil s);

/* The field before the first sweep, border included: an open one is a plate, cold but for its hot first edge and a warm
 * patch, whose border never changes; a periodic one has two patches. */
void sweep_begin(const struct field *f, const struct block *b, double *cells);
/* from -> to, own cells only. Returns the sum of the squares of what they changed by. */
double sweep(enum stencil s, const struct block *b, const double *from, double *to);
#endif
