#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "apps/npb/random.h"

/* seed * 5^(13 n) mod 2^46 in integers of any length. */
static const struct {
    uint64_t seed, skip, x;
} references[] = {
    {UINT64_C(314159265), UINT64_C(1), UINT64_C(55909509111989)},
    {UINT64_C(314159265), UINT64_C(2), UINT64_C(61155031930969)},
    {UINT64_C(314159265), UINT64_C(1000), UINT64_C(39923673819009)},
    {UINT64_C(271828183), UINT64_C(1), UINT64_C(32883653486115)},
    {UINT64_C(271828183), UINT64_C(131072), UINT64_C(7493776032983)},
    {UINT64_C(314159265), UINT64_C(1099511640121), UINT64_C(23188607081429)},
};

static void test_random_jump_agrees_with_references(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
        assert_int_equal(random_at(references[i].seed, references[i].skip).x, references[i].x);
}

static void test_random_jump_is_so_many_steps(void **state)
{
    (void)state;
    struct random steps = random_at(RANDOM_SEED, 0);
    assert_int_equal(steps.x, RANDOM_SEED);
    for (uint64_t n = 0; n < 5000; n++) {
        assert_int_equal(random_at(RANDOM_SEED, n).x, steps.x);
        (void)random_next(&steps);
    }
}

static void test_random_numbers_are_between_0_and_1(void **state)
{
    (void)state;
    struct random random = random_at(RANDOM_SEED, 0);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double number = random_next(&random);
        assert_true(number > 0 && number < 1);
        assert_true(number * 0x1p46 == (double)random.x); /* nothing is rounded */
        sum += number;
    }
    assert_true(sum > 49500 && sum < 50500); /* five deviations */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_jump_agrees_with_references),
        cmocka_unit_test(test_random_jump_is_so_many_steps),
        cmocka_unit_test(test_random_numbers_are_between_0_and_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
