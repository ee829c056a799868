#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pm/run/duration.h"

static void test_duration_with_and_without_a_unit_is_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
        bool unit;
    } good[] = {{"0", 0, false},      {"3", 3000, false},     {"0.5", 500, false},        {"0.5s", 500, true},
                {"500ms", 500, true}, {"2min", 120000, true}, {"1.5min", 90000, true},    {"0.001", 1, false},
                {"007s", 7000, true}, {"3.000s", 3000, true}, {"86400", 86400000, false}, {"0.250000s", 250, true}};
    (void)state;
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t ms = -1;
        bool unit = !good[i].unit;
        if (!duration_parse(good[i].text, &ms, &unit))
            fail_msg("%s", good[i].text);
        assert_int_equal(ms, good[i].ms);
        assert_int_equal(unit, good[i].unit);
    }
}

static void test_duration_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "s",
                                      "ms",
                                      "-1",
                                      "+1",
                                      ".5",
                                      "1.",
                                      "1.s",
                                      " 1",
                                      "1 s",
                                      "1h",
                                      "1S",
                                      "1e3",
                                      "0x1",
                                      "nan",
                                      "inf",
                                      "1.5ms",
                                      "0.0001",
                                      "1.2.3",
                                      "1ss",
                                      "99999999999999999999",
                                      "999999999999s",
                                      "1000000000000ms",
                                      "0.00000000000000000001"};
    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t ms;
        bool unit;
        if (duration_parse(bad[i], &ms, &unit))
            fail_msg("\"%s\" is %lld ms", bad[i], (long long)ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duration_with_and_without_a_unit_is_read),
        cmocka_unit_test(test_duration_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
