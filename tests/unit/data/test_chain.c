/* The chain of three whole copies, when two of them die one after the other: what was answered, or remembered, is
 * not lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <keel/type.h>

#include "agents.h"
#include "memory.h"
#include "runtime/agent/execute.h"

enum { BODY = WIRE_BODY_MAX, N = 3 };

static struct rank *origin;
static int64_t ones[BODY / 8];
static const struct view_event middle_dies = {.type = VIEW_NODE_DEAD, .a = 1};

static int setup(void **state)
{
    (void)state;
    world_open(4, 0, VIEW_DEGRADE);
    origin = &w.rank[3];
    for (size_t i = 0; i < BODY / 8; i++)
        ones[i] = 1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close();
    return memory_living() == 0 ? 0 : -1;
}

/* The number-th accumulate; each has a lane of its own, and a message of the transport for each forward. */
static struct wire acc_of(int number)
{
    struct wire acc = rank_wire(origin, WIRE_ACC, SEG_TRIPLE, 0, 0);
    acc.raw.count = KEEL_INT64;
    acc.len = BODY;
    acc.raw.a = 1;
    acc.raw.round = (uint16_t)number;
    acc.raw.identity = 1;
    return acc;
}

/* Node 0 has applied n, node 1 has passed them on and dies; whether they arrived at node 2 nobody has heard. */
static void middle_dies_behind(int n, bool arrive)
{
    for (int i = 0; i < n; i++)
        rank_send(origin, 0, acc_of(i), ones);
    w.node[1].still = w.node[2].still = true;
    world_pump();
    assert_int_equal(word_at(0, SEG_TRIPLE, 0, 0), n);
    if (arrive) {
        w.node[1].still = false;
        world_pump();
        w.node[1].still = true;
    }
    w.node[2].still = false;
    if (arrive)
        world_pump();
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 0), arrive ? n : 0);
}

static void middle_is_declared_dead(void)
{
    world_prepare(&middle_dies, 1);
    world_pump();
    for (int i = 0; i < w.nodes + w.spares; i++)
        assert_true(w.node[i].still || w.node[i].prepared == w.epoch);
    for (int i = w.nodes + w.spares - 1; i >= 0; i--)
        world_commit(i, &middle_dies, 1);
}

/* Node 2 takes from its network one event after the other until that has come which changes the word; what is behind it
 * is lost: node 0 dies, and its connections are reset. */
static void primary_dies_behind_the_first_that_arrives_again(void)
{
    struct agent *a = &w.node[2].agent;
    (void)agent_step(&w.node[0].agent);
    w.node[0].still = true;
    uint64_t received = a->peers.peer[0].received;
    while (a->peers.peer[0].received == received) {
        struct tp_event e;
        assert_int_equal(tp_poll(a->net, &e, 1), 1);
        struct peer *peer = tp_ep_user(e.ep);
        if (peer >= a->peers.peer && peer < a->peers.peer + a->members)
            peer_event(&a->peers, peer, &e, a->now);
    }
    tp_disconnect(a->peers.peer[0].in);
}

static void test_chain_what_comes_again_takes_nothing_back(void **state)
{
    (void)state;
    middle_dies_behind(N, true);
    middle_is_declared_dead();
    primary_dies_behind_the_first_that_arrives_again();
    world_kill_node(0);
    world_restore();
    assert_int_equal(copyset_at(2, SEG_TRIPLE, 0)->copy[0].node, 2);
    for (int i = 0; i < N; i++) { /* the origin has no answer yet */
        struct wire again = acc_of(i);
        assert_int_equal(rank_ask(origin, 2, again, ones), KEEL_OK);
    }
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 0), N);
}

/* As above, but the last copy has answered the origin, which is on its node. */
static void test_chain_what_the_last_copy_answered_is_not_taken_back(void **state)
{
    (void)state;
    origin = &w.rank[2];
    middle_dies_behind(N, true);
    assert_int_equal(origin->replies, N);
    assert_int_equal(origin->reply.raw.status, KEEL_OK);
    middle_is_declared_dead();
    primary_dies_behind_the_first_that_arrives_again();
    world_kill_node(0);
    world_restore();
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 0), N);
}

static void test_chain_what_comes_again_is_applied_where_it_was_not(void **state)
{
    (void)state;
    middle_dies_behind(N, false);
    middle_is_declared_dead();
    primary_dies_behind_the_first_that_arrives_again();
    world_kill_node(0);
    world_restore();
    for (int i = 0; i < N; i++)
        assert_int_equal(rank_ask(origin, 2, acc_of(i), ones), KEEL_OK);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 0), N);
}

/* The origin's connection breaks and it asks again while the first one waits: the second answer waits as the first
 * one does. */
static void test_chain_repetition_is_not_answered_before_it_has_arrived_again(void **state)
{
    (void)state;
    middle_dies_behind(1, false);
    int before = origin->replies;
    rank_connect(origin, 0);
    rank_send(origin, 0, acc_of(0), ones);
    w.node[2].still = true; /* slow */
    world_pump();
    assert_int_equal(origin->replies, before);
    w.node[2].still = false;
    middle_is_declared_dead();
    w.node[2].still = true;
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_settle(i);
    world_pump();
    bool answered = origin->replies > before && origin->reply.raw.status == KEEL_OK;
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 0), 0);
    tp_disconnect(w.node[2].agent.peers.peer[0].in); /* node 0 dies, and what it had sent is lost */
    w.node[2].still = false;
    world_kill_node(0);
    world_restore();
    if (answered)
        assert_int_equal(word_at(2, SEG_TRIPLE, 0, 0), 1);
    else
        assert_int_equal(rank_ask(origin, 2, acc_of(0), ones), KEEL_OK);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 0), 1);
}

/* ---- out of memory ---- */

/* An accumulate that has taken effect comes once more, over a new connection, and there is no memory to let it wait.
 * Its origin must not be told that it failed: a task gives its step to the next one then, which is taken for a
 * repetition and dropped. */
static void repeat_without_memory(bool frozen)
{
    const struct view_event elsewhere = {.type = VIEW_RANK_LEFT, .a = 2};
    struct agent *a = &w.node[0].agent;
    struct conn *c = a->conns;
    while (c->life.rank != 3)
        c = c->next;
    struct wire acc = acc_of(0), next;
    acc.flags = IDENTITY_F_TASK;
    acc.raw.identity = 77;
    acc.raw.round = 1;
    assert_int_equal(rank_ask(origin, 0, acc, ones), KEEL_OK);
    assert_int_equal(word_at(0, SEG_TRIPLE, 0, 0), 1);
    rank_connect(origin, 0);
    if (frozen)
        world_prepare(&elsewhere, 1);
    int before = origin->replies;
    acc.seq = ++origin->seq;
    memory_fail_at(1);
    execute_request(a, c, &acc, ones);
    assert_true(memory_failed());
    world_pump();
    assert_int_equal(origin->replies, before + 1);
    next = acc;
    next.raw.step = origin->reply.raw.status == KEEL_ERR_NOMEM ? 0 : 1; /* as the client does */
    if (frozen) {
        for (int i = 0; i < w.nodes + w.spares; i++)
            world_commit(i, &elsewhere, 1);
        for (int i = 0; i < w.nodes + w.spares; i++)
            world_settle(i);
        world_pump();
    }
    next.epoch = rank_wire(origin, WIRE_ACC, SEG_TRIPLE, 0, 0).epoch;
    assert_int_equal(rank_ask(origin, 0, next, ones), KEEL_OK);
    assert_int_equal(word_at(0, SEG_TRIPLE, 0, 0), 2);
    assert_true(copies_are_equal());
    world_restore();
}

static void test_chain_repetition_without_memory_is_asked_again(void **state)
{
    (void)state;
    repeat_without_memory(false);
}

static void test_chain_repetition_without_memory_to_keep_it_is_asked_again(void **state)
{
    (void)state;
    repeat_without_memory(true);
}

/* Messages of its own in the stream of copy 1 to the primary, while an accumulate is executed and answered. */
static uint64_t told_by_copy_1(uint32_t seg)
{
    const struct peer *stream = &w.node[1].agent.peers.peer[0];
    uint64_t before = stream->next;
    struct wire acc = acc_of(1);
    acc.raw.seg = seg;
    assert_int_equal(rank_ask(origin, 0, acc, ones), KEEL_OK);
    world_pump();
    return stream->next - before;
}

static void test_chain_copy_that_passes_nothing_on_tells_nothing(void **state)
{
    (void)state;
    assert_int_equal(told_by_copy_1(SEG_SHADOW), 0);
    assert_true(told_by_copy_1(SEG_TRIPLE) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chain_copy_that_passes_nothing_on_tells_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain_what_comes_again_takes_nothing_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain_what_the_last_copy_answered_is_not_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain_what_comes_again_is_applied_where_it_was_not, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain_repetition_is_not_answered_before_it_has_arrived_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_chain_repetition_without_memory_is_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain_repetition_without_memory_to_keep_it_is_asked_again, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
