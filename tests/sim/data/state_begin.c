/* Before what a process has of its own (state.c): the linker puts what has no bytes of its own file by file. */
#include "tests/sim/data/state.h"

char state_begin[STATE_PAGE] __attribute__((aligned(STATE_PAGE)));
