/* How long who waits looks on before it sleeps (spin.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/client/spin.h"

enum { SHORT = 30, LONG = 1000 };

static struct spin look(struct looks *l, bool came)
{
    struct spin s = spin_begin(l, 5000, false);
    spin_end(l, &s, came);
    return s;
}

static void test_spin_with_room_it_keeps_the_processor_and_looks_long(void **state)
{
    (void)state;
    struct looks l = {.short_ns = SHORT, .long_ns = LONG};
    for (int i = 0; i < 1000; i++) {
        struct spin s = look(&l, i % 7 != 0);
        assert_int_equal(s.until, 5000 + LONG);
        assert_true(s.keep >= s.until);
    }
}

static void test_spin_without_room_it_gives_the_processor_away_and_sleeps_soon(void **state)
{
    (void)state;
    struct looks l = {.short_ns = SHORT};
    for (int i = 0; i < 100; i++) {
        struct spin s = look(&l, i % 2);
        assert_int_equal(s.until, 5000 + SHORT);
        assert_int_equal(s.keep, 5000);
    }
}

static int long_looks(struct looks *l, int looks, int of_which_in_vain)
{
    int longer = 0;
    for (int i = 0; i < looks; i++)
        longer += look(l, i % 100 >= of_which_in_vain).until == 5000 + LONG;
    return longer;
}

static void test_spin_long_looks_in_vain_are_few_and_tried_again(void **state)
{
    (void)state;
    struct looks l = {.short_ns = SHORT, .long_ns = LONG};
    assert_in_range(long_looks(&l, 1000, 100), 8, 30);
    assert_in_range(long_looks(&l, 100000, 100), 80, 400);
    while (look(&l, true).until != 5000 + LONG)
        ;
    assert_int_equal(long_looks(&l, 100, 0), 100); /* something comes again: it is as before */
    assert_in_range(long_looks(&l, 1000, 100), 8, 30);
}

static void test_spin_half_in_vain_is_too_much(void **state)
{
    (void)state;
    struct looks l = {.short_ns = SHORT, .long_ns = LONG};
    int longer = 0;
    for (int i = 0; i < 10000; i++)
        longer += look(&l, i % 2).until == 5000 + LONG;
    assert_in_range(longer, 10, 500);
}

static void test_spin_what_an_agent_answers_is_waited_for_briefly(void **state)
{
    (void)state;
    struct looks l = {.short_ns = SHORT, .long_ns = LONG};
    for (int i = 0; i < 100; i++) {
        struct spin s = spin_begin(&l, 5000, true);
        spin_end(&l, &s, false);
        assert_int_equal(s.until, 5000 + SHORT);
    }
    assert_int_equal(look(&l, false).until, 5000 + LONG); /* and that counts for nothing here */
}

static void test_spin_what_comes_meanwhile_begins_the_look_anew(void **state)
{
    (void)state;
    struct looks l = {.short_ns = SHORT, .long_ns = LONG};
    struct spin s = spin_begin(&l, 5000, false);
    assert_true(spin_goes_on(&l, &s, 5000 + LONG - 1, true));
    assert_int_equal(s.until, 5000 + 2 * LONG - 1);
    l.long_ns = 0; /* without room for all it stays a short one */
    s = spin_begin(&l, 5000, false);
    assert_true(spin_goes_on(&l, &s, 5000 + SHORT / 2, true));
    assert_int_equal(s.until, 5000 + SHORT / 2 + SHORT);
}

/* Of a look of 1 ms: how many turns of it say that it goes on, if others' turns of 0.1 ms lie within them? */
static int goes_on(struct looks *l, bool by_agent)
{
    enum { TURN_NS = 100000, TURNS = 9 };
    int on = 0;
    struct spin s = spin_begin(l, 5000, by_agent);
    for (int i = 1; i <= TURNS; i++)
        on += spin_goes_on(l, &s, 5000 + (uint64_t)i * TURN_NS, false);
    return on;
}

static void test_spin_others_turns_end_it_where_processors_are_few(void **state)
{
    (void)state;
    enum { MS = 1000000 };
    struct looks l = {.short_ns = MS, .few = true};
    assert_int_equal(goes_on(&l, true), 4); /* before the first there was no turn, and four are too many */
    assert_int_equal(goes_on(&l, true), 0);
    assert_int_equal(goes_on(&l, false), 9); /* another rank, which looks on itself, is not kept from answering */
    l = (struct looks){.short_ns = MS};
    assert_int_equal(goes_on(&l, true), 9);
    l = (struct looks){.long_ns = MS};
    assert_int_equal(goes_on(&l, false), 9);
}

/* So many turns of others while it waits for ranks; the time after them. */
static uint64_t others_had(struct looks *l, uint64_t now, int turns, uint64_t each_ns)
{
    struct spin s = spin_begin(l, now, false);
    for (int i = 0; i < turns; i++, now += each_ns)
        spin_lend(l, &s, now, now + each_ns);
    return now;
}

static void test_spin_who_computes_ends_the_looking_for_ranks_for_a_while(void **state)
{
    (void)state;
    enum { US = 1000, MS = 1000000 };
    struct looks l = {.short_ns = SHORT};
    uint64_t now = others_had(&l, 1000 * (uint64_t)MS, 1000, 400 * US); /* ranks that wait, too */
    assert_true(spin_begin(&l, now, false).until > now);
    now = others_had(&l, now, 3, 1400 * US);
    assert_true(spin_begin(&l, now, false).until > now);
    struct spin s = spin_begin(&l, now, false);
    now = others_had(&l, now, 1, 1400 * US);
    assert_false(spin_goes_on(&l, &s, now, false));
    s = spin_begin(&l, now + 19 * MS, false);
    assert_int_equal(s.until, s.begun);
    assert_true(s.keep > s.until); /* who offers the processor does not get it as soon as something comes */
    assert_int_equal(spin_begin(&l, now, true).until, now + SHORT);
    now += 20 * MS;
    assert_int_equal(spin_begin(&l, now, false).until, now + SHORT);
    now = others_had(&l, now, 2, 1400 * US); /* still so: for twice as long */
    assert_int_equal(spin_begin(&l, now + 39 * MS, false).until, now + 39 * MS);
    assert_true(spin_begin(&l, now + 40 * MS, false).until > now + 40 * MS);
}

static void test_spin_after_a_sleep_it_looks_for_what_it_woke_for(void **state)
{
    (void)state;
    enum { LATER = 1000000 };
    struct looks l = {.short_ns = SHORT};
    struct spin s = spin_begin(&l, 5000, false);
    assert_false(spin_goes_on(&l, &s, 5000 + SHORT, false));
    spin_awake(&l, &s, LATER);
    assert_true(spin_goes_on(&l, &s, LATER + SHORT / 8, false)); /* that it slept was nobody else's turn */
    assert_false(spin_goes_on(&l, &s, LATER + SHORT / 4, false));
}

static void test_spin_beside_who_is_waited_for_one_of_two_moves_now_and_then(void **state)
{
    (void)state;
    struct looks l = {.short_ns = SHORT, .long_ns = LONG};
    int moves = 0;
    for (int ms = 0; ms < 10; ms++)
        for (int i = 0; i < 100; i++)
            moves += spin_moves(&l, (uint64_t)ms * 1000000 + (uint64_t)i);
    assert_in_range(moves, 2, 10);
    l.long_ns = 0;
    assert_false(spin_moves(&l, 2000000000)); /* more ranks than processors: there is nowhere to go */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spin_with_room_it_keeps_the_processor_and_looks_long),
        cmocka_unit_test(test_spin_without_room_it_gives_the_processor_away_and_sleeps_soon),
        cmocka_unit_test(test_spin_long_looks_in_vain_are_few_and_tried_again),
        cmocka_unit_test(test_spin_half_in_vain_is_too_much),
        cmocka_unit_test(test_spin_what_an_agent_answers_is_waited_for_briefly),
        cmocka_unit_test(test_spin_what_comes_meanwhile_begins_the_look_anew),
        cmocka_unit_test(test_spin_others_turns_end_it_where_processors_are_few),
        cmocka_unit_test(test_spin_who_computes_ends_the_looking_for_ranks_for_a_while),
        cmocka_unit_test(test_spin_after_a_sleep_it_looks_for_what_it_woke_for),
        cmocka_unit_test(test_spin_beside_who_is_waited_for_one_of_two_moves_now_and_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
