/* What an agent refuses, and what it does without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "execute_steps.h"
#include "runtime/agent/execute.h"
#include "runtime/wire/arith.h"

static void test_execute_malformed_requests_are_answered_with_an_error(void **state)
{
    (void)state;
    uint8_t body[64] = {0};
    struct wire q = rank_wire(writer, WIRE_GET, SEG_SHADOW, 0, 0);
    q.raw.count = WIRE_BULK_MAX + 1;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q.raw.count = WIRE_BODY_MAX + 1;
    q.flags = GET_F_STRONG;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = rank_wire(writer, WIRE_GET, SEG_SHADOW, 0, UINT64_MAX);
    q.raw.count = 8;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 1 << 20);
    q.len = 8;
    assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    q = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 0);
    q.len = 8;
    q.raw.note = NOTES_MAX + 1;
    assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.raw.offset = 4;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.raw.round = LANES_MAX;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.raw.count = ARITH_RMW_OPS;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.raw.count = RMW_32;
    q.raw.offset = 6;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    const uint32_t no_type[] = {KEEL_BYTE, KEEL_COMPLEX_DOUBLE + 1, UINT32_MAX};
    for (int i = 0; i < 3; i++) {
        q = rank_wire(writer, WIRE_ACC, SEG_SHADOW, 0, 0);
        q.raw.count = no_type[i];
        q.len = 16;
        assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    }
    q = rank_wire(writer, WIRE_ACC, SEG_SHADOW, 0, 4);
    q.raw.count = KEEL_COMPLEX_DOUBLE;
    q.len = 16;
    assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    q = rank_wire(writer, WIRE_ACC, SEG_SHADOW, 0, 0);
    q.raw.count = KEEL_DOUBLE;
    q.len = 12;
    assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.raw.slot = 99;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.raw.rank = 1;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_AUTH);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.raw.incarnation = 1;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_AUTH);
    assert_true(copies_are_equal());
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 0);
}

/* An intent carries a range that nobody has checked: it may name anything, and is looked at when its writer dies. */
static void test_execute_malformed_intents_do_no_harm(void **state)
{
    (void)state;
    struct wire q = rank_wire(writer, WIRE_INTENT, SEG_SHADOW, 0, 0);
    const struct wire bad[] = {{.raw.slot = 65535, .raw.offset = 0, .raw.count = 8},
                               {.raw.slot = 3, .raw.offset = 0, .raw.count = 8},
                               {.raw.slot = 0, .raw.offset = UINT64_MAX - 3, .raw.count = 8},
                               {.raw.slot = 0, .raw.offset = 1 << 30, .raw.count = UINT32_MAX},
                               {.raw.slot = 0, .raw.offset = 0, .raw.count = UINT32_MAX},
                               {.raw.slot = 0, .raw.seg = 1000, .raw.offset = 0, .raw.count = 8}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        q.raw.slot = bad[i].raw.slot;
        q.raw.seg = bad[i].raw.seg ? bad[i].raw.seg : SEG_SHADOW;
        q.raw.offset = bad[i].raw.offset;
        q.raw.count = bad[i].raw.count;
        q.raw.note = (uint16_t)(i + 1);
        rank_send(writer, 0, q, NULL);
        rank_send(writer, 1, q, NULL);
    }
    q.raw.note = NOTES_MAX + 1;
    rank_send(writer, 0, q, NULL);
    q.raw.note = 0;
    rank_send(writer, 0, q, NULL);
    world_pump();
    world_kill_rank(0); /* the writer lives on */
    world_restore();
    world_kill_rank(2);
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_true(copies_are_equal());
}

static void test_execute_unknown_segment_is_sent_back_freed_one_is_an_error(void **state)
{
    (void)state;
    struct wire q = add_of(SEG_SHADOW, 0, 1, 1);
    q.raw.seg = 50;
    assert_int_equal(rank_ask(writer, 0, q, NULL), WIRE_RETRY); /* the rank's agent knew of it first */
    store_free(&w.node[0].agent.store, SEG_NONE);
    q.raw.seg = SEG_NONE;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
}

/* Whatever allocation fails: the operation counts once and its origin is told so; or it did not count, and its origin
 * is told that; or the agent says that it cannot go on. */
static void test_execute_without_memory_nothing_is_half_done(void **state)
{
    (void)state;
    int told = 0, fatal = 0, again = 0;
    bool reached = true;
    for (long n = 1; reached; n++) {
        world_close();
        world_open(3, 0, VIEW_DEGRADE);
        struct wire add = add_of(SEG_SHADOW, 0, 5, 1);
        struct agent *a = &w.node[0].agent;
        struct conn *c = conn_of_writer(0);
        add.seq = 1;
        memory_fail_at(n);
        execute_request(a, c, &add, NULL);
        reached = memory_failed();
        world_pump();
        if (w.node[0].fatal) {
            fatal++;
            continue;
        }
        if (writer->replies == 0) { /* the answer was lost: the connection with it */
            assert_null(writer->ep[0]);
            rank_connect(writer, 0);
            assert_int_equal(rank_ask(writer, 0, add, NULL), KEEL_OK);
            again++;
        } else if (writer->reply.raw.status != KEEL_OK) {
            assert_int_equal(writer->reply.raw.status, KEEL_ERR_NOMEM);
            assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 0);
            assert_int_equal(rank_ask(writer, 0, add, NULL), KEEL_OK);
            told++;
        }
        assert_int_equal(writer->reply.raw.a, 0);
        assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 5);
        assert_true(copies_are_equal());
    }
    assert_int_equal(told, 2);  /* for the one that waits, and for the record */
    assert_int_equal(fatal, 1); /* for the forward: what was executed cannot be passed on */
    assert_int_equal(again, 0); /* the answer is sent later */
}

static void test_execute_without_memory_for_an_answer_the_connection_breaks(void **state)
{
    (void)state;
    struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    const int64_t value = 4;
    put.len = sizeof value;
    ask_without_memory(&put, &value);
    assert_int_equal(writer->replies, 0);
    assert_null(writer->ep[0]); /* the rank learns of it, and repeats what was not answered */
    rank_connect(writer, 0);
    assert_int_equal(rank_ask(writer, 0, put, &value), KEEL_OK);
}

static void test_execute_without_memory_to_keep_a_request_it_is_told(void **state)
{
    (void)state;
    struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    const int64_t value = 4;
    put.len = sizeof value;
    put.epoch++;
    ask_without_memory(&put, &value);
    assert_int_equal(writer->reply.raw.status, KEEL_ERR_NOMEM);
    assert_null(w.node[0].agent.stash.first);
}

/* Of a copy: the primary will count on it. */
static void test_execute_without_memory_for_a_forwards_record_the_agent_ends(void **state)
{
    (void)state;
    const int64_t value = 4;
    struct wire f = add_of(SEG_SHADOW, 0, 4, 1);
    f.type = WIRE_FORWARD;
    f.raw.count = WIRE_RMW;
    f.len = sizeof value;
    memory_fail_at(1);
    execute_forwarded(&w.node[1].agent, 0, &f, &value);
    assert_true(memory_failed());
    assert_true(w.node[1].fatal);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_execute_malformed_requests_are_answered_with_an_error),
        TEST(test_execute_malformed_intents_do_no_harm),
        TEST(test_execute_unknown_segment_is_sent_back_freed_one_is_an_error),
        TEST(test_execute_without_memory_nothing_is_half_done),
        TEST(test_execute_without_memory_for_an_answer_the_connection_breaks),
        TEST(test_execute_without_memory_to_keep_a_request_it_is_told),
        TEST(test_execute_without_memory_for_a_forwards_record_the_agent_ends),
    };
    return cmocka_run_group_tests_name("execute_refused", tests, NULL, NULL);
}
