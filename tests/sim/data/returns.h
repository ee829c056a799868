/* Nodes that come later: which of them are one that was dead, and in which racks they stand. */
#ifndef KEEL_SIM_RETURNS_H
#define KEEL_SIM_RETURNS_H

#include "tests/sim/data/world.h"

void returns_draw(struct setup *s, struct rng *rng); /* who comes back, of those that come later */
void returns_place(struct setup *s);                 /* what agents know of those that have not come yet */
void returns_begin(struct world *w);
/* Its turn has come. False: no node is dead that it could have been, and it waits for one. */
bool returns_may_come(struct world *w, int id);
void returns_came(struct world *w, int id);
/* Each node stands where the agent's view has it. */
void returns_settled(struct world *w, const struct node *n);
#endif
