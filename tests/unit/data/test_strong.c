/* Strong gets: answered with what every copy has, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/agent/segments.h"
#include "world_steps.h"

static struct rank *const writer = &w.rank[2], *const reader = &w.rank[3];

static struct wire strong_of(uint32_t seg, uint64_t offset, uint32_t len)
{
    struct wire get = rank_wire(reader, WIRE_GET, seg, 0, offset);
    get.raw.count = len;
    get.flags = GET_F_STRONG;
    return get;
}

static int64_t got(void)
{
    int64_t value;
    memcpy(&value, reader->body, sizeof value);
    return value;
}

/* Sent, and nothing comes. */
static void ask_in_vain(struct wire get)
{
    assert_int_equal(rank_ask(reader, 0, get, NULL), -1000);
}

static void expect_answer(int status)
{
    int before = reader->replies;
    world_pump();
    assert_int_equal(reader->replies, before + 1);
    assert_int_equal(reader->reply.raw.status, status);
}

static void test_strong_value_in_all_copies_is_answered(void **state)
{
    (void)state;
    for (int node = 0; node < 2; node++)
        assert_int_equal(rank_put(writer, node, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    assert_int_equal(rank_ask(reader, 0, strong_of(SEG_SHADOW, 16, 8), NULL), KEEL_OK);
    assert_int_equal(reader->reply.len, 8);
    assert_int_equal(got(), 77);
}

static void test_strong_value_in_the_primary_alone_waits_for_the_other_copy(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    ask_in_vain(strong_of(SEG_SHADOW, 16, 8));
    int before = reader->replies;
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    world_pump();
    assert_int_equal(reader->replies, before + 1);
    assert_int_equal(got(), 77);
}

static void test_strong_value_in_the_other_copy_alone_waits_for_the_primary(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    ask_in_vain(strong_of(SEG_SHADOW, 16, 8));
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    world_pump();
    assert_int_equal(got(), 77);
}

static void test_strong_third_copy_counts(void **state)
{
    (void)state;
    for (int node = 0; node < 2; node++)
        assert_int_equal(rank_put(writer, node, SEG_TRIPLE, 0, 16, 77, 1), KEEL_OK);
    ask_in_vain(strong_of(SEG_TRIPLE, 16, 8));
    assert_int_equal(rank_put(writer, 2, SEG_TRIPLE, 0, 16, 77, 1), KEEL_OK);
    world_pump();
    assert_int_equal(got(), 77);
}

static void test_strong_words_beside_a_put_under_way_are_of_no_account(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, -1, 1), KEEL_OK);
    assert_int_equal(rank_ask(reader, 0, strong_of(SEG_SHADOW, 3, 13), NULL), KEEL_OK); /* up to its first byte */
    assert_int_equal(reader->reply.len, 13);
    ask_in_vain(strong_of(SEG_SHADOW, 3, 14));
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, -1, 1), KEEL_OK);
    world_pump();
    assert_int_equal(reader->body[12], 0);
    assert_int_equal(reader->body[13], 0xff);
}

static void test_strong_words_that_were_the_same_once_need_not_be_again(void **state)
{
    (void)state;
    enum { LEN = WIRE_BODY_MAX };
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 8, 1, 1), KEEL_OK);
    ask_in_vain(strong_of(SEG_SHADOW, 0, LEN));
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, LEN - 8, 2, 2), KEEL_OK); /* another word, from now on */
    int before = reader->replies;
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 8, 1, 1), KEEL_OK);
    world_pump();
    assert_int_equal(reader->replies, before + 1);
    int64_t word;
    memcpy(&word, reader->body + 8, sizeof word);
    assert_int_equal(word, 1);
    memcpy(&word, reader->body + LEN - 8, sizeof word);
    assert_int_equal(word, 0);
}

static void test_strong_accumulates_never_make_it_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct wire add = rank_wire(writer, WIRE_RMW, SEG_TRIPLE, 0, 8);
        add.raw.a = 1;
        add.raw.identity = (uint64_t)i + 1;
        rank_send(writer, 0, add, NULL);
        if (i == 20)
            rank_send(reader, 0, strong_of(SEG_TRIPLE, 8, 8), NULL);
        world_turn();
    }
    world_pump();
    assert_int_equal(reader->replies, 1);
    assert_int_equal(reader->reply.raw.status, KEEL_OK);
    assert_true(got() > 0 && got() < 50);
}

static void test_strong_get_that_waits_is_sent_back_when_a_copy_dies(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    ask_in_vain(strong_of(SEG_SHADOW, 16, 8));
    int before = reader->replies;
    world_kill_node(1);
    assert_int_equal(reader->replies, before + 1);
    assert_int_equal(reader->reply.raw.status, WIRE_RETRY);
    assert_int_equal(rank_ask(reader, 0, strong_of(SEG_SHADOW, 16, 8), NULL), KEEL_OK); /* the only whole copy */
    assert_int_equal(got(), 77);
}

static void test_strong_get_of_what_a_dead_writer_left_waits_until_it_is_decided(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    struct view_event dead = {.type = VIEW_RANK_DEAD, .a = 2, .c = 9};
    world_prepare(&dead, 1);
    world_pump();
    for (int node = 0; node < 4; node++)
        world_commit(node, &dead, 1); /* not settled: nobody repairs yet */
    ask_in_vain(strong_of(SEG_SHADOW, 16, 8));
    for (int node = 0; node < 4; node++)
        world_settle(node);
    expect_answer(KEEL_OK);
    assert_int_equal(got(), 77);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 77);
    world_restore();
}

/* Who stands still is known to be waited for, also by who does not ask it itself. */
static void test_strong_get_says_which_copy_it_waits_for(void **state)
{
    static const struct {
        uint32_t seg;
        int still;
    } cases[] = {{SEG_SHADOW, 1}, {SEG_TRIPLE, 1}, {SEG_TRIPLE, 2}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        w.node[cases[i].still].still = true;
        ask_in_vain(strong_of(cases[i].seg, 16, 8));
        memset(w.node[0].checked, 0, sizeof w.node[0].checked);
        w.now += KEEL_NS_PER_S;
        world_turn();
        for (int node = 0; node < 4; node++)
            assert_int_equal(w.node[0].checked[node] > 0, node == cases[i].still);
        w.node[cases[i].still].still = false;
        expect_answer(KEEL_OK);
    }
}

static void test_strong_get_of_a_segment_that_is_freed_is_sent_back(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    ask_in_vain(strong_of(SEG_SHADOW, 16, 8));
    struct proc proc = {.life.rank = 0};
    struct control r = {.type = CONTROL_SEG_FREE, .seg = SEG_SHADOW, .b = 1};
    segments_free(&w.node[0].agent, &proc, &r);
    expect_answer(WIRE_RETRY);
}

static void test_strong_reader_that_dies_waiting_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    ask_in_vain(strong_of(SEG_SHADOW, 16, 8));
    assert_non_null(w.node[0].agent.strong.checks);
    world_kill_rank(3);
    assert_null(w.node[0].agent.strong.checks);
    world_restore();
}

static void test_strong_without_memory_it_is_told(void **state)
{
    (void)state;
    struct wire get = strong_of(SEG_SHADOW, 16, 8);
    world_pump();
    int before = reader->replies;
    rank_send(reader, 0, get, NULL);
    memory_fail_at(1);
    agent_poll(&w.node[0].agent, w.node[0].agent.net);
    assert_true(memory_failed());
    world_pump();
    assert_int_equal(reader->replies, before + 1);
    assert_int_equal(reader->reply.raw.status, KEEL_ERR_NOMEM);
    assert_null(w.node[0].agent.strong.checks);
}

static void test_strong_malformed_answers_do_no_harm(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    ask_in_vain(strong_of(SEG_SHADOW, 16, 8));
    struct wire answer = {.type = WIRE_COMPARED, .raw.a = (int64_t)w.node[0].agent.strong.rounds + 7, .len = 0};
    agent_tell(&w.node[1].agent, 0, &answer, NULL); /* of no question */
    answer.raw.a = (int64_t)w.node[0].agent.strong.rounds;
    agent_tell(&w.node[1].agent, 0, &answer, NULL); /* too short */
    struct wire ask = {.type = WIRE_COMPARE, .raw.slot = 0, .raw.seg = SEG_SHADOW, .raw.offset = SEG_BYTES, .len = 8};
    int64_t zero = 0;
    agent_tell(&w.node[0].agent, 1, &ask, &zero); /* beyond the segment */
    ask.raw.seg = 99;
    agent_tell(&w.node[0].agent, 1, &ask, &zero);
    ask.raw.slot = 999;
    agent_tell(&w.node[0].agent, 1, &ask, &zero);
    int before = reader->replies;
    world_pump();
    assert_int_equal(reader->replies, before);
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    world_pump();
    assert_int_equal(got(), 77);
}

/* The other copy has freed the segment before the question comes, and drops it. */
static void test_strong_get_whose_question_was_dropped_is_sent_back(void **state)
{
    (void)state;
    struct proc proc = {.life.rank = 0};
    struct control r = {.type = CONTROL_SEG_FREE, .seg = SEG_SHADOW, .b = 1};
    int before = reader->replies;
    rank_send(reader, 0, strong_of(SEG_SHADOW, 16, 8), NULL);
    (void)agent_poll(&w.node[0].agent, w.node[0].agent.net);
    segments_free(&w.node[1].agent, &proc, &r);
    world_pump();
    assert_int_equal(reader->replies, before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_strong_value_in_all_copies_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_value_in_the_primary_alone_waits_for_the_other_copy, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_strong_value_in_the_other_copy_alone_waits_for_the_primary, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_strong_third_copy_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_words_beside_a_put_under_way_are_of_no_account, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_words_that_were_the_same_once_need_not_be_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_accumulates_never_make_it_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_get_that_waits_is_sent_back_when_a_copy_dies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_get_of_what_a_dead_writer_left_waits_until_it_is_decided, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_strong_get_says_which_copy_it_waits_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_get_of_a_segment_that_is_freed_is_sent_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_get_whose_question_was_dropped_is_sent_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_reader_that_dies_waiting_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_without_memory_it_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_malformed_answers_do_no_harm, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
