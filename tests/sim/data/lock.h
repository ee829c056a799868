/* Mutexes in the model: who has each, as far as calls that have returned say. What a process is told after it was
 * declared dead is of no account; a process that dies in a call may have had the mutex or not. */
#ifndef KEEL_TESTS_SIM_DATA_LOCK_H
#define KEEL_TESTS_SIM_DATA_LOCK_H

#include "tests/sim/data/world.h"

struct lock {
    struct lock *next;
    int segment, home, number;
    int holder; /* rank, -1: nobody for certain */
    uint32_t incarnation;
    struct region *guarded; /* written by whoever has it */
    uint64_t locked, inherited;
};

/* All mutexes of the planned segment, without what they guard. */
void lock_plan(struct world *w, int segment, int per_rank);
struct lock *lock_find(const struct world *w, int segment, int home, int number);
/* The call said that r has it now; dead: what it said of the holder before. */
void lock_taken(struct world *w, struct runner *r, struct lock *l, int dead);
/* r is about to give it back. */
void lock_given_back(struct world *w, const struct runner *r, struct lock *l);
#endif
