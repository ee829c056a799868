/* The lanes of a rank: an operation that must count once is (rank, incarnation, lane, number) to agents
 * (agent/dedup.h). Of the operations of a lane at most one is under way, and numbers only grow, so the last one of each
 * decides every retry. Pure.
 *
 * Names follow the order of the program's calls, and never which answers have come: two processes that make the same
 * calls, and are told the same by them, name each operation alike.
 *
 *   - A lane is taken until the program was told that its operation has ended: by the call itself if that blocks, by
 *     the wait, the test or the next use of its handle, or, if it is implicit, by a fence that covers it. An operation
 *     takes the lowest lane that is free in this sense. So agents, which keep a record for each lane up to the highest
 *     one seen, keep few where few operations are under way.
 *   - Where none is free it takes the one that was taken first, and goes out when what that lane has under way has
 *     ended. Those who took other lanes do not wait for that, and nobody waits for a lane while others are free. A
 *     handle that the program has forgotten loses its lanes so, too.
 *
 * The order of calls is that in which the program's threads take the client's lock. With one thread it is the
 * program's. Two processes whose threads call side by side have the same one only as far as the program itself orders
 * these calls.
 *
 * What the processor's atomics do (near.h) has no name: no agent hears of it. */
#ifndef KEEL_CLIENT_OP_LANE_H
#define KEEL_CLIENT_OP_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/limits.h"

/* The name of an operation, from lanes_take on; it stays where it is until lanes_end. Zeroed at first. */
struct lane_op {
    int lane;
    bool waits;      /* for its turn: its lane has another one under way. Else it may go out */
    uint64_t number; /* 0: it has no name */
    struct lane_op *behind;
};

struct lane {
    uint64_t number;              /* of the last operation that took it */
    struct lane_op *first, *last; /* those that have not ended; all but the first wait */
    /* while it is taken */
    int rank;             /* whose part it is to, if it is implicit; else -1 */
    uint64_t before;      /* the lane that the same handle took before this one */
    int16_t older, newer; /* + 1, among those that are taken; 0: none */
};

enum { LANE_WORDS = LANES_MAX / 64 };

/* Zeroed at first. */
struct lanes {
    bool apart;                                       /* the first lane is set apart */
    uint64_t taken[LANE_WORDS], implicit[LANE_WORDS]; /* bit set: it is */
    int16_t oldest, newest;                           /* as in struct lane */
    struct lane lane[LANES_MAX];
};

/* The operation gets its name. rank: whose part it is to, if it is implicit; else -1. handle: what its handle has of
 * lanes, 0 at first, below 2^56; NULL: it has none. */
void lanes_take(struct lanes *l, struct lane_op *o, int rank, uint64_t *handle);
/* From now on the first lane is for operations that have no part in an order, and for no others, which so have the same
 * names however many of these get one. Before any is taken. */
void lanes_set_apart(struct lanes *l);
/* Such an operation, which is its call's own, gets its name. */
void lanes_take_apart(struct lanes *l, struct lane_op *o);
/* The number of the next one, which goes without its lane to as many copies of what it changes as the caller likes; no
 * other of that lane is under way meanwhile. */
uint64_t lanes_draw_apart(struct lanes *l);
/* Is none taken, but that which is set apart? Then the numbers are all that another process has to know to name its
 * operations as this one would: numbers [LANES_MAX], and it goes on with them. */
bool lanes_are_free(const struct lanes *l);
void lanes_numbers(const struct lanes *l, uint64_t *numbers);
void lanes_go_on(struct lanes *l, const uint64_t *numbers);
/* It has its answer, or is given up and never sent again. Returns whose turn has come by that; NULL: nobody's. */
struct lane_op *lanes_end(struct lanes *l, struct lane_op *o);

/* The program was told: by the call, which is the operation's own; by a handle that has these; by a fence of implicit
 * ones, for the parts of a rank, or of all (-1). */
void lanes_told_by_call(struct lanes *l, const struct lane_op *o);
void lanes_told_by_handle(struct lanes *l, uint64_t handle);
void lanes_told_by_fence(struct lanes *l, int rank);
#endif
