/* What the tests of executing have in common: a world of three agents, a writer, and its usual requests. */
#ifndef KEEL_TESTS_UNIT_DATA_EXECUTE_STEPS_H
#define KEEL_TESTS_UNIT_DATA_EXECUTE_STEPS_H

#include "agents.h"
#include "memory.h"
#include "runtime/agent/execute.h"

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

/* The writer's connection to that node. */
static inline struct conn *conn_of_writer(int node)
{
    struct conn *c = w.node[node].agent.conns;
    while (c->life.rank != 2)
        c = c->next;
    return c;
}

/* The put comes to node 0, whose next allocation fails. */
static inline void ask_without_memory(const struct wire *put, const void *value)
{
    memory_fail_at(1);
    execute_request(&w.node[0].agent, conn_of_writer(0), put, value);
    assert_true(memory_failed());
    world_pump();
}

static inline struct wire add_of(uint32_t seg, int slot, int64_t value, uint64_t number)
{
    struct wire add = rank_wire(writer, WIRE_RMW, seg, slot, 8);
    add.raw.a = value;
    add.raw.identity = number;
    return add;
}

static const struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 0, .b = 0};

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#endif
