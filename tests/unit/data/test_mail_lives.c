/* Mail between replicas is of a life: who has the rank after it is somebody else. */
#include "direct_steps.h"

static void goes_on_for_ever(void)
{
    fail_msg("it waits for the next process of the rank");
}

/* As in the views in which the rank has lost its process, and has got the next one. */
static void begins_anew(int r)
{
    uint64_t n = page->changes;
    page->change[n] = (struct page_change){.epoch = 5, .life = 0, .rank = (uint32_t)r};
    page->change[n + 1] = (struct page_change){.epoch = 6, .life = 2, .rank = (uint32_t)r};
    page_rank(page, r)->life = 2;
    page_rank(page, r)->where = (uint64_t)r << 32 | 1;
    page->changes = n + 2;
    page->epoch = 6;
    pump();
}

static void test_mail_lives_what_a_life_sent_is_its_own(void **state)
{
    (void)state;
    const struct life before = life_of(1, 0), after = life_of(1, 1);
    uint64_t word = 7, got_word = 0;
    assert_int_equal(mail_send_replica(&rank[1].c, life_of(0, 0), 3, &word, sizeof word), KEEL_OK);
    pump();
    assert_true(mail_has_replica(&rank[0].c, before, 3, 7));
    assert_false(mail_has_replica(&rank[0].c, after, 3, 7));
    begins_anew(1);
    sleeps = 100;
    then = goes_on_for_ever;
    assert_int_equal(mail_receive_replica(&rank[0].c, before, 3, 3, &got_word, sizeof got_word, NULL), KEEL_OK);
    assert_int_equal(got_word, 7);
    assert_int_equal(mail_receive_replica(&rank[0].c, before, 3, 3, &got_word, sizeof got_word, NULL),
                     KEEL_ERR_RANK_DEAD);
    sleeps = 0;
}

static void test_mail_lives_nothing_goes_to_the_next_life(void **state)
{
    (void)state;
    uint64_t word = 7;
    begins_anew(1);
    sleeps = 100;
    then = goes_on_for_ever;
    assert_int_equal(mail_send_replica(&rank[0].c, life_of(1, 0), 3, &word, sizeof word), KEEL_ERR_RANK_DEAD);
    sleeps = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_mail_lives_what_a_life_sent_is_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mail_lives_nothing_goes_to_the_next_life, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("mail_lives", tests, NULL, NULL);
}
