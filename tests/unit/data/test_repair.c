/* Copies are made equal after a writer died: several agents, and views that change when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "repair_steps.h"
#include "runtime/agent/recover.h"
#include "runtime/net/hello.h"
#include "tests/lib/net/mem.h"

static void test_repair_put_of_a_dead_writer_in_one_copy_only_is_spread_or_undone(void **state)
{
    (void)state;
    for (int reached = 0; reached < 3; reached++) {
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        assert_int_equal(rank_put(writer, reached, SEG_TRIPLE, 0, 24, 7, 1), KEEL_OK);
        assert_false(copies_are_equal());
        world_kill_rank(3);
        world_restore();
        assert_true(copies_are_equal());
        assert_int_equal(word_at(0, SEG_TRIPLE, 0, 24),
                         reached == 0 ? 7 : 0); /* the primary's bytes, which readers saw */
        assert_true(is_direct(SEG_TRIPLE, 0));
        assert_null(w.node[0].agent.repairs.doubts);
        assert_null(w.node[1].agent.repairs.doubts);
    }
}

/* A put of a whole word is under way, in one copy; what a dead writer left reaches into that word. The word stays
 * one put's. */
static void test_repair_patch_leaves_no_word_torn(void **state)
{
    (void)state;
    const int64_t mine = 0x1111111111111111, dead = 0x2222222222222222;
    for (int torn = 0; torn < 2; torn++) {
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        if (torn) { /* the primary's bytes come from the other copy */
            announce(writer, 0, SEG_SHADOW, 1, 57, 1, 0, 1);
            world_pump();
        } else { /* they go there */
            struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 54);
            put.len = 4;
            put.raw.note = 1;
            assert_int_equal(rank_ask(writer, 0, put, &dead), KEEL_OK);
        }
        assert_int_equal(rank_put(other, 1, SEG_SHADOW, 0, 56, mine, 1), KEEL_OK);
        world_kill_rank(3);
        world_restore();
        int64_t primary = word_at(0, SEG_SHADOW, 0, 56), shadow = word_at(1, SEG_SHADOW, 0, 56);
        assert_true(primary == (torn ? mine : 0x2222));
        assert_true(shadow == primary);
    }
}

/* The writer's remote write has taken effect inside the provider, and its announcement is not looked at yet, when a
 * view says that the writer is dead. */
static void announced_and_not_looked_at(bool prepared)
{
    const struct view_event e = death_of(3);
    announce(writer, 0, SEG_SHADOW, 512, 4096, 1, 0, 1);
    memset(bytes_at(0, SEG_SHADOW, 0) + 512, 0xee, 100);
    if (prepared)
        world_prepare(&e, 1);
    else
        w.epoch++;
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_commit(i, &e, 1);
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_settle(i);
    world_pump();
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_true(copies_are_equal());
}

static void test_repair_what_has_arrived_is_handled_before_a_prepare(void **state)
{
    (void)state;
    announced_and_not_looked_at(true);
}

static void test_repair_what_has_arrived_is_handled_before_a_commit_without_prepare(void **state)
{
    (void)state;
    announced_and_not_looked_at(false);
}

/* Messages wait for acknowledgements, however much there is to repair and however slow the other copy is. */
static void test_repair_does_not_fill_the_queue_to_a_copy(void **state)
{
    (void)state;
    enum { WINDOW = 96, PUTS = 100, LEN = 65536 };
    static uint8_t bytes[LEN];
    const struct peer *peer = &w.node[0].agent.peers.peer[1];
    memset(bytes, 0x77, sizeof bytes);
    for (unsigned i = 0; i < PUTS; i++) {
        struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, i % 8 * LEN);
        put.len = LEN;
        put.raw.note = (uint16_t)(1 + i);
        assert_int_equal(rank_ask(writer, 0, put, bytes), KEEL_OK);
    }
    const struct view_event e = death_of(3);
    world_prepare(&e, 1);
    world_pump();
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_commit(i, &e, 1);
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_settle(i);
    for (int i = 0; i < 400; i++) {
        w.node[1].still = i % 4 != 0;
        world_turn();
        assert_true(peer->next - 1 - peer->acked <= WINDOW + 4);
    }
    w.node[1].still = false;
    world_pump();
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_true(copies_are_equal());
}

static void test_repair_put_that_is_everywhere_stays(void **state)
{
    (void)state;
    for (int node = 0; node < 3; node++)
        assert_int_equal(rank_put(writer, node, SEG_TRIPLE, 0, 24, 7, 1), KEEL_OK);
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 24), 7);
}

/* However many of the writer's puts complete while one is stuck. */
static void test_repair_put_that_is_stuck_is_not_forgotten_for_later_ones(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK); /* and never arrives at node 0 */
    for (int i = 0; i < 3 * NOTES_MAX; i++)
        for (int node = 0; node < 2; node++) {
            struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 64 + (uint64_t)i * 8);
            const int64_t value = i + 1;
            put.len = sizeof value;
            put.raw.note = (uint16_t)(2 + i % (NOTES_MAX - 1));
            rank_send(writer, node, put, &value);
        }
    world_pump();
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 24), 0);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 64), 1);
}

static void test_repair_writer_that_lives_on_is_repaired_after_its_doubt(void **state)
{
    (void)state;
    const struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 3, .b = 0};
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_change(&doubt, 1);
    world_restore();
    assert_true(copies_are_equal());
    assert_int_equal(atomic_load(&page_rank(w.node[2].agent.page, 3)->doubted), 1);
}

static void test_repair_writer_that_exits_with_open_puts_is_repaired(void **state)
{
    (void)state;
    const struct view_event done = {.type = VIEW_RANK_DONE, .a = 3, .b = 0, .d = 1};
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_change(&done, 1);
    world_restore();
    assert_true(copies_are_equal());
}

/* It told what it doubts once; after that nothing of the repair comes later than what is written directly. */
static void test_repair_that_is_done_sends_nothing_after_another_view(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_kill_rank(3);
    assert_true(w.submissions > 4 && was_submitted(SEG_SHADOW, 0));
    uint64_t sent[4][4];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            sent[i][k] = w.node[i].agent.peers.peer[k].next;
    const struct view_event elsewhere = {.type = VIEW_RANK_LEFT, .a = 2, .b = 0};
    world_change(&elsewhere, 1);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            assert_int_equal(w.node[i].agent.peers.peer[k].next, sent[i][k]);
    world_restore();
    for (int node = 0; node < 2; node++)
        assert_int_equal(rank_put(other, node, SEG_SHADOW, 0, 24, 8, 1), KEEL_OK);
    world_pump();
    assert_true(copies_are_equal());
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 24), 8);
}

static void test_repair_is_submitted_when_every_copy_has_acknowledged(void **state)
{
    (void)state;
    const struct view_event dead = death_of(3);
    assert_int_equal(rank_put(writer, 0, SEG_TRIPLE, 0, 24, 7, 1), KEEL_OK);
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < 4; i++)
        world_settle(i);
    (void)agent_step(&w.node[2].agent);
    w.node[2].still = true; /* it has told its doubts */
    world_pump();
    assert_int_equal(word_at(1, SEG_TRIPLE, 0, 24), 7);
    assert_false(was_submitted(SEG_TRIPLE, 0));
    w.node[2].still = false;
    world_pump();
    assert_true(was_submitted(SEG_TRIPLE, 0));
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 24), 7);
}

static void test_repair_does_not_begin_before_the_view_is_settled(void **state)
{
    (void)state;
    const struct view_event dead = death_of(3);
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        world_commit(i, &dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        recover_settled(&w.node[i].agent, w.epoch - 1); /* the view before it */
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 24), 0);
    assert_int_equal(w.submissions, 0);
    for (int i = 0; i < 4; i++)
        world_settle(i);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 24), 7);
}

/* A view without deaths that is committed in between does not lose what was cut off for a proposal that came to
 * nothing. */
static void test_repair_doubts_of_a_proposal_that_was_given_up_are_kept(void **state)
{
    (void)state;
    const struct view_event dead = death_of(3), left = {.type = VIEW_RANK_LEFT, .a = 2, .b = 0};
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_prepare(&dead, 1); /* fences, and notes what is in doubt */
    world_pump();
    w.epoch--;
    world_change(&left, 1); /* another proposal takes its place */
    assert_true(is_direct(SEG_SHADOW, 0));
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
}

static void test_repair_events_say_restored_once_all_copies_are_there(void **state)
{
    (void)state;
    world_kill_node(3);
    assert_null(strstr(w.node[0].said, "redundancy_restored"));
    world_restore();
    assert_non_null(strstr(w.node[0].said, "redundancy_restored"));
    assert_null(strstr(w.node[0].said, "redundancy_reduced"));
}

/* A writer connects again, and the agent hears of that before it looks at what came over the old connection: a write
 * there may have taken effect already. */
static void test_repair_what_came_before_a_new_connection_is_handled(void **state)
{
    (void)state;
    struct rank *r = &w.rank[3];
    struct hello hello = {.job = 1,
                          .node = 3,
                          .rank = 3,
                          .to_node = 0,
                          .to_incarnation = w.node[0].agent.incarnation,
                          .attempt = ++r->attempt};
    const uint8_t secret[32] = {4, 2};
    struct tp_ep *again;
    hello_sign(&hello, secret);
    assert_int_equal(tp_mem.connect(r->net, &w.node[0].addr, &hello, sizeof hello, NULL, &again), KEEL_OK);
    announce(r, 0, SEG_SHADOW, 0, 4096, 7, 0, 5);
    world_pump();
    const struct conn *c = w.node[0].agent.conns;
    while (c && c->life.rank != 3)
        c = c->next;
    assert_true(c && c->attempt == hello.attempt && c->note[4].put == 7);
    tp_ep_destroy(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_repair_put_of_a_dead_writer_in_one_copy_only_is_spread_or_undone),
        TEST(test_repair_patch_leaves_no_word_torn),
        TEST(test_repair_what_has_arrived_is_handled_before_a_prepare),
        TEST(test_repair_what_has_arrived_is_handled_before_a_commit_without_prepare),
        TEST(test_repair_does_not_fill_the_queue_to_a_copy),
        TEST(test_repair_put_that_is_everywhere_stays),
        TEST(test_repair_put_that_is_stuck_is_not_forgotten_for_later_ones),
        TEST(test_repair_writer_that_lives_on_is_repaired_after_its_doubt),
        TEST(test_repair_writer_that_exits_with_open_puts_is_repaired),
        TEST(test_repair_that_is_done_sends_nothing_after_another_view),
        TEST(test_repair_is_submitted_when_every_copy_has_acknowledged),
        TEST(test_repair_does_not_begin_before_the_view_is_settled),
        TEST(test_repair_doubts_of_a_proposal_that_was_given_up_are_kept),
        TEST(test_repair_events_say_restored_once_all_copies_are_there),
        TEST(test_repair_what_came_before_a_new_connection_is_handled),
    };
    return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
