/* What the tests of repairs have in common: a world of four agents, a writer and somebody else, and the steps that
 * they take. */
#ifndef KEEL_TESTS_UNIT_DATA_REPAIR_STEPS_H
#define KEEL_TESTS_UNIT_DATA_REPAIR_STEPS_H

#include "world_steps.h"

/* Copyset (slot 0, triple) has its copies on nodes 0, 1, 2; (slot 0, shadow) on 0, 1. The writer is on no node of
 * theirs. */
static struct rank *const writer = &w.rank[3], *const other = &w.rank[1];

static inline struct view_event death_of(int rank)
{
    return (struct view_event){.type = VIEW_RANK_DEAD, .a = (uint32_t)rank, .b = w.rank[rank].incarnation, .c = 9};
}

/* The node stands still, and a view that says that it is dead is settled; nothing is repaired yet. */
static inline void declare_dead(int node)
{
    const struct view_event dead = {.type = VIEW_NODE_DEAD, .a = (uint32_t)node};
    w.node[node].still = true;
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < 4; i++)
        world_settle(i);
}

static inline bool was_submitted(uint32_t seg, int slot)
{
    const struct view_copyset *g = copyset_at(0, seg, slot);
    for (int i = 0; i < w.submissions; i++)
        if (w.submitted[i].type == VIEW_RESTORED && w.submitted[i].d == g->generation &&
            w.submitted[i].a == (uint32_t)copyset_of(slot, store_find(&w.node[0].agent.store, seg)->redundancy))
            return true;
    return false;
}

static inline void announce(struct rank *r, int node, uint32_t seg, uint64_t offset, uint32_t len, uint64_t put,
                            uint8_t level, uint16_t note)
{
    struct wire intent = rank_wire(r, WIRE_INTENT, seg, 0, offset);
    intent.raw.count = len;
    intent.raw.identity = put;
    intent.raw.round = level;
    intent.raw.note = note;
    rank_send(r, node, intent, NULL);
}

static inline int add(struct rank *r, int node, uint32_t seg, uint64_t offset, int64_t value, uint64_t number)
{
    struct wire q = rank_wire(r, WIRE_RMW, seg, 0, offset);
    q.raw.a = value;
    q.raw.identity = number;
    q.raw.round = 5;
    return rank_ask(r, node, q, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#endif
