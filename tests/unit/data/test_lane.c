/* Lanes and numbers of operations that count once (runtime/client/op/lane.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/client/op/lane.h"
#include "tests/unit/data/seed.h"

static void test_lane_one_after_the_other_by_the_order_of_calls(void **state)
{
    (void)state;
    struct lanes l = {0};
    for (uint64_t n = 1; n <= 1000; n++) {
        uint64_t number;
        assert_int_equal(lanes_take(&l, &number), 0);
        assert_int_equal(number, n);
        lanes_give_back(&l, 0);
    }
}

static void test_lane_all_busy_none(void **state)
{
    (void)state;
    struct lanes l = {0};
    uint64_t number;
    for (int i = 0; i < LANES_MAX; i++)
        assert_int_equal(lanes_take(&l, &number), i);
    assert_int_equal(lanes_take(&l, &number), -1);
    lanes_give_back(&l, 7);
    assert_int_equal(lanes_take(&l, &number), 7);
    assert_int_equal(number, 2);
    assert_int_equal(lanes_take(&l, &number), -1);
}

/* What agents rely on. */
static void test_lane_random_one_at_a_time_and_numbers_grow(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    struct lanes l = {0};
    bool busy[LANES_MAX] = {false};
    uint64_t last[LANES_MAX] = {0};
    for (int step = 0; step < 20000; step++) {
        int lane = (int)rng_below(&rng, LANES_MAX);
        uint64_t number;
        if (rng_below(&rng, 2)) {
            lane = lanes_take(&l, &number);
            if (lane < 0)
                continue;
            assert_false(busy[lane]);
            assert_true(number > last[lane]);
            busy[lane] = true;
            last[lane] = number;
        } else if (busy[lane]) {
            lanes_give_back(&l, lane);
            busy[lane] = false;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lane_one_after_the_other_by_the_order_of_calls),
        cmocka_unit_test(test_lane_all_busy_none),
        cmocka_unit_test(test_lane_random_one_at_a_time_and_numbers_grow),
    };
    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
