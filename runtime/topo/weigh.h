/* What a plan costs: the time its moves take, once, and the time that colliding messages take, at every step.
 *
 *   moving      slots that live send all they have over the links on their way, every node to one and from one at a
 *               time; moves of a line are a pipeline and those of different lines go side by side, so the time is that
 *               of the link, or of the node's end, over which most bytes go. A slot that was lost comes from the node
 *               that has a copy of it (made_from). Where a slot that lives moves, its ranks end and begin once more,
 *               all at the same time.
 *   colliding   each slot sends a message to each of its peers in a step. The step waits for the link that most of them
 *               cross (Spare-nodes, "collisions"): so many messages one after the other. What there is more of than in
 *               the map at launch is lost.
 *
 * cost = moving + steps to come * what is lost in one. All in integers, so whoever has the same figures, map and plan
 * comes to the same cost, on any machine; sums that would not fit stay at the greatest number.
 *
 * threads   one caller at a time. blocks never. Only weigh_init allocates. source new; Spare-nodes compares collisions
 *           and has the time of a migration as future work. */
#ifndef KEEL_TOPO_WEIGH_H
#define KEEL_TOPO_WEIGH_H
#include "runtime/topo/place.h"

/* To whom a slot sends, on the grid of slots and not around its ends. A shape of another number of dimensions than the
 * grid's counts as that of the grid's number. */
enum weigh_shape {
    WEIGH_NOTHING, /* nobody knows */
    WEIGH_STAR,    /* both neighbours in each dimension: 5p, 7p */
    WEIGH_BOX,     /* all around, diagonals too: 9p, 27p */
    WEIGH_RING,    /* the next slot, and the last one to the first */
    WEIGH_ALL,     /* everybody; beyond WEIGH_PEERS slots to so many of them, evenly apart, and each for several */
    WEIGH_SHAPES
};
enum { WEIGH_PEERS = 256 };

/* What was declared, counted and measured, and how long it is to count. */
struct weigh_figures {
    enum weigh_shape shape;
    bool declared;          /* by the program; else counted */
    uint64_t message_bytes; /* from one slot to another, in a step */
    uint64_t steps_per_ks;  /* in 1000 s */
    uint64_t link_rate;     /* bytes per second, above 0 */
    uint64_t begin_us;      /* until a rank that moves has ended and begun again */
    uint64_t horizon_ms;    /* the time in which a plan is to pay */
};

struct weigh_price {
    int32_t moves;
    int32_t crossing;                            /* messages of a step over the most used link */
    int64_t hops;                                /* links that the messages of a step cross in all */
    uint64_t move_ns, step_ns, lost_ns, cost_ns; /* step_ns: lost in one step, lost_ns: in all that are to come */
};

struct weigh {
    const struct place *place;
    struct weigh_figures figures;
    uint64_t *slot_bytes;            /* [slots] */
    int32_t *made_from;              /* [slots] the node that has a copy if the slot is lost, -1: who knows */
    int32_t at_launch[WEIGH_SHAPES]; /* messages over the most used link then; -1: not counted yet */
    /* scratch */
    int32_t *at;        /* [slots] the map that the plan ends in, -1: no node */
    int32_t *messages;  /* [links] */
    uint64_t *over;     /* [links] bytes of moves, */
    uint64_t *in, *out; /* [nodes] and of those that end and begin on a node */
};

/* Nothing is known yet: of the shape WEIGH_NOTHING, and slots have no bytes. p outlives w. returns   false when out of
 * memory. */
bool weigh_init(struct weigh *w, const struct place *p);
void weigh_fini(struct weigh *w);
/* The plan, from the place's map on. A shape that is nothing has no collisions. */
struct weigh_price weigh_plan(struct weigh *w, const struct place_plan *plan);
/* Is a to be preferred? Lower cost; then fewer messages over the most used link, fewer links crossed, fewer moves. */
bool weigh_better(const struct weigh_price *a, const struct weigh_price *b);
/* a * b / c, rounded down; the greatest number if it would not fit, or c is 0. */
uint64_t weigh_part(uint64_t a, uint64_t b, uint64_t c);
#endif
