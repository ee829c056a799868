/* Clocks that go wrong: stand still, jump forward as after a suspension of the machine, go back. Nobody is doubted to
 * death for it, and what is to be ordered is ordered. The clocks go wrong on one node, whichever, or on all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/detect/cores.h"

enum { NODES = 5, ALL = NODES };
#define S (1000 * MS)

static bool goes_wrong(int i, int who)
{
    return who == ALL || i == who;
}

static void jump(int who, int64_t ns)
{
    for (int i = 0; i < NODES; i++)
        if (goes_wrong(i, who))
            cores.c[i].clock_off += ns;
}

static void stand(int who, bool still)
{
    for (int i = 0; i < NODES; i++)
        if (goes_wrong(i, who))
            cores.c[i].clock_stands = still ? cores.now : 0;
}

static void expect_nobody_is_dead(void)
{
    for (int i = 0; i < NODES; i++) {
        (void)cores_submit(i);
        assert_int_equal(cores.c[i].verdicts, 0);
    }
    cores_pass(2 * S);
    for (int i = 0; i < NODES; i++) {
        assert_true(cores_is_well(&cores.c[i]));
        assert_int_equal(cores.c[i].verdicts, 0);
    }
    cores_expect_one_view();
}

/* And a real death is found afterwards. */
static void expect_death_is_found(bool off)
{
    (off ? cores_off : cores_kill)(3);
    cores_pass(2 * S);
    cores_expect_one_view();
    cores_end();
}

static void each(void (*story)(int who))
{
    for (int who = 0; who <= ALL; who++)
        for (int off = 0; off < 2; off++) {
            assert_true(cores_start(NODES, NULL));
            cores_pass(500 * MS);
            story(who);
            expect_nobody_is_dead();
            expect_death_is_found(off);
        }
}

static void stands_and_is_right_again(int who)
{
    stand(who, true);
    cores_pass(S);
    (void)cores_submit(2);
    cores_pass(2 * S);
    stand(who, false);
}

static void stands_and_goes_on_from_there(int who)
{
    stands_and_is_right_again(who);
    jump(who, -3 * (int64_t)S);
}

static void jumps_once(int who)
{
    (void)cores_submit(2);
    jump(who, 10 * (int64_t)S);
}

static void jumps_again_and_again(int who)
{
    for (int i = 0; i < 40; i++) {
        (void)cores_submit(i % NODES);
        jump(who, 200 * (int64_t)MS);
        cores_pass(90 * MS);
    }
}

static void goes_back(int who)
{
    (void)cores_submit(2);
    jump(who, -10 * (int64_t)S);
    cores_pass(5 * S);
    (void)cores_submit(3);
    cores_pass(6 * S);
}

static void test_clock_that_stands_still_kills_nobody(void **state)
{
    (void)state;
    each(stands_and_is_right_again);
}

static void test_clock_that_was_held_back_kills_nobody(void **state)
{
    (void)state;
    each(stands_and_goes_on_from_there);
}

static void test_clock_that_jumps_kills_nobody(void **state)
{
    (void)state;
    each(jumps_once);
}

static void test_clock_that_jumps_all_the_time_kills_nobody(void **state)
{
    (void)state;
    each(jumps_again_and_again);
}

static void test_clock_that_goes_back_kills_nobody(void **state)
{
    (void)state;
    each(goes_back);
}

/* Just when somebody is in doubt: it is cut off for 145 ms, and a clock jumps at some moment meanwhile. A verdict falls
 * 190 ms after a cut at the earliest; a jump takes off the time to the next tick, up to 30 ms, and 10 for which a
 * tick may be late. */
static void test_clock_that_jumps_in_a_doubt_kills_nobody(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 145; at += 5)
        for (int who = 0; who < 2; who++) {
            assert_true(cores_start(NODES, NULL));
            cores_pass(500 * MS);
            for (int i = 0; i < NODES; i++)
                cores.lost[i][1] = cores.lost[1][i] = i != 1;
            cores_pass(at * MS);
            jump(who, 10 * (int64_t)S);
            cores_pass((145 - at) * MS);
            for (int i = 0; i < NODES; i++)
                cores.lost[i][1] = cores.lost[1][i] = false;
            expect_nobody_is_dead();
            cores_end();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_that_stands_still_kills_nobody),
        cmocka_unit_test(test_clock_that_was_held_back_kills_nobody),
        cmocka_unit_test(test_clock_that_jumps_kills_nobody),
        cmocka_unit_test(test_clock_that_jumps_all_the_time_kills_nobody),
        cmocka_unit_test(test_clock_that_goes_back_kills_nobody),
        cmocka_unit_test(test_clock_that_jumps_in_a_doubt_kills_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
