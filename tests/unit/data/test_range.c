/* Places in the address range: first fit, apart, found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "memory.h"
#include "runtime/client/segment/range.h"
#include "seed.h"

enum { BASE = 1 << 20, BYTES = 1 << 20, OWNERS = 64 };

static char owner[OWNERS];

static void test_range_places_are_apart_and_first_fit(void **state)
{
    (void)state;
    struct range r = {.base = BASE, .bytes = BYTES};
    uint64_t a = range_take(&r, 1, &owner[0]), b = range_take(&r, RANGE_PAGE, &owner[1]),
             c = range_take(&r, 3 * RANGE_PAGE, &owner[2]);
    assert_int_equal(a, BASE);
    assert_int_equal(b, a + 2 * RANGE_PAGE); /* with a page between that nobody has */
    assert_int_equal(c, b + 2 * RANGE_PAGE);
    range_give(&r, a);
    range_give(&r, b);
    assert_int_equal(range_take(&r, 3 * RANGE_PAGE, &owner[3]), a);
    assert_ptr_equal(range_find(&r, c), &owner[2]);
    range_give(&r, a);
    range_give(&r, c);
    range_fini(&r);
    assert_int_equal(memory_living(), 0);
}

static void test_range_that_is_full_or_not_there_gives_nothing(void **state)
{
    (void)state;
    struct range r = {.base = BASE, .bytes = BYTES}, none = {.base = BASE};
    assert_int_equal(range_take(&none, 1, &owner[0]), 0);
    assert_null(range_find(&none, BASE));
    assert_int_equal(range_take(&r, UINT64_MAX, &owner[0]), 0);
    assert_int_equal(range_take(&r, BYTES, &owner[0]), 0); /* its page behind does not fit */
    assert_int_equal(range_take(&r, BYTES - RANGE_PAGE, &owner[0]), BASE);
    assert_int_equal(range_take(&r, 1, &owner[1]), 0);
    range_fini(&r);
    range_fini(&none);
}

/* The upper half is taken where it is said; first fit below does not see it, nor the other way round. */
static void test_range_places_above_are_chosen_from_a_bound_on(void **state)
{
    (void)state;
    struct range r = {.base = BASE, .bytes = BYTES};
    const uint64_t above = BASE + BYTES, page = RANGE_PAGE;
    assert_int_equal(range_above(&r, 1, 0), above);
    assert_int_equal(range_above(&r, 1, above + 5 * page), above + 5 * page);
    assert_true(range_take_above(&r, above + 2 * page, page, &owner[0]));
    assert_int_equal(range_above(&r, page, 0), above);
    assert_int_equal(range_above(&r, 2 * page, 0), above + 4 * page); /* the gap is too small with the page behind */
    assert_int_equal(range_above(&r, page, above + page), above + 4 * page);
    assert_int_equal(range_above(&r, page, above + 2 * page + 1), above + 4 * page);
    assert_ptr_equal(range_find(&r, above + 2 * page), &owner[0]);
    assert_int_equal(range_take(&r, BYTES - page, &owner[1]), BASE);
    assert_int_equal(range_take(&r, 1, &owner[2]), 0);
    assert_true(range_take_above(&r, above, page, &owner[3]));
    assert_int_equal(range_above(&r, 1, 0), above + 4 * page);
    assert_int_equal(range_above(&r, BYTES, 0), 0);
    assert_int_equal(range_above(&r, BYTES - 5 * page, 0), above + 4 * page);
    assert_int_equal(range_above(&r, BYTES - 4 * page, 0), 0);
    range_give(&r, above);
    range_give(&r, above + 2 * page);
    assert_int_equal(range_above(&r, BYTES - page, 0), above);
    struct range none = {.base = BASE};
    assert_int_equal(range_above(&none, 1, 0), 0);
    range_fini(&r);
    assert_int_equal(memory_living(), 0);
}

/* Against a list: what is taken overlaps nothing and is found by each of its bytes. */
static void test_range_random_places_are_found_again(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    struct range r = {.base = BASE, .bytes = BYTES};
    uint64_t base[OWNERS] = {0}, bytes[OWNERS] = {0};
    for (int round = 0; round < 20000; round++) {
        size_t i = rng_below(&rng, OWNERS);
        if (base[i]) {
            range_give(&r, base[i]);
            assert_null(range_find(&r, base[i]));
            base[i] = 0;
            continue;
        }
        bytes[i] = 1 + rng_below(&rng, 30000);
        base[i] = range_take(&r, bytes[i], &owner[i]);
        for (size_t k = 0; k < OWNERS && base[i]; k++)
            if (base[k] && k != i)
                assert_true(base[i] + bytes[i] <= base[k] || base[k] + bytes[k] <= base[i]);
        for (size_t k = 0; k < OWNERS; k++)
            if (base[k]) {
                assert_ptr_equal(range_find(&r, base[k]), &owner[k]);
                assert_ptr_equal(range_find(&r, base[k] + rng_below(&rng, bytes[k])), &owner[k]);
            }
        assert_null(range_find(&r, BASE - 1));
        assert_null(range_find(&r, BASE + BYTES));
    }
    range_fini(&r);
    assert_int_equal(memory_living(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range_places_are_apart_and_first_fit),
        cmocka_unit_test(test_range_places_above_are_chosen_from_a_bound_on),
        cmocka_unit_test(test_range_that_is_full_or_not_there_gives_nothing),
        cmocka_unit_test(test_range_random_places_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
