/* Partners leave a meeting together: who says what to whom, and when a replica goes on. The others are the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

struct replica_self replica = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct client client;

enum { WORDS = 8 };
struct word {
    uint64_t exchange, complete;
};

/* What the others say, in order; one without an exchange: that one has died. And what they are told. */
static struct {
    struct word word[WORDS];
    int n, read;
} says[REPLICAS_MAX], told[REPLICAS_MAX];
static int meetings;
static keel_status fails;

keel_status replica_meet(enum replica_call call)
{
    (void)call;
    meetings++;
    return KEEL_OK;
}

bool replica_send(int set, uint32_t tag, const void *data, size_t len, keel_status *status)
{
    assert_true(tag == REPLICA_COMPLETE && len == sizeof(struct word) && !replica.gone[set] && *status == KEEL_OK);
    memcpy(&told[set].word[told[set].n++], data, len);
    return true;
}

bool replica_hear(int set, uint32_t tag, void *data, size_t len, keel_status *status)
{
    assert_true(tag == REPLICA_COMPLETE && len == sizeof(struct word) && !replica.gone[set]);
    assert_true(says[set].read < says[set].n || fails != KEEL_OK); /* else it waits for ever */
    if (fails != KEEL_OK) {
        *status = fails;
        return false;
    }
    const struct word *w = &says[set].word[says[set].read++];
    replica.gone[set] = !w->exchange;
    memcpy(data, w, len);
    return w->exchange;
}

/* What acting.c does. */
static unsigned taken;
static int forgotten, looks;

void replica_take_over(unsigned sets)
{
    taken |= sets;
}

void replica_forget_kept(void)
{
    forgotten++;
}

void replica_look_for_deaths(void)
{
    looks++;
}

/* What is under way ends, or the job is lost. */
static struct op under_way;
static int waits;

bool client_wait(struct client *c, bool (*done)(void *arg), void *arg, struct wait *wait)
{
    (void)wait;
    waits++;
    assert_false(done(arg));
    c->fatal = fails;
    c->ops.active = fails == KEEL_OK ? NULL : c->ops.active;
    return done(arg);
}

void waits_for_any_op(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)c, (void)arg, (void)out;
}

static bool is_left(void)
{
    int before = meetings;
    (void)replica_before(CALL_put, PARTNER_PUT, 1, 1);
    bool met = meetings > before;
    meetings = before;
    return !met;
}

static void begin(int set, int sets)
{
    memset(says, 0, sizeof says);
    memset(told, 0, sizeof told);
    memset(replica.gone, 0, sizeof replica.gone);
    replica.client = &client;
    replica.set = set;
    replica.sets = sets;
    replica.partners = true;
    replica.exchanges = 7;
    fails = KEEL_OK;
    meetings = 0;
    taken = 0;
    forgotten = 0;
    replica_partners_begin();
    replica_used(PARTNER_GET, 1, 0); /* so that a put needs a meeting until this one is left */
    assert_false(is_left());
}

static void says_that(int set, uint64_t exchange, unsigned complete)
{
    says[set].word[says[set].n++] = (struct word){exchange, complete};
}

static void leaves(unsigned first, unsigned second, unsigned third)
{
    const unsigned complete[REPLICAS_MAX] = {first, second, third};
    const bool there[REPLICAS_MAX] = {first, second, third};
    assert_int_equal(replica_comes_complete(), 1U << replica.set);
    assert_int_equal(replica_leave_together(complete, there), KEEL_OK);
    assert_true(is_left());
    for (int s = 0; s < replica.sets; s++)
        assert_true(says[s].read == says[s].n || replica.gone[s]);
}

static void was_told(int set, int words, unsigned complete)
{
    assert_int_equal(told[set].n, words);
    if (words)
        assert_true(told[set].word[words - 1].complete == complete && told[set].word[words - 1].exchange == 7);
}

static void test_meeting_two_tell_each_other_once_that_all_is_complete(void **state)
{
    (void)state;
    begin(0, 2);
    says_that(1, 7, 3);
    leaves(1, 2, 0);
    was_told(1, 1, 3);
}

static void test_meeting_who_does_not_know_yet_is_waited_for(void **state)
{
    (void)state;
    begin(1, 3);
    says_that(0, 7, 3); /* it has not heard set 2 */
    says_that(0, 7, 7);
    says_that(2, 7, 7);
    leaves(1, 2, 4);
    was_told(0, 1, 7);
    was_told(2, 1, 7);
}

static void test_meeting_words_of_an_earlier_one_are_not_of_this_one(void **state)
{
    (void)state;
    begin(0, 2);
    says_that(1, 6, 3);
    says_that(1, 7, 3);
    leaves(1, 2, 0);
}

static void test_meeting_who_is_at_a_later_one_has_left(void **state)
{
    (void)state;
    begin(0, 2);
    says_that(1, 8, 2);
    leaves(1, 2, 0);
}

static void test_meeting_nobody_waits_for_who_has_died(void **state)
{
    (void)state;
    begin(0, 2);
    replica.gone[1] = true; /* before it has come */
    leaves(1, 0, 0);
    was_told(1, 0, 0);
    begin(0, 2);
    says_that(1, 0, 0); /* it had come */
    leaves(1, 2, 0);
}

static void test_meeting_who_acts_for_the_dead_says_so_to_the_third(void **state)
{
    (void)state;
    begin(0, 3);
    replica.gone[1] = true;
    says_that(2, 7, 4);
    says_that(2, 7, 7);
    leaves(1, 0, 4);
    was_told(2, 1, 7);
}

static void test_meeting_what_only_another_one_knows_of_the_dead_is_believed(void **state)
{
    (void)state;
    begin(2, 3);
    replica.gone[0] = true; /* 1 acts for it */
    says_that(1, 7, 3);
    says_that(1, 7, 7);
    leaves(0, 2, 4);
    was_told(1, 2, 7);
}

static void test_meeting_of_who_acts_for_the_dead_the_sum_says_more_next_time(void **state)
{
    (void)state;
    begin(0, 2);
    replica.gone[1] = true;
    leaves(1, 0, 0);
    assert_int_equal(replica_comes_complete(), 3);
}

static void test_meeting_an_error_of_this_process_ends_it(void **state)
{
    (void)state;
    const unsigned complete[REPLICAS_MAX] = {1, 2};
    const bool there[REPLICAS_MAX] = {true, true};
    begin(0, 2);
    fails = KEEL_ERR_FENCED;
    (void)replica_comes_complete();
    assert_int_equal(replica_leave_together(complete, there), KEEL_ERR_FENCED);
    assert_false(is_left());
}

static void test_meeting_is_none_where_nobody_does_the_part_of_another(void **state)
{
    (void)state;
    const unsigned complete[REPLICAS_MAX] = {1, 2};
    const bool there[REPLICAS_MAX] = {true, true};
    begin(0, 2);
    replica.partners = false;
    assert_int_equal(replica_leave_together(complete, there), KEEL_OK);
    was_told(1, 0, 0);
    assert_int_equal(replica_before(CALL_signal, PARTNER_SIGNAL, 1, 8), KEEL_OK);
    assert_int_equal(meetings, 0);
}

static void test_meeting_is_come_to_with_nothing_under_way(void **state)
{
    (void)state;
    begin(0, 2);
    waits = 0;
    assert_true(replica_rest() == KEEL_OK && waits == 0);
    client.ops.active = &under_way;
    assert_true(replica_rest() == KEEL_OK && waits == 1 && !client.ops.active);
    client.ops.active = &under_way;
    fails = KEEL_ERR_FENCED;
    assert_int_equal(replica_rest(), KEEL_ERR_FENCED);
    replica.partners = false;
    assert_true(replica_rest() == KEEL_OK && waits == 2);
    client = (struct client){.fatal = KEEL_OK};
}

static void test_meeting_comes_before_whatever_does_not_lie_in_one_interval(void **state)
{
    (void)state;
    begin(0, 2);
    says_that(1, 7, 3);
    leaves(1, 2, 0);
    replica_used(PARTNER_PUT, 1, 8);
    assert_int_equal(replica_before(CALL_put, PARTNER_PUT, 1, 8), KEEL_OK);
    assert_int_equal(meetings, 0);
    assert_int_equal(replica_before(CALL_get, PARTNER_GET, 2, 0), KEEL_OK);
    assert_int_equal(meetings, 0);
    assert_int_equal(replica_before(CALL_get, PARTNER_GET, 1, 0), KEEL_OK);
    assert_int_equal(meetings, 1);
    assert_int_equal(replica_before(CALL_put, PARTNER_PUT, 1, (size_t)16 << 20), KEEL_OK); /* too much to keep */
    assert_int_equal(meetings, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meeting_two_tell_each_other_once_that_all_is_complete),
        cmocka_unit_test(test_meeting_who_does_not_know_yet_is_waited_for),
        cmocka_unit_test(test_meeting_words_of_an_earlier_one_are_not_of_this_one),
        cmocka_unit_test(test_meeting_who_is_at_a_later_one_has_left),
        cmocka_unit_test(test_meeting_nobody_waits_for_who_has_died),
        cmocka_unit_test(test_meeting_who_acts_for_the_dead_says_so_to_the_third),
        cmocka_unit_test(test_meeting_what_only_another_one_knows_of_the_dead_is_believed),
        cmocka_unit_test(test_meeting_of_who_acts_for_the_dead_the_sum_says_more_next_time),
        cmocka_unit_test(test_meeting_an_error_of_this_process_ends_it),
        cmocka_unit_test(test_meeting_is_none_where_nobody_does_the_part_of_another),
        cmocka_unit_test(test_meeting_is_come_to_with_nothing_under_way),
        cmocka_unit_test(test_meeting_comes_before_whatever_does_not_lie_in_one_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
