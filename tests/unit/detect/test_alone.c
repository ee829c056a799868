/* Membership cores: who may be cut off, and who goes on alone. */
#include "members.h"

static void test_member_blind_owner_suspects_nobody(void **state)
{
    (void)state;
    pass(500 * MS);
    now += 5000 * MS; /* nobody ran */
    for (int i = 0; i < nodes; i++)
        member_tick(fakes[i].m, now);
    deliver();
    pass(500 * MS);
    for (int i = 0; i < nodes; i++) {
        assert_int_equal(fakes[i].commits, 0);
        assert_false(fakes[i].halted);
    }
}

static void test_member_cut_off_alone_ends_itself(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[1] = true;
    pass(3000 * MS);
    assert_true(fakes[1].halted);
    assert_false(fakes[0].halted);
}

/* Three of four stood still for more than the limit: the fourth decides nothing, and waits for them. */
static void test_member_majority_stands_still_and_returns_nobody_ends(void **state)
{
    (void)state;
    pass(500 * MS);
    for (int i = 0; i < 3; i++)
        cut[i] = true;
    for (uint64_t end = now + 1100 * MS; now < end; now += MS)
        if (now >= member_deadline(fakes[3].m))
            member_tick(fakes[3].m, now);
    for (int i = 0; i < 3; i++)
        cut[i] = false;
    pass(1500 * MS);
    for (int i = 0; i < nodes; i++) {
        assert_false(fakes[i].halted);
        assert_int_equal(fakes[i].commits, 0);
    }
}

/* For so long no process listens on any other node. */
static void refuse_all_but(int node, uint64_t ns)
{
    for (uint64_t end = now + ns; now < end; now += MS) {
        for (int i = 0; i < nodes; i++)
            if (i != node && now / MS % 50 == 0)
                member_refused(fakes[node].m, i, now);
        if (now >= member_deadline(fakes[node].m))
            member_tick(fakes[node].m, now);
    }
}

static void test_member_all_others_die_at_once_goes_on_alone(void **state)
{
    (void)state;
    pass(500 * MS);
    refuse_all_but(3, 100 * MS);
    assert_true(fakes[3].commits > 0);
    assert_false(fakes[3].halted);
}

/* They may have left it out and come to the end of the job: their kernels refuse it as if they had died. */
static void test_member_cut_off_others_end_goes_not_on_alone(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[3] = true;
    pass(1500 * MS);
    assert_true(fakes[0].commits > 0);
    assert_false(fakes[3].halted);
    refuse_all_but(3, 2000 * MS);
    assert_int_equal(fakes[3].commits, 0);
    assert_true(fakes[3].halted);
}

static void test_member_frozen_others_end_goes_not_on_alone(void **state)
{
    (void)state;
    pass(500 * MS);
    now += 5000 * MS;
    for (int k = 0; k < nodes; k++) /* a read that was answered before */
        if (fakes[3].reads[k])
            member_heartbeat(fakes[3].m, k, 1, now);
    refuse_all_but(3, 2000 * MS);
    assert_int_equal(fakes[3].commits, 0);
    assert_true(fakes[3].halted);
}

static void test_member_long_back_from_a_freeze_goes_on_alone(void **state)
{
    (void)state;
    pass(500 * MS);
    now += 5000 * MS;
    pass(1000 * MS);
    refuse_all_but(3, 100 * MS);
    assert_true(fakes[3].commits > 0);
    assert_false(fakes[3].halted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_member_blind_owner_suspects_nobody),
        TEST(test_member_cut_off_alone_ends_itself),
        TEST(test_member_majority_stands_still_and_returns_nobody_ends),
        TEST(test_member_all_others_die_at_once_goes_on_alone),
        TEST(test_member_cut_off_others_end_goes_not_on_alone),
        TEST(test_member_frozen_others_end_goes_not_on_alone),
        TEST(test_member_long_back_from_a_freeze_goes_on_alone),
    };
    return cmocka_run_group_tests_name("member-alone", tests, NULL, NULL);
}
