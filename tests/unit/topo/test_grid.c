#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/rng.h"
#include "runtime/topo/grid.h"

static struct grid random_grid(struct rng *r)
{
    struct grid g;
    int size[GRID_MAX_DIMS];
    bool torus[GRID_MAX_DIMS];
    int n = 1 + (int)rng_below(r, GRID_MAX_DIMS);
    for (int d = 0; d < n; d++) {
        size[d] = 1 + (int)rng_below(r, 7);
        torus[d] = rng_below(r, 2);
    }
    assert_true(grid_init(&g, n, size, torus));
    return g;
}

static void test_grid_random_sizes_node_and_coords_are_inverse(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 3);
    for (int i = 0; i < 50; i++) {
        struct grid g = random_grid(&r);
        for (int32_t n = 0; n < g.nodes; n++) {
            int c[GRID_MAX_DIMS];
            grid_coords(&g, n, c);
            assert_int_equal(grid_node(&g, c), n);
            for (int d = 0; d < g.ndims; d++)
                assert_int_equal(grid_coord(&g, n, d), c[d]);
        }
    }
}

static void test_grid_route_is_connected_shortest_and_in_dimension_order(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 4);
    for (int i = 0; i < 20000; i++) {
        struct grid g = random_grid(&r);
        int32_t a = (int32_t)rng_below(&r, (uint64_t)g.nodes), b = (int32_t)rng_below(&r, (uint64_t)g.nodes);
        int32_t links[64];
        int n = grid_route(&g, NULL, a, b, links, 64), dim = 0;
        assert_int_equal(n, grid_distance(&g, a, b));
        assert_true(n <= grid_diameter(&g));
        for (int k = 0; k < n; k++) {
            assert_int_equal(grid_link_from(&g, links[k]), a);
            assert_true(grid_link_dim(&g, links[k]) >= dim);
            dim = grid_link_dim(&g, links[k]);
            a = grid_neighbor(&g, a, grid_link_dim(&g, links[k]), grid_link_dir(links[k]));
        }
        assert_int_equal(a, b);
    }
}

static void test_grid_route_2d_goes_x_then_y_or_as_ordered(void **state)
{
    (void)state;
    struct grid g;
    assert_null(grid_parse(&g, "4x3"));
    int32_t l[8];
    assert_int_equal(grid_route(&g, NULL, 0, 6, l, 8), 3); /* (0,0) -> (2,1) */
    assert_int_equal(l[0], grid_link(&g, 0, 0, GRID_UP));
    assert_int_equal(l[1], grid_link(&g, 1, 0, GRID_UP));
    assert_int_equal(l[2], grid_link(&g, 2, 1, GRID_UP));
    const uint8_t yx[] = {1, 0};
    assert_int_equal(grid_route(&g, yx, 6, 0, l, 8), 3);
    assert_int_equal(l[0], grid_link(&g, 6, 1, GRID_DOWN));
    assert_int_equal(l[1], grid_link(&g, 2, 0, GRID_DOWN));
}

static void test_grid_torus_takes_the_shorter_way_and_ties_go_up(void **state)
{
    (void)state;
    struct grid g;
    assert_null(grid_parse(&g, "6t"));
    int32_t l[8];
    assert_int_equal(grid_route(&g, NULL, 0, 5, l, 8), 1);
    assert_int_equal(l[0], grid_link(&g, 0, 0, GRID_DOWN));
    assert_int_equal(grid_route(&g, NULL, 0, 3, l, 8), 3);
    assert_int_equal(l[0], grid_link(&g, 0, 0, GRID_UP));
    assert_int_equal(grid_route(&g, NULL, 3, 0, l, 8), 3);
    assert_int_equal(l[0], grid_link(&g, 3, 0, GRID_UP));
    assert_int_equal(grid_neighbor(&g, 5, 0, GRID_UP), 0);
}

static void test_grid_parse_bad_text_says_why(void **state)
{
    (void)state;
    struct grid g;
    const char *bad[] = {
        "",    "x", "4x", "4xx4", "0x3", "-1x3", "4y4", "2x2x2x2x2x2x2", "100000x100000", "99999999999999999999",
        "4tt", " 4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(grid_parse(&g, bad[i]));
    char buf[96];
    assert_null(grid_parse(&g, "8tx8tx16"));
    assert_string_equal(grid_format(&g, buf, sizeof buf), "8tx8tx16");
    assert_int_equal(g.nodes, 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_random_sizes_node_and_coords_are_inverse),
        cmocka_unit_test(test_grid_route_is_connected_shortest_and_in_dimension_order),
        cmocka_unit_test(test_grid_route_2d_goes_x_then_y_or_as_ordered),
        cmocka_unit_test(test_grid_torus_takes_the_shorter_way_and_ties_go_up),
        cmocka_unit_test(test_grid_parse_bad_text_says_why),
    };
    return cmocka_run_group_tests_name("grid", tests, NULL, NULL);
}
