/* Many pieces in one message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "execute_steps.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/digest.h"
#include "runtime/wire/pack.h"

/* Two words, at 0 and 24 from the message's offset. */
struct two {
    struct pack_run head, run[2];
    int64_t value[2];
};

static struct two two_of(int64_t first, int64_t second)
{
    return (struct two){.head = {.at = 2, .len = 16}, .run = {{0, 8}, {24, 8}}, .value = {first, second}};
}

static struct wire packed_wire(uint8_t type, uint32_t seg)
{
    struct wire q = rank_wire(writer, type, seg, 0, 16);
    q.flags = REQUEST_F_PACKED;
    q.len = sizeof(struct two);
    q.raw.count = KEEL_INT64;
    q.raw.a = 1;
    return q;
}

static void test_execute_packed_put_is_stored_by_each_copy_and_noted_from_end_to_end(void **state)
{
    (void)state;
    struct two body = two_of(77, 78);
    struct wire put = packed_wire(WIRE_PUT, SEG_SHADOW);
    put.raw.note = 4;
    assert_int_equal(rank_ask(writer, 0, put, &body), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 77);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 40), 78);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 24), 0);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0); /* nobody passes it on */
    const struct conn *c = conn_of_writer(0);
    assert_int_equal(c->note[3].offset, 16);
    assert_int_equal(c->note[3].len, 32);
    assert_int_equal(rank_ask(writer, 1, put, &body), KEEL_OK);
    assert_true(copies_are_equal());
}

static void test_execute_packed_put_through_the_primary_reaches_every_copy(void **state)
{
    (void)state;
    struct two body = two_of(5, 6);
    struct wire put = packed_wire(WIRE_PUT, SEG_TRIPLE);
    put.flags |= PUT_F_THROUGH;
    assert_int_equal(rank_ask(writer, 0, put, &body), KEEL_OK);
    for (int node = 0; node < 3; node++) {
        assert_int_equal(word_at(node, SEG_TRIPLE, 0, 16), 5);
        assert_int_equal(word_at(node, SEG_TRIPLE, 0, 40), 6);
    }
    assert_true(copies_are_equal());
}

static void test_execute_packed_accumulate_counts_once_also_at_the_promoted_copy(void **state)
{
    (void)state;
    for (uint32_t seg = SEG_SHADOW; seg <= SEG_TRIPLE; seg++) {
        world_close();
        world_open(3, 0, VIEW_DEGRADE);
        struct two body = two_of(10, 20);
        struct wire acc = packed_wire(WIRE_ACC, seg);
        acc.raw.identity = 1;
        assert_int_equal(rank_ask(writer, 0, acc, &body), KEEL_OK);
        assert_int_equal(rank_ask(writer, 0, acc, &body), KEEL_OK);
        assert_int_equal(word_at(0, seg, 0, 16), 10);
        assert_int_equal(word_at(0, seg, 0, 40), 20);
        assert_true(copies_are_equal());
        world_kill_node(0);
        acc.epoch = copyset_at(1, seg, 0)->generation;
        assert_int_equal(rank_ask(writer, 1, acc, &body), KEEL_OK);
        assert_int_equal(word_at(1, seg, 0, 16), 10);
        acc.raw.identity = 2;
        assert_int_equal(rank_ask(writer, 1, acc, &body), KEEL_OK);
        assert_int_equal(word_at(1, seg, 0, 16), 20);
        assert_int_equal(word_at(1, seg, 0, 40), 40);
    }
}

static void test_execute_packed_get_brings_the_pieces(void **state)
{
    (void)state;
    struct two body = two_of(0, 0);
    struct wire get = packed_wire(WIRE_GET, SEG_NONE);
    int64_t got[2];
    memcpy(bytes_at(0, SEG_NONE, 0) + 16, &(int64_t){31}, 8);
    memcpy(bytes_at(0, SEG_NONE, 0) + 40, &(int64_t){32}, 8);
    get.len = (uint32_t)pack_head(2);
    assert_int_equal(rank_ask(writer, 0, get, &body), KEEL_OK);
    assert_int_equal(writer->reply.len, sizeof got);
    memcpy(got, writer->body, sizeof got);
    assert_int_equal(got[0], 31);
    assert_int_equal(got[1], 32);
}

static void test_execute_inspection_says_hashes_or_where_bytes_differ(void **state)
{
    (void)state;
    struct two body = two_of(31, 32);
    assert_int_equal(rank_ask(writer, 0, packed_wire(WIRE_PUT, SEG_NONE), &body), KEEL_OK);
    struct wire ask = packed_wire(WIRE_GET, SEG_NONE);
    ask.flags |= GET_F_INSPECTS;
    ask.len = (uint32_t)pack_head(2);
    assert_int_equal(rank_ask(writer, 0, ask, &body), KEEL_OK);
    uint64_t found[2];
    assert_int_equal(writer->reply.len, sizeof found);
    memcpy(found, writer->body, sizeof found);
    assert_true(found[0] == digest(&body.value[0], 8, 0) && found[1] == digest(&body.value[1], 8, 0));
    ask.flags |= GET_F_COMPARES;
    ask.len = sizeof body;
    ((uint8_t *)&body.value[1])[5] ^= 1;
    assert_int_equal(rank_ask(writer, 0, ask, &body), KEEL_OK);
    memcpy(found, writer->body, sizeof found);
    assert_true(found[0] == DIGEST_SAME && found[1] == 6);
    ask.flags &= (uint8_t)~GET_F_INSPECTS; /* what compares inspects */
    assert_int_equal(rank_ask(writer, 0, ask, &body), KEEL_ERR_ARG);
    ask.flags = GET_F_INSPECTS; /* and has pieces */
    ask.len = 0;
    assert_int_equal(rank_ask(writer, 0, ask, NULL), KEEL_ERR_ARG);
}

static void test_execute_malformed_pieces_are_refused_and_not_passed_on(void **state)
{
    (void)state;
    struct two good = two_of(1, 2), body;
    for (int wrong = 0; wrong < 9; wrong++) {
        struct wire q = packed_wire(WIRE_ACC, SEG_SHADOW);
        body = good;
        q.raw.identity = 1;
        if (wrong == 0)
            q.len -= 8;
        else if (wrong == 1)
            body.run[1].at = SEG_BYTES - 16; /* beyond the end, from the offset on */
        else if (wrong == 2)
            body.run[1].at = 25; /* an element is cut */
        else if (wrong == 3)
            body.run[0].len = 4, body.run[1].len = 12;
        else if (wrong == 4)
            q.raw.offset = SEG_BYTES + 8;
        else if (wrong == 5)
            q.raw.count = KEEL_BYTE;
        else if (wrong == 6)
            q.type = WIRE_RMW, q.raw.count = ARITH_ADD;
        else if (wrong == 7)
            q.type = WIRE_GET, q.len = (uint32_t)pack_head(2), q.flags |= GET_F_STRONG;
        else
            q.type = WIRE_PUT, body.head.at = 3;
        assert_int_equal(rank_ask(writer, 0, q, &body), KEEL_ERR_ARG);
        struct wire f = packed_wire(WIRE_FORWARD, SEG_SHADOW);
        f.raw.count = WIRE_PUT;
        body.run[1].at = wrong ? SEG_BYTES - 16 : 24;
        f.len -= wrong ? 0 : 8;
        assert_true(agent_tell(&w.node[0].agent, 1, &f, &body) > 0);
    }
    world_pump();
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0);
    assert_false(w.node[1].fatal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_execute_packed_put_is_stored_by_each_copy_and_noted_from_end_to_end),
        TEST(test_execute_packed_put_through_the_primary_reaches_every_copy),
        TEST(test_execute_packed_accumulate_counts_once_also_at_the_promoted_copy),
        TEST(test_execute_packed_get_brings_the_pieces),
        TEST(test_execute_inspection_says_hashes_or_where_bytes_differ),
        TEST(test_execute_malformed_pieces_are_refused_and_not_passed_on),
    };
    return cmocka_run_group_tests_name("execute_packed", tests, NULL, NULL);
}
