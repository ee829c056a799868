/* The pattern of the traffic from a few flows: every map of coordinates is recognised, what is none is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/base/rng.h"
#include "runtime/topo/demand.h"

#include <stdlib.h>

static struct grid make(const char *text)
{
    struct grid g;
    assert_null(grid_parse(&g, text));
    return g;
}

/* Where each endpoint sends: exchanged, turned round, shifted. */
static int32_t truth(const struct grid *g, int swap, const int turn[2], const int shift[2], int32_t e)
{
    int at[2] = {grid_coord(g, e, 0), g->ndims > 1 ? grid_coord(g, e, 1) : 0}, to[2] = {0, 0};
    for (int i = 0; i < 2 && i < g->ndims; i++) {
        int c = at[swap ? 1 - i : i];
        to[i] = ((turn[i] ? g->size[i] - 1 - c : c) + shift[i]) % g->size[i];
    }
    return grid_node(g, to);
}

static void test_demand_every_map_is_recognised_from_a_few_flows(void **state)
{
    (void)state;
    static const char *const nets[] = {"32tx32t", "8x8", "6tx5", "24t"};
    struct rng rng;
    rng_seed(&rng, 4);
    for (int round = 0; round < 400; round++) {
        struct grid g = make(nets[round % 4]);
        struct demand d = {0};
        const int turn[2] = {round / 4 % 2, g.ndims > 1 ? round / 8 % 2 : 0};
        const int swap = g.ndims > 1 && g.size[0] == g.size[1] ? round / 16 % 2 : 0;
        const int shift[2] = {(int)rng_below(&rng, (uint64_t)g.size[0]),
                              g.ndims > 1 ? (int)rng_below(&rng, (uint64_t)g.size[1]) : 0};
        for (int i = 0; i < 40; i++) {
            struct demand_flow f = {.from = (int32_t)rng_below(&rng, (uint64_t)g.nodes)};
            f.to = truth(&g, swap, turn, shift, f.from);
            if (f.to != f.from)
                demand_told(&d, &f);
        }
        uint32_t pattern = demand_pattern(&d, &g);
        if (d.used == 0) /* everybody sends to himself */
            continue;
        assert_true(pattern != DEMAND_UNKNOWN && pattern != DEMAND_UNIFORM);
        for (int32_t e = 0; e < g.nodes; e++) {
            int32_t to = truth(&g, swap, turn, shift, e);
            assert_int_equal(demand_partner(pattern, &g, e), to == e ? DEMAND_NOBODY : to);
        }
    }
}

static void test_demand_irregular_traffic_has_no_pattern(void **state)
{
    (void)state;
    struct grid g = make("16tx16t");
    struct rng rng;
    rng_seed(&rng, 9);
    struct demand d = {0};
    for (int32_t e = 0; e < 60; e++) {
        struct demand_flow f = {e, (e + 1 + (int32_t)rng_below(&rng, 255)) % 256};
        assert_true(demand_told(&d, &f));
        assert_false(demand_told(&d, &f)); /* nothing new */
        assert_int_equal(demand_pattern(&d, &g), DEMAND_UNKNOWN);
    }
    assert_int_equal(demand_partner(DEMAND_UNKNOWN, &g, 3), DEMAND_NOBODY);
    /* Two of ten do something else. */
    struct demand mixed = {0};
    for (int32_t e = 0; e < 50; e++)
        demand_told(&mixed, &(struct demand_flow){e, e % 5 ? 255 - e : (e + 100) % 256});
    assert_int_equal(demand_pattern(&mixed, &g), DEMAND_UNKNOWN);
    /* Then they do what all do, and are believed. */
    for (int32_t e = 0; e < 50; e++)
        demand_told(&mixed, &(struct demand_flow){e, 255 - e});
    uint32_t pattern = demand_pattern(&mixed, &g);
    for (int32_t e = 0; e < 256; e++)
        assert_int_equal(demand_partner(pattern, &g, e), 255 - e);
}

static void test_demand_a_source_knows_its_own_flow(void **state)
{
    (void)state;
    struct grid g = make("16tx16t");
    struct demand one = {0}, many = {0}, few = {0};
    struct demand_flow flow[3];
    assert_int_equal(demand_recall(&one, 7, 3, flow), 0);
    for (int i = 0; i < 16; i++) {
        demand_sent(&one, 7, 99);
        demand_sent(&many, 7, 10 * i % 250);
        demand_sent(&few, 7, i % 3);
    }
    demand_told(&one, &(struct demand_flow){8, 98});
    demand_told(&one, &(struct demand_flow){9, 97});
    for (int i = 0; i < 4; i++) {
        assert_int_equal(demand_recall(&one, 7, 2, flow), 2);
        assert_true(flow[0].from == 7 && flow[0].to == 99);
        assert_true(flow[1].from == 8 || flow[1].from == 9);
    }
    assert_int_equal(demand_recall(&one, 7, 3, flow), 3);
    assert_int_equal(demand_recall(&one, 7, 0, flow), 0);
    assert_int_equal(demand_pattern(&one, &g), DEMAND_UNKNOWN); /* three flows are too few */
    assert_int_equal(demand_recall(&many, 7, 3, flow), 1);
    assert_true(flow[0].to == DEMAND_SPREAD);
    assert_int_equal(demand_pattern(&many, &g), DEMAND_UNIFORM);
    assert_int_equal(demand_recall(&few, 7, 3, flow), 0); /* neither to one nor to many */
    /* Who sent to many and now sends to one says so. */
    for (int i = 0; i < 16; i++)
        demand_sent(&many, 7, 99);
    assert_int_equal(demand_recall(&many, 7, 3, flow), 1);
    assert_int_equal(flow[0].to, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demand_every_map_is_recognised_from_a_few_flows),
        cmocka_unit_test(test_demand_irregular_traffic_has_no_pattern),
        cmocka_unit_test(test_demand_a_source_knows_its_own_flow),
    };
    return cmocka_run_group_tests_name("demand", tests, NULL, NULL);
}
