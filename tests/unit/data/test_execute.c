/* What agents do with puts and gets of ranks, and when a view changes, alone and with the other copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "execute_steps.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/recover.h"

static void test_execute_direct_put_is_stored_by_each_copy_and_noted(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 3), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 77);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0); /* nobody passes it on */
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, 77, 3), KEEL_OK);
    assert_true(copies_are_equal());
    const struct conn *c = conn_of_writer(0);
    assert_int_equal(c->note[2].len, 8);
    assert_int_equal(c->note[2].offset, 16);
    assert_false(c->note[2].torn);
}

static void test_execute_put_to_a_node_without_a_copy_is_sent_back(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 2, SEG_SHADOW, 0, 16, 77, 1), WIRE_RETRY);
}

static void test_execute_put_of_an_older_generation_changes_nothing(void **state)
{
    (void)state;
    struct wire old = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    int64_t value = 5;
    old.len = sizeof value;
    world_change(&doubt, 1);
    assert_int_equal(rank_ask(writer, 0, old, &value), WIRE_RETRY);
    old.flags = PUT_F_THROUGH;
    assert_int_equal(rank_ask(writer, 0, old, &value), WIRE_RETRY);
    old.flags = 0;
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_int_equal(rank_ask(writer, 0, old, &value), WIRE_RETRY); /* a route that comes back is another one */
    assert_int_equal(rank_ask(writer, 1, old, &value), WIRE_RETRY);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0);
}

static void test_execute_doubted_writer_must_connect_again(void **state)
{
    (void)state;
    const struct view_event e = {.type = VIEW_RANK_DOUBT, .a = 2, .b = 0};
    world_change(&e, 1);
    assert_null(writer->ep[0]); /* nothing that it gave up comes late */
    assert_null(writer->ep[1]);
    assert_non_null(w.rank[1].ep[0]);
    rank_connect(writer, 0);
    struct wire add = add_of(SEG_SHADOW, 0, 5, 1);
    assert_int_equal(rank_ask(writer, 0, add, NULL), WIRE_RETRY); /* it may be what was given up */
    add.raw.status = 1;
    assert_int_equal(rank_ask(writer, 0, add, NULL), KEEL_OK);
}

static void test_execute_remote_write_of_an_older_generation_finds_no_memory(void **state)
{
    (void)state;
    static int64_t value = 9;
    struct tp_op op = {0};
    struct view_event e = {.type = VIEW_RANK_DEAD, .a = 0, .c = 9};
    assert_int_equal(tp_write(writer->ep[0], &value, 8, wire_key(SEG_SHADOW, 0, 0), 16, &op), KEEL_OK);
    world_pump();
    assert_int_equal(writer->status, KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 9);
    world_change(&e, 1);
    value = 10;
    assert_int_equal(tp_write(writer->ep[0], &value, 8, wire_key(SEG_SHADOW, 0, 0), 16, &op), KEEL_OK);
    world_pump();
    assert_int_equal(writer->done, 2);
    assert_int_not_equal(writer->status, KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 9);
}

static void test_execute_direct_put_while_copies_are_made_equal_is_sent_back(void **state)
{
    (void)state;
    world_change(&doubt, 1);
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 5, 1), WIRE_RETRY);
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, 5, 1), WIRE_RETRY);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    struct wire through = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    int64_t value = 6;
    through.flags = PUT_F_THROUGH;
    through.len = sizeof value;
    assert_int_equal(rank_ask(writer, 1, through, &value), WIRE_RETRY); /* no primary */
    assert_int_equal(rank_ask(writer, 0, through, &value), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 6);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 6);
}

static void test_execute_put_of_a_later_generation_waits_for_its_view(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_RANK_DEAD, .a = 0, .c = 9};
    struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    int64_t value = 8;
    world_prepare(&e, 1);
    world_pump();
    world_commit(1, &e, 1);
    world_commit(2, &e, 1);
    put.epoch = copyset_at(2, SEG_SHADOW, 0)->generation;
    put.flags = PUT_F_THROUGH;
    put.len = sizeof value;
    assert_int_equal(rank_ask(writer, 0, put, &value), -1000);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    world_commit(0, &e, 1);
    world_pump();
    assert_int_equal(writer->replies, 1);
    assert_int_equal(writer->reply.raw.status, KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 8);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 8);
}

static void test_execute_get_is_answered_by_each_copy_while_all_are_equal(void **state)
{
    (void)state;
    struct wire get = rank_wire(writer, WIRE_GET, SEG_SHADOW, 0, 8), strong = get;
    get.raw.count = strong.raw.count = 8;
    strong.flags = GET_F_STRONG;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), KEEL_OK);
    for (int node = 0; node < 2; node++) {
        assert_int_equal(rank_ask(writer, node, get, NULL), KEEL_OK);
        assert_int_equal(writer->reply.len, 8);
        assert_int_equal(writer->body[0], 5);
    }
    assert_int_equal(rank_ask(writer, 2, get, NULL), WIRE_RETRY);
    assert_int_equal(rank_ask(writer, 1, strong, NULL), WIRE_RETRY);
    world_change(&doubt, 1); /* copies are made equal */
    get.epoch = copyset_at(0, SEG_SHADOW, 0)->generation;
    assert_int_equal(rank_ask(writer, 1, get, NULL), WIRE_RETRY);
    assert_int_equal(rank_ask(writer, 0, get, NULL), KEEL_OK);
    assert_int_equal(writer->body[0], 5);
}

static void test_execute_what_was_lost_is_told(void **state)
{
    (void)state;
    world_kill_node(0);
    int node = copyset_at(1, SEG_NONE, 0)->copy[0].node;
    struct wire q = rank_wire(writer, WIRE_GET, SEG_NONE, 0, 0);
    q.raw.count = 8;
    assert_int_equal(rank_ask(writer, node, q, NULL), KEEL_ERR_DATA_LOST);
}

static void test_execute_prepare_is_answered_when_forwards_have_arrived(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_RANK_LEFT, .a = 0};
    w.node[1].still = true;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), -1000);
    assert_false(execute_drained(&w.node[0].agent));
    world_prepare(&e, 1);
    world_pump();
    assert_int_equal(w.node[0].prepared, 0);
    assert_int_equal(w.node[2].prepared, w.epoch);
    w.node[1].still = false;
    world_pump();
    assert_int_equal(w.node[0].prepared, w.epoch);
    assert_int_equal(writer->replies, 0); /* the commit lets it go */
    for (int i = 0; i < 3; i++)
        world_commit(i, &e, 1);
    world_pump();
    assert_int_equal(writer->reply.raw.status, KEEL_OK);
}

/* Else a view proposed before the death was found could never be prepared, nor the next one, which declares it. */
static void test_execute_prepare_does_not_wait_for_a_node_believed_dead(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_RANK_LEFT, .a = 0};
    w.node[1].still = true;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), -1000);
    world_prepare(&e, 1);
    world_pump();
    assert_int_equal(w.node[0].prepared, 0);
    recover_doomed(&w.node[0].agent, 1);
    assert_int_equal(w.node[0].prepared, w.epoch);
    world_commit(0, &e, 1);
    world_commit(2, &e, 1);
    world_pump();
    assert_int_equal(writer->replies, 0); /* the origin is not told before the node is declared dead */
    world_kill_node(1);
    assert_int_equal(writer->replies, 1);
    assert_int_equal(writer->reply.raw.status, KEEL_OK);
}

static void test_execute_nothing_is_executed_between_prepare_and_commit(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_RANK_LEFT, .a = 0};
    world_prepare(&e, 1);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), -1000);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 0);
    for (int i = 0; i < 3; i++)
        world_commit(i, &e, 1);
    world_pump();
    assert_int_equal(writer->reply.raw.status, KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 5);
}

static void test_execute_rank_declared_dead_is_cut_off_and_stays_out(void **state)
{
    (void)state;
    uint64_t refused = w.node[0].agent.newcomers.refused;
    world_kill_rank(2);
    assert_null(writer->ep[0]);
    rank_connect(writer, 0);
    assert_null(writer->ep[0]);
    assert_true(w.node[0].agent.newcomers.refused > refused);
    assert_non_null(w.rank[1].ep[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_execute_direct_put_is_stored_by_each_copy_and_noted),
        TEST(test_execute_put_to_a_node_without_a_copy_is_sent_back),
        TEST(test_execute_put_of_an_older_generation_changes_nothing),
        TEST(test_execute_doubted_writer_must_connect_again),
        TEST(test_execute_remote_write_of_an_older_generation_finds_no_memory),
        TEST(test_execute_direct_put_while_copies_are_made_equal_is_sent_back),
        TEST(test_execute_put_of_a_later_generation_waits_for_its_view),
        TEST(test_execute_get_is_answered_by_each_copy_while_all_are_equal),
        TEST(test_execute_what_was_lost_is_told),
        TEST(test_execute_prepare_is_answered_when_forwards_have_arrived),
        TEST(test_execute_prepare_does_not_wait_for_a_node_believed_dead),
        TEST(test_execute_nothing_is_executed_between_prepare_and_commit),
        TEST(test_execute_rank_declared_dead_is_cut_off_and_stays_out),
    };
    return cmocka_run_group_tests_name("execute", tests, NULL, NULL);
}
