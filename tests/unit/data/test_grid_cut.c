/* Ranks as a grid: how it is cut, against all ways; coordinates; hops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/client/job/grid.h"

enum { SEED = 7 };

/* A job of so many ranks on each of the nodes, in their order. */
static struct page *page_of(uint32_t nodes, uint32_t each)
{
    struct page *p = calloc(1, page_bytes(nodes, nodes, nodes * each));
    assert_non_null(p);
    p->nodes = p->members = nodes;
    p->ranks = nodes * each;
    for (uint32_t r = 0; r < p->ranks; r++) {
        page_rank(p, (int)r)->slot = r / each;
        page_rank(p, (int)r)->index = r % each;
    }
    return p;
}

static void on_grid(struct page *p, int dims, const int *slots)
{
    p->grid.dims = (uint32_t)dims;
    for (int d = 0; d < dims; d++) {
        p->grid.slots[d] = slots[d];
        p->grid.size[d] = slots[d] + 1;
    }
}

static void expect_sides(const int *side, int a, int b, int c)
{
    assert_int_equal(side[0], a);
    assert_int_equal(side[1], b);
    assert_int_equal(side[2], c);
    for (int d = 3; d < KEEL_GRID_DIMS_MAX; d++)
        assert_int_equal(side[d], 1);
}

static void expect_cut(uint32_t ranks, int dims, const int64_t *extent, int a, int b, int c)
{
    struct page *p = page_of(ranks, 1);
    keel_grid g;
    assert_int_equal(grid_make(p, dims, extent, &g), KEEL_OK);
    assert_int_equal(g.dims, dims);
    expect_sides(g.size, a, b, c);
    expect_sides(g.block, a, b, c);
    assert_true(grid_is_whole(&g));
    free(p);
}

static void test_grid_cut_has_the_fewest_faces(void **state)
{
    (void)state;
    expect_cut(1, 2, NULL, 1, 1, 1);
    expect_cut(12, 2, NULL, 4, 3, 1);
    expect_cut(2, 2, NULL, 2, 1, 1);
    expect_cut(7, 2, NULL, 7, 1, 1);
    expect_cut(8, 3, NULL, 2, 2, 2);
    expect_cut(24, 3, NULL, 4, 3, 2);
    expect_cut(6, 1, NULL, 6, 1, 1);
    expect_cut(4, 2, (int64_t[]){1000, 10}, 4, 1, 1);
    expect_cut(4, 2, (int64_t[]){10, 1000}, 1, 4, 1);
    expect_cut(4, 2, (int64_t[]){3, 3}, 2, 2, 1); /* 4 by 1 has more ranks than elements */
}

static void test_grid_cut_refuses_what_is_no_grid(void **state)
{
    (void)state;
    struct page *p = page_of(7, 1);
    keel_grid g;
    assert_int_equal(grid_make(p, 2, (int64_t[]){6, 6}, &g), KEEL_ERR_LIMIT);
    assert_int_equal(grid_make(p, -1, NULL, &g), KEEL_ERR_ARG);
    assert_int_equal(grid_make(p, 7, NULL, &g), KEEL_ERR_ARG);
    assert_int_equal(grid_make(p, 0, (int64_t[]){6, 6}, &g), KEEL_ERR_ARG);
    assert_int_equal(grid_make(p, 2, NULL, NULL), KEEL_ERR_ARG);
    assert_int_equal(grid_make(p, 2, (int64_t[]){0, 6}, &g), KEEL_ERR_ARG);
    assert_int_equal(grid_make(p, 2, (int64_t[]){1 << 21, 1 << 20}, &g), KEEL_ERR_ARG);
    assert_int_equal(grid_make(p, 2, (int64_t[]){1 << 20, 1 << 20}, &g), KEEL_OK);
    free(p);
}

static void test_grid_cut_follows_the_nodes(void **state)
{
    (void)state;
    struct page *p = page_of(12, 6);
    keel_grid g;
    on_grid(p, 2, (int[]){4, 3});
    assert_int_equal(grid_make(p, 0, NULL, &g), KEEL_OK); /* 8x9: of 12x6, 24x3 and 4x18 each has more faces */
    expect_sides(g.size, 8, 9, 1);
    expect_sides(g.block, 2, 3, 1);
    int at[KEEL_GRID_DIMS_MAX];
    grid_coords_of(&g, 6 * 5 + 3, at); /* node 5 is at 1,1; of its block rank 3 is at 1,1 */
    assert_int_equal(at[0], 3);
    assert_int_equal(at[1], 4);
    for (int r = 0; r < 72; r++) {
        grid_coords_of(&g, r, at);
        assert_int_equal(grid_rank_of(&g, at), r);
    }
    assert_int_equal(grid_make(p, 2, (int64_t[]){8, 100}, &g), KEEL_OK);
    expect_sides(g.block, 1, 6, 1);
    assert_int_equal(grid_make(p, 2, (int64_t[]){3, 100}, &g), KEEL_OK); /* four nodes side by side do not fit */
    expect_sides(g.size, 2, 36, 1);
    expect_sides(g.block, 2, 36, 1);
    assert_int_equal(grid_make(p, 3, NULL, &g), KEEL_OK);
    assert_memory_equal(g.size, g.block, sizeof g.size);
    page_rank(p, 5)->slot = 1; /* not the same number on each node */
    assert_int_equal(grid_make(p, 2, NULL, &g), KEEL_OK);
    expect_sides(g.size, 9, 8, 1);
    assert_memory_equal(g.size, g.block, sizeof g.size);
    free(p);
    p = page_of(8, 1); /* a place without a node */
    on_grid(p, 2, (int[]){3, 3});
    assert_int_equal(grid_make(p, 2, NULL, &g), KEEL_OK);
    expect_sides(g.size, 4, 2, 1);
    free(p);
}

/* Elements on faces, written otherwise: cut by cut. */
static int64_t faces(const int *side, int dims, const int64_t *extent)
{
    int64_t sum = 0;
    for (int d = 0; d < dims; d++)
        for (int cut = 1; cut < side[d]; cut++) {
            int64_t face = 1;
            for (int e = 0; e < dims; e++)
                face *= e == d ? 1 : extent[e];
            sum += face;
        }
    return sum;
}

static void test_grid_cut_random_none_has_fewer_faces(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, SEED);
    print_message("seed %d\n", SEED);
    for (int round = 0; round < 300; round++) {
        int dims = 2 + (int)rng_below(&rng, 2), n = 1 + (int)rng_below(&rng, 64);
        int64_t extent[3] = {1, 1, 1};
        struct page *p = page_of((uint32_t)n, 1);
        keel_grid g = {0};
        bool any = false;
        for (int d = 0; d < dims; d++)
            extent[d] = 1 + (int64_t)rng_below(&rng, 40);
        keel_status status = grid_make(p, dims, extent, &g);
        for (int a = 1; a <= n; a++)
            for (int b = 1; b <= n; b++) {
                int side[3] = {a, b, n % (a * b) ? 0 : n / (a * b)};
                if (a * b > n || !side[2] || (dims == 2 && side[2] > 1) || a > extent[0] || b > extent[1] ||
                    (dims == 3 && side[2] > extent[2]))
                    continue;
                any = true;
                assert_int_equal(status, KEEL_OK);
                assert_true(faces(g.size, dims, extent) <= faces(side, dims, extent));
            }
        assert_int_equal(status, any ? KEEL_OK : KEEL_ERR_LIMIT);
        for (int r = 0; r < n && any; r++) {
            int at[KEEL_GRID_DIMS_MAX];
            grid_coords_of(&g, r, at);
            assert_int_equal(grid_rank_of(&g, at), r);
        }
        free(p);
    }
}

static void test_grid_cut_is_whole_or_not(void **state)
{
    (void)state;
    const keel_grid good = {.dims = 2, .size = {4, 3, 1, 1, 1, 1}, .block = {2, 3, 1, 1, 1, 1}};
    assert_true(grid_is_whole(&good));
    assert_int_equal(grid_ranks(&good), 12);
    assert_false(grid_is_whole(NULL));
    keel_grid g = good;
    g.dims = 0;
    assert_false(grid_is_whole(&g));
    g.dims = 7;
    assert_false(grid_is_whole(&g));
    g = good;
    g.block[0] = 3;
    assert_false(grid_is_whole(&g));
    g.block[0] = 0;
    assert_false(grid_is_whole(&g));
    g = good;
    g.size[2] = 2;
    assert_false(grid_is_whole(&g));
    g = good;
    g.size[0] = g.size[1] = g.block[0] = g.block[1] = 1 << 20;
    assert_false(grid_is_whole(&g));
}

static void test_grid_cut_hops_go_round_a_ring(void **state)
{
    (void)state;
    struct page_grid mesh = {.dims = 2, .size = {5, 4}}, torus = mesh;
    torus.rings = 1;
    assert_int_equal(grid_hops(&mesh, 0, 4), 4);
    assert_int_equal(grid_hops(&torus, 0, 4), 1);
    assert_int_equal(grid_hops(&torus, 0, 2), 2);
    assert_int_equal(grid_hops(&torus, 15, 0), 3); /* the other dimension is none */
    assert_int_equal(grid_hops(&torus, 19, 0), 4);
    assert_int_equal(grid_hops(&mesh, 7, 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_cut_has_the_fewest_faces),
        cmocka_unit_test(test_grid_cut_refuses_what_is_no_grid),
        cmocka_unit_test(test_grid_cut_follows_the_nodes),
        cmocka_unit_test(test_grid_cut_random_none_has_fewer_faces),
        cmocka_unit_test(test_grid_cut_is_whole_or_not),
        cmocka_unit_test(test_grid_cut_hops_go_round_a_ring),
    };
    return cmocka_run_group_tests_name("grid_cut", tests, NULL, NULL);
}
