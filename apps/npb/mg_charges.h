/* MG's right side: 1 at the ten points where a random function is largest, -1 at the ten where it is smallest, 0
 * elsewhere. */
#ifndef KEEL_NPB_MG_CHARGES_H
#define KEEL_NPB_MG_CHARGES_H

#include "apps/npb/common.h"
#include "apps/npb/mg_grid.h"

/* Collective. v is zero. */
void mg_charges_place(struct npb *npb, const struct grid *grid, double *v);

#endif
