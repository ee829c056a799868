/* Between the rooms of a view:
 *   view.c     events, ranks, what the deaths and births of a view do
 *   follow.c   copies go where their slots go, and what is too much goes
 *   plan.c     who takes over; plan_auto.c: what auto knows and is asked
 *   sets.c     sets of a program that runs several times */
#ifndef KEEL_VIEW_VIEW_INT_H
#define KEEL_VIEW_VIEW_INT_H

#include "runtime/view/view.h"

/* view.c. The one place where a copyset changes: a new generation, and the mode that its copies allow. */
void copyset_set_mode(const struct view *v, struct view_copyset *g, enum copyset_mode mode);
/* A further copy, or the first one. False: node is -1. */
bool copyset_add(struct view *v, int copyset, int node, bool whole);
/* One less: not the primary. Those that are left are as they were. */
void copyset_take_out(struct view *v, int copyset, int at);

/* follow.c. The slot is with that node from now on. Where a copy is there it becomes the primary when the copies were
 * made equal once more: a primary that is about to say that they are has not stopped executing for it. */
void follow_slot(struct view *v, int slot, int node);
/* All copies are whole and equal, and more than writers write: one goes. */
void follow_equal(struct view *v, int copyset);
/* What the view's events have made too many goes; then, once that is done for all copysets, */
void follow_trim(struct view *v, int copyset);
/* copies are placed where the slot is, and where it goes. After policy_look. */
void follow_place(struct view *v, int copyset);

/* sets.c. */
bool sets_are_used(const struct view *v);
/* And where they are: a rank has ended with that code, or asked for the job's end with it. */
void sets_rank_ended(struct view *v, int native, int node, int code);
/* After the view's events: who is not whole any more? */
void sets_look(struct view *v);
/* Is the job over, with which code, and why? */
bool sets_are_finished(struct view *v, int *code, char *why, size_t size);
/* Would it be without the node? */
bool sets_end_with(const struct view *v, int node);
#endif
