#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/base/rng.h"

static void test_rng_same_seed_repeats(void **state)
{
    (void)state;
    struct rng a, b;
    rng_seed(&a, 42);
    rng_seed(&b, 42);
    for (int i = 0; i < 1000; i++)
        assert_true(rng_u64(&a) == rng_u64(&b));
}

static void test_rng_below_covers_range_evenly(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    int count[6] = {0};
    for (int i = 0; i < 60000; i++)
        count[rng_below(&r, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_in_range(count[i], 9500, 10500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rng_same_seed_repeats),
        cmocka_unit_test(test_rng_below_covers_range_evenly),
    };
    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
