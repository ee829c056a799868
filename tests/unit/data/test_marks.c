/* Marks of copies (wire/marks.h): where they lie, and that an agent marks what is written to its copies by then,
 * however it is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "execute_steps.h"
#include "runtime/agent/segments.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/marks.h"
#include "runtime/wire/pack.h"

enum { PIECE = 65536 };

static struct store_copy *copy_at(int node, uint32_t seg)
{
    return store_copy(&w.node[node].agent.store, seg, 0);
}

static uint32_t mark_at(int node, uint32_t seg, size_t piece)
{
    const struct store_copy *c = copy_at(node, seg);
    return marks_of(c->base, c->bytes)[piece];
}

static uint32_t marks_in_all(int node, uint32_t seg)
{
    uint32_t all = 0;
    for (size_t i = 0; i < layout_pieces(copy_at(node, seg)->bytes); i++)
        all += mark_at(node, seg, i);
    return all;
}

static int setup_tracked(void **state)
{
    setup(state);
    for (int i = 0; i < 3; i++)
        w.node[i].agent.page->tracked = 1;
    return 0;
}

static void test_marks_pieces_of_a_copy_are_few_and_its_marks_lie_in_pages_behind_it(void **state)
{
    (void)state;
    assert_int_equal(layout_piece_bytes(4096), PIECE);
    assert_int_equal(layout_pieces(4096), 1);
    assert_int_equal(layout_pieces(PIECE), 1);
    assert_int_equal(layout_pieces(PIECE + 4096), 2);
    assert_int_equal(layout_memory_bytes(4096), 8192);
    assert_int_equal(layout_memory_bytes((size_t)1024 * PIECE), (size_t)1024 * PIECE + 16384);
    assert_int_equal(layout_memory_bytes((size_t)1024 * PIECE + 4096), (size_t)1024 * PIECE + 4096 + 16384);
    for (size_t bytes = 4096; bytes < (size_t)1 << 46; bytes = bytes * 3 / 4096 * 4096) {
        assert_true(layout_pieces(bytes) <= 8192 + 1);
        assert_true(layout_pieces(bytes) * layout_piece_bytes(bytes) >= bytes);
        assert_true((layout_pieces(bytes) - 1) * layout_piece_bytes(bytes) < bytes);
        assert_true(layout_memory_bytes(bytes) >= bytes + 12 * layout_pieces(bytes));
        assert_int_equal(layout_memory_bytes(bytes) % 4096, 0);
    }
}

static void test_marks_every_piece_that_a_write_touches_and_no_other_is_marked(void **state)
{
    (void)state;
    struct store_copy *c = copy_at(0, SEG_SHADOW);
    marks_set(c->base, c->bytes, PIECE - 8, 0);
    assert_int_equal(marks_in_all(0, SEG_SHADOW), 0);
    marks_set(c->base, c->bytes, PIECE - 8, 8);
    assert_int_equal(mark_at(0, SEG_SHADOW, 0), 1);
    assert_int_equal(marks_in_all(0, SEG_SHADOW), 1);
    marks_set(c->base, c->bytes, PIECE - 1, 2 * PIECE + 2);
    assert_int_equal(mark_at(0, SEG_SHADOW, 0), 2);
    assert_int_equal(mark_at(0, SEG_SHADOW, 3), 1);
    assert_int_equal(marks_in_all(0, SEG_SHADOW), 5);
    marks_set(c->base, c->bytes, c->bytes - 1, 1);
    assert_int_equal(mark_at(0, SEG_SHADOW, layout_pieces(c->bytes) - 1), 1);
}

static void test_marks_are_not_set_before_a_rank_of_the_node_asks(void **state)
{
    (void)state;
    struct proc proc = {.life.rank = 0};
    struct control map = {.type = CONTROL_SEG_MAP, .seg = SEG_SHADOW, .slot = 0};
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 1), KEEL_OK);
    segments_map(&w.node[0].agent, &proc, &map);
    assert_int_equal(w.answer.status, KEEL_OK);
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 78, 1), KEEL_OK);
    assert_int_equal(marks_in_all(0, SEG_SHADOW), 0);
    map.a = 1;
    segments_map(&w.node[0].agent, &proc, &map);
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 79, 1), KEEL_OK);
    assert_int_equal(marks_in_all(0, SEG_SHADOW), 1);
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, 79, 1), KEEL_OK);
    assert_int_equal(marks_in_all(1, SEG_SHADOW), 0); /* nobody has asked there */
}

static void test_marks_direct_put_is_marked_by_each_copy(void **state)
{
    (void)state;
    for (int node = 0; node < 2; node++) {
        assert_int_equal(rank_put(writer, node, SEG_SHADOW, 0, 3 * PIECE - 4, 77, 1), KEEL_OK);
        assert_int_equal(mark_at(node, SEG_SHADOW, 2), 1);
        assert_int_equal(mark_at(node, SEG_SHADOW, 3), 1);
        assert_int_equal(marks_in_all(node, SEG_SHADOW), 2);
    }
}

/* At the primary and where it is forwarded. */
static void test_marks_operations_through_the_primary_are_marked_by_all_copies_once(void **state)
{
    (void)state;
    int64_t value = 5;
    struct wire put = rank_wire(writer, WIRE_PUT, SEG_TRIPLE, 0, PIECE), acc = put;
    put.flags = PUT_F_THROUGH;
    put.len = acc.len = 8;
    acc.type = WIRE_ACC;
    acc.raw.count = KEEL_INT64;
    acc.raw.a = 1;
    acc.raw.identity = 1;
    acc.raw.offset = 2 * PIECE;
    struct wire add = add_of(SEG_TRIPLE, 0, 5, 2);
    add.raw.offset = 3 * PIECE;
    for (int again = 0; again < 2; again++) { /* what was executed before changes nothing: no mark is needed */
        assert_int_equal(rank_ask(writer, 0, acc, &value), KEEL_OK);
        acc.raw.identity = 1;
    }
    assert_int_equal(rank_ask(writer, 0, put, &value), KEEL_OK);
    assert_int_equal(rank_ask(writer, 0, add, NULL), KEEL_OK);
    for (int node = 0; node < 3; node++) {
        for (size_t piece = 1; piece <= 3; piece++)
            assert_int_equal(mark_at(node, SEG_TRIPLE, piece), 1);
        assert_int_equal(marks_in_all(node, SEG_TRIPLE), 3);
    }
}

static void test_marks_packed_pieces_are_marked_and_not_what_lies_between_them(void **state)
{
    (void)state;
    struct two {
        struct pack_run head, run[2];
        int64_t value[2];
    } body = {.head = {.at = 2, .len = 16}, .run = {{0, 8}, {4 * PIECE, 8}}, .value = {1, 2}};
    for (int through = 0; through < 2; through++) {
        uint32_t seg = through ? SEG_TRIPLE : SEG_SHADOW;
        struct wire put = rank_wire(writer, WIRE_PUT, seg, 0, 16);
        put.flags = REQUEST_F_PACKED | (through ? PUT_F_THROUGH : 0);
        put.len = sizeof body;
        assert_int_equal(rank_ask(writer, 0, put, &body), KEEL_OK);
        for (int node = 0; node < (through ? 3 : 1); node++) {
            assert_int_equal(mark_at(node, seg, 0), 1);
            assert_int_equal(mark_at(node, seg, 4), 1);
            assert_int_equal(marks_in_all(node, seg), 2);
        }
    }
}

/* The agent sees nothing of the write itself: it is marked when the agent is told that all copies have it, before it
 * answers that. */
static void test_marks_remote_write_is_marked_when_its_note_ends(void **state)
{
    (void)state;
    static uint8_t much[2 * PIECE];
    struct tp_op op = {0};
    struct wire note = rank_wire(writer, WIRE_INTENT, SEG_SHADOW, 0, PIECE);
    uint64_t key = wire_key(SEG_SHADOW, 0, note.epoch);
    note.raw.count = sizeof much;
    note.raw.note = 3;
    rank_send(writer, 0, note, NULL);
    assert_int_equal(tp_write(writer->ep[0], much, sizeof much, key, PIECE, &op), KEEL_OK);
    world_pump();
    note.raw.count = 0;
    assert_int_equal(rank_ask(writer, 0, note, NULL), KEEL_OK);
    assert_int_equal(mark_at(0, SEG_SHADOW, 1), 1);
    assert_int_equal(mark_at(0, SEG_SHADOW, 2), 1);
    assert_int_equal(marks_in_all(0, SEG_SHADOW), 2);
    assert_int_equal(rank_ask(writer, 0, note, NULL), KEEL_OK); /* a repetition */
    assert_int_equal(marks_in_all(0, SEG_SHADOW), 2);
}

#define TRACKED(f) cmocka_unit_test_setup_teardown(f, setup_tracked, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_pieces_of_a_copy_are_few_and_its_marks_lie_in_pages_behind_it),
        TEST(test_marks_every_piece_that_a_write_touches_and_no_other_is_marked),
        TEST(test_marks_are_not_set_before_a_rank_of_the_node_asks),
        TRACKED(test_marks_direct_put_is_marked_by_each_copy),
        TRACKED(test_marks_operations_through_the_primary_are_marked_by_all_copies_once),
        TRACKED(test_marks_packed_pieces_are_marked_and_not_what_lies_between_them),
        TRACKED(test_marks_remote_write_is_marked_when_its_note_ends),
    };
    return cmocka_run_group_tests_name("marks", tests, NULL, NULL);
}
