/* What the tests of executing have in common: a world of three agents, a writer, and its usual requests. */
#ifndef KEEL_TESTS_UNIT_DATA_EXECUTE_STEPS_H
#define KEEL_TESTS_UNIT_DATA_EXECUTE_STEPS_H

#include "agents.h"
#include "memory.h"

static inline int setup(void **state)
{
    (void)state;
    world_open(3, 0, VIEW_DEGRADE);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    world_close();
    return memory_living() == 0 ? 0 : -1;
}

static struct rank *const writer = &w.rank[2];

static inline struct wire add_of(uint32_t seg, int slot, int64_t value, uint64_t number)
{
    struct wire add = rank_wire(writer, WIRE_RMW, seg, slot, 8);
    add.a = value;
    add.identity = number;
    return add;
}

static const struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 0, .b = 0};

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#endif
