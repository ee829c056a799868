/* When who waits by looking stops, as others want the processor (contended.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/contended.h"

#define MS 1000000ull
enum { LOOK_NS = 2000, TURN_NS = 300000 };

static uint64_t now;

static void begin(void **state)
{
    (void)state;
    now = 1000 * MS;
}

/* The processor is ours alone. */
static bool quiet_look(struct contended *c)
{
    now += LOOK_NS;
    return contended_in_vain(c, now);
}

/* Somebody else has had a turn. */
static bool late_look(struct contended *c)
{
    now += TURN_NS;
    return contended_in_vain(c, now);
}

/* Many share the processor: a turn of somebody else after each half millisecond of looking. */
static bool busy_looks(struct contended *c, int turns)
{
    enum { LOOKS = 250 };
    bool said = false;
    for (int t = 0; t < turns && !said; t++) {
        for (int i = 0; i < LOOKS; i++)
            (void)quiet_look(c);
        said = late_look(c);
    }
    return said;
}

/* How long it says to sleep, when it is asked now and then as by one who wakes, finds nothing and looks once. */
static uint64_t sleeps_for(struct contended *c)
{
    uint64_t from = now;
    for (contended_pause(c); contended_in_vain(c, now); contended_pause(c))
        now += MS / 10;
    return now - from;
}

static void test_contended_with_free_processors_it_looks_on(void **state)
{
    begin(state);
    struct contended c = {0};
    for (int i = 0; i < 100000; i++)
        assert_false(quiet_look(&c));
}

static void test_contended_interrupts_now_and_then_do_not_end_the_looking(void **state)
{
    begin(state);
    struct contended c = {0};
    for (int i = 0; i < 100; i++) {
        assert_false(late_look(&c));
        for (int k = 0; k < 2500; k++)
            assert_false(quiet_look(&c));
    }
}

static void test_contended_a_machine_that_stands_still_is_nobody_elses_turn(void **state)
{
    begin(state);
    struct contended c = {0};
    (void)quiet_look(&c);
    now += 5000 * MS;
    assert_false(contended_in_vain(&c, now));
    assert_false(quiet_look(&c));
}

static void test_contended_turns_of_others_end_the_looking_for_a_while(void **state)
{
    begin(state);
    struct contended c = {0};
    assert_false(busy_looks(&c, 3));
    assert_true(busy_looks(&c, 1));
    assert_true(quiet_look(&c));
    assert_in_range(sleeps_for(&c), 18 * MS, 22 * MS);
    assert_false(quiet_look(&c));
}

static void test_contended_work_and_sleep_are_nobody_elses_turns(void **state)
{
    begin(state);
    struct contended c = {0};
    for (int i = 0; i < 1000; i++) {
        assert_false(quiet_look(&c));
        contended_pause(&c);
        assert_false(late_look(&c)); /* a round of work, or a sleep, of 0.3 ms */
    }
}

static void test_contended_still_so_it_sleeps_for_twice_as_long_up_to_a_limit(void **state)
{
    begin(state);
    struct contended c = {0};
    assert_true(busy_looks(&c, 4));
    uint64_t before = sleeps_for(&c);
    for (int i = 0; i < 10; i++) {
        assert_false(quiet_look(&c));
        assert_true(busy_looks(&c, 2)); /* fewer are enough now */
        uint64_t slept = sleeps_for(&c);
        uint64_t twice = 2 * before < 320 * MS ? 2 * before : 320 * MS;
        assert_in_range(slept, twice - 2 * MS, twice + 2 * MS);
        before = slept;
    }
    assert_in_range(before, 318 * MS, 322 * MS);
}

static void test_contended_after_a_quiet_time_it_begins_anew(void **state)
{
    begin(state);
    struct contended c = {0};
    assert_true(busy_looks(&c, 4));
    (void)sleeps_for(&c);
    for (int i = 0; i < 60000; i++)
        assert_false(quiet_look(&c));
    assert_false(busy_looks(&c, 3));
    assert_true(busy_looks(&c, 1));
    assert_in_range(sleeps_for(&c), 18 * MS, 22 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contended_with_free_processors_it_looks_on),
        cmocka_unit_test(test_contended_interrupts_now_and_then_do_not_end_the_looking),
        cmocka_unit_test(test_contended_a_machine_that_stands_still_is_nobody_elses_turn),
        cmocka_unit_test(test_contended_turns_of_others_end_the_looking_for_a_while),
        cmocka_unit_test(test_contended_work_and_sleep_are_nobody_elses_turns),
        cmocka_unit_test(test_contended_still_so_it_sleeps_for_twice_as_long_up_to_a_limit),
        cmocka_unit_test(test_contended_after_a_quiet_time_it_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
