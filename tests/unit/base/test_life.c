/* Which process of which rank: who is the same one, and who came before whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/base/life.h"

static const struct life here = {.rank = 3, .incarnation = 5};

static void test_life_equal_looks_at_all_that_tells_processes_apart(void **state)
{
    (void)state;
    struct life rank = here, incarnation = here;
    rank.rank = 4;
    incarnation.incarnation = 6;
    assert_true(life_equal(here, here));
    assert_false(life_equal(here, rank));
    assert_false(life_equal(here, incarnation));
}

static void test_life_before_another_is_of_the_same_rank(void **state)
{
    (void)state;
    struct life later = here;
    later.incarnation++;
    assert_true(life_is_before(here, later));
    assert_false(life_is_before(later, here));
    assert_false(life_is_before(here, here));
    struct life other = later;
    other.rank = 4;
    assert_false(life_is_before(here, other));
    assert_false(life_is_before(other, here));
}

/* Incarnations are numbers without a sign: the greatest one comes last, not first. */
static void test_life_before_the_greatest_incarnation_is_any_other(void **state)
{
    (void)state;
    assert_true(life_is_before(life_of(0, 0), life_of(0, UINT32_MAX)));
    assert_false(life_is_before(life_of(0, UINT32_MAX), life_of(0, 0)));
}

static void test_life_none_is_no_rank_s(void **state)
{
    (void)state;
    assert_true(life_is_none(LIFE_NONE));
    assert_false(life_is_none(life_of(0, 0)));
    assert_false(life_equal(LIFE_NONE, life_of(0, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life_equal_looks_at_all_that_tells_processes_apart),
        cmocka_unit_test(test_life_before_another_is_of_the_same_rank),
        cmocka_unit_test(test_life_before_the_greatest_incarnation_is_any_other),
        cmocka_unit_test(test_life_none_is_no_rank_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
