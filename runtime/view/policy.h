/* Where copies go: the node that gets a group's missing copy, and the spare that takes over a dead node's ranks. Pure. */
#ifndef KEEL_VIEW_POLICY_H
#define KEEL_VIEW_POLICY_H

#include "runtime/view/view.h"

/* The lowest live spare that holds no rank and has not been taken; -1: none. */
int policy_spare(const struct view *v);
/* The node for another copy of the group: its ranks' node, else the computing node with the fewest copies (the first one
 * after the primary among equals), else an idle spare. -1: every live node has one. */
int policy_copy(const struct view *v, int group);
/* The i-th copy of the group at the start, or -1. */
int policy_first_copy(const struct view *v, int group, int i);
#endif
