/* Slots on their way: where each one stands while moves are carried out, and what a death in the middle changes.
 *
 * A struct place knows where slots are to be (the aim); a slide takes time, and until a slot's move is done it stands
 * where it stood. This keeps both, and the moves from one to the other:
 *
 *      PLANNED ---- transit_done ---> DONE
 *         |
 *         +---- transit_change: planned anew, or given up
 *
 *   now   a slot stands on a live node, or on none: then it is made anew at its destination from its copies, and the
 *         move begins at TRANSIT_COPIES. A move is done only when nobody stands on its destination any more, so a node
 *         never has two slots; until then it may receive what comes while it sends on what it has.
 *   aim   the caller's struct place: for each slot a live node, unless there are not enough.
 *
 * transit_change takes one view's deaths and returns together and ends in one plan, made from what is true at that
 * moment:
 *   1. the slots that stand on the dead nodes stand nowhere; those that aim at them have no aim.
 *   2. a live slot without an aim stays where it stands. Who aimed at that node gives way, and stays in its turn,
 *      and so on until the node is free or who gives way stands nowhere. So a slot that lives never loses its node
 *      to one that does not, and the rest of each line that does not meet the dead node goes on as it was.
 *   3. nodes that came back are free; a slot that had lost its aim on one aims at it again.
 *   4. each slot that now has no aim stands nowhere: the method gives it one, in the order in which the nodes died on
 *      which they were lost. Slots that stayed without a node earlier are among them, but for those that are given up.
 *   5. the moves from now to aim are put into lines (lines.h). A move that still has the same two ends goes on.
 *
 * The order of events counts (place.h). Whoever keeps one of these on several machines feeds changes and dones in
 * the order of the agreement about the view. Begins need no agreement: nothing that is decided depends on them.
 *
 * A node that is new, not one that was lost, is one of the grid that was reported dead at launch: it comes back.
 *
 * threads   one caller at a time. blocks never. Only transit_init allocates. source Spare-nodes, which moves at
 * once. */
#ifndef KEEL_TOPO_TRANSIT_H
#define KEEL_TOPO_TRANSIT_H
#include "runtime/topo/lines.h"
#include "runtime/topo/load.h"

enum { TRANSIT_COPIES = -1 }; /* where a move begins when its slot stands nowhere */

enum transit_result {
    TRANSIT_OK,
    TRANSIT_NOT_YET, /* the move before it in its line has to be done first: its destination is not free */
    TRANSIT_STALE,   /* this is not the slot's next move (any more) */
};

struct transit {
    struct place *aim;
    struct load *load;  /* follows aim; may be NULL */
    int32_t *stands;    /* [slots] node, -1: nowhere */
    int32_t *holder;    /* [nodes] the slot that stands there, -1: none */
    int32_t *lost_on;   /* [slots] the node it stood on last, where it stands nowhere */
    struct lines lines; /* the moves since the last change */
    bool *done;         /* [lines.count] */
    int32_t *next;      /* [slots] its first move in lines that is not done, -1 none */
    int32_t pending;    /* moves that are not done */
    bool bounded;       /* the last change's plan might be another one without the method's bound on moves */
    /* scratch */
    struct place_plan plan;
    int32_t *lost_slot; /* [nodes] -1, but while slots are given aims */
    uint8_t *mark;      /* [slots] */
};

/* Everybody stands where aim has it; aim has no slot without a node. aim and load stay the caller's, who does not
 * change them and lets them outlive t. returns   false when out of memory. */
bool transit_init(struct transit *t, struct place *aim, struct load *load);
void transit_fini(struct transit *t);

/* One view's news, in its order; what is no news is passed over. A node may be in both lists: it died and is back.
 * returns   slots that have no node, for want of live ones or because the method has no way for them. */
int32_t transit_change(struct transit *t, const struct place_method *m, const int32_t *dead, int32_t ndead,
                       const int32_t *back, int32_t nback);
/* Nobody runs the slot any more, which has no node: no later change has one for it. returns   false, and nothing has
 * changed: it has one, or is to have one. */
bool transit_give_up(struct transit *t, int32_t slot);
/* Slots that live are to stand elsewhere, by this plan for the map that aim is now. returns   false, and nothing has
 * changed: there are moves that are not done. */
bool transit_take(struct transit *t, const struct place_plan *plan);
/* The slot's next move, to this node, is done. */
enum transit_result transit_done(struct transit *t, int32_t slot, int32_t to);
#endif
