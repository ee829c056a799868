/* Membership cores: events, verdicts that are certain, coordinators that die. */
#include "members.h"

static void test_member_submission_reaches_everybody_once(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 5, .d = 1234567890123ull};
    assert_int_equal(member_submit(fakes[2].m, &e, now), 1);
    deliver();
    for (int i = 0; i < nodes; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_int_equal(fakes[i].settled, 1);
        assert_int_equal(fakes[i].last.a, 5);
        assert_true(fakes[i].last.d == e.d);
        assert_int_equal(fakes[i].max_value, 100 + nodes - 1);
        assert_int_equal(fakes[i].prepares, 1);
    }
    pass(500 * MS);
    assert_int_equal(fakes[0].commits, 1);
}

static void test_member_commit_waits_for_the_slowest_prepare(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST};
    fakes[3].hold = true;
    member_submit(fakes[0].m, &e, now);
    deliver();
    pass(400 * MS);
    assert_int_equal(fakes[0].commits, 0);
    member_prepared(fakes[3].m, fakes[3].proposal, 7777, now);
    deliver();
    for (int i = 0; i < nodes; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_int_equal(fakes[i].max_value, 7777);
    }
}

/* The runtime of a member answers a prepare only when a node has acknowledged what it was sent, or is believed dead.
 * The node falls silent after the prepare went out, and others than the member find that out. */
static void test_member_prepare_waits_for_no_node_that_died_since(void **state)
{
    (void)state;
    enum { DIES = 2 };
    for (int waits = 0; waits < NODES_MAX; waits++) {
        if (waits == DIES)
            continue;
        tear_down(state);
        nodes = NODES_MAX;
        set_up(state);
        pass(500 * MS);
        struct view_event e = {.type = VIEW_EVENT_FIRST};
        fakes[waits].hold = true;
        member_submit(fakes[1].m, &e, now);
        cut[DIES] = true;
        deliver();
        for (int i = 0; i < 3000 && fakes[waits].commits == 0; i++) {
            pass(MS);
            if (fakes[waits].hold && fakes[waits].doomed[DIES]) {
                fakes[waits].hold = false;
                member_prepared(fakes[waits].m, fakes[waits].proposal, 100, now);
            }
        }
        pass(500 * MS);
        for (int i = 0; i < nodes; i++)
            if (i != DIES) {
                assert_int_equal(fakes[i].commits, 2); /* the event, then the death */
                assert_int_equal(fakes[i].last.type, VIEW_NODE_DEAD);
                assert_false(fakes[i].halted);
            }
    }
}

static void test_member_refused_node_is_dead_without_waiting(void **state)
{
    (void)state;
    cut[3] = true;
    member_refused(fakes[1].m, 3, now);
    deliver();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_false(look_alive(fakes[i].m, 3));
        assert_int_equal(fakes[i].last.type, VIEW_NODE_DEAD);
        assert_int_equal(fakes[i].last.b, MEMBER_REFUSED);
        assert_int_equal(fakes[i].last.c, 1);
    }
}

static void test_member_check_says_when_the_node_has_answered(void **state)
{
    (void)state;
    pass(100 * MS);
    uint64_t first = now;
    member_check(fakes[0].m, 1, now);
    pass(10 * MS);
    assert_true(fakes[0].answered[1] >= first);
    cut[1] = true;
    uint64_t second = now;
    member_check(fakes[0].m, 1, now);
    pass(90 * MS);
    assert_true(fakes[0].answered[1] < second); /* what it said before is no answer */
    cut[1] = false;
    pass(300 * MS);
    assert_true(fakes[0].answered[1] >= second); /* asked again until it comes */
    for (int i = 1; i < nodes; i++)
        assert_int_equal(fakes[i].answered[0], 0); /* nobody asked */
}

/* A link between nodes that do not read each other. It works for a moment, is still looked at after that, and breaks
 * again: it was never whole. */
static void test_member_link_that_works_for_a_moment_stays_broken(void **state)
{
    struct member_link known[MEMBER_LINKS_MAX];
    tear_down(state);
    nodes = 8;
    set_up(state);
    pass(500 * MS);
    lost[0][4] = lost[4][0] = true;
    member_check(fakes[0].m, 4, now);
    pass(400 * MS);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(member_links(fakes[0].m, known, MEMBER_LINKS_MAX), 1);
        lost[0][4] = lost[4][0] = false;
        pass(300 * MS);
        lost[0][4] = lost[4][0] = true;
        for (int i = 0; i < 1600; i++) {
            pass(MS);
            assert_int_equal(member_links(fakes[0].m, known, MEMBER_LINKS_MAX), 1);
        }
    }
    lost[0][4] = lost[4][0] = false;
    pass(16 * 780 * MS + 1000 * MS);
    for (int i = 0; i < nodes; i++)
        assert_int_equal(member_links(fakes[i].m, known, MEMBER_LINKS_MAX), 0);
}

static void test_member_parameters_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int good[] = {0, 1, 2, 3}, unknown[] = {0, 1, 2, 4}, below[] = {0, 1, -1, 3};
    struct member_params p, bad[20];
    member_params_default(&p, 4, 0);
    p.topology = MEMBER_FILE;
    p.edges = good;
    p.edge_count = 2;
    struct member *m = created_with(&p);
    assert_non_null(m);
    member_destroy(m);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        bad[i] = p;
    bad[0].edges = unknown;
    bad[1].edges = below;
    bad[2].edges = NULL;
    bad[3].edge_count = -1;
    bad[4].topology = (enum member_topology)(MEMBER_FILE + 1);
    bad[5].topology = (enum member_topology) - 1;
    bad[6].n = 0;
    bad[7].n = MEMBER_NODES_MAX + 1;
    bad[8].self = 4;
    bad[9].self = -1;
    bad[10].degree = 0;
    bad[11].degree = MEMBER_WATCHES_MAX;
    bad[12].voters = 0;
    bad[13].period_ns = 0;
    bad[14].late_ns = p.period_ns;
    bad[15].stopped_ns = p.late_ns;
    bad[16].answer_ns = p.late_ns - 1;
    bad[17].ping_ns = 0;
    bad[18].rto_ns = 0;
    bad[19].rto_max_ns = p.rto_ns - 1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_null(created_with(&bad[i]));
}

/* Whom this member doubts already, and who answers by and by. */
static void test_member_check_of_a_suspect_is_answered_too(void **state)
{
    (void)state;
    member_broken(fakes[0].m, 1, now);
    deliver();
    pass(MS);
    uint64_t asked = now;
    member_check(fakes[0].m, 1, now);
    pass(50 * MS);
    assert_true(fakes[0].answered[1] >= asked);
    pass(2000 * MS);
    assert_true(look_alive(fakes[0].m, 1));
}

static void test_member_broken_connection_asks_the_kernel_at_once(void **state)
{
    (void)state;
    member_broken(fakes[0].m, 1, now);
    member_tick(fakes[0].m, now);
    assert_int_equal(fakes[0].probes[1], 1);
    deliver();
    pass(300 * MS);
    assert_true(look_alive(fakes[0].m, 1)); /* it answered pings */
    assert_int_equal(fakes[0].commits, 0);
}

/* Node 0 dies while it orders an event of node 2; the others find out and go on. */
static void check_event_of_node_2_ordered_without_node_0(uint64_t max_value)
{
    cut[0] = true;
    lose_answers = PHASE_NONE;
    member_refused(fakes[3].m, 0, now);
    deliver();
    pass(200 * MS);
    for (int i = 1; i < nodes; i++) {
        struct view_event of_first[MEMBER_EVENTS_MAX], *first = of_first;
        assert_int_equal(look_log(fakes[i].m, 1, of_first), 1);
        assert_int_equal(fakes[i].commits, 2);
        assert_int_equal(fakes[i].settled, 2);
        const struct view_event *second = &fakes[i].last;
        assert_int_equal(first->type + second->type, VIEW_NODE_DEAD + VIEW_EVENT_FIRST);
        assert_int_equal(first->type == VIEW_EVENT_FIRST ? first->a : second->a, 42);
        assert_int_equal(fakes[i].m->ledger.log[0]->max_value, max_value);
    }
}

static void test_member_coordinator_dies_before_anybody_accepted(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    fakes[1].hold = true;
    member_submit(fakes[2].m, &e, now);
    deliver(); /* node 1 has not prepared: nothing is accepted, and nothing binds the next one */
    fakes[1].hold = false;
    check_event_of_node_2_ordered_without_node_0(103);
}

/* The runtime is slow and answers the first proposal when a second one is there: that is no answer to the second. */
static void test_member_late_answer_to_a_superseded_proposal_is_ignored(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    fakes[2].hold = true;
    member_submit(fakes[2].m, &e, now);
    deliver();
    uint64_t first = fakes[2].proposal;
    cut[0] = true;
    member_refused(fakes[3].m, 0, now);
    deliver();
    assert_int_not_equal(fakes[2].proposal, first);
    member_prepared(fakes[2].m, first, 1, now);
    deliver();
    assert_int_equal(fakes[1].commits, 0);
    fakes[2].hold = false;
    member_prepared(fakes[2].m, fakes[2].proposal, 7777, now);
    deliver();
    pass(200 * MS);
    for (int i = 1; i < nodes; i++)
        assert_int_equal(fakes[i].commits, 2);
}

static void test_member_coordinator_dies_all_accepted_next_one_keeps_its_value(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    fakes[0].value = 1000;
    lose_answers = PHASE_ACCEPT;
    member_submit(fakes[2].m, &e, now);
    deliver(); /* all have accepted and node 0 does not know: it might have decided */
    for (int i = 0; i < nodes; i++)
        assert_int_equal(fakes[i].commits, 0);
    check_event_of_node_2_ordered_without_node_0(1000);
}

/* Accepted by one only, which then lives on: its value must survive, because nobody knows that it was the only one. */
static void test_member_coordinator_dies_one_accepted_next_one_keeps_its_value(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    fakes[0].value = 1000;
    lose_accept_but = 3;
    member_submit(fakes[2].m, &e, now);
    deliver();
    lose_accept_but = 0;
    check_event_of_node_2_ordered_without_node_0(1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_member_submission_reaches_everybody_once),
        TEST(test_member_commit_waits_for_the_slowest_prepare),
        TEST(test_member_prepare_waits_for_no_node_that_died_since),
        TEST(test_member_refused_node_is_dead_without_waiting),
        TEST(test_member_check_says_when_the_node_has_answered),
        TEST(test_member_link_that_works_for_a_moment_stays_broken),
        TEST(test_member_parameters_out_of_range_are_refused),
        TEST(test_member_check_of_a_suspect_is_answered_too),
        TEST(test_member_broken_connection_asks_the_kernel_at_once),
        TEST(test_member_coordinator_dies_before_anybody_accepted),
        TEST(test_member_late_answer_to_a_superseded_proposal_is_ignored),
        TEST(test_member_coordinator_dies_all_accepted_next_one_keeps_its_value),
        TEST(test_member_coordinator_dies_one_accepted_next_one_keeps_its_value),
    };
    return cmocka_run_group_tests_name("member", tests, NULL, NULL);
}
