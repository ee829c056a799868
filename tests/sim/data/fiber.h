/* Fibers: what a simulated process runs on. A fiber that is never resumed is a process that was killed, or is frozen,
 * at exactly that place. One thread; the scheduler resumes, the fiber suspends itself. */
#ifndef KEEL_TESTS_SIM_DATA_FIBER_H
#define KEEL_TESTS_SIM_DATA_FIBER_H

#include <stdbool.h>

struct fiber;

/* It begins with the first resume. The program ends if memory is out, as everywhere in this test. */
struct fiber *fiber_create(void (*run)(void *arg), void *arg);
/* Run it until it suspends itself or returns. Not from inside a fiber. */
void fiber_resume(struct fiber *f);
/* From inside: back to who resumed. */
void fiber_suspend(void);
/* The fiber that runs, or NULL. */
struct fiber *fiber_current(void);
bool fiber_is_done(const struct fiber *f);
/* Wherever it is, not the one that runs. */
void fiber_destroy(struct fiber *f);
/* The one that runs will not go on: we are back on the scheduler's stack, whatever way. */
void fiber_abandon(void);
#endif
