/* Membership cores: nodes that stood still, or whose agents were stopped. */
#include "members.h"

/* Its witness says that it does not wait for a processor. */
static void test_member_agent_that_was_stopped_lives_until_it_is_waited_for(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[3] = kernel[3] = stopped[3] = true;
    pass(5000 * MS);
    for (int i = 0; i < 3; i++) {
        struct member_doubt doubt;
        assert_int_equal(fakes[i].commits, 0);
        if (i == 0) /* does not watch it */
            continue;
        assert_true(member_doubt(fakes[i].m, 3, &doubt));
        assert_int_equal(doubt.how, MEMBER_IS_STOPPED);
        assert_true(doubt.limit_ns == MEMBER_NEVER);
        assert_false(doubt.waited_for);
        assert_int_equal(fakes[i].patience.how, MEMBER_IS_STOPPED);
    }
    member_waits(fakes[0].m, 3, now + 600 * MS, now); /* that one waits no more in time */
    pass(2000 * MS);
    assert_int_equal(fakes[0].commits, 0);
    member_waits(fakes[0].m, 3, UINT64_MAX, now);
    pass(700 * MS);
    assert_int_equal(fakes[0].commits, 0); /* not long enough: the time before does not count */
    pass(200 * MS);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_int_equal(fakes[i].last.b, MEMBER_HUNG);
        assert_false(fakes[i].halted);
    }
}

/* The last word of its host is what counts. */
static void test_member_agent_that_was_stopped_and_waits_for_a_processor_now(void **state)
{
    (void)state;
    pass(500 * MS);
    member_waits(fakes[1].m, 3, UINT64_MAX, now);
    cut[3] = kernel[3] = stopped[3] = true;
    pass(200 * MS);
    for (int i = 0; i < 3; i++) {
        stopped[3] = false;
        member_runs(fakes[i].m, 3, now);
    }
    pass(400 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 0);
    pass(300 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 1);
}

/* Nodes 1 and 2 want to know whether node 0 reaches node 3. */
static void ask_node_0(void)
{
    for (int i = 1; i < 3; i++) {
        struct datagram ask = {.type = DATAGRAM_VOTE_ASK, .node = 3};
        member_enter(fakes[i].m, now);
        member_post(fakes[i].m, 0, &ask);
        member_leave(fakes[i].m);
    }
    deliver();
}

/* What was sent to it before the other was stopped, and it reads now, is no sign that it reaches the other. */
static void test_member_that_stood_still_says_nothing_old_of_one_that_stands_still(void **state)
{
    for (seed = 1; seed <= 30; seed++) {
        tear_down(state);
        nodes = 5;
        set_up(state);
        pass(500 * MS);
        ask_node_0();
        stop(0);
        pass(400 * MS);
        stop(3);
        pass(3000 * MS);
        go_on(0);
        ask_node_0();
        pass(400 * MS);
        assert_true(fakes[0].votes[VOTE_NONE] > 0 && fakes[0].votes[VOTE_KERNEL] > 0);
        assert_int_equal(fakes[0].votes[VOTE_REACHED], 0);
        go_on(3);
        pass(1000 * MS);
        expect_nothing_said();
    }
    seed = 1;
}

/* That it has no answer to what it asked before it was stopped is no sign that it does not. */
static void test_member_that_stood_still_does_not_miss_answers(void **state)
{
    (void)state;
    pass(500 * MS);
    ask_node_0();
    pass(100 * MS);
    stop(0);
    pass(3000 * MS);
    memset(fakes[0].votes, 0, sizeof fakes[0].votes);
    n_kept = 0; /* all was lost that was sent to it meanwhile */
    go_on(0);
    ask_node_0();
    for (int i = 0; i < 20; i++) {
        pass(10 * MS);
        ask_node_0();
    }
    assert_true(fakes[0].votes[VOTE_REACHED] > 0);
    assert_int_equal(fakes[0].votes[VOTE_UNREACHED] + fakes[0].votes[VOTE_KERNEL], 0);
    expect_nothing_said();
}

/* No link is broken because another was the first to hear it again; still less is it out of reach for as long as it
 * stood still. */
static void test_member_first_heard_by_another_after_it_stood_still_is_not_out_of_reach(void **state)
{
    for (seed = 1; seed <= 30; seed++) {
        tear_down(state);
        nodes = 5;
        set_up(state);
        pass(500 * MS);
        stop(3);
        pass((3000 + 3 * seed) * MS);
        for (int i = 0; i < nodes; i++)
            lost[3][i] = lost[i][3] = i != 1;
        go_on(3);
        pass(40 * MS);
        memset(lost, 0, sizeof lost);
        pass(1000 * MS);
        expect_nothing_said();
    }
    seed = 1;
}

/* Nor is one whose links to most are broken when it goes on: for that, time counts from then. */
static void test_member_out_of_reach_after_it_stood_still_has_its_time(void **state)
{
    tear_down(state);
    nodes = 5;
    set_up(state);
    pass(500 * MS);
    stop(3);
    pass(3000 * MS);
    for (int i = 0; i < nodes; i++)
        lost[3][i] = lost[i][3] = i != 1;
    go_on(3);
    pass(400 * MS);
    for (int i = 0; i < nodes; i++)
        assert_false(fakes[i].doomed[3]);
}

/* Whoever is drawn to vote: it is no majority of all. */
static void test_member_node_that_most_others_reach_lives(void **state)
{
    for (seed = 1; seed <= 30; seed++) {
        tear_down(state);
        nodes = NODES_MAX;
        set_up(state);
        pass(500 * MS);
        for (int k = 3; k <= 6; k++)
            lost[5][k] = lost[k][5] = kernel[5] = k != 5;
        pass(4000 * MS);
        for (int i = 0; i < nodes; i++) {
            assert_int_equal(fakes[i].commits, 0);
            assert_false(fakes[i].halted);
        }
    }
    seed = 1;
}

/* The agreement waits for it like an operation: nothing else could be ordered. */
static void test_member_stopped_node_that_an_event_waits_for(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    for (int victim = 0; victim < 4; victim += 3) { /* the coordinator, and another one */
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        cut[victim] = kernel[victim] = stopped[victim] = true;
        pass(3000 * MS);
        assert_int_equal(fakes[1].commits, 0);
        member_submit(fakes[1].m, &e, now);
        pass(700 * MS);
        assert_int_equal(fakes[1].commits, 0);
        pass(400 * MS);
        for (int i = 0; i < 4; i++)
            assert_true(i == victim || (fakes[i].commits > 0 && !look_alive(fakes[i].m, victim)));
    }
}

/* It has said that it is at work, which was so then. The one that waits does not watch it; others do. */
static void test_member_stopped_node_that_was_at_work_when_a_view_waited_for_it(void **state)
{
    struct view_event e = {.type = VIEW_EVENT_FIRST};
    for (uint64_t ms = 1; ms < 1000; ms = 3 * ms / 2 + 1) {
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        fakes[3].hold = true;
        member_submit(fakes[0].m, &e, now);
        deliver();
        pass(ms * MS);
        assert_int_equal(fakes[0].commits, 0);
        cut[3] = kernel[3] = stopped[3] = true;
        pass(10000 * MS); /* also those in which it may only be starting */
        for (int i = 0; i < 3; i++)
            assert_true(fakes[i].commits > 0 && !look_alive(fakes[i].m, 3));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_member_stopped_node_that_an_event_waits_for),
        TEST(test_member_stopped_node_that_was_at_work_when_a_view_waited_for_it),
        TEST(test_member_agent_that_was_stopped_lives_until_it_is_waited_for),
        TEST(test_member_that_stood_still_says_nothing_old_of_one_that_stands_still),
        TEST(test_member_that_stood_still_does_not_miss_answers),
        TEST(test_member_first_heard_by_another_after_it_stood_still_is_not_out_of_reach),
        TEST(test_member_out_of_reach_after_it_stood_still_has_its_time),
        TEST(test_member_node_that_most_others_reach_lives),
        TEST(test_member_agent_that_was_stopped_and_waits_for_a_processor_now),
    };
    return cmocka_run_group_tests_name("member-still", tests, NULL, NULL);
}
