/* Large puts of several writers, torn in the middle of a word: a copy that a living writer tears must not spoil the other one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agents.h"

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
static void announce(struct rank *r, int node, uint64_t offset, uint32_t len)
{
    struct wire intent = rank_wire(r, WIRE_INTENT, SEG_SHADOW, 0, offset);
    intent.count = len;
    intent.identity = 1;
    intent.note = 1;
    rank_send(r, node, intent, NULL);
    world_pump();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_torn_neighbour_stays_whole, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
