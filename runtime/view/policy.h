/* Where copies go: the nodes that hold a copyset's copies, and the spare that takes over a dead node's ranks. Pure;
 * every agent computes the same from the same view.
 *
 * The *ring* has a place for each slot: its initial node, then the spare that took the ranks over. Nodes of one domain
 * (racks, say) stand side by side in it, else it has the order of the nodes' numbers.
 *
 *   at the start   i-th further copy of c: i/(c+1) of the ring away. With two copies that is half the ring: no run of
 *                  half of the nodes has both, no domain of at most half of them has, and each node has as many as any
 *                  other. A slot for which this is not as far apart as can be (its domain is larger) gets what the
 *                  rules
 *                  below give.
 *   later          only what was lost, and what has come to be too much when a slot has moved (follow.c). On its ranks'
 *                  node; else, in this order: in another domain of the highest level
 *                  that can be; on a node that computes rather than on an idle spare; on the one with the fewest
 *                  copies;
 *                  farthest away in the ring of those that live.
 *
 * Domains come before evenness: beside a rack of five a single node has five copies.
 *
 * COPIES_AT_NEXT is the older rule: the next nodes at the start, later the next one with the fewest copies; domains do
 * not matter. */
#ifndef KEEL_VIEW_POLICY_H
#define KEEL_VIEW_POLICY_H

#include "runtime/view/view.h"

/* The ring at the start: view_init. */
void policy_begin(struct view *v);
/* Count copies and live nodes. What follows is of the view of this moment. */
void policy_look(struct view *v);
/* The node for another copy of the copyset, after policy_look. -1: every live node that has memory has one. */
int policy_copy(const struct view *v, int copyset);
/* May there be one on that node? */
bool policy_can_have(const struct view *v, int copyset, int node);
/* Is its a-th copy in a better place than its b-th one, as the rules below "later" say? */
bool policy_is_better(const struct view *v, int copyset, int a, int b);
/* It has been put there, or taken away. */
void policy_count(struct view *v, int copyset, int node);
void policy_uncount(struct view *v, int copyset, int node);
/* What was placed in this view is made even, after the last policy_copy. */
void policy_even(struct view *v);
/* The i-th copy of the copyset at the start, or -1: policy_copy's matter, when all others have theirs. */
int policy_first_copy(const struct view *v, int copyset, int i);
/* A live spare that holds no rank, has not been taken and starts processes, for the node that died or starts none: in
 * another domain than the copies left of its slot, the lowest among equals; -1: none. */
int policy_spare(const struct view *v, int node);
/* It takes the dead node's place in the ring. */
void policy_replace(struct view *v, int node, int spare);
/* The highest level at which some two of the copyset's copies are in different domains, from 1 on; 0: none, they may
 * all fail together. */
int policy_apart(const struct view *v, const struct view_copyset *g);
#endif
