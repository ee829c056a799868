/* What tests of agents of several sets have in common. The k-th rank of set s is native rank s * RANKS + k, on the node
 * of that number. */
#ifndef KEEL_TESTS_UNIT_DATA_SETS_STEPS_H
#define KEEL_TESTS_UNIT_DATA_SETS_STEPS_H

#include <string.h>

#include "agents.h"
#include "memory.h"
#include "runtime/agent/segments.h"
#include "runtime/wire/arith.h"

enum { AT = 8 };
#define SEG_OF_SETS (SEGMENT_GROUP_FIRST + 7)
#define SEG_WITH_SHADOWS (SEGMENT_GROUP_FIRST + 8)

static struct replica_map map;

static inline int open_sets_and_spares(int replicas, int ranks, int spares)
{
    if (!replica_map_init(&map, ranks, replicas))
        return -1;
    w.replicas = &map;
    world_open(replicas * ranks, spares, VIEW_DEGRADE);
    for (int i = 0; i < w.nodes + spares; i++) {
        struct agent *a = &w.node[i].agent;
        assert_int_equal(store_define(&a->store, SEG_OF_SETS, SEG_BYTES, 0, 0), KEEL_OK);
        assert_int_equal(segments_make_copies(a, store_find(&a->store, SEG_OF_SETS)), KEEL_OK);
        assert_int_equal(store_define(&a->store, SEG_WITH_SHADOWS, SEG_BYTES, 1, 0), KEEL_OK);
        assert_int_equal(segments_make_copies(a, store_find(&a->store, SEG_WITH_SHADOWS)), KEEL_OK);
    }
    return 0;
}

static inline int open_sets(int replicas, int ranks)
{
    return open_sets_and_spares(replicas, ranks, 0);
}

static inline int two_sets(void **state)
{
    (void)state;
    return open_sets(2, 2);
}

static inline int three_sets(void **state)
{
    (void)state;
    return open_sets(3, 1);
}

static inline int teardown(void **state)
{
    (void)state;
    world_close();
    replica_map_fini(&map);
    return memory_living() == 0 ? 0 : -1;
}

static inline struct wire of_sets(int native, uint8_t type, int slot, uint32_t lane, uint64_t number)
{
    struct wire wire = rank_wire(&w.rank[native], type, SEG_NONE, slot, AT);
    wire.raw.seg = SEG_OF_SETS;
    wire.raw.identity = number;
    wire.raw.round = lane;
    return wire;
}

static inline struct wire swap_of(int native, int slot, uint32_t lane, uint64_t number, int64_t to)
{
    struct wire wire = of_sets(native, WIRE_RMW, slot, lane, number);
    wire.raw.count = ARITH_SWAP;
    wire.raw.a = to;
    return wire;
}

static inline void ask(int native, struct wire wire, const void *body)
{
    rank_send(&w.rank[native], wire.raw.slot, wire, body);
    world_pump();
}

static inline int64_t word(int node)
{
    int64_t value;
    memcpy(&value, store_copy(&w.node[node].agent.store, SEG_OF_SETS, node)->base + AT, sizeof value);
    return value;
}
#endif
