/* Warnings that others can cause; errors that somebody else tells. */
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

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

static char written[200];

static void write_line(void *user, const char *line, size_t len)
{
    (void)user;
    assert_true(len < sizeof written);
    memcpy(written, line, len);
    written[len] = 0;
}

static void test_log_errors_that_are_kept_are_not_written(void **state)
{
    (void)state;
    char first[12] = "before";
    log_to(write_line, NULL);
    log_keep_errors(first, sizeof first);
    assert_string_equal(first, "");
    log_warn("a warning");
    assert_non_null(strstr(written, ": warn: "));
    written[0] = 0;
    log_error("%s of %d", "the first", 20);
    log_error("the second");
    assert_string_equal(first, "the first o");
    assert_string_equal(written, "");
    log_keep_errors(NULL, 0);
    log_error("the third");
    assert_non_null(strstr(written, "the third\n"));
    assert_string_equal(first, "the first o");
    log_to(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_some_says_a_few_then_one_a_period_with_the_count),
        cmocka_unit_test(test_log_errors_that_are_kept_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
