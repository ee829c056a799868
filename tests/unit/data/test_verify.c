/* The audit: what it says of copies that are equal, that differ, and that change under it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "runtime/agent/segments.h"
#include "runtime/agent/verify.h"
#include "world_steps.h"

static uint64_t asked;

static void begin(int node)
{
    verify_start(&w.node[node].agent, ++asked);
}

static bool says(const char *what)
{
    return w.verified == asked && strstr(w.verdict, what) != NULL;
}

/* Turns until it has ended. */
static void await(void)
{
    for (int i = 0; i < 100000 && w.verified != asked; i++)
        world_turn();
    assert_int_equal(w.verified, asked);
}

static void expect(int node, const char *what)
{
    begin(node);
    await();
    if (!says(what))
        fail_msg("not %s: %s", what, w.verdict);
}

static void test_verify_equal_copies_are_called_equal_by_every_node(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        memset(bytes_at(i, SEG_TRIPLE, 0), 7, SEG_BYTES);
    for (int node = 0; node < 4; node++)
        expect(node, "\"result\":\"equal\"");
    assert_non_null(strstr(w.verdict, "\"busy\":0"));
}

static void test_verify_first_byte_that_differs_is_named(void **state)
{
    (void)state;
    static const size_t at[] = {0, 1, 16383, 16384, VERIFY_BLOCK - 1, VERIFY_BLOCK, SEG_BYTES - 1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        char where[100];
        bytes_at(2, SEG_SHADOW, 1)[at[i]] = 9;
        snprintf(where, sizeof where, "\"segment\":%d,\"slot\":1,\"slot_offset\":%zu,\"rank\":1,\"offset\":%zu",
                 SEG_SHADOW, at[i], at[i]);
        expect((int)(i % 4), "\"result\":\"differs\"");
        assert_true(says(where));
        assert_true(says("{\"node\":1,\"byte\":0},{\"node\":2,\"byte\":9}"));
        bytes_at(2, SEG_SHADOW, 1)[at[i]] = 0;
    }
    expect(0, "\"result\":\"equal\"");
}

static void test_verify_third_copy_is_compared(void **state)
{
    (void)state;
    bytes_at(3, SEG_TRIPLE, 1)[5000] = 1;
    expect(0, "\"result\":\"differs\"");
    assert_true(says("{\"node\":1,\"byte\":0},{\"node\":3,\"byte\":1}"));
}

static void test_verify_unreplicated_parts_cannot_differ(void **state)
{
    (void)state;
    bytes_at(0, SEG_NONE, 0)[0] = 1;
    expect(1, "\"result\":\"equal\"");
}

/* A copy is a put ahead, another one each time that it is looked at. */
static void test_verify_block_that_is_being_written_is_called_busy(void **state)
{
    (void)state;
    begin(3);
    for (int i = 0; i < 100000 && w.verified != asked; i++) {
        bytes_at(0, SEG_SHADOW, 0)[100]++;
        world_turn();
    }
    assert_true(says("\"result\":\"busy\""));
    assert_true(says("\"busy\":1,\"segment\":1,\"slot\":0,\"slot_offset\":0"));
}

static void test_verify_put_that_ends_in_time_is_equal(void **state)
{
    (void)state;
    bytes_at(0, SEG_SHADOW, 0)[100] = 1;
    begin(3);
    for (int i = 0; i < 60; i++)
        world_turn();
    assert_int_not_equal(w.verified, asked);
    bytes_at(1, SEG_SHADOW, 0)[100] = 1;
    await();
    assert_true(says("\"result\":\"equal\""));
}

static void test_verify_difference_beside_a_busy_block_is_found(void **state)
{
    (void)state;
    bytes_at(1, SEG_SHADOW, 0)[SEG_BYTES - 8] = 1;
    begin(2);
    for (int i = 0; i < 100000 && w.verified != asked; i++) {
        bytes_at(0, SEG_SHADOW, 0)[0]++;
        world_turn();
    }
    assert_true(says("\"result\":\"differs\""));
}

static void test_verify_group_that_is_made_equal_is_waited_for(void **state)
{
    (void)state;
    world_kill_node(1);
    begin(0);
    for (int i = 0; i < 100; i++)
        world_turn();
    assert_int_not_equal(w.verified, asked); /* it has not been committed that the copies are whole */
    world_restore();
    await();
    assert_true(says("\"result\":\"equal\""));
}

static void test_verify_group_that_stays_unequal_is_called_busy(void **state)
{
    (void)state;
    world_kill_node(1);
    w.submissions = 0; /* nobody commits that it was restored */
    expect(0, "\"result\":\"busy\"");
}

static void test_verify_node_that_dies_under_it_does_not_stop_it(void **state)
{
    (void)state;
    begin(0);
    for (int i = 0; i < 3; i++)
        world_turn();
    world_kill_node(2);
    world_restore();
    await();
    assert_true(says("\"result\":\"equal\""));
}

static void test_verify_node_that_does_not_answer_is_called_busy(void **state)
{
    (void)state;
    w.node[2].still = true;
    expect(0, "\"result\":\"busy\"");
    w.node[2].still = false;
    world_pump();
}

static void test_verify_segment_that_is_freed_under_it_is_left_out(void **state)
{
    (void)state;
    bytes_at(0, SEG_SHADOW, 0)[0] = 1;
    begin(3);
    for (int i = 0; i < 30; i++)
        world_turn();
    struct proc proc = {.life.rank = 0};
    struct control r = {.type = CONTROL_SEG_FREE, .seg = SEG_SHADOW, .b = 1};
    segments_free(&w.node[0].agent, &proc, &r);
    await();
    assert_true(says("\"result\":\"equal\""));
}

static void test_verify_two_at_once_are_both_answered(void **state)
{
    (void)state;
    begin(0);
    begin(0);
    await();
    assert_true(says("\"result\":\"equal\""));
    assert_null(w.node[0].agent.audits.first);
}

static void test_verify_what_was_lost_everywhere_is_left_out(void **state)
{
    (void)state;
    struct view_event both[] = {{.type = VIEW_NODE_DEAD, .a = 0}, {.type = VIEW_NODE_DEAD, .a = 1}};
    w.node[0].still = w.node[1].still = true;
    world_change(both, 2);
    world_restore();
    expect(3, "\"result\":\"equal\"");
}

static void test_verify_without_memory_it_is_told(void **state)
{
    (void)state;
    memory_fail_at(1);
    begin(0);
    assert_true(memory_failed());
    assert_true(says("\"result\":\"no memory\""));
}

static void test_verify_malformed_questions_do_no_harm(void **state)
{
    (void)state;
    struct wire bad = {
        .type = WIRE_HASH, .raw.seg = SEG_SHADOW, .raw.slot = 0, .raw.offset = SEG_BYTES, .raw.count = VERIFY_BLOCK};
    agent_tell(&w.node[0].agent, 1, &bad, NULL);
    bad.raw.slot = 999;
    agent_tell(&w.node[0].agent, 1, &bad, NULL);
    bad = (struct wire){.type = WIRE_HASH, .raw.seg = SEG_SHADOW, .raw.count = UINT32_MAX};
    agent_tell(&w.node[0].agent, 1, &bad, NULL);
    struct wire answer = {.type = WIRE_HASHED, .raw.a = 77, .len = 8};
    int64_t body = 0;
    agent_tell(&w.node[0].agent, 1, &answer, &body);
    world_pump();
    expect(1, "\"result\":\"equal\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_verify_equal_copies_are_called_equal_by_every_node, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_first_byte_that_differs_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_third_copy_is_compared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_unreplicated_parts_cannot_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_block_that_is_being_written_is_called_busy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_put_that_ends_in_time_is_equal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_difference_beside_a_busy_block_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_group_that_is_made_equal_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_group_that_stays_unequal_is_called_busy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_node_that_dies_under_it_does_not_stop_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_node_that_does_not_answer_is_called_busy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_segment_that_is_freed_under_it_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_two_at_once_are_both_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_what_was_lost_everywhere_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_without_memory_it_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_malformed_questions_do_no_harm, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
