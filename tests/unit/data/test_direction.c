/* Under which direction bytes between slots are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/client/op/direction.h"

/* 0 1 2 / 3 4 5 / 6 7 8 / 9 10 11 */
static void test_direction_on_a_plane(void **state)
{
    (void)state;
    const struct page_grid g = {.dims = 2, .slots = {3, 4}};
    assert_int_equal(direction_of(&g, 4, 3), COUNTER_row_bytes);
    assert_int_equal(direction_of(&g, 4, 5), COUNTER_row_bytes);
    assert_int_equal(direction_of(&g, 4, 1), COUNTER_star_bytes);
    assert_int_equal(direction_of(&g, 4, 7), COUNTER_star_bytes);
    assert_int_equal(direction_of(&g, 4, 0), COUNTER_box_bytes);
    assert_int_equal(direction_of(&g, 4, 8), COUNTER_box_bytes);
    assert_int_equal(direction_of(&g, 2, 3), COUNTER_ring_bytes); /* the next number, at the other end of a row */
    assert_int_equal(direction_of(&g, 11, 0), COUNTER_ring_bytes);
    assert_int_equal(direction_of(&g, 0, 11), COUNTER_ring_bytes);
    assert_int_equal(direction_of(&g, 0, 2), COUNTER_far_bytes);
    assert_int_equal(direction_of(&g, 4, 10), COUNTER_far_bytes);
}

static void test_direction_on_lines_and_cubes(void **state)
{
    (void)state;
    const struct page_grid line = {.dims = 1, .slots = {5}}, cube = {.dims = 3, .slots = {2, 2, 2}};
    assert_int_equal(direction_of(&line, 1, 2), COUNTER_row_bytes);
    assert_int_equal(direction_of(&line, 4, 0), COUNTER_ring_bytes);
    assert_int_equal(direction_of(&line, 4, 1), COUNTER_far_bytes);
    assert_int_equal(direction_of(&cube, 0, 4), COUNTER_star_bytes);
    assert_int_equal(direction_of(&cube, 0, 6), COUNTER_box_bytes);
    assert_int_equal(direction_of(&cube, 0, 7), COUNTER_box_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direction_on_a_plane),
        cmocka_unit_test(test_direction_on_lines_and_cubes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
