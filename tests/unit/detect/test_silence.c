/* Membership cores: how long a silent node is waited for. */
#include "members.h"

static void test_member_silent_node_is_dead_after_the_limit_not_before(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[2] = true;
    pass(600 * MS);
    assert_int_equal(fakes[0].commits, 0);
    pass(250 * MS);
    for (int i = 0; i < nodes; i++)
        if (i != 2)
            assert_false(look_alive(fakes[i].m, 2));
    assert_int_equal(fakes[0].last.b, MEMBER_SILENT);
    cut[2] = false; /* it comes back, and learns */
    pass(500 * MS);
    assert_true(fakes[2].halted);
}

static int set_up_patient(void **state)
{
    dark_ms = 780;
    int result = set_up(state);
    dark_ms = 0;
    return result;
}

static void test_member_host_that_does_not_answer_is_dead_sooner(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[3] = true;
    pass(180 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 0);
    pass(100 * MS);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_int_equal(fakes[i].last.b, MEMBER_SILENT);
        assert_false(fakes[i].halted);
    }
}

/* Its agent may only not be given the processor. */
static void test_member_host_that_answers_has_the_longer_limit(void **state)
{
    (void)state;
    pass(500 * MS);
    member_waits(fakes[1].m, 3, UINT64_MAX, now);
    cut[3] = kernel[3] = true;
    pass(650 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 0);
    pass(200 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 1);
}

/* One voter whom the host answers is enough. */
static void test_member_host_that_answers_somebody_has_the_longer_limit(void **state)
{
    (void)state;
    for (int hears = 0; hears < 3; hears++) {
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        member_waits(fakes[1].m, 3, UINT64_MAX, now);
        cut[3] = kernel[3] = true;
        for (int i = 0; i < 3; i++)
            deaf[i] = i != hears;
        pass(650 * MS);
        for (int i = 0; i < 3; i++)
            assert_int_equal(fakes[i].commits, 0);
        pass(200 * MS);
        for (int i = 0; i < 3; i++)
            assert_int_equal(fakes[i].commits, 1);
    }
}

static void expect_silent_death(uint64_t not_before, uint64_t by)
{
    pass(not_before);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 0);
    pass(by - not_before);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 1);
}

static void test_member_silent_node_that_data_would_be_lost_with_has_four_limits(void **state)
{
    for (int stake = MEMBER_COSTLY; stake <= MEMBER_FATAL; stake++) {
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        for (int i = 0; i < 4; i++)
            member_stake(fakes[i].m, 3, (enum member_stake)stake, now);
        cut[3] = true;
        expect_silent_death(920 * MS, 1100 * MS);
        assert_int_equal(fakes[1].patience.why, stake == MEMBER_FATAL ? MEMBER_WHY_JOB : MEMBER_WHY_DATA);
        assert_int_equal(fakes[1].patience.how, MEMBER_IS_SILENT);
        assert_int_equal(fakes[1].patience.limit_ns, 4 * 250 * MS);
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        for (int i = 0; i < 4; i++) { /* and no more, when there is another copy */
            member_stake(fakes[i].m, 3, (enum member_stake)stake, now);
            member_stake(fakes[i].m, 3, MEMBER_CHEAP, now);
        }
        cut[3] = true;
        expect_silent_death(180 * MS, 280 * MS);
    }
}

/* Two of four are silent: those who hear no more than half may be those who are cut off. */
static void test_member_side_that_may_be_the_smaller_one_waits_two_limits(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[2] = cut[3] = true;
    pass(430 * MS);
    assert_int_equal(fakes[0].commits + fakes[1].commits, 0);
    assert_int_equal(fakes[1].patience.why, MEMBER_WHY_SIDE);
    pass(200 * MS);
    assert_false(look_alive(fakes[0].m, 2));
    assert_false(look_alive(fakes[1].m, 3));
    assert_int_equal(fakes[0].cut_off, 0); /* half with the lowest id */
    pass(3000 * MS);
    for (int i = 2; i < 4; i++) {
        assert_true(fakes[i].cut_off > 0);
        assert_true(fakes[i].halted);
    }
}

/* Who was late itself a moment ago is patient for a while, and less so with the time. */
static void test_member_late_judge_judges_less(void **state)
{
    (void)state;
    for (int passed = 0; passed < 2; passed++) {
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        now += 200 * MS; /* nobody ran: the same for all */
        pass(passed ? 60000 * MS : 200 * MS);
        cut[3] = true;
        if (passed)
            expect_silent_death(180 * MS, 280 * MS);
        else
            expect_silent_death(430 * MS, 800 * MS);
    }
}

/* A quarter of the limit, 63 ms, is what it has room for. What is told is told again when it is twice as much. */
static void test_member_that_is_later_than_its_limit_allows_says_so(void **state)
{
    static const struct {
        uint64_t late;
        int lates;
    } then[] = {{50 * MS, 0}, {80 * MS, 1}, {90 * MS, 1}, {250 * MS, 2}, {260 * MS, 2}};
    (void)state;
    pass(500 * MS);
    for (unsigned i = 0; i < sizeof then / sizeof then[0]; i++) {
        now = member_deadline(fakes[1].m) + then[i].late;
        member_tick(fakes[1].m, now);
        assert_int_equal(fakes[1].lates, then[i].lates);
        pass(300 * MS);
    }
    assert_true(fakes[1].late_told[0] >= 70 * MS && fakes[1].late_told[0] <= 80 * MS);
    assert_true(fakes[1].late_told[1] >= 240 * MS && fakes[1].late_told[1] <= 250 * MS);
    assert_int_equal(fakes[0].lates, 2); /* it stood still as long */
}

/* It has said that it is late at times: its heartbeat's word has it. */
static void test_member_that_says_that_it_is_late_has_more_time(void **state)
{
    (void)state;
    pass(500 * MS);
    member_heartbeat(fakes[1].m, 3, now | 10ull << MEMBER_BEAT_BITS, now); /* 100 ms */
    member_heartbeat(fakes[2].m, 3, now | 10ull << MEMBER_BEAT_BITS, now);
    cut[3] = true;
    expect_silent_death(430 * MS, 560 * MS);
}

/* A vote from before its voter fell silent is none. */
static void test_member_host_that_falls_silent_after_its_agent(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[3] = kernel[3] = stopped[3] = true;
    pass(2000 * MS);
    kernel[3] = false;
    expect_silent_death(200 * MS, 400 * MS);
    assert_int_equal(fakes[0].last.b, MEMBER_SILENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_member_silent_node_is_dead_after_the_limit_not_before, set_up_patient,
                                        tear_down),
        TEST(test_member_host_that_does_not_answer_is_dead_sooner),
        TEST(test_member_silent_node_that_data_would_be_lost_with_has_four_limits),
        TEST(test_member_side_that_may_be_the_smaller_one_waits_two_limits),
        TEST(test_member_late_judge_judges_less),
        TEST(test_member_that_is_later_than_its_limit_allows_says_so),
        TEST(test_member_that_says_that_it_is_late_has_more_time),
        TEST(test_member_host_that_falls_silent_after_its_agent),
        TEST(test_member_host_that_answers_has_the_longer_limit),
        TEST(test_member_host_that_answers_somebody_has_the_longer_limit),
    };
    return cmocka_run_group_tests_name("member-silence", tests, NULL, NULL);
}
