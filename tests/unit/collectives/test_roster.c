#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "collectives/roster.h"
#include "runtime/base/bitset.h"
#include "runtime/base/rng.h"
#include "tests/unit/collectives/made.h"

enum { N_MAX = 700 };

static void test_roster_places_have_no_gaps_and_keep_the_order(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 2);
    for (int round = 0; round < 400; round++) {
        uint64_t bits[BITSET_WORDS(N_MAX)] = {0};
        int n = 1 + (int)rng_below(&r, N_MAX), live = 0, share = (int)rng_below(&r, 11);
        for (int i = 0; i < n; i++)
            if ((int)rng_below(&r, 10) < share)
                bitset_add(bits, i);
        struct roster *roster = made_roster(n, bits, 5);
        for (int i = 0; i < n; i++) {
            bool has = bitset_has(bits, i);
            assert_true(roster_has(roster, i) == has);
            assert_int_equal(roster_place(roster, i), has ? live : -1);
            if (has)
                assert_int_equal(roster_member(roster, live++), i);
        }
        assert_int_equal(roster_live(roster), live);
        assert_int_equal(roster_member(roster, live), -1);
        assert_int_equal(roster_member(roster, -1), -1);
        assert_int_equal(roster_place(roster, n), -1);
        assert_int_equal(roster_epoch(roster), 5);
        assert_int_equal(roster_next(roster, 0), live ? roster_member(roster, 0) : -1);
        roster_unref(roster);
    }
}

/* A call's roster leaves out who joined after that call; of the same epoch, and the same one where nobody did. */
static void test_roster_for_a_call_leaves_out_who_came_after_it(void **state)
{
    (void)state;
    uint64_t bits[1] = {0x3b}, after[6] = {0, 0, 9, 4, 5, 0}; /* member 2 is dead */
    struct roster *r = made_roster(6, bits, 3);
    struct roster *plain = roster_for(r, 1);
    assert_ptr_equal(plain, r);
    roster_unref(plain);
    assert_true(roster_set_after(r, after));
    const uint64_t wanted[] = {0, 0x23, 0x23, 0x23, 0x23, 0x2b, 0x3b};
    for (uint64_t number = 1; number <= 6; number++) {
        struct roster *mine = roster_for(r, number);
        assert_int_equal(roster_bits(mine)[0], wanted[number]);
        assert_int_equal(roster_epoch(mine), 3);
        assert_true((mine == r) == (number == 6));
        roster_unref(mine);
    }
    roster_unref(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roster_for_a_call_leaves_out_who_came_after_it),
        cmocka_unit_test(test_roster_places_have_no_gaps_and_keep_the_order),
    };
    return cmocka_run_group_tests_name("roster", tests, NULL, NULL);
}
