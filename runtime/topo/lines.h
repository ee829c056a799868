/* Which moves of a plan wait for each other, and what the plan costs.
 *
 * A move waits for the one that leaves its destination. Moves that wait in this way form a line: the first goes to a
 * node that is free, each further one to the node that the one before it leaves. Along a line nodes can send on
 * while they receive (a pipeline); different lines have no node in common and may go side by side. A slot that steps
 * aside in a ring is in its line twice, and so is the node it steps aside to.
 *
 * threads   one caller at a time. blocks never. Only lines_init allocates. */
#ifndef KEEL_TOPO_LINES_H
#define KEEL_TOPO_LINES_H
#include "runtime/topo/place.h"

struct lines {
    struct place_move *move; /* [count] line after line, each in its order */
    int32_t *first;          /* [lines + 1] where each line begins in move */
    int32_t count, lines, cap;
    int32_t *left, *next; /* scratch: [nodes] the move that left a node, [cap] the one that waits for a move */
    int32_t *times;       /* scratch: [slots] */
};

/* Sums of bytes; with bytes NULL each slot has one, and the sums count moves. */
struct lines_cost {
    int32_t moves, lines;
    int32_t longest;    /* moves of the longest line */
    int64_t bytes;      /* that move */
    int64_t one_by_one; /* the critical path when a node must have given before it takes: bytes of the heaviest line */
    int64_t
        pipelined; /* and when it sends on while it receives: most bytes of one slot, twice for one that steps aside */
};

/* Room for any plan of p. returns   false when out of memory. */
bool lines_init(struct lines *l, const struct place *p);
void lines_fini(struct lines *l);
/* Begin with none; add the moves of a line in order, then end it. */
void lines_clear(struct lines *l);
void lines_add(struct lines *l, int32_t slot, int32_t from, int32_t to);
void lines_end(struct lines *l);
/* The lines of a plan, in the order of their first moves. */
void lines_of_plan(struct lines *l, const struct place_plan *plan);
/* bytes     [slots], or NULL. */
struct lines_cost lines_cost(struct lines *l, const int64_t *bytes);
#endif
