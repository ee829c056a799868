#include "tests/unit/topo/testlib.h"

#include <math.h>

static void test_spare_counts_by_hand_match(void **state)
{
    (void)state;
    static const struct {
        const char *grid, *layout;
        int32_t spares;
    } cases[] = {
        {"6x6", "2D(1,1)", 6},        {"6x6", "2D(2,1)", 11},        {"6x6", "2D(2,2)", 20},
        {"12x12x12", "3D(2,1)", 276}, {"24x24x24", "3D(2,1)", 1128}, {"100x100", "2D(2,1)", 199},
        {"12x12x12", "3D(3,1)", 397}, {"16x8x8", "3D(2,1)", 184},    {"5x4x3", "3D(0,1)", 0},
        {"64", "1D(1,3)", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grid g;
        struct spare_layout l;
        assert_null(grid_parse(&g, cases[i].grid));
        assert_null(spare_parse(&l, cases[i].layout));
        assert_null(spare_check(&l, &g));
        assert_int_equal(spare_count(&l, &g), cases[i].spares);
        int32_t marked = 0;
        for (int32_t n = 0; n < g.nodes; n++)
            marked += spare_is(&l, &g, n);
        assert_int_equal(marked, cases[i].spares);
    }
}

static void test_spare_share_of_equal_sides_is_the_exact_count(void **state)
{
    (void)state;
    for (int q = 1; q <= 4; q++)
        for (int r = 0; r <= q; r++)
            for (int s = 1; s < 5; s++) {
                int size[GRID_MAX_DIMS] = {7, 7, 7, 7};
                struct grid g;
                grid_init(&g, q, size, NULL);
                struct spare_layout l = {.q = q, .r = r, .s = s};
                double exact = (double)spare_count(&l, &g) / g.nodes;
                assert_true(fabs(spare_share(&l, g.nodes) - exact) < 1e-12);
            }
}

static void test_spare_2d_sides_are_right_column_and_bottom_row(void **state)
{
    (void)state;
    struct grid g;
    struct spare_layout l;
    assert_null(grid_parse(&g, "4x3"));
    assert_null(spare_parse(&l, "2D(2,1)"));
    const char want[] = "...S...SSSSS";
    for (int32_t n = 0; n < g.nodes; n++)
        assert_int_equal(spare_is(&l, &g, n), want[n] == 'S');
    assert_int_equal(spare_side(&l, &g, 3), 0);
    assert_int_equal(spare_side(&l, &g, 9), 1);
}

static void test_spare_choose_keeps_share_between_2_and_5_percent(void **state)
{
    (void)state;
    double low = 1, high = 0;
    for (int n = 24; n <= 148; n++) {
        int size[3] = {n, n, n};
        struct grid g;
        struct spare_layout l;
        grid_init(&g, 3, size, NULL);
        double share = spare_choose(&g, 0.02, 0.05, &l);
        assert_true(fabs(share - (double)spare_count(&l, &g) / g.nodes) < 1e-12);
        assert_int_equal(l.s, 1);
        low = share < low ? share : low;
        high = share > high ? share : high;
    }
    assert_true(low >= 0.02 && high <= 0.05);
}

/* Any dimensions may hold the spares: long thin grids, whichever way round they are given. */
static void test_spare_choose_long_grids_use_the_side_that_fits(void **state)
{
    (void)state;
    static const char *const grids[] = {"4x100", "100x4", "1x50", "50x1", "1x1x50", "4x4x100"};
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        struct grid g;
        struct spare_layout l;
        assert_null(grid_parse(&g, grids[i]));
        double share = spare_choose(&g, 0.01, 0.05, &l);
        assert_in_range(share * 1e6, 0.01 * 1e6, 0.05 * 1e6);
        assert_null(spare_check(&l, &g));
        assert_true(fabs(share - (double)spare_count(&l, &g) / g.nodes) < 1e-12);
    }
    struct grid g;
    struct spare_layout l;
    assert_null(grid_parse(&g, "3x3"));
    assert_true(fabs(spare_choose(&g, 0.02, 0.05, &l) - 1.0 / 3) < 1e-12); /* none is inside: the nearest */
    assert_null(grid_parse(&g, "1x1"));
    assert_true(spare_choose(&g, 0.02, 0.05, &l) == 0);
    assert_int_equal(l.r, 0);
}

static void test_spare_named_sides_are_where_they_are_said_to_be(void **state)
{
    (void)state;
    struct grid g;
    struct spare_layout l, first;
    char text[32];
    assert_null(grid_parse(&g, "5x4x3"));
    assert_null(spare_parse(&l, "3D(2,1):xz"));
    assert_string_equal(spare_format(&l, text, sizeof text), "3D(2,1):xz");
    assert_int_equal(spare_count(&l, &g), 5 * 4 * 3 - 4 * 4 * 2);
    int c[3];
    for (int32_t n = 0; n < g.nodes; n++) {
        grid_coords(&g, n, c);
        assert_int_equal(spare_side(&l, &g, n), c[0] == 4 ? 0 : c[2] == 2 ? 2 : -1);
    }
    struct grid slots = spare_slot_grid(&l, &g);
    assert_string_equal(grid_format(&slots, text, sizeof text), "4x4x2");
    assert_null(spare_parse(&l, "3D(2,1):yx"));
    assert_null(spare_parse(&first, "3D(2,1)"));
    assert_memory_equal(&l, &first, sizeof l);
}

static void test_spare_bad_text_and_misfits_say_why(void **state)
{
    (void)state;
    struct spare_layout l;
    const char *bad[] = {"",          "2D",         "2D(3,1)",    "2D(1,0)",           "0D(0,1)",
                         "7D(1,1)",   "2D(1,1)x",   "2D(-1,1)",   "2D(1,99999999999)", "2D(1,1):",
                         "2D(1,1):z", "2D(1,1):xy", "2D(2,1):yy", "2D(1,1):y "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(spare_parse(&l, bad[i]));
    struct grid g;
    assert_null(grid_parse(&g, "6x4"));
    assert_null(spare_parse(&l, "2D(2,4)"));
    assert_non_null(spare_check(&l, &g));
    assert_null(spare_parse(&l, "3D(1,1)"));
    assert_non_null(spare_check(&l, &g));
    struct place p;
    assert_false(place_init(&p, &g, &l, 0, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spare_counts_by_hand_match),
        cmocka_unit_test(test_spare_share_of_equal_sides_is_the_exact_count),
        cmocka_unit_test(test_spare_2d_sides_are_right_column_and_bottom_row),
        cmocka_unit_test(test_spare_choose_keeps_share_between_2_and_5_percent),
        cmocka_unit_test(test_spare_choose_long_grids_use_the_side_that_fits),
        cmocka_unit_test(test_spare_named_sides_are_where_they_are_said_to_be),
        cmocka_unit_test(test_spare_bad_text_and_misfits_say_why),
    };
    return cmocka_run_group_tests_name("spare", tests, NULL, NULL);
}
