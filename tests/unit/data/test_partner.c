/* Partners do the part of replicas that have died (runtime/client/replica/partner.h): rule after rule.
 * test_partner_deaths.c has them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/client/replica/partner.h"

static void test_partner_dead_replica_lowest_that_lives_acts(void **state)
{
    (void)state;
    assert_int_equal(partner_actor(7, 1), 1);
    assert_int_equal(partner_actor(6, 0), 1);
    assert_int_equal(partner_actor(4, 1), 2);
    assert_int_equal(partner_actor(0, 1), -1);
    assert_int_equal(partner_acts(7, 0, 3), 1);
    assert_int_equal(partner_acts(6, 1, 3), 3);
    assert_int_equal(partner_acts(6, 2, 3), 4);
    assert_int_equal(partner_acts(2, 1, 2), 3);
    assert_int_equal(partner_reads(5, 2), 2);
    assert_int_equal(partner_reads(5, 1), 0);
    assert_int_equal(partner_reads(0, 1), -1);
}

static struct partner_interval after(enum partner_use use, int target, size_t bytes)
{
    struct partner_interval iv = {.bytes = 0};
    partner_used(&iv, use, target, bytes);
    return iv;
}

static bool meets(struct partner_interval iv, enum partner_use use, int target)
{
    return partner_meets(&iv, use, target, 40, 100);
}

static void test_partner_signals_and_exchanges_meet_always(void **state)
{
    (void)state;
    const struct partner_interval none = {.bytes = 0};
    assert_true(meets(none, PARTNER_SIGNAL, 1)); /* of what was stored plainly there is no trace */
    assert_true(meets(none, PARTNER_EXCHANGE, 1));
    assert_false(meets(none, PARTNER_GET, 1));
    assert_false(meets(none, PARTNER_PUT, 1));
    assert_false(meets(none, PARTNER_ADD, 1));
}

static void test_partner_one_rank_is_used_in_one_way_between_meetings(void **state)
{
    (void)state;
    static const bool apart[][3] = {/* GET, PUT, ADD behind: */
                                    [PARTNER_GET] = {false, true, true},
                                    [PARTNER_PUT] = {true, false, true},
                                    [PARTNER_ADD] = {true, true, false},
                                    [PARTNER_EXCHANGE] = {true, true, true},
                                    [PARTNER_SIGNAL] = {true, true, false}};
    for (unsigned first = PARTNER_GET; first <= PARTNER_SIGNAL; first++)
        for (unsigned then = PARTNER_GET; then <= PARTNER_ADD; then++) {
            struct partner_interval iv = after((enum partner_use)first, 1, 8);
            assert_int_equal(meets(iv, (enum partner_use)then, 1), apart[first][then]);
            assert_int_equal(meets(iv, (enum partner_use)then, 2), first == PARTNER_EXCHANGE && then == PARTNER_ADD);
        }
}

static void test_partner_bytes_kept_are_bounded_but_by_one_write(void **state)
{
    (void)state;
    assert_false(meets(after(PARTNER_PUT, 1, 60), PARTNER_PUT, 1));
    assert_true(meets(after(PARTNER_PUT, 1, 61), PARTNER_PUT, 1));
    assert_true(meets(after(PARTNER_ADD, 1, 200), PARTNER_ADD, 2));
    assert_false(meets(after(PARTNER_PUT, 1, 200), PARTNER_GET, 2));
    assert_false(partner_meets(&(struct partner_interval){.bytes = 0}, PARTNER_PUT, 1, 101, 100));
}

struct seen {
    unsigned said, taken, left;
};

static void seen_say(void *user, int set, unsigned complete)
{
    struct seen *s = user;
    (void)set;
    s->said = complete;
}

static void seen_take(void *user, unsigned sets)
{
    struct seen *s = user;
    s->taken |= sets;
}

static void seen_leave(void *user)
{
    struct seen *s = user;
    s->left++;
}

static const struct partner_ops SEEN = {.say = seen_say, .take_over = seen_take, .leave = seen_leave};

static void test_partner_leaves_when_all_know_that_all_is_complete(void **state)
{
    (void)state;
    struct seen s = {0};
    struct partner p;
    partner_init(&p, 0, 2, &SEEN, &s);
    partner_heard(&p, 1, 2);
    assert_int_equal(s.said, 0);
    partner_comes(&p, 1);
    assert_int_equal(s.said, 1);
    partner_heard(&p, 1, 2);
    assert_int_equal(s.said, 3);
    assert_int_equal(s.left, 0); /* the other one does not know yet that set 0 is complete */
    partner_heard(&p, 1, 3);
    assert_int_equal(s.left, 1);
    partner_heard(&p, 1, 2);
    partner_comes(&p, 1);
    partner_heard(&p, 1, 3);
    assert_int_equal(s.left, 2);
}

static void test_partner_dies_what_is_complete_is_not_written_again(void **state)
{
    (void)state;
    struct seen s = {0};
    struct partner p;
    partner_init(&p, 1, 2, &SEEN, &s);
    partner_comes(&p, 2);
    partner_heard(&p, 0, 1);
    partner_died(&p, 0);
    assert_int_equal(s.taken, 0);
    assert_int_equal(s.left, 1);
    assert_int_equal(p.acts, 3);
}

static void test_partner_dies_what_may_be_incomplete_is_taken_over(void **state)
{
    (void)state;
    struct seen s = {0};
    struct partner p;
    partner_init(&p, 1, 2, &SEEN, &s);
    partner_comes(&p, 2);
    partner_died(&p, 0);
    assert_int_equal(s.taken, 1);
    assert_int_equal(s.left, 0);
    partner_completes(&p, 1);
    assert_int_equal(s.left, 1);
    partner_comes(&p, 3);
    assert_int_equal(s.left, 2);
    partner_init(&p, 1, 2, &SEEN, &s);
    s.taken = 0;
    partner_died(&p, 0); /* at work */
    assert_int_equal(s.taken, 1);
    s.taken = 0;
    partner_comes(&p, 2); /* as far as it knew when its writes were complete */
    assert_int_equal(s.taken, 1);
    partner_completes(&p, 1);
    assert_int_equal(s.left, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partner_dead_replica_lowest_that_lives_acts),
        cmocka_unit_test(test_partner_signals_and_exchanges_meet_always),
        cmocka_unit_test(test_partner_one_rank_is_used_in_one_way_between_meetings),
        cmocka_unit_test(test_partner_bytes_kept_are_bounded_but_by_one_write),
        cmocka_unit_test(test_partner_leaves_when_all_know_that_all_is_complete),
        cmocka_unit_test(test_partner_dies_what_is_complete_is_not_written_again),
        cmocka_unit_test(test_partner_dies_what_may_be_incomplete_is_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
