/* Bits that flip in copies at rest. */
#ifndef KEEL_TESTS_SIM_DATA_FLIPS_H
#define KEEL_TESTS_SIM_DATA_FLIPS_H

#include "tests/sim/data/world.h"

/* All ranks are at a gate, and it is quiet: may they go on? Else a bit may flip now, or has. */
bool flips_are_over(struct world *w);
/* They are there, and it is not. */
void flips_not_quiet(struct world *w);
/* The event `scrubbed`. */
void flips_told(struct world *w, const char *members);
#endif
