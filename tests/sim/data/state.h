/* The variables of code that a program has once, and this simulation for each process: those of runtime/client/replica.
 * All simulated processes have them at one address; behind it is the memory of the one that runs. */
#ifndef KEEL_TESTS_SIM_DATA_STATE_H
#define KEEL_TESTS_SIM_DATA_STATE_H

enum { STATE_PAGE = 4096, STATES_MAX = 16 };

extern char state_begin[STATE_PAGE], state_end[STATE_PAGE];

/* The process of that number begins: its variables are as when a program begins. */
void state_new(int number);
/* It runs. */
void state_enter(int number);
/* Where that memory of the process that runs is whoever runs: what comes later goes there. */
void *state_place(void *memory);
#endif
