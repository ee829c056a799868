/* Large puts of several writers, torn in the middle of a word: a copy that a living writer tears must not spoil the
 * other one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agents.h"
#include "runtime/agent/recover.h"
#include "runtime/wire/arith.h"
#include "tests/lib/net/mem.h"

static const int64_t old_word = 0x1111111111111111;

static int setup(void **state)
{
    (void)state;
    world_open(4, 0, VIEW_DEGRADE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close();
    return 0;
}

/* A chunk is about to be written there. */
static void announce_in(uint32_t seg, struct rank *r, int node, uint64_t offset, uint32_t len)
{
    struct wire intent = rank_wire(r, WIRE_INTENT, seg, 0, offset);
    intent.raw.count = len;
    intent.raw.identity = 1;
    intent.raw.note = 1;
    rank_send(r, node, intent, NULL);
    world_pump();
}

static void announce(struct rank *r, int node, uint64_t offset, uint32_t len)
{
    announce_in(SEG_SHADOW, r, node, offset, len);
}

static void store(int node, uint64_t offset, int64_t word)
{
    memcpy(bytes_at(node, SEG_SHADOW, 0) + offset, &word, sizeof word);
}

/* Both copies hold old words of the part. */
static void fill_old(uint64_t from, uint64_t len)
{
    for (uint64_t at = from / 8 * 8; at < from + len; at += 8) {
        store(0, at, old_word);
        store(1, at, old_word);
    }
}

/* Two puts that are neighbours share a word: 3 bytes of it are rank 2's, 5 are rank 3's. */
static void test_torn_neighbour_stays_whole(void **state)
{
    (void)state;
    const uint64_t border = 262144 + 3;
    fill_old(0, 2 * 262144);
    announce(&w.rank[2], 0, 0, border);
    announce(&w.rank[3], 1, border, 262144);
    store(1, 262144, 0x1111112222111111); /* of 5 bytes of rank 3's, 2 are there */
    for (int r = 2; r < 4; r++) {
        world_kill_rank(r);
        uint64_t word = (uint64_t)word_at(0, SEG_SHADOW, 0, 262144);
        assert_true(word >> 24 == 0x1111111111 || word >> 24 == 0x2222222222);
    }
    world_restore();
    assert_true(copies_are_equal());
}

/* Nothing of node 0 gets to node 1 any more; what comes the other way does. */
static keel_status send_but_to_one(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                                   struct tp_op *op)
{
    if (ep == w.node[0].agent.peers.peer[1].out.ep)
        return KEEL_OK;
    return tp_mem.send(ep, header, hlen, body, len, op);
}

static int32_t half_at(int node, uint64_t offset)
{
    int32_t half;
    memcpy(&half, bytes_at(node, SEG_TRIPLE, 0) + offset, sizeof half);
    return half;
}

static void add_to_half(uint64_t number)
{
    struct wire add = rank_wire(&w.rank[0], WIRE_RMW, SEG_TRIPLE, 0, 4100);
    add.raw.a = 1;
    add.raw.count = ARITH_ADD | RMW_32;
    add.raw.identity = number;
    rank_send(&w.rank[0], 0, add, NULL);
    for (int i = 0; i < 20; i++)
        world_turn();
}

/* Two writers that raced for half a word die, and both the primary and the second copy may be torn there. In the other
 * half others add. One addition is on its way to the second copy, which the primary cannot reach, when the view without
 * the writers comes: the third copy, of which the primary wants whole bytes, does not have it. */
static void test_torn_primary_takes_no_bytes_without_what_it_has_executed(void **state)
{
    (void)state;
    struct tp_table table = tp_mem;
    const struct view_event dead[] = {{.type = VIEW_RANK_DEAD, .a = 3, .c = 9},
                                      {.type = VIEW_RANK_DEAD, .a = 2, .c = 9}};
    const int16_t torn = 0x2222;
    announce_in(SEG_TRIPLE, &w.rank[3], 0, 4096, 4);
    announce_in(SEG_TRIPLE, &w.rank[2], 1, 4096, 4);
    memcpy(bytes_at(0, SEG_TRIPLE, 0) + 4096, &torn, sizeof torn);
    memcpy(bytes_at(1, SEG_TRIPLE, 0) + 4096, &torn, sizeof torn);
    table.send = send_but_to_one;
    w.node[0].net->table = &table;
    add_to_half(1);
    assert_int_equal(half_at(0, 4100), 1);
    recover_doomed(&w.node[0].agent, 1);
    world_change(dead, 2);
    add_to_half(2);
    world_kill_node(1);
    w.node[0].net->table = &tp_mem;
    world_restore();
    add_to_half(2); /* if it was told to ask again; else it counts once */
    assert_int_equal(w.rank[0].reply.raw.status, KEEL_OK);
    assert_true(copies_are_equal());
    assert_int_equal(half_at(0, 4096), 0);
    assert_int_equal(half_at(0, 4100), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_torn_neighbour_stays_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_torn_primary_takes_no_bytes_without_what_it_has_executed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
