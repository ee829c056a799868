/* Accumulates and atomics: each counts once, and who answers it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "execute_steps.h"
#include "runtime/wire/arith.h"

static void test_execute_accumulate_is_answered_when_all_copies_have_it(void **state)
{
    (void)state;
    const double two[2] = {1.5, -2};
    struct wire acc = rank_wire(writer, WIRE_ACC, SEG_TRIPLE, 0, 8);
    acc.raw.count = KEEL_DOUBLE;
    memcpy(&acc.raw.a, &(double){2}, sizeof(double));
    acc.raw.identity = 1;
    acc.len = sizeof two;
    w.node[2].still = true;
    assert_int_equal(rank_ask(writer, 0, acc, two), -1000); /* the third copy's node does not run */
    double got[2];
    memcpy(got, bytes_at(0, SEG_TRIPLE, 0) + 8, sizeof got);
    assert_true(got[0] == 3 && got[1] == -4);
    assert_int_equal(word_at(1, SEG_TRIPLE, 0, 8), word_at(0, SEG_TRIPLE, 0, 8));
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 0);
    w.node[2].still = false;
    world_pump();
    assert_int_equal(writer->replies, 1);
    assert_int_equal(writer->reply.raw.status, KEEL_OK);
    assert_true(copies_are_equal());
}

static void test_execute_repeated_operation_counts_once_with_its_first_result(void **state)
{
    (void)state;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), KEEL_OK);
    assert_int_equal(writer->reply.raw.a, 0);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 2), NULL), KEEL_OK);
    assert_int_equal(writer->reply.raw.a, 5);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 2), NULL), KEEL_OK);
    assert_int_equal(writer->reply.raw.a, 5);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), -1000); /* an echo: nobody waits for it */
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 10);
    assert_true(copies_are_equal());
}

/* Each type: the second copy has what the first computed, and knows that it came. */
static void test_execute_accumulate_of_every_type_counts_once_at_the_promoted_copy(void **state)
{
    (void)state;
    struct wire acc[KEEL_COMPLEX_DOUBLE + 1];
    uint8_t body[KEEL_COMPLEX_DOUBLE + 1][3 * 16];
    for (unsigned type = KEEL_INT32; type <= KEEL_COMPLEX_DOUBLE; type++) {
        size_t size = arith_size(type);
        acc[type] = rank_wire(writer, WIRE_ACC, SEG_SHADOW, 0, 256 * type + arith_align(type));
        acc[type].raw.count = type;
        acc[type].len = (uint32_t)size * 3;
        acc[type].raw.identity = 1;
        acc[type].raw.round = (uint16_t)type;
        memcpy(&acc[type].raw.a, arith_one(type), size < 8 ? size : 8);
        for (size_t i = 0; i < 3; i++)
            memcpy(body[type] + i * size, arith_one(type), size);
        assert_int_equal(rank_ask(writer, 0, acc[type], body[type]), KEEL_OK);
        assert_memory_equal(bytes_at(0, SEG_SHADOW, 0) + acc[type].raw.offset, body[type], acc[type].len);
    }
    assert_true(copies_are_equal());
    world_kill_node(0);
    for (unsigned type = KEEL_INT32; type <= KEEL_COMPLEX_DOUBLE; type++) {
        acc[type].epoch = copyset_at(1, SEG_SHADOW, 0)->generation;
        assert_int_equal(rank_ask(writer, 1, acc[type], body[type]), KEEL_OK);
        assert_memory_equal(bytes_at(1, SEG_SHADOW, 0) + acc[type].raw.offset, body[type], acc[type].len);
    }
}

static void test_execute_atomics_of_32_bits_leave_the_word_beside_them(void **state)
{
    (void)state;
    struct wire q = add_of(SEG_SHADOW, 0, -3, 1);
    q.raw.offset = 12;
    q.raw.count = ARITH_ADD | RMW_32;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_OK);
    assert_int_equal(writer->reply.raw.a, 0);
    q.raw.identity = 2;
    q.raw.count = ARITH_XOR | RMW_32;
    q.raw.a = 1;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_OK);
    assert_int_equal(writer->reply.raw.a, -3);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), (int64_t)((uint64_t)(uint32_t)(-3 ^ 1) << 32));
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    assert_true(copies_are_equal());
}

static void test_execute_operation_repeated_at_the_promoted_copy_counts_once(void **state)
{
    (void)state;
    struct wire cas = add_of(SEG_TRIPLE, 0, 0, 1);
    cas.raw.count = ARITH_CAS;
    cas.raw.b = 9;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_TRIPLE, 0, 5, 1), NULL), KEEL_OK);
    cas.raw.identity = 2;
    cas.raw.a = 5;
    assert_int_equal(rank_ask(writer, 0, cas, NULL), KEEL_OK);
    world_kill_node(0);
    cas.epoch = copyset_at(1, SEG_TRIPLE, 0)->generation;
    assert_int_equal(rank_ask(writer, 1, cas, NULL), KEEL_OK); /* its answer was lost with the primary */
    assert_int_equal(writer->reply.raw.a, 5);
    assert_int_equal(word_at(1, SEG_TRIPLE, 0, 8), 9);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 9);
}

static struct wire piece_of(uint64_t number, uint32_t piece)
{
    struct wire acc = rank_wire(writer, WIRE_ACC, SEG_TRIPLE, 0, 8 + 8 * piece);
    acc.raw.count = KEEL_INT64;
    acc.raw.a = 1;
    acc.raw.identity = number;
    acc.raw.step = piece;
    acc.len = 8;
    return acc;
}

/* Answers were lost with the primary: all are sent again, some of them twice. */
static void test_execute_pieces_of_an_accumulate_count_once_and_in_order_at_the_promoted_copy(void **state)
{
    (void)state;
    const int64_t one = 1;
    assert_int_equal(rank_ask(writer, 0, piece_of(4, 2), &one), WIRE_RETRY); /* its predecessor did not come */
    assert_int_equal(rank_ask(writer, 0, piece_of(4, 1), &one), KEEL_OK);
    assert_int_equal(rank_ask(writer, 0, piece_of(4, 2), &one), KEEL_OK);
    world_kill_node(0);
    uint32_t generation = copyset_at(1, SEG_TRIPLE, 0)->generation;
    static const int asked[][2] = {{4, WIRE_RETRY}, {1, KEEL_OK}, {2, KEEL_OK},
                                   {3, KEEL_OK},    {3, KEEL_OK}, {4, KEEL_OK}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        struct wire acc = piece_of(4, (uint32_t)asked[i][0]);
        acc.epoch = generation;
        assert_int_equal(rank_ask(writer, 1, acc, &one), asked[i][1]);
    }
    for (uint32_t piece = 1; piece <= 4; piece++) {
        assert_int_equal(word_at(1, SEG_TRIPLE, 0, 8 + 8 * piece), 1);
        assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8 + 8 * piece), 1);
    }
}

static void test_execute_steps_of_a_task_count_once_whoever_runs_it(void **state)
{
    (void)state;
    struct wire step = add_of(SEG_SHADOW, 0, 1, 77);
    step.flags = IDENTITY_F_TASK;
    step.raw.round = 3;
    step.raw.step = 1;
    assert_int_equal(rank_ask(writer, 0, step, NULL), WIRE_RETRY); /* its predecessor did not come */
    step.raw.step = 0;
    assert_int_equal(rank_ask(writer, 0, step, NULL), KEEL_OK);
    step.raw.rank = 1; /* another runner */
    assert_int_equal(rank_ask(&w.rank[1], 0, step, NULL), KEEL_OK);
    step.raw.step = 1;
    assert_int_equal(rank_ask(&w.rank[1], 0, step, NULL), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 2);
    assert_true(copies_are_equal());
}

static void test_execute_forward_of_a_node_that_is_no_primary_is_ignored(void **state)
{
    (void)state;
    const int64_t value = 66;
    struct wire f = rank_wire(writer, WIRE_FORWARD, SEG_SHADOW, 0, 16);
    f.raw.count = WIRE_PUT;
    f.len = sizeof value;
    assert_true(agent_tell(&w.node[2].agent, 1, &f, &value) > 0);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0);
    assert_true(agent_tell(&w.node[0].agent, 1, &f, &value) > 0);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 66);
}

/* The middle of a chain: what the primary sends reaches the last copy through it only. */
static void test_execute_forward_that_leaves_out_a_copy_is_ignored(void **state)
{
    (void)state;
    const int64_t value = 66;
    struct wire f = rank_wire(writer, WIRE_FORWARD, SEG_TRIPLE, 0, 16);
    f.raw.count = WIRE_PUT;
    f.len = sizeof value;
    assert_true(agent_tell(&w.node[0].agent, 2, &f, &value) > 0);
    world_pump();
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 16), 0);
    w.node[1].still = true;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_TRIPLE, 0, 5, 1), NULL), -1000);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 0); /* no copy has what one before it lacks */
    w.node[1].still = false;
    world_pump();
    assert_int_equal(writer->reply.raw.status, KEEL_OK);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 5);
}

static void test_execute_malformed_forward_changes_nothing(void **state)
{
    (void)state;
    const int64_t value = 66;
    struct wire good = rank_wire(writer, WIRE_FORWARD, SEG_SHADOW, 0, 16), f;
    good.raw.count = WIRE_PUT;
    good.len = sizeof value;
    for (int wrong = 0; wrong < 6; wrong++) {
        f = good;
        if (wrong == 0)
            f.raw.offset = 1 << 30;
        else if (wrong == 1)
            f.raw.offset = UINT64_MAX;
        else if (wrong == 2)
            f.raw.slot = 99;
        else if (wrong == 3)
            f.raw.seg = 99;
        else if (wrong == 4)
            f.raw.rank = 99;
        else
            f.raw.round = LANES_MAX;
        assert_true(agent_tell(&w.node[0].agent, 1, &f, &value) > 0);
    }
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0);
    assert_false(w.node[1].fatal);
}

static void test_execute_last_copy_answers_the_ranks_of_its_node(void **state)
{
    (void)state;
    struct rank *near = &w.rank[1];
    struct wire add = rank_wire(near, WIRE_RMW, SEG_SHADOW, 0, 8);
    add.raw.a = 5;
    add.raw.identity = 1;
    rank_send(near, 0, add, NULL);
    (void)agent_poll(&w.node[0].agent, w.node[0].agent.net);
    (void)agent_step(&w.node[0].agent);
    w.node[0].still = true; /* it has passed it on, and does not hear of the acknowledgement */
    world_pump();
    assert_int_equal(near->replies, 1);
    assert_int_equal(near->reply.raw.status, KEEL_OK);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 5);
    w.node[0].still = false;
    world_pump();
    assert_int_equal(near->replies, 1); /* once */
    assert_null(w.node[0].agent.waiters);
    add.raw.identity = 2;
    assert_int_equal(rank_ask(near, 0, add, NULL), KEEL_OK);
    assert_int_equal(near->reply.raw.a, 5);
    assert_int_equal(rank_ask(near, 0, add, NULL), KEEL_OK); /* again: the primary knows it */
    assert_int_equal(near->reply.raw.a, 5);
    assert_true(copies_are_equal());
}

static void test_execute_last_of_three_answers_when_all_have_it(void **state)
{
    (void)state;
    struct rank *near = &w.rank[2];
    struct wire add = rank_wire(near, WIRE_RMW, SEG_TRIPLE, 0, 8);
    add.raw.a = 5;
    add.raw.identity = 1;
    w.node[1].still = true; /* in the middle of the chain */
    rank_send(near, 0, add, NULL);
    world_pump();
    assert_int_equal(near->replies, 0);
    w.node[1].still = false;
    world_pump();
    assert_int_equal(near->replies, 1);
    assert_true(copies_are_equal());
}

/* What was not answered when the view changed is answered by the primary, whoever answered it before. */
static void test_execute_primary_answers_after_a_view_change(void **state)
{
    (void)state;
    struct rank *near = &w.rank[1];
    struct wire add = rank_wire(near, WIRE_RMW, SEG_SHADOW, 0, 8);
    const struct view_event elsewhere = {.type = VIEW_RANK_LEFT, .a = 2, .b = 0};
    add.raw.a = 5;
    add.raw.identity = 1;
    rank_send(near, 0, add, NULL);
    (void)agent_poll(&w.node[0].agent, w.node[0].agent.net);
    assert_non_null(w.node[0].agent.waiters);
    world_change(&elsewhere, 1);
    assert_int_equal(near->replies, 2);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 5);
    assert_true(copies_are_equal());
}

static void test_execute_says_when_ranks_of_its_node_may_add_themselves(void **state)
{
    (void)state;
    struct rank *own = &w.rank[0];
    double one = 1, scale = 1;
    struct wire acc = rank_wire(writer, WIRE_ACC, SEG_NONE, 0, 8);
    acc.raw.count = KEEL_DOUBLE;
    acc.len = sizeof one;
    memcpy(&acc.raw.a, &scale, sizeof scale);
    acc.raw.identity = 1;
    assert_int_equal(rank_ask(writer, 0, acc, &one), KEEL_OK);
    assert_int_equal(writer->reply.epoch, 0); /* it is on another node */
    assert_false(store_copy(&w.node[0].agent.store, SEG_NONE, 0)->shared);
    struct wire add = rank_wire(own, WIRE_RMW, SEG_NONE, 0, 16);
    add.raw.identity = 1;
    assert_int_equal(rank_ask(own, 0, add, NULL), KEEL_OK);
    assert_int_equal(own->reply.epoch, copyset_at(0, SEG_NONE, 0)->generation + 1);
    assert_true(store_copy(&w.node[0].agent.store, SEG_NONE, 0)->shared);
    add = rank_wire(own, WIRE_RMW, SEG_SHADOW, 0, 16);
    add.raw.identity = 2;
    assert_int_equal(rank_ask(own, 0, add, NULL), KEEL_OK);
    assert_int_equal(own->reply.epoch, 0); /* several copies */
    assert_false(store_copy(&w.node[0].agent.store, SEG_SHADOW, 0)->shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_execute_accumulate_is_answered_when_all_copies_have_it),
        TEST(test_execute_repeated_operation_counts_once_with_its_first_result),
        TEST(test_execute_accumulate_of_every_type_counts_once_at_the_promoted_copy),
        TEST(test_execute_atomics_of_32_bits_leave_the_word_beside_them),
        TEST(test_execute_operation_repeated_at_the_promoted_copy_counts_once),
        TEST(test_execute_pieces_of_an_accumulate_count_once_and_in_order_at_the_promoted_copy),
        TEST(test_execute_steps_of_a_task_count_once_whoever_runs_it),
        TEST(test_execute_forward_of_a_node_that_is_no_primary_is_ignored),
        TEST(test_execute_forward_that_leaves_out_a_copy_is_ignored),
        TEST(test_execute_malformed_forward_changes_nothing),
        TEST(test_execute_last_copy_answers_the_ranks_of_its_node),
        TEST(test_execute_last_of_three_answers_when_all_have_it),
        TEST(test_execute_primary_answers_after_a_view_change),
        TEST(test_execute_says_when_ranks_of_its_node_may_add_themselves),
    };
    return cmocka_run_group_tests_name("execute_once", tests, NULL, NULL);
}
