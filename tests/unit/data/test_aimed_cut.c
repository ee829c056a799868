/* A large put that is cut off, anywhere, or given up. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "aimed.h"
#include "runtime/client/op/rma.h"
#include "tests/lib/net/mem.h"

static uint8_t big[SEG_BYTES];

/* The first so many remote writes are whole, those after them change half a word and never end. */
enum { HALVES_MAX = 64 };
static struct {
    int whole, kept;
    uint32_t seg;
    struct tp_op *op[HALVES_MAX];
} halves;

static keel_status write_half(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                              struct tp_op *op)
{
    int node = 0;
    if (halves.whole-- > 0)
        return tp_mem.write(ep, src, len, key, offset, op);
    while (c.connections.of[node].way.ep != ep)
        node++;
    memcpy(bytes_at(node, halves.seg, 0) + offset, src, 4);
    assert_true(halves.kept < HALVES_MAX);
    halves.op[halves.kept++] = op;
    return KEEL_OK;
}

enum cut_end { WRITER_ALONE, TOGETHER, WRITER_FIRST, NODE_FIRST };

static void cut_deaths(int node, enum cut_end end, bool with_its_node)
{
    struct view_event writer = {.type = VIEW_RANK_DEAD, .a = 3, .c = 9},
                      copy = {.type = VIEW_NODE_DEAD, .a = (uint32_t)node};
    if (with_its_node)
        writer = (struct view_event){.type = VIEW_NODE_DEAD, .a = 3};
    struct view_event both[] = {writer, copy};
    bool one_by_one = end == WRITER_FIRST || end == NODE_FIRST;
    w.node[3].still = with_its_node && end != NODE_FIRST;
    w.node[node < 0 ? 3 : node].still |= node >= 0 && end != WRITER_FIRST;
    if (end == WRITER_ALONE || end == TOGETHER)
        change(both, end == TOGETHER ? 2 : 1);
    else
        change(end == WRITER_FIRST ? &writer : &copy, 1);
    restore();
    w.node[3].still = with_its_node;
    w.node[node < 0 ? 3 : node].still |= node >= 0;
    if (one_by_one)
        change(end == WRITER_FIRST ? &copy : &writer, 1);
    restore();
}

/* The put to slot 0, whose copies are on nodes 0 and 1, and 2 with three, is cut off behind so many writes; its writer
 * dies, and the node of one copy, in this order. False: it was complete before. */
static bool cut_off(uint32_t seg, int whole, int node, enum cut_end end, bool with_its_node)
{
    static keel_handle h;
    struct tp_table table = tp_mem;
    table.write = write_half;
    client_open();
    struct keel_segment *s = seg == SEG_TRIPLE ? triple : shadow;
    memset(big, 0x11, sizeof big);
    assert_int_equal(rma_start(&c, OP_PUT, s, 0, 0, big, NULL, sizeof big, &h), KEEL_OK);
    for (int i = 0; i < 2000 && h.opaque[0]; i++)
        turns(1);
    assert_int_equal(h.opaque[0], 0);
    memset(&halves, 0, sizeof halves);
    halves.whole = whole;
    halves.seg = seg;
    net->table = &table;
    memset(big, 0x77, sizeof big);
    assert_int_equal(rma_start(&c, OP_PUT, s, 0, 0, big, NULL, sizeof big, &h), KEEL_OK);
    turns(100);
    net->table = &tp_mem;
    bool cut = halves.kept > 0;
    cut_deaths(node, end, with_its_node);
    if (!copies_are_equal())
        fail_msg("%d writes, node %d, %d, %d: copies differ", whole, node, end, with_its_node);
    int at = copyset_at(node == 1 ? 2 : 1, seg, 0)->copy[0].node;
    for (uint64_t i = 0; i < sizeof big; i += 8) {
        int64_t word = word_at(at, seg, 0, i);
        if (word != 0x1111111111111111 && word != 0x7777777777777777)
            fail_msg("%d writes, node %d, %d, %d: the word at %llu is %llx", whole, node, end, with_its_node,
                     (unsigned long long)i, (unsigned long long)word);
    }
    pthread_mutex_lock(&c.lock);
    c.fatal = KEEL_ERR_FENCED;
    for (int i = 0; i < halves.kept; i++)
        op_access_done(halves.op[i]->user, KEEL_ERR_LINK);
    pthread_mutex_unlock(&c.lock);
    return cut;
}

static void cut_everywhere(void **state, uint32_t seg, int node, enum cut_end end, int spares)
{
    for (int its_node = 0; its_node < 2; its_node++) {
        int whole = 0;
        bool cut;
        do {
            c.connections.of ? client_close(state) : teardown(state);
            world_open(4, spares, spares ? VIEW_SUBSTITUTE : VIEW_DEGRADE);
            cut = cut_off(seg, whole, node, end, its_node);
            whole++;
        } while (cut);
        assert_int_equal(whole - 1, seg == SEG_TRIPLE ? 9 : 4); /* so many writes there are */
    }
}

/* a large put is cut off between any two of its writes, and in each of them: what is there of it are whole words. */
static void test_aimed_large_put_cut_off_leaves_whole_words(void **state)
{
    cut_everywhere(state, SEG_SHADOW, -1, WRITER_ALONE, 0);
    cut_everywhere(state, SEG_TRIPLE, -1, WRITER_ALONE, 0);
}

/* the same, and the node of a copy dies with the writer: of three copies one is whole among those left. */
static void test_aimed_large_put_cut_off_together_with_a_copy(void **state)
{
    for (int node = 0; node < 3; node++)
        cut_everywhere(state, SEG_TRIPLE, node, TOGETHER, 0);
}

static void test_aimed_large_put_cut_off_before_a_copy_dies(void **state)
{
    for (int node = 0; node < 3; node++)
        cut_everywhere(state, SEG_TRIPLE, node, WRITER_FIRST, 0);
}

/* a copy dies, the others are made equal and a new one filled, and the writer has not come to repeat anything when
 * it dies. */
static void test_aimed_large_put_cut_off_after_a_copy_died(void **state)
{
    for (int node = 0; node < 3; node++)
        for (int spares = 0; spares < 2; spares++)
            cut_everywhere(state, SEG_TRIPLE, node, NODE_FIRST, spares);
}

/* its connections break when it has so many notes that it goes through the primary, which passes it on to a copy that
 * does not look at it: it is given up, and what the rank puts there next comes after it in each copy. */
static void test_aimed_put_through_the_primary_given_up_comes_before_later_ones(void **state)
{
    (void)state;
    static keel_handle h;
    static int64_t three = 3;
    client_open();
    memset(big, 1, sizeof big);
    assert_int_equal(rma_start(&c, OP_PUT, triple, 2, 0, big, NULL, sizeof big, &h), KEEL_OK);
    for (int i = 0; i < 2000 && h.opaque[0]; i++)
        turns(1);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    c.timeout_ns = 40000000;
    w.node[0].still = w.node[2].still = true;
    memset(big, 2, sizeof big);
    assert_int_equal(rma_start(&c, OP_PUT, triple, 2, 0, big, NULL, sizeof big, &h), KEEL_OK);
    turns(3);
    tp_disconnect(c.connections.of[0].way.ep);
    tp_disconnect(c.connections.of[2].way.ep);
    w.node[0].still = w.node[2].still = false;
    w.node[3].still = true;
    turns(60);
    assert_memory_equal(bytes_at(2, SEG_TRIPLE, 2), big, sizeof big);
    assert_int_equal((int64_t)h.opaque[1], KEEL_ERR_TIMEOUT);
    assert_int_equal(told, 1);
    c.timeout_ns = 30000000000ull;
    assert_int_equal(rma_start(&c, OP_PUT, triple, 2, 0, &three, NULL, sizeof three, &h), KEEL_OK);
    turns(5);
    w.node[3].still = false;
    turns(40);
    assert_int_not_equal(h.opaque[0], 0);
    change(&(struct view_event){.type = VIEW_RANK_DOUBT, .a = 3}, 1);
    restore();
    turns(40);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(word_at(2, SEG_TRIPLE, 2, 0), 3);
    assert_int_equal(word_at(3, SEG_TRIPLE, 2, 0), 3);
    assert_int_equal(word_at(0, SEG_TRIPLE, 2, 0), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_large_put_cut_off_leaves_whole_words, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_through_the_primary_given_up_comes_before_later_ones, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_put_cut_off_together_with_a_copy, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_put_cut_off_before_a_copy_dies, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_put_cut_off_after_a_copy_died, setup, client_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
