/* A world of four agents for each test, and nothing of it left. */
#ifndef KEEL_TESTS_UNIT_DATA_WORLD_STEPS_H
#define KEEL_TESTS_UNIT_DATA_WORLD_STEPS_H

#include "agents.h"
#include "memory.h"

static inline int setup(void **state)
{
    (void)state;
    world_open(4, 0, VIEW_DEGRADE);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    world_close();
    return memory_living() == 0 ? 0 : -1;
}
#endif
