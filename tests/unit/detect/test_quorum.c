#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "detect/member_internal.h"
#include "runtime/base/rng.h"

static bool admissible(uint64_t view, uint64_t out, uint64_t certain)
{
    int total = __builtin_popcountll(view), stay = __builtin_popcountll(view & ~out);
    uint64_t lowest = view & (~view + 1);
    return quorum_admissible(total, stay, (view & out & ~certain) == 0, (lowest & ~out) != 0);
}

static void test_quorum_majority_stays_decides(void **state)
{
    (void)state;
    assert_true(admissible(0x1f, 0x18, 0));
    assert_false(admissible(0x1f, 0x07, 0));
}

static void test_quorum_tie_half_with_lowest_id_decides(void **state)
{
    (void)state;
    assert_true(admissible(0x3c, 0x30, 0));
    assert_false(admissible(0x3c, 0x0c, 0));
    assert_true(admissible(0x3, 0x2, 0));
    assert_false(admissible(0x3, 0x1, 0));
}

static void test_quorum_all_others_certainly_dead_last_one_decides(void **state)
{
    (void)state;
    assert_true(admissible(0xf, 0x7, 0x7));
    assert_false(admissible(0xf, 0x7, 0x3)); /* one of them is only silent */
    assert_false(admissible(0xf, 0xf, 0xf)); /* nobody is left */
}

/* Two groups that share no living member never both decide. */
static void test_quorum_disjoint_groups_never_both_decide(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 5);
    for (int i = 0; i < 200000; i++) {
        uint64_t view = rng_u64(&r) & 0x3ff, a = view & rng_u64(&r), b = view & ~a & rng_u64(&r);
        uint64_t really_dead = view & ~a & ~b & rng_u64(&r);
        if (!view || !a || !b)
            continue;
        assert_false(admissible(view, view & ~a, really_dead) && admissible(view, view & ~b, really_dead));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quorum_majority_stays_decides),
        cmocka_unit_test(test_quorum_tie_half_with_lowest_id_decides),
        cmocka_unit_test(test_quorum_all_others_certainly_dead_last_one_decides),
        cmocka_unit_test(test_quorum_disjoint_groups_never_both_decide),
    };
    return cmocka_run_group_tests_name("quorum", tests, NULL, NULL);
}
