/* Who takes over when nodes die or are born: the plan of a view change, a list of moves of slots. Pure; every agent
 * makes the same one from the same view.
 *
 * One function, two implementations:
 *   0D          of a job without a grid, which is every job today: a slot whose node died goes to the first free spare,
 *               of
 *               another domain than what is left of its data if there is one (policy_spare). Nobody who lives moves.
 *   on a grid   view_place was called: a method of topo/place.h says which slots go one node on, dead ones and live
 *               ones
 *               (Spare-nodes, "Substitution of a Spare Node for a Faulty Node"). topo/transit.h keeps which of these
 *               moves are done, and makes one plan of all the deaths and births of a view.
 *
 * The view carries out at once what is planned for slots whose nodes died. Where a slot lives the plan is only a plan:
 * its ranks go, one by one, as their agents say that they have ended (VIEW_RANK_MOVED), and the move is done when the
 * slot is there. Until then a node may run ranks of two slots: of one that was lost and has begun here, and of one that
 * is to go.
 *
 * Memory: all of it is made by view_init and view_place; a view change allocates nothing. */
#ifndef KEEL_VIEW_PLAN_H
#define KEEL_VIEW_PLAN_H

#include "runtime/topo/rule.h"
#include "runtime/view/view.h"

/* From now on dead nodes are replaced by sliding, on the grid whose places nodes and spares have as topo/rule.h says:
 * together with those that are not there at the start they are as many. What rule points to outlives the view. After
 * view_init, before the first view_apply. False: out of memory, or the nodes do not fit the grid; then the view is as
 * it was. */
bool view_place(struct view *v, const struct grid_rule *rule);
/* The grid of view_place; NULL: none. */
const struct place *plan_grid(const struct view *v);
/* The place that the node has, or had when it died; -1: none. */
int plan_place(const struct view *v, int node);
/* What view_place made. */
void plan_fini(struct view *v);

/* A node that was born; was: the dead node that was where it is, -1: none; place: of the grid, which it takes if nobody
 * who lives has it, and no other; -1: that of was, or else the first where nobody lives. */
struct plan_birth {
    int node, was;
    int32_t place;
};
/* The moves that follow from these deaths and births, which are in the view already: v->plan[0 .. v->planned - 1],
 * until the next call. from is dead for a slot that was lost; a slot that lives is on from. Each goes where nobody
 * stands, or to a node that one before it in the list leaves. */
void policy_plan(struct view *v, const int *dead, int ndead, const struct plan_birth *born, int nborn);
/* The node lives and starts no process any more: its place is as good as dead to the method, and slots go elsewhere. */
void plan_refuse(struct view *v, int node);
/* Where ranks of the slot are to begin, on a grid; -1: on none. */
int plan_next(const struct view *v, int slot);
/* Where the slot's ranks go that were on this dead node; -1: nowhere. */
int plan_target(const struct view *v, int slot, int dead);
/* May a rank of that slot begin on that node, which lives? */
bool plan_allows(const struct view *v, int slot, int node);
/* The node where the rank, which runs, is to begin next: where its slot goes, or is, if it was left behind. -1: it
 * stays. */
int plan_of_rank(const struct view *v, int rank);
/* The number of the slot's next move in the plan, 0: it has none. Moves of one line follow each other. */
uint32_t plan_order(const struct view *v, int slot);
/* The node to which the slot, which lives, goes next; -1: it is where it is to be, or its move is given up. */
int plan_slot_target(const struct view *v, int slot);
/* The epoch since which its move to *to is given up, 0: it is not. That node has no memory for what others have
 * (VIEW_DECLINED), or a slot lives there that stays for that reason. So it stays, too, until a plan sends it elsewhere.
 */
uint64_t plan_gave_up(const struct view *v, int slot, int *to);
/* Nodes have declined copies, slots have gone: whose moves are given up? */
void plan_weigh(struct view *v);
/* May the slot's ranks go, as far as its data are concerned: is a whole copy of each of its copysets where it goes?
 * What has no second copy (KEEL_REDUNDANCY_NONE) goes behind the ranks and is not waited for. True also where the slot
 * goes nowhere. */
bool view_slot_ready(const struct view *v, int slot);
/* The slots are where they are: which moves are done? */
void plan_follow(struct view *v);

/* ---- the method `auto` (topo/auto.h) ----
 *
 * Agents measure different things at different times, and are to make the same plan. So a figure counts when an event
 * says it, and until the next one does: all agents have the same figures in the same view. Whoever dies before its
 * event is ordered has said nothing, and another agent says what it sees. */

/* What auto weighs until somebody has measured it: a gigabit a second, without what protocols take of it, and what six
 * ranks took in docs/placement.md. */
enum { PLAN_RATE = 100000000, PLAN_BEGIN_US = 310000 };
/* Its state, with the figures that hold and the decisions of this view; NULL: the method is another one. */
const struct auto_method *plan_auto(const struct view *v);
/* Decisions made in this view. */
int plan_decisions(const struct view *v);
void plan_figure(struct view *v, const struct view_event *e);
/* The same, for who keeps a state of its own: a job of so many slots. */
void plan_take_figure(struct weigh *w, int slots, const struct view_event *e);
/* All slots are weighed, and those that should stand elsewhere are to move. It waits for nothing: while moves are under
 * way, or a slot has no node, nothing is done. */
void plan_rebalance(struct view *v, const struct view_event *e);
/* What came of the last VIEW_REBALANCE of this view. */
enum plan_rebalanced {
    REBALANCE_NONE,      /* there was none */
    REBALANCE_NOT_AUTO,  /* the method weighs nothing, or ranks of this job do not move */
    REBALANCE_UNDER_WAY, /* moves are not done, or are given up; or a slot has no node */
    REBALANCE_UNKNOWN,   /* what the program sends is not known */
    REBALANCE_STAYS,     /* nothing pays */
    REBALANCE_MOVES
};
enum plan_rebalanced plan_rebalanced(const struct view *v);
/* Are slots where they are to be, all of them? */
bool plan_is_quiet(const struct view *v);
/* Nodes of the grid that live and start processes, and that no slot is on or goes to; 0: there is no grid. */
int plan_free_nodes(const struct view *v);
/* Where they are not: of which one is it so? What a user can do the least about comes first. */
enum plan_waiting {
    PLAN_LOST,     /* it had no node when its ranks were lost, and gets none */
    PLAN_NO_NODE,  /* it waits for one */
    PLAN_NO_PLACE, /* it lives on a node that starts no process, and no other one is free for it */
    PLAN_STAYS,    /* plan_gave_up */
    PLAN_GOES
};
/* returns   the lowest slot of the first kind that there is, -1: plan_is_quiet. *node: where it is, *to: where it is to
 *           go; -1: nowhere */
int plan_waits_for(const struct view *v, enum plan_waiting *why, int *node, int *to);
#endif
