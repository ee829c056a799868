/* What the placement library says of a run on a grid, held against the views. */
#ifndef KEEL_TESTS_SIM_DATA_SLIDES_H
#define KEEL_TESTS_SIM_DATA_SLIDES_H

#include "runtime/view/plan.h"
#include "tests/sim/data/world.h"

struct slides;

/* The grid of the run. False: there is an error in it. */
bool slides_rule(const struct setup *s, struct grid_rule *rule);
/* Has every slot a node at the start? */
bool slides_fit(const struct setup *s);
/* With the model, whose view gets the grid, too. */
bool slides_init(struct world *w);
/* The model's view has applied this. */
void slides_committed(struct world *w, const struct command *c);
/* The agent has the view, and the same plan. */
void slides_settled(struct world *w, const struct node *n);
/* The rank ends by itself, as it was asked to go. */
void slides_went(struct world *w, struct runner *r);
bool slides_are_over(const struct world *w);
void slides_check_quiet(struct world *w);
#endif
