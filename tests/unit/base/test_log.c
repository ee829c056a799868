/* Warnings that others can cause. */
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_log_some_says_a_few_then_one_a_period_with_the_count(void **state)
{
    (void)state;
    struct log_some s = {0};
    unsigned left_out = 0;
    uint64_t now = 7 * LOG_SOME_S * KEEL_NS_PER_S, period = LOG_SOME_S * KEEL_NS_PER_S;
    for (int i = 0; i < LOG_SOME_AT_ONCE; i++) {
        assert_true(log_some_may(&s, now, &left_out));
        assert_int_equal(left_out, 0);
    }
    for (int i = 0; i < 1000; i++)
        assert_false(log_some_may(&s, now + (uint64_t)i, &left_out));
    for (int k = 1; k < 5; k++) {
        assert_true(log_some_may(&s, now + (uint64_t)k * period, &left_out));
        assert_int_equal(left_out, k == 1 ? 1000 : 9);
        for (int i = 0; i < 9; i++)
            assert_false(log_some_may(&s, now + (uint64_t)k * period + 1, &left_out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_some_says_a_few_then_one_a_period_with_the_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
