#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/topo/fabric.h"
#include "tests/unit/route/cables.h"

#include <stdio.h>
#include <string.h>

static struct fabric make(const char *text)
{
    struct fabric f;
    const char *wrong = fabric_parse(&f, text);
    if (wrong)
        fail_msg("%s: %s", text, wrong);
    return f;
}

/* Shortest distances from one router, by relaxation: slow and independent of the routes. */
static void distances(const struct fabric *f, int32_t from, int *dist)
{
    for (int32_t r = 0; r < f->routers; r++)
        dist[r] = r == from ? 0 : 1 << 20;
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t l = 0; l < fabric_links(f); l++)
            if (f->neighbor[l] >= 0 && dist[l / f->ports] + 1 < dist[f->neighbor[l]]) {
                dist[f->neighbor[l]] = dist[l / f->ports] + 1;
                changed = true;
            }
    }
}

static void assert_cables_join_both_ways(const struct fabric *f)
{
    for (int32_t l = 0; l < fabric_links(f); l++) {
        if (f->neighbor[l] < 0)
            continue;
        int32_t back = f->reverse[l];
        assert_int_equal(f->reverse[back], l);
        assert_int_equal(f->neighbor[back], l / f->ports);
        assert_int_equal(back / f->ports, f->neighbor[l]);
        assert_int_equal(fabric_cable(f, l), fabric_cable(f, back));
        /* A path can be made of any hops. */
        assert_int_equal(fabric_next(f, l / f->ports, f->neighbor[l], 0), l % f->ports);
    }
}

static void test_fabric_grids_route_minimally_between_all_routers(void **state)
{
    (void)state;
    const char *const texts[] = {"7", "6t", "2t", "4x3", "5tx4t", "2tx3", "3x2tx4t"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fabric f = make(texts[i]);
        assert_cables_join_both_ways(&f);
        int dist[64];
        assert_in_range(f.routers, 1, 64);
        for (int32_t a = 0; a < f.routers; a++) {
            distances(&f, a, dist);
            for (int32_t b = 0; b < f.routers; b++)
                assert_int_equal(fabric_hops(&f, a, b, b), dist[b]);
        }
        fabric_fini(&f);
    }
}

static void test_fabric_trees_route_minimally_between_endpoints(void **state)
{
    (void)state;
    const char *const texts[] = {"tree:2,3", "tree:4,2", "tree:3,3", "tree:2,5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fabric f = make(texts[i]);
        assert_cables_join_both_ways(&f);
        int dist[128] = {0};
        assert_in_range(f.routers, 1, 128);
        for (int32_t a = 0; a < f.endpoints; a++) {
            distances(&f, fabric_home(&f, a), dist);
            for (int32_t b = 0; b < f.endpoints; b++)
                assert_int_equal(fabric_hops(&f, fabric_home(&f, a), fabric_home(&f, b), b), dist[fabric_home(&f, b)]);
        }
        fabric_fini(&f);
    }
}

/* Each named once, none forgotten, all of them on shortest ways. */
static void test_fabric_ancestors_are_all_the_turning_points_of_shortest_ways(void **state)
{
    (void)state;
    struct fabric f = make("tree:3,4");
    int32_t from = fabric_home(&f, 0);
    int up[108] = {0}, down[108] = {0};
    assert_int_equal(f.routers, 108);
    distances(&f, from, up);
    for (int32_t dest = 3; dest < f.endpoints; dest++) {
        int32_t to = fabric_home(&f, dest), turning = 0, n = 0, top;
        distances(&f, to, down);
        for (int32_t r = 0; r < f.routers; r++)
            turning += to != from && up[r] == down[r] && 2 * up[r] == up[to];
        bool seen[108] = {false};
        for (; to != from && (top = fabric_ancestor(&f, from, to, n)) >= 0; n++) {
            assert_true(up[top] == down[top] && 2 * up[top] == up[to] && !seen[top]);
            seen[top] = true;
        }
        assert_int_equal(n, turning);
    }
    fabric_fini(&f);
}

static void test_fabric_trees_reach_every_switch_from_every_switch(void **state)
{
    (void)state;
    struct fabric f = make("tree:3,4");
    for (int32_t a = 0; a < f.routers; a++)
        for (int32_t b = 0; b < f.routers; b++) {
            int32_t at = a;
            int hops = 0;
            for (int port; (port = fabric_next(&f, at, b, 5)) >= 0; hops++) {
                at = f.neighbor[at * f.ports + port];
                assert_true(at >= 0 && hops < 4 * f.levels);
            }
            assert_int_equal(at, b);
        }
    fabric_fini(&f);
}

/* The endpoints of one switch are reached from afar through different roots. */
static void test_fabric_trees_spread_destinations_over_roots(void **state)
{
    (void)state;
    struct fabric f = make("tree:4,2");
    int32_t roots[4];
    for (int e = 0; e < 4; e++) {
        int port = fabric_next(&f, fabric_home(&f, 15), fabric_home(&f, e), e);
        roots[e] = f.neighbor[fabric_home(&f, 15) * f.ports + port];
        for (int d = 0; d < e; d++)
            assert_int_not_equal(roots[d], roots[e]);
    }
    fabric_fini(&f);
}

static void test_fabric_32x32_torus_has_2048_cables_and_mean_distance_16(void **state)
{
    (void)state;
    struct fabric f = make("32tx32t");
    assert_int_equal(fabric_cables(&f), 2048);
    double sum = 0;
    for (int32_t a = 0; a < f.routers; a++)
        for (int32_t b = 0; b < f.routers; b++)
            sum += fabric_hops(&f, a, b, b);
    assert_true(sum / f.routers / f.routers == 16.0);
    assert_true(fabric_bisection_bound(&f) == 0.25);
    fabric_fini(&f);
}

static void test_fabric_hops_avoiding_agrees_with_the_walk(void **state)
{
    (void)state;
    const char *const texts[] = {"5tx4t", "tree:2,3"};
    for (size_t i = 0; i < 2; i++) {
        struct fabric f = make(texts[i]);
        uint8_t avoid[256] = {0};
        assert_in_range(fabric_links(&f), 1, 256);
        avoid[7] = 1;
        for (int32_t a = 0; a < f.endpoints; a++)
            for (int32_t b = 0; b < f.endpoints; b++) {
                int32_t at = fabric_home(&f, a);
                int hops = 0;
                bool met = false;
                for (int port; (port = fabric_next(&f, at, fabric_home(&f, b), b)) >= 0; hops++) {
                    met |= at * f.ports + port == 7;
                    at = f.neighbor[at * f.ports + port];
                }
                int got = fabric_hops_avoiding(&f, fabric_home(&f, a), at, b, avoid, 100);
                assert_int_equal(got, met ? -1 : hops);
                if (hops > 0)
                    assert_int_equal(fabric_hops_avoiding(&f, fabric_home(&f, a), at, b, avoid, hops - 1), -1);
            }
        fabric_fini(&f);
    }
}

/* Coordinates of a router that are neither of the two ends'. */
static int inside(const struct fabric *f, int32_t via, int32_t from, int32_t to)
{
    int n = 0;
    for (int d = 0; d < f->grid.ndims; d++) {
        int c = grid_coord(&f->grid, via, d);
        n += c != grid_coord(&f->grid, from, d) && c != grid_coord(&f->grid, to, d);
    }
    return n;
}

/* A random router on a shortest way: on the corners of the box but for `inner` dimensions, or a lowest common
 * ancestor. */
static void test_fabric_between_is_on_a_shortest_way_and_anywhere_on_it(void **state)
{
    (void)state;
    const char *const texts[] = {"12t", "7x6", "8tx5t", "4tx3x5t", "tree:3,3"};
    struct rng rng;
    rng_seed(&rng, 3);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fabric f = make(texts[i]);
        bool tree = f.kind == FABRIC_TREE;
        int dims = tree ? 0 : f.grid.ndims;
        for (int n = 0; n < 2000; n++) {
            int32_t from = fabric_home(&f, (int32_t)rng_below(&rng, (uint64_t)f.endpoints));
            int32_t dest = (int32_t)rng_below(&rng, (uint64_t)f.endpoints), to = fabric_home(&f, dest);
            int inner = (int)rng_below(&rng, 5);
            int32_t via = fabric_between(&f, from, to, inner, &rng);
            assert_in_range(via, 0, f.routers - 1);
            assert_int_equal(fabric_hops(&f, from, via, dest) + fabric_hops(&f, via, to, dest),
                             fabric_hops(&f, from, to, dest));
            assert_true(tree || inside(&f, via, from, to) <= inner);
        }
        int32_t from = fabric_home(&f, 0), to = fabric_home(&f, tree ? f.endpoints - 1 : f.endpoints / 2 + 1), seen = 0;
        uint8_t met[64] = {0};
        assert_in_range(f.routers, 1, 64);
        for (int n = 0; n < 4000; n++)
            met[fabric_between(&f, from, to, dims, &rng)] = 1;
        for (int32_t r = 0; r < f.routers; r++)
            seen += met[r];
        assert_true(seen > 1);
        fabric_fini(&f);
    }
}

/* Rails hang on their node by links that are no hop and cannot break. */
static void test_fabric_full_joins_all_nodes_on_each_rail(void **state)
{
    (void)state;
    enum { NODES = 4, RAILS = 3 };
    struct fabric f;
    assert_null(fabric_full(&f, NODES, RAILS));
    assert_int_equal(f.endpoints, NODES);
    assert_int_equal(f.routers, NODES * RAILS);
    assert_int_equal(fabric_cables(&f), RAILS * NODES * (NODES - 1) / 2);
    for (int32_t node = 0; node < NODES; node++)
        for (int rail = 1; rail < RAILS; rail++) {
            int32_t router = rail * NODES + node, to = (node + 1) % NODES;
            assert_true(fabric_firm(&f, node * f.ports + fabric_next(&f, node, router, node)));
            assert_int_equal(fabric_hops(&f, node, router, node), 0);
            assert_int_equal(fabric_hops(&f, router, rail * NODES + to, to), 1);
            assert_false(fabric_firm(&f, router * f.ports + fabric_next(&f, router, rail * NODES + to, to)));
        }
    fabric_fini(&f);
}

static void test_fabric_parse_malformed_says_why(void **state)
{
    (void)state;
    const char *const texts[] = {"",
                                 "0x4",
                                 "x",
                                 "4x",
                                 "tree:",
                                 "tree:1,3",
                                 "tree:4",
                                 "tree:4,2,1",
                                 "tree:64,12",
                                 "tree:999999999999,2",
                                 "99999999999999999999x3",
                                 "100000x100000",
                                 "4x4y",
                                 "tree:-3,2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fabric f;
        assert_non_null(fabric_parse(&f, texts[i]));
        assert_null(f.neighbor);
    }
}

static void test_fabric_format_reads_back(void **state)
{
    (void)state;
    const char *const texts[] = {"32tx32t", "4x3", "tree:4,3"};
    char buf[96];
    for (size_t i = 0; i < 3; i++) {
        struct fabric f = make(texts[i]);
        assert_string_equal(fabric_format(&f, buf, sizeof buf), texts[i]);
        fabric_fini(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fabric_grids_route_minimally_between_all_routers),
        cmocka_unit_test(test_fabric_trees_route_minimally_between_endpoints),
        cmocka_unit_test(test_fabric_ancestors_are_all_the_turning_points_of_shortest_ways),
        cmocka_unit_test(test_fabric_trees_reach_every_switch_from_every_switch),
        cmocka_unit_test(test_fabric_trees_spread_destinations_over_roots),
        cmocka_unit_test(test_fabric_32x32_torus_has_2048_cables_and_mean_distance_16),
        cmocka_unit_test(test_fabric_hops_avoiding_agrees_with_the_walk),
        cmocka_unit_test(test_fabric_between_is_on_a_shortest_way_and_anywhere_on_it),
        cmocka_unit_test(test_fabric_full_joins_all_nodes_on_each_rail),
        cmocka_unit_test(test_fabric_parse_malformed_says_why),
        cmocka_unit_test(test_fabric_format_reads_back),
    };
    return cmocka_run_group_tests_name("fabric", tests, NULL, NULL);
}
