/* What members that share memory do in a call: each gives its bytes, and computes its result from everybody's, in turns
 * of a board (collectives/board.h). Pure. The order of operands is that of the schedules (collectives/schedule.h), so
 * that a call has the same bits whichever way it goes. */
#ifndef KEEL_COLLECTIVES_TOGETHER_H
#define KEEL_COLLECTIVES_TOGETHER_H

#include "collectives/board.h"
#include "collectives/engine.h"

/* One member's part in one call. Members of the call are those of live, by their numbers in the group of n. */
struct together {
    const struct engine_call *call;
    const struct roster *live;
    int n, self;
    size_t piece; /* bytes of the call's len in a turn */
    size_t given; /* bytes that a member gives in a turn, at most */
    unsigned turns;
    uint8_t *scratch; /* TOGETHER_SCRATCH bytes, for reductions over more than two members */
};

enum { TOGETHER_SCRATCH = 6 * BOARD_CHUNK };

/* False: it cannot be done so, or the schedules do it better. Else turns, an odd number. */
bool together_begin(struct together *t, const struct engine_call *call, const struct roster *live, int n, int self);
/* Before the turn is posted: the own bytes. */
void together_give(const struct together *t, const struct board *b, int lane, uint64_t turn, unsigned chunk);
/* It is met: what is the caller's of it. *value: of an agreement. */
void together_take(const struct together *t, const struct board *b, int lane, uint64_t turn, unsigned chunk,
                   uint64_t *value);
#endif
