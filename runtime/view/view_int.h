/* Between the rooms of a view:
 *   view.c     the view, and the order in which events, deaths and births change it
 *   ranks.c    ranks: their lives, and the slots that go where their ranks are
 *   copies.c   copysets: their copies, modes and generations
 *   end.c      the end of the job, and what it would take
 *   follow.c   copies go where their slots go, and what is too much goes
 *   plan.c     who takes over; plan_auto.c: what auto knows and is asked
 *   sets.c     sets of a program that runs several times
 *   renew.c    sets that begin anew */
#ifndef KEEL_VIEW_VIEW_INT_H
#define KEEL_VIEW_VIEW_INT_H

#include "runtime/view/view.h"

static inline int view_copysets(const struct view *v)
{
    return v->nodes * CLASSES;
}

/* Can ranks begin there? */
static inline bool view_node_starts(const struct view *v, int node)
{
    return v->alive[node] && !v->refuses[node];
}

static inline bool view_is_spare(const struct view *v, int node)
{
    return v->spare_free[node] && view_node_starts(v, node);
}

/* copies.c. The one place where a copyset changes: a new generation, and the mode that its copies allow. */
void copyset_set_mode(const struct view *v, struct view_copyset *g, enum copyset_mode mode);
/* A further copy, or the first one. False: node is -1. */
bool copyset_add(struct view *v, int copyset, int node, bool whole);
/* One less: not the primary. Those that are left are as they were. */
void copyset_take_out(struct view *v, int copyset, int at);
/* Place what is missing. */
void copyset_fill(struct view *v, int copyset);
/* The first copies of all. */
void copysets_begin(struct view *v);
/* Copies on dead nodes leave. A copyset of which none is left starts again, and what it held is lost. */
void copysets_lose_dead(struct view *v);
/* A writer died: what it was writing may be in one copy and not in the others. */
void copysets_doubt(struct view *v);
/* VIEW_RESTORED: the primary says that all copies are whole and equal. The slot's ranks' node becomes the primary, so
 * that data are local to their ranks; the old primary executes nothing from the submission of this event on. */
void copyset_restored(struct view *v, const struct view_event *e);
/* VIEW_SUSPECT: what is to be found out is found out where nobody writes but through the primary. */
void copyset_suspected(const struct view *v, const struct view_event *e);
/* VIEW_DECLINED: what was being filled there is filled elsewhere, or missing. */
void copysets_declined(struct view *v, const struct view_event *e);

/* ranks.c. Those that ran on a dead node have another one, or none. */
void view_ranks_lose_node(struct view *v, int node);
/* Its next process: on that node. */
void view_rank_begins(const struct view *v, struct view_rank *k, int node);
/* The events of one rank, by their names. Of a life that is another one's by now they change nothing. */
void view_rank_dead(struct view *v, const struct view_event *e);
void view_rank_moved(struct view *v, const struct view_event *e);
void view_rank_done(struct view *v, const struct view_event *e);
void view_rank_refused(struct view *v, const struct view_event *e);
void view_rank_left(struct view *v, const struct view_event *e);
void view_rank_doubted(struct view *v, const struct view_event *e);

/* end.c. Nothing more will run; the first reason stays. */
void view_stop(struct view *v, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* VIEW_STOP. */
void view_end_asked(struct view *v, const struct view_event *e);
/* A process died of a program that needs all: also where the death came first, so that it does not matter when the
 * program says what it is. */
void view_end_if_needed(struct view *v);
/* No rank runs any more. */
void view_end_if_finished(struct view *v);

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
/* renew.c: if it was of a coming set, that is why the attempt is over. */
void set_lost_guest(struct view *v, int native, int node, int code);
/* After the view's events: who is not whole any more? */
void sets_look(struct view *v);
/* Is the job over, with which code, and why? */
bool sets_are_finished(struct view *v, int *code, char *why, size_t size);
/* Would it be without the node? */
bool sets_end_with(const struct view *v, int node);

/* renew.c. VIEW_SET_BEGINS, VIEW_SET_JOINS. */
void set_begins(struct view *v, const struct view_event *e);
void set_joins(struct view *v, const struct view_event *e);
/* After the view's events: who that was coming has lost a rank? */
void sets_look_at_coming(struct view *v);
#endif
