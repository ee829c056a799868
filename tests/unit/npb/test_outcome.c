#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "apps/npb/outcome.h"
#include "apps/npb/share.h"

static void expect_verified(double computed, double published, double tolerance, bool verified)
{
    struct outcome outcome = {0};
    outcome_add(&outcome, "right", 1, 1, 0);
    outcome_add(&outcome, "this", computed, published, tolerance);
    outcome_add(&outcome, "right", 2, 2, 0);
    assert_int_equal(outcome_verified(&outcome), verified);
}

static void test_outcome_within_the_tolerance_is_verified(void **state)
{
    (void)state;
    expect_verified(-100, -100.00000001, 1e-9, true);
    expect_verified(0, 0, 0, true);
    expect_verified(8388608, 8388608, 0, true);
}

static void test_outcome_one_wrong_value_is_not_verified(void **state)
{
    (void)state;
    expect_verified(-100, -100.001, 1e-9, false);
    expect_verified(100, -100, 1e-9, false);
    expect_verified(8388607, 8388608, 0, false);
    expect_verified(1e-300, 0, 1, false);
    expect_verified(NAN, 1, 1e-9, false);
    expect_verified(INFINITY, 1, 1e-9, false);
}

static void test_outcome_nothing_checked_is_not_verified(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    assert_false(outcome_verified(&outcome));
}

static void test_share_each_thing_is_in_one_and_no_two_differ_by_more_than_one(void **state)
{
    (void)state;
    for (size_t total = 0; total < 70; total++)
        for (int parts = 1; parts < 20; parts++) {
            size_t next = 0, least = total / (size_t)parts;
            for (int which = 0; which < parts; which++) {
                struct share share = share_of(total, parts, which);
                assert_int_equal(share.first, next);
                assert_in_range(share.count, least, least + 1);
                next += share.count;
            }
            assert_int_equal(next, total);
        }
}

static void test_power_of_two_is_told(void **state)
{
    (void)state;
    assert_true(is_power_of_two(1) && is_power_of_two(2) && is_power_of_two(64));
    assert_false(is_power_of_two(0) || is_power_of_two(3) || is_power_of_two(-4) || is_power_of_two(48));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcome_within_the_tolerance_is_verified),
        cmocka_unit_test(test_outcome_one_wrong_value_is_not_verified),
        cmocka_unit_test(test_outcome_nothing_checked_is_not_verified),
        cmocka_unit_test(test_share_each_thing_is_in_one_and_no_two_differ_by_more_than_one),
        cmocka_unit_test(test_power_of_two_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
