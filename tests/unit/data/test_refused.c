/* A segment for which one node has no memory: who asks hears so, and the node lives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/agent/ranks.h"
#include "runtime/agent/segments.h"
#include "runtime/wire/system.h"
#include "world_steps.h"

enum { OF_GROUP = SEGMENT_GROUP_FIRST + 3, OF_ALL = 4, TURNS = 50 };

/* A rank of a node, which allocates. */
static struct intent_page intents[NODES_MAX];
static struct proc *rank_of(int node)
{
    struct agent *a = &w.node[node].agent;
    if (!a->ranks.procs)
        world_process(a, life_of(node, 0), &intents[node]);
    return a->ranks.procs;
}

static void allocate(int node, uint32_t seg, bool at_once)
{
    struct control r = {.type = CONTROL_SEG_CREATE, .id = 1, .seg = seg, .bytes = 64, .redundancy = 1, .a = at_once};
    r.b = seg == OF_ALL;
    w.answer = (struct control){.status = KEEL_IN_PROGRESS};
    ranks_control(&w.node[node].agent, rank_of(node), &r);
}

static void expect_answer(keel_status status)
{
    world_pump();
    assert_int_equal(w.answer.status, status);
    for (int node = 0; node < w.nodes; node++)
        assert_false(w.node[node].fatal);
}

static void come_to_nothing(uint32_t seg, keel_status status)
{
    struct control r = {
        .type = CONTROL_SEG_FREE, .id = 2, .seg = seg, .a = (int64_t)status, .b = seg == OF_ALL ? 1 : 0};
    ranks_control(&w.node[0].agent, rank_of(0), &r);
    world_pump();
    for (int node = 0; node < w.nodes; node++)
        assert_null(store_find(&w.node[node].agent.store, seg));
}

static bool is_waited_for(int node)
{
    return agent_waits_for(&w.node[0].agent, node);
}

/* Each other node alone; whether its own ranks are members, too, nobody asks. */
static void test_refused_group_hears_which_node_cannot(void **state)
{
    (void)state;
    for (int full = 2; full < 4; full++) {
        memset(intents, 0, sizeof intents);
        w.node[full].full = true;
        allocate(0, OF_GROUP, false);
        expect_answer(KEEL_ERR_NOMEM);
        assert_null(w.node[0].agent.segments.waits);
        assert_null(store_find(&w.node[full].agent.store, OF_GROUP)); /* nobody needs to free it there */
        come_to_nothing(OF_GROUP, KEEL_ERR_NOMEM);
        w.node[full].full = false;
        allocate(0, OF_GROUP + 1, false);
        expect_answer(KEEL_OK);
        come_to_nothing(OF_GROUP + 1, KEEL_OK);
    }
}

/* Acknowledged is not said: a node that has not answered is waited for, and named, until it has or is dead. */
static void test_refused_node_that_has_not_answered_is_waited_for(void **state)
{
    (void)state;
    for (int dies = 0; dies < 2; dies++) {
        w.node[2].still = true;
        allocate(0, OF_GROUP, false);
        for (int i = 0; i < TURNS; i++)
            world_turn();
        assert_int_equal(w.answer.status, KEEL_IN_PROGRESS);
        assert_true(is_waited_for(2));
        assert_false(is_waited_for(1) || is_waited_for(3));
        if (dies)
            world_kill_node(2);
        w.node[2].still = dies;
        expect_answer(KEEL_OK);
        assert_false(is_waited_for(2));
        if (!dies)
            come_to_nothing(OF_GROUP, KEEL_OK);
    }
}

/* What a node has said that is dead by now is no reason. */
static void test_refused_word_of_a_node_that_died_does_not_count(void **state)
{
    (void)state;
    w.node[1].full = true;
    w.node[2].still = true;
    w.answer = (struct control){.status = KEEL_IN_PROGRESS};
    allocate(0, OF_ALL, false);
    for (int i = 0; i < TURNS; i++)
        world_turn();
    assert_int_equal(w.answer.status, KEEL_IN_PROGRESS);
    world_kill_node(1);
    w.node[2].still = false;
    expect_answer(KEEL_OK);
}

/* A node that has copies and whose ranks are dead: nobody else would say that it cannot. */
static void test_refused_by_a_node_without_ranks_before_all_vote(void **state)
{
    (void)state;
    world_kill_rank(1);
    w.node[1].still = true;
    allocate(0, OF_ALL, true);
    for (int i = 0; i < TURNS; i++)
        world_turn();
    assert_int_equal(w.answer.status, KEEL_IN_PROGRESS);
    w.node[1].full = true;
    w.node[1].still = false;
    expect_answer(KEEL_ERR_NOMEM);
    come_to_nothing(OF_ALL, KEEL_ERR_NOMEM);
    assert_true(store_was_freed(&w.node[1].agent.store, OF_ALL));
}

/* A node whose rank was to say that it cannot, and dies: when all others have agreed the node is asked again, and ends
 * if it still cannot. */
static void test_refused_by_a_rank_that_died_ends_the_node_when_all_have_agreed(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        memset(intents, 0, sizeof intents);
        w.node[1].full = true;
        allocate(0, OF_ALL, true);
        expect_answer(KEEL_OK);
        assert_true(store_find(&w.node[1].agent.store, OF_ALL)->starved);
        world_kill_rank(1);
        world_pump();
        assert_false(w.node[1].fatal);
        w.node[1].full = full;
        allocate(0, OF_ALL, false);
        world_pump();
        assert_int_equal(w.node[1].fatal, full);
        assert_int_equal(w.answer.status, full ? KEEL_IN_PROGRESS : KEEL_OK);
        if (full)
            world_kill_node(1);
        world_pump();
        assert_int_equal(w.answer.status, KEEL_OK);
        assert_int_equal(atomic_load(&intents[0].known), KNOWN_MADE(1));
    }
}

/* A node whose rank waits for memory lives, and says when it has some. */
static void test_refused_agreed_segment_is_waited_for_where_a_rank_does(void **state)
{
    (void)state;
    (void)rank_of(1);
    w.node[1].full = true;
    allocate(0, OF_ALL, true);
    expect_answer(KEEL_OK);
    allocate(0, OF_ALL, false);
    expect_answer(KEEL_IN_PROGRESS);
    assert_true(is_waited_for(1));
    w.node[1].full = false;
    struct control r = {.type = CONTROL_SEG_CREATE, .id = 1, .seg = OF_ALL, .bytes = 64, .redundancy = 1, .b = 1};
    ranks_control(&w.node[1].agent, rank_of(1), &r);
    world_pump();
    assert_false(is_waited_for(1));
    assert_null(w.node[0].agent.segments.waits);
    assert_int_equal(atomic_load(&intents[0].known), KNOWN_MADE(1));
}

/* Who was born meanwhile is asked as well. */
static void test_refused_node_that_is_born_is_asked(void **state)
{
    (void)state;
    world_close();
    w.room = 1;
    world_open(3, 0, VIEW_SUBSTITUTE);
    memset(intents, 0, sizeof intents);
    w.node[1].still = true;
    allocate(0, OF_GROUP, false);
    for (int i = 0; i < TURNS; i++)
        world_turn();
    w.node[1].still = false;
    struct view_event born = {.type = VIEW_NODE_BORN, .a = (uint32_t)world_join()};
    int node = (int)born.a;
    expect_answer(KEEL_OK);
    assert_non_null(store_find(&w.node[node].agent.store, OF_GROUP));
    w.node[1].still = true;
    allocate(0, OF_GROUP + 1, false);
    for (int i = 0; i < TURNS; i++)
        world_turn();
    assert_false(is_waited_for(node));
    w.node[node].still = true;
    segments_meet(&w.node[0].agent, &born, 1);
    assert_true(is_waited_for(node));
    w.node[node].still = w.node[1].still = false;
    expect_answer(KEEL_OK);
    assert_false(is_waited_for(node));
}

static int setup_refused(void **state)
{
    memset(intents, 0, sizeof intents);
    return setup(state);
}

static int close_world(void **state)
{
    (void)state;
    world_close();
    w.room = 0;
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_refused, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_refused_group_hears_which_node_cannot),
        TEST(test_refused_node_that_has_not_answered_is_waited_for),
        TEST(test_refused_word_of_a_node_that_died_does_not_count),
        TEST(test_refused_by_a_node_without_ranks_before_all_vote),
        TEST(test_refused_by_a_rank_that_died_ends_the_node_when_all_have_agreed),
        TEST(test_refused_agreed_segment_is_waited_for_where_a_rank_does),
        TEST(test_refused_node_that_is_born_is_asked),
    };
    return cmocka_run_group_tests_name("refused", tests, NULL, NULL);
}
