/* Behind what a process has of its own (state.c). */
#include "tests/sim/data/state.h"

char state_end[STATE_PAGE] __attribute__((aligned(STATE_PAGE)));
