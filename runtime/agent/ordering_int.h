/* What ordering.c and ordering_chain.c share; nobody else includes this. */
#ifndef KEEL_AGENT_ORDERING_INT_H
#define KEEL_AGENT_ORDERING_INT_H

#include "runtime/agent/ordering.h"

extern const struct order_ops ordering_ops; /* user: a struct ordered_part */
/* Operations come again: all, where they have no turn here any more; else those of a route that is no more. */
void ordering_give_back(struct agent *a, struct ordered_part *p, bool all);
void ordering_forget_late(struct ordering *o);
#endif
