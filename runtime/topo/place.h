/* Placement: which node each slot stands on, and where slots go when nodes die.
 *
 * A slot is what stands on one node and moves as a whole: the ranks that start there, one or several, with the primary
 * copies of their data. Spare-nodes has one rank on each node and calls it so. Which ranks a slot has is the caller's
 * matter; the library sees their number of bytes at most (lines.h). A place is a position of the grid of slots: there
 * may be fewer slots than places, and the nodes of places without a slot are free from the start.
 *
 * A struct place holds the map of one job on one grid: slot -> node, and for each node its slot, "free" or "dead". Free
 * means alive without a slot: the spares of the allocation, and also the nodes a slide has left behind. The map changes
 * at once; transit.h keeps beside it where the slots stand while they move. A failure is handled in three steps, which
 * place_substitute does in one call:
 *
 *   place_fail    the node is dead from now on; was there a slot on it?
 *   place_plan    a method lists the moves that give that slot a live node, without changing the map
 *   place_apply   the moves become the map
 *
 * Moves are in an order in which every destination is free when its turn comes, so they can be carried out one after
 * another or as a pipeline. The built-in slides move each slot once; balance.h may move a slot twice, aside and back.
 *
 *   struct place p; struct place_plan plan; struct place_method m;
 *   place_init(&p, &grid, &layout, 0, NULL); place_plan_init(&plan, &p);
 *   place_method_parse(&m, "hybrid(all)", grid.ndims);
 *   switch (place_substitute(&p, &m, dead_node, &plan)) {
 *   case PLACE_MOVED:   carry out plan.moves[0 .. plan.count-1]
 *   case PLACE_IDLE:    the node held no slot, nothing to do
 *   case PLACE_REPEAT:  it was dead already, nothing to do
 *   case PLACE_CANNOT:  no live node for this slot: p.node_of[plan.slot] is dead; go on with fewer slots }
 *
 * Ordinary cases, not errors: spares that die, nodes that die while idle, running out, the same node twice, nodes that
 * come back (place_return). Several deaths at once: place_fail for all of them first, so that no plan aims at a dead
 * node, then place_plan for each slot that lost its node.
 *
 * The order of events counts: a method looks at the map that earlier failures have left, 0D remembers the sides it
 * used. Who keeps the same map on several machines reports the same events in the same order, that of the agreement
 * about the view.
 *
 * threads   a struct place, a plan and a method belong to one caller at a time. blocks never. Only the init functions
 *           allocate. source Spare-nodes, "Substitution of a Spare Node for a Faulty Node". */
#ifndef KEEL_TOPO_PLACE_H
#define KEEL_TOPO_PLACE_H
#include <stdlib.h>

#include "runtime/topo/grid.h"
#include "runtime/topo/spare.h"

enum { PLACE_FREE = -1, PLACE_DEAD = -2 };
enum { PLACE_LANES = 4, PLACE_ALIGN = 16 }; /* how many free nodes are looked at side by side */

struct place_move {
    int32_t slot, from, to; /* from is dead for the slot of the failed node */
};

struct place {
    struct grid grid;      /* the nodes */
    struct grid slot_grid; /* the places of slots */
    struct spare_layout layout;
    int32_t places;     /* of slot_grid */
    int32_t slots;      /* as many, or fewer: slots 0 .. slots - 1 have the first places */
    int32_t *node_of;   /* [places] the map; the node is dead for a slot that could not be placed */
    int32_t *home;      /* [places] the node of each slot at launch; both also for places without a slot */
    int32_t *slot_at;   /* [nodes] slot, PLACE_FREE or PLACE_DEAD */
    int32_t *free_list; /* [nodes] the first nfree entries are the free nodes, in no order */
    int32_t *free_pos;  /* [nodes] index of a free node in free_list */
    int32_t *free_at;   /* [ndims][room] coordinates of the free nodes, in the order of free_list */
    int32_t *free_bit;  /* [room] 1 << the side of spares each is on, 0 for none */
    int32_t room;       /* nodes, rounded up */
    int32_t *dead_list; /* [nodes] the first ndead entries are the dead nodes, in the order of their death */
    int32_t nfree, ndead, homeless;  /* homeless: slots that could not be placed */
    uint8_t *given_up;               /* [places] of these, who gets no node any more */
    int32_t returns;                 /* nodes that came back so far */
    int16_t (*coord)[GRID_MAX_DIMS]; /* [nodes] coordinates */
    int8_t *side;                    /* [nodes] spare_side */
    int8_t *last_side; /* [ndims][nodes] for the line of a node: 1 + the side 0D sent its last failure to, 0 none */
    int32_t *section[1 << GRID_MAX_DIMS]; /* per set of dimensions: offsets of all nodes of that subspace */
    int32_t section_len[1 << GRID_MAX_DIMS];
};

struct place_plan {
    struct place_move *moves;
    int32_t count, cap; /* cap is 3/2 slots: enough for any plan of the built-in methods */
    int32_t slot;       /* the slot that lost its node */
    int32_t most;       /* moves it may have; INT32_MAX: any number */
    bool bounded;       /* that left something out: the plan may be another one than without a bound */
    int step;           /* index of the method's step that made the plan; method.steps: none, see below */
    int order;          /* of that step */
    bool zero;          /* 0D made it: the failure's lines remember the side it was sent to */
};

enum place_result { PLACE_MOVED, PLACE_IDLE, PLACE_REPEAT, PLACE_CANNOT };

/* The map at launch: slot r stands where its coordinates are. slots: 1 .. places of them, or 0: one on each place. Dead
 * nodes at launch ("worm-eaten") are reported with place_substitute before anything runs.
 * returns   false when the layout does not fit the grid (see spare_check), a side is longer than 32767, or out of
 *           memory; for grids of many millions of nodes: also soon after *stop was set, if it is not NULL. */
bool place_init(struct place *p, const struct grid *g, const struct spare_layout *l, int32_t slots,
                const atomic_bool *stop);
void place_fini(struct place *p);
/* grid_distance, from the coordinates at hand. */
static inline int place_distance(const struct place *p, int32_t a, int32_t b)
{
    int sum = 0;
    for (int d = 0; d < p->grid.ndims; d++)
        sum += abs(grid_offset(&p->grid, d, p->coord[a][d], p->coord[b][d]));
    return sum;
}
/* The free node nearest to a node, of equally near ones the lowest: among those whose side is none of the bit set
 * avoid, and on some side at all; with avoid 0 among all. -1 when there is none. */
int32_t place_nearest(const struct place *p, int32_t node, unsigned avoid);
/* Back to the map at launch, everything alive. */
void place_reset(struct place *p);
/* dst becomes the same map as src; both were made with equal arguments. */
void place_copy(struct place *dst, const struct place *src);

/* A plan with room for every slot. returns false when out of memory. */
bool place_plan_init(struct place_plan *plan, const struct place *p);
void place_plan_fini(struct place_plan *plan);

/* A substitution function: list in plan the moves that give plan->slot, whose node just died, a live free node; at most
 * plan->most of them. It starts with plan->count 0, must not change p, and sets plan->bounded when it left out
 * something that would have had more moves. returns false for "cannot": the next step is tried. */
typedef bool place_fn(const struct place *p, int32_t node, struct place_plan *plan, void *arg);

enum { PLACE_MAX_STEPS = 8, PLACE_OWN = -1 };

/* What is tried, in this order. order is q for qD sliding, PLACE_OWN for a caller's function. */
struct place_method {
    char name[64];
    int32_t moves; /* that one failure may cost, 0: any number */
    int steps;
    struct place_step {
        int order;
        place_fn *fn;
        void *arg;
    } step[PLACE_MAX_STEPS];
};

/* In which order slides are tried: the dimensions along which slots move, and for planes and higher ones the further
 * dimensions, from the lowest up or from the highest down. Which one a failure takes decides what is left for the next,
 * so the order matters: docs/placement.md has the measurements behind the default, "yxz": y first, then x, then the
 * others, further dimensions from the lowest up. */
struct place_order {
    uint8_t dim[GRID_MAX_DIMS];
    bool high_first;
};
/* Read "yxz", or "xyz-" with the highest further dimensions first; each of the ndims dimensions x y z u v w once.
 * returns   NULL, or a constant text that says what is wrong. */
const char *place_order_parse(struct place_order *o, const char *text, int ndims);
/* All slides of a method in this order. */
void place_method_order(struct place_method *m, const struct place_order *o);

/* Read "0D", "1D" ... "hybrid(2D+1D+0D)", "hybrid(all)", "hybrid(-2D)" for a grid of ndims dimensions.
 * returns   NULL, or a constant text that says what is wrong. */
const char *place_method_parse(struct place_method *m, const char *text, int ndims);
/* Append a caller's function. returns false when the method is full. */
bool place_method_add(struct place_method *m, place_fn *fn, void *arg);

/* The node is dead from now on. node is 0..nodes-1.
 * returns   PLACE_MOVED when it held a slot (*slot), PLACE_IDLE, or PLACE_REPEAT. */
enum place_result place_fail(struct place *p, int32_t node, int32_t *slot);
/* The node is alive again, or there for the first time. A slot without a node that was lost on it (*slot) is on it
 * again.
 * returns   PLACE_MOVED when there was one, PLACE_IDLE: the node is free, or PLACE_REPEAT: it was alive. */
enum place_result place_return(struct place *p, int32_t node, int32_t *slot);
/* The slot has no node, and gets none any more: nobody runs it. It counts as homeless all the same, and the node on
 * which it was lost is free when it comes back. returns   false: it has one. */
bool place_give_up(struct place *p, int32_t slot);
/* The slot without a node that was lost on this dead node and is not given up, -1 none. */
int32_t place_lost_on(const struct place *p, int32_t node);
/* slot, which has no live node, takes this live one. Who had it has none from then on, as if it had been lost on the
 * dead node lost, where no other such slot is. returns   who had it, -1 nobody. */
int32_t place_take(struct place *p, int32_t slot, int32_t node, int32_t lost);
/* Two slots on live nodes change places. */
void place_swap(struct place *p, int32_t a, int32_t b);
/* Plan for plan->slot, which stood on node. returns false when no step can; the map is unchanged either way.
 * The method's bound on moves never costs a slot its node: when it leaves nothing of what the steps could do, the slot
 * goes to the nearest free node. */
bool place_plan(const struct place *p, const struct place_method *m, int32_t node, int32_t slot,
                struct place_plan *plan);
void place_apply(struct place *p, const struct place_plan *plan);
/* All three. */
enum place_result place_substitute(struct place *p, const struct place_method *m, int32_t node,
                                   struct place_plan *plan);

/* The moves that take slots[0..n-1] (NULL: slots 0..n-1) to to[slot], in an order in which each destination is free at
 * its turn; a ring of slots costs one move more. Nobody else stands on these nodes, at most one slot has no live node
 * (the one whose failure this plan is for), and it is among them. Cost: n. mark has room for all slots and was given to
 * place_arrange_init once. returns  false when no node is free. */
void place_arrange_init(const struct place *p, int32_t *mark);
bool place_arrange(const struct place *p, const int32_t *slots, int32_t n, const int32_t *to, int32_t *mark,
                   struct place_plan *plan);

/* The sliding methods as functions, usable in a caller's own one. arg is place_slide_arg(q, order), or for the default
 * order simply (void *)(intptr_t)q. */
void *place_slide_arg(int q, const struct place_order *o);
bool place_slide(const struct place *p, int32_t node, struct place_plan *plan, void *arg);
/* One slide: along dim in direction dir, of all lines spanned by the dimensions in the bit set across. */
bool place_slide_along(const struct place *p, int32_t node, int dim, int dir, unsigned across, struct place_plan *plan);
/* How many moves that would be for a set of lines (across not empty), -1 when it is impossible or more than most. */
int32_t place_slide_moves(const struct place *p, int32_t node, int dim, int dir, unsigned across, int32_t most);
#endif
