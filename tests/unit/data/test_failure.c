/* What a rank is told of nodes, ranks and links: a client on node 3 and its agent, with a detector that this test
 * plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agents.h"
#include "runtime/agent/health.h"
#include "runtime/agent/ranks.h"
#include "runtime/client/job/failure.h"
#include "tests/lib/net/mem.h"

#define MS 1000000ull

static struct client c;
static struct tp *shm, *net;
static struct intent_page intents;
static bool answers[NODES_MAX]; /* the node, when it is asked */
static bool mute;               /* the agent is not reached */
static int asked;

static uint64_t e_now(void *user)
{
    (void)user;
    return w.now;
}

static void e_sleep(void *user, int ms)
{
    (void)user;
    w.now += (uint64_t)ms * MS;
    world_turn();
}

static bool e_tell(void *user, const struct control *r)
{
    (void)user;
    assert_int_equal(r->type, CONTROL_STATUS);
    asked++;
    if (mute)
        return false;
    health_ask(&w.node[3].agent, r);
    if (answers[r->node])
        health_answered(&w.node[3].agent, r->node, w.now);
    return true;
}

static bool e_gone(void *user)
{
    (void)user;
    return false;
}

static const struct client_env env = {.now = e_now, .sleep = e_sleep, .tell = e_tell, .agent_is_gone = e_gone};

static int set_up(void **state)
{
    (void)state;
    struct tp_config tp = {.host = "client"};
    world_open(4, 0, VIEW_SUBSTITUTE);
    assert_int_equal(tp_mem.open(&tp, &shm), KEEL_OK);
    assert_int_equal(tp_mem.open(&tp, &net), KEEL_OK);
    struct control_welcome welcome = {.rank = 3, .size = 4, .node = 3, .job = 1};
    assert_int_equal(client_init(&c, &env, &welcome, w.node[3].agent.page, &intents, net, shm), KEEL_OK);
    client_own_connection(&c)->way.state = WAY_CONNECTING; /* nothing goes over it here */
    for (int i = 0; i < 4; i++) {                          /* a process for each rank, for the agent to look at */
        struct proc *proc = ranks_started(&w.node[i].agent, 10 + i);
        proc->life.rank = i;
        answers[i] = true;
    }
    mute = false;
    asked = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct proc *proc = ranks_find(&w.node[i].agent, 10 + i);
        if (proc) {
            proc->life.rank = -1; /* it has no connection to drop */
            ranks_free(&w.node[i].agent, proc);
        }
    }
    client_fini(&c);
    shm->table->close(shm);
    net->table->close(net);
    world_close();
    return 0;
}

static keel_verdict node(int who, int ms)
{
    keel_verdict v = (keel_verdict)-1;
    uint64_t begin = w.now;
    assert_int_equal(failure_node_status(&c, who, ms, &v), KEEL_OK);
    assert_true(w.now - begin <= (uint64_t)ms * MS); /* what is promised */
    return v;
}

static keel_verdict rank(int who, int ms)
{
    keel_verdict v = (keel_verdict)-1;
    uint64_t begin = w.now;
    assert_int_equal(failure_rank_status(&c, who, ms, &v), KEEL_OK);
    assert_true(w.now - begin <= (uint64_t)ms * MS);
    return v;
}

static void test_failure_node_that_answers_is_alive(void **state)
{
    (void)state;
    uint64_t begin = w.now;
    assert_int_equal(node(1, 1000), KEEL_ALIVE);
    assert_true(w.now - begin <= 2 * MS);
    answers[1] = false; /* the old answer does not count */
    assert_int_equal(node(1, 40), KEEL_UNDECIDED);
    assert_int_equal(node(3, 40), KEEL_ALIVE); /* its own */
    answers[1] = true;
    assert_int_equal(rank(1, 40), KEEL_ALIVE);
    assert_int_equal(rank(3, 40), KEEL_ALIVE);
}

static void test_failure_without_time_nobody_is_asked(void **state)
{
    (void)state;
    answers[1] = false;
    assert_int_equal(node(1, 0), KEEL_ALIVE);
    health_doubt(&w.node[3].agent, 1, PAGE_DOUBT_SUSPECT, true);
    assert_int_equal(node(1, 0), KEEL_UNDECIDED);
    health_doubt(&w.node[3].agent, 1, PAGE_DOUBT_AGENT, true);
    assert_int_equal(node(1, 0), KEEL_AGENT_HUNG);
    struct health_link link = {1, 3, 5};
    health_links(&w.node[3].agent, &link, 1);
    assert_int_equal(node(1, 0), KEEL_LINK_BROKEN);
    assert_int_equal(node(2, 0), KEEL_ALIVE);
    health_links(&w.node[3].agent, NULL, 0);
    health_doubt(&w.node[3].agent, 1, PAGE_DOUBT_SUSPECT | PAGE_DOUBT_AGENT, false);
    assert_int_equal(node(1, 0), KEEL_ALIVE);
    assert_int_equal(asked, 0);
}

static void test_failure_doubts_count_when_there_is_no_answer(void **state)
{
    (void)state;
    struct health_link link = {2, 3, 5};
    health_links(&w.node[3].agent, &link, 1);
    health_doubt(&w.node[3].agent, 1, PAGE_DOUBT_AGENT | PAGE_DOUBT_SUSPECT, true);
    assert_int_equal(node(1, 1000), KEEL_ALIVE); /* it has just come back */
    assert_int_equal(node(2, 1000), KEEL_ALIVE);
    answers[1] = answers[2] = false;
    uint64_t begin = w.now;
    assert_int_equal(node(1, 1000), KEEL_AGENT_HUNG);
    assert_int_equal(node(2, 1000), KEEL_LINK_BROKEN);
    assert_true(w.now - begin <= 200 * MS); /* long before the time is over */
    w.node[1].still = w.node[2].still = true;
    assert_int_equal(rank(1, 1000), KEEL_AGENT_HUNG);
    assert_int_equal(rank(2, 1000), KEEL_LINK_BROKEN);
}

static void test_failure_agent_that_does_not_take_questions_costs_the_time_given(void **state)
{
    (void)state;
    mute = true;
    uint64_t begin = w.now;
    assert_int_equal(node(1, 30), KEEL_UNDECIDED);
    assert_true(w.now - begin == 30 * MS);
}

static void test_failure_rank_verdicts_are_its_kernels(void **state)
{
    (void)state;
    for (int r = 1; r < 3; r++) { /* through its agent */
        w.node[r].process = PAGE_PROCESS_STOPPED;
        assert_int_equal(rank(r, 1000), KEEL_RANK_HUNG);
        w.node[r].process = PAGE_PROCESS_NONE; /* not there yet */
        assert_int_equal(rank(r, 100), KEEL_UNDECIDED);
        w.node[r].process = PAGE_PROCESS_RUNS;
        assert_int_equal(rank(r, 1000), KEEL_ALIVE);
    }
}

static unsigned process_on(int node, int rank)
{
    return atomic_load(&page_rank(w.node[node].agent.page, rank)->process);
}

/* On all nodes it stands on the page who was seen stopped, whoever asked; who goes on is seen by who asks. */
static void test_failure_who_is_stopped_is_told_to_all_nodes(void **state)
{
    (void)state;
    assert_int_equal(rank(1, 1000), KEEL_ALIVE);
    w.node[1].process = PAGE_PROCESS_STOPPED;
    assert_int_equal(rank(1, 1000), KEEL_RANK_HUNG);
    world_pump();
    for (int node = 0; node < 4; node++)
        assert_int_equal(process_on(node, 1), PAGE_PROCESS_STOPPED);
    assert_int_equal(atomic_load(&page_rank(w.node[0].agent.page, 1)->looked), 0); /* nobody asked there */
    w.node[1].process = PAGE_PROCESS_RUNS;
    assert_int_equal(rank(1, 1000), KEEL_ALIVE);
    assert_int_equal(process_on(0, 1), PAGE_PROCESS_STOPPED);
    w.node[1].process = PAGE_PROCESS_STOPPED;
    atomic_store(&page_rank(w.node[0].agent.page, 1)->process, PAGE_PROCESS_RUNS);
    assert_int_equal(rank(1, 1000), KEEL_RANK_HUNG); /* and told again */
    world_pump();
    assert_int_equal(process_on(0, 1), PAGE_PROCESS_STOPPED);
}

static void (*while_asked)(void);

static void uses_a_tick(void)
{
    w.node[2].ticks++;
}

static bool e_tell_and(void *user, const struct control *r)
{
    while_asked();
    return e_tell(user, r);
}

/* A wait that no signal ends is a short one, mostly: hung is who used no processor time for a while. */
static void test_failure_rank_that_waits_for_a_disk_is_not_hung_at_once(void **state)
{
    (void)state;
    w.node[2].process = PAGE_PROCESS_WAITS;
    uint64_t begin = w.now;
    assert_int_equal(rank(2, 50), KEEL_UNDECIDED);
    assert_int_equal(rank(2, 1000), KEEL_RANK_HUNG);
    assert_true(w.now - begin >= 150 * MS);
    c.env.tell = e_tell_and;
    while_asked = uses_a_tick;
    assert_int_equal(rank(2, 400), KEEL_UNDECIDED); /* it gets on, from one wait into the next */
}

static void test_failure_of_a_rank_is_listed_once_with_its_last_death(void **state)
{
    (void)state;
    keel_failure f[8];
    size_t n = 9;
    uint64_t epoch = 9;
    assert_int_equal(failure_list(&c, 0, f, 8, &n, &epoch), KEEL_OK);
    assert_int_equal(n, 0);
    assert_int_equal(epoch, 0);
    world_kill_rank(1);
    struct view_event again = {.type = VIEW_RANK_DEAD, .a = 1, .b = 1, .c = 11};
    world_change(&again, 1);
    assert_int_equal(w.node[3].failures, 2);
    assert_int_equal(failure_list(&c, 0, f, 8, &n, &epoch), KEEL_OK);
    assert_int_equal(n, 1);
    assert_int_equal(f[0].epoch, 2);
    assert_int_equal(f[0].rank, 1);
    assert_int_equal(f[0].node, 1);
    assert_int_equal(f[0].signal, 11);
    assert_int_equal(f[0].deaths, 2);
    assert_int_equal(epoch, 2);
    assert_int_equal(failure_list(&c, epoch, f, 8, &n, NULL), KEEL_OK);
    assert_int_equal(n, 0);
}

static void test_failure_of_a_node_comes_before_its_ranks(void **state)
{
    (void)state;
    keel_failure f[8] = {{.epoch = 77}};
    size_t n;
    uint64_t epoch = 5;
    world_kill_rank(2);
    world_kill_node(1);
    assert_int_equal(w.node[3].failures, 2);
    assert_int_equal(w.node[0].failures, 2);
    assert_int_equal(failure_list(&c, 0, f, 2, &n, &epoch), KEEL_ERR_LIMIT);
    assert_int_equal(n, 3);
    assert_true(f[0].epoch == 77 && epoch == 5);
    assert_int_equal(failure_list(&c, 0, f, 3, &n, &epoch), KEEL_OK);
    assert_true(f[0].epoch == 1 && f[0].rank == 2 && f[0].signal == 9);
    assert_true(f[1].epoch == 2 && f[1].rank == -1 && f[1].node == 1 && f[1].signal == 0);
    assert_true(f[2].epoch == 2 && f[2].rank == 1 && f[2].node == 1 && f[2].signal == 0 && f[2].deaths == 1);
    assert_int_equal(epoch, 2);
    assert_int_equal(failure_list(&c, 1, f, 8, &n, NULL), KEEL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(node(1, 1000), KEEL_NODE_DEAD);
    struct view_event other = {.type = VIEW_RANK_DOUBT, .a = 0};
    world_change(&other, 1); /* a view without a death wakes nobody */
    assert_int_equal(w.node[3].failures, 2);
}

static void test_failure_ends_are_told_apart(void **state)
{
    (void)state;
    keel_failure f[8];
    size_t n;
    struct view_event done = {.type = VIEW_RANK_DONE, .a = 1};
    world_change(&done, 1);
    assert_int_equal(rank(1, 100), KEEL_RANK_ENDED);
    for (uint32_t i = 0; i <= VIEW_MAX_RESTARTS; i++) {
        struct view_event dead = {.type = VIEW_RANK_DEAD, .a = 2, .b = i, .c = 9};
        world_change(&dead, 1);
    }
    assert_int_equal(rank(2, 100), KEEL_RANK_DEAD);
    assert_int_equal(failure_list(&c, 0, f, 8, &n, NULL), KEEL_OK);
    assert_int_equal(n, 1); /* who ended did not fail */
    assert_int_equal(f[0].deaths, VIEW_MAX_RESTARTS + 1);
}

static void test_failure_is_no_move(void **state)
{
    (void)state;
    keel_failure f[8];
    size_t n = 9;
    struct view_event moved = {.type = VIEW_RANK_MOVED, .a = 1, .c = 2, .d = view_moved_word(false, 0)};
    world_change(&moved, 1);
    assert_int_equal(w.node[3].failures, 0);
    assert_int_equal(failure_list(&c, 0, f, 8, &n, NULL), KEEL_OK);
    assert_int_equal(n, 0);
}

static void test_failure_links_are_those_of_the_detector(void **state)
{
    (void)state;
    struct health_link links[2] = {{0, 2, 5}, {1, 3, 6}};
    keel_link out[2];
    size_t n = 7;
    assert_int_equal(failure_links(&c, NULL, 0, &n), KEEL_OK);
    assert_int_equal(n, 0);
    health_links(&w.node[3].agent, links, 2);
    assert_int_equal(failure_links(&c, out, 1, &n), KEEL_ERR_LIMIT);
    assert_int_equal(n, 2);
    assert_int_equal(failure_links(&c, out, 2, &n), KEEL_OK);
    assert_true(out[0].a == 0 && out[0].b == 2 && out[0].since_ns == 5 && out[1].a == 1 && out[1].b == 3);
}

static void test_failure_bad_arguments_are_refused(void **state)
{
    (void)state;
    keel_verdict v;
    size_t n;
    assert_int_equal(failure_node_status(&c, 4, 1, &v), KEEL_ERR_ARG);
    assert_int_equal(failure_node_status(&c, -1, 1, &v), KEEL_ERR_ARG);
    assert_int_equal(failure_node_status(&c, 0, -1, &v), KEEL_ERR_ARG);
    assert_int_equal(failure_node_status(&c, 0, 1, NULL), KEEL_ERR_ARG);
    assert_int_equal(failure_rank_status(&c, 4, 1, &v), KEEL_ERR_ARG);
    assert_int_equal(failure_rank_status(&c, -1, 1, &v), KEEL_ERR_ARG);
    assert_int_equal(failure_rank_status(&c, 0, -1, &v), KEEL_ERR_ARG);
    assert_int_equal(failure_rank_status(&c, 0, 1, NULL), KEEL_ERR_ARG);
    assert_int_equal(failure_list(&c, 0, NULL, 1, &n, NULL), KEEL_ERR_ARG);
    assert_int_equal(failure_list(&c, 0, NULL, 0, NULL, NULL), KEEL_ERR_ARG);
    assert_int_equal(failure_links(&c, NULL, 1, &n), KEEL_ERR_ARG);
    assert_int_equal(failure_links(&c, NULL, 0, NULL), KEEL_ERR_ARG);
    c.fatal = KEEL_ERR_FENCED;
    assert_int_equal(failure_node_status(&c, 1, 1000, &v), KEEL_ERR_FENCED);
}

static void test_failure_verdicts_have_names(void **state)
{
    (void)state;
    assert_string_equal(failure_verdict_name(KEEL_ALIVE), "KEEL_ALIVE");
    assert_string_equal(failure_verdict_name(KEEL_NODE_DEAD), "KEEL_NODE_DEAD");
    for (int v = KEEL_ALIVE; v <= KEEL_NODE_DEAD; v++)
        for (int u = KEEL_ALIVE; u < v; u++)
            assert_string_not_equal(failure_verdict_name((keel_verdict)v), failure_verdict_name((keel_verdict)u));
    assert_non_null(failure_verdict_name((keel_verdict)99));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_failure_node_that_answers_is_alive),
        TEST(test_failure_without_time_nobody_is_asked),
        TEST(test_failure_doubts_count_when_there_is_no_answer),
        TEST(test_failure_agent_that_does_not_take_questions_costs_the_time_given),
        TEST(test_failure_rank_verdicts_are_its_kernels),
        TEST(test_failure_who_is_stopped_is_told_to_all_nodes),
        TEST(test_failure_rank_that_waits_for_a_disk_is_not_hung_at_once),
        TEST(test_failure_of_a_rank_is_listed_once_with_its_last_death),
        TEST(test_failure_of_a_node_comes_before_its_ranks),
        TEST(test_failure_ends_are_told_apart),
        TEST(test_failure_is_no_move),
        TEST(test_failure_links_are_those_of_the_detector),
        TEST(test_failure_bad_arguments_are_refused),
        TEST(test_failure_verdicts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
