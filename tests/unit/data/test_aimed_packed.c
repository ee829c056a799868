/* Aimed schedules around many small pieces in one message: they are one put or one accumulate, also where a copy is on
 * the writer's node and its agent stores them. The client is rank 3 on node 3, which has the second copy of rank 2's
 * part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "aimed.h"
#include "memory.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/shaped.h"

enum { PIECES = 5, EVERY = 24 };

static int64_t value[PIECES];

static struct where {
    uint32_t seg;
    int rank, copy[COPIES_MAX], copies;
} at_2 = {SEG_SHADOW, 2, {2, 3}, 2}, at_0 = {SEG_TRIPLE, 0, {0, 1, 2}, 3};

/* Words at offset 0, EVERY, 2 * EVERY ... of the part. */
static keel_status start(const struct where *to, enum op_kind kind, int64_t of_all, keel_handle *h)
{
    keel_piece piece[PIECES];
    for (int i = 0; i < PIECES; i++) {
        value[i] = of_all;
        piece[i] = (keel_piece){.offset = (size_t)EVERY * (size_t)i, .local = &value[i], .len = sizeof value[i]};
    }
    struct shaped how = {.kind = kind, .type = KEEL_INT64, .handle = h};
    *h = (keel_handle){{0}};
    return shaped_vector(&c, &how, to->seg == SEG_SHADOW ? shadow : triple, to->rank, piece, PIECES);
}

static bool is_over(const keel_handle *h)
{
    return h->opaque[0] == 0;
}

static bool all_words_are(const struct where *to, int node, int64_t expected)
{
    bool all = true;
    for (uint64_t i = 0; i < PIECES; i++)
        all = all && word_at(node, to->seg, to->rank, EVERY * i) == expected;
    return all;
}

/* In every copy that the part has now. */
static bool all_copies_are(const struct where *to, int64_t expected)
{
    const struct view_copyset *g = copyset_at(3, to->seg, to->rank);
    bool all = true;
    for (int i = 0; i < g->copies; i++)
        all = all && all_words_are(to, g->copy[i].node, expected);
    return all;
}

/* Ones are there, and all connections are up. */
static void open_warm(const struct where *to)
{
    static keel_handle warm;
    client_open();
    assert_int_equal(start(to, OP_PUT, 1, &warm), KEEL_OK);
    turns(20);
    assert_true(is_over(&warm));
    assert_true(all_copies_are(to, 1));
}

static void open_again(void **state, const struct where *to)
{
    client_close(state);
    setup(state);
    open_warm(to);
}

/* the agent here has not looked at the pieces when they are given up: it stores them over what the rank puts there
 * next. */
static void test_aimed_packed_put_given_up_comes_before_later_ones(void **state)
{
    (void)state;
    static keel_handle h, later;
    open_warm(&at_2);
    c.timeout_ns = 10000000;
    w.node[3].still = true;
    assert_int_equal(start(&at_2, OP_PUT, 2, &h), KEEL_OK);
    turns(20);
    assert_true(is_over(&h));
    assert_int_equal((int64_t)h.opaque[1], KEEL_ERR_TIMEOUT);
    assert_int_equal(told, 1);
    c.timeout_ns = 30000000000ull;
    int64_t three[EVERY / 8 * PIECES];
    for (size_t i = 0; i < sizeof three / sizeof three[0]; i++)
        three[i] = 3;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 2, 0, three, NULL, sizeof three, &later), KEEL_OK);
    turns(5);
    w.node[3].still = false;
    turns(20);
    assert_false(is_over(&later));
    change(&(struct view_event){.type = VIEW_RANK_DOUBT, .a = 3}, 1);
    restore();
    turns(20);
    assert_true(is_over(&later));
    assert_int_equal((int64_t)later.opaque[1], KEEL_OK);
    assert_true(all_copies_are(&at_2, 3));
}

/* the writer dies when the message is in one copy and not in the other, of which one is on its node. */
static void test_aimed_packed_put_whose_writer_dies_leaves_equal_copies(void **state)
{
    int halves = 0;
    open_warm(&at_2);
    for (int i = 0; i < 2; i++)
        for (int t = 0; t < 5; t++) {
            static keel_handle h;
            int behind = at_2.copy[i], ahead = at_2.copy[1 - i];
            open_again(state, &at_2);
            w.node[behind].still = true;
            assert_int_equal(start(&at_2, OP_PUT, 2, &h), KEEL_OK);
            turns(t);
            halves += all_words_are(&at_2, ahead, 2) && all_words_are(&at_2, behind, 1);
            for (struct conn *k = w.node[behind].agent.conns; k; k = k->next)
                if (k->life.rank == 3)
                    agent_close_conn(&w.node[behind].agent, k); /* the message is lost with its sender */
            w.node[behind].still = false;
            world_kill_rank(3);
            world_restore();
            assert_true(copies_are_equal());
            assert_true(all_copies_are(&at_2, 1) || all_copies_are(&at_2, 2));
        }
    assert_true(halves > 0);
}

/* after so many steps of an accumulate a copy dies, or the connection to the primary breaks. */
static void test_aimed_packed_accumulate_that_is_repeated_counts_once(void **state)
{
    static const struct {
        const struct where *to;
        int dies; /* -1: the connection breaks */
    } at[] = {{&at_2, 2}, {&at_0, 0}, {&at_0, 1}, {&at_2, -1}, {&at_0, -1}};
    int under_way = 0;
    open_warm(&at_2);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        for (int t = 0; t < 8; t++) {
            static keel_handle h;
            open_again(state, at[i].to);
            assert_int_equal(start(at[i].to, OP_ACC, 5, &h), KEEL_OK);
            turns(t);
            under_way += !is_over(&h) && all_words_are(at[i].to, at[i].to->copy[0], 6);
            if (at[i].dies >= 0)
                world_kill_node(at[i].dies);
            else
                tp_disconnect(c.connections.of[at[i].to->copy[0]].way.ep);
            world_restore();
            turns(2000);
            assert_true(is_over(&h));
            assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
            assert_true(all_copies_are(at[i].to, 6));
        }
    assert_true(under_way > 0);
}

/* the n-th allocation of anybody fails: an agent that cannot tell the others ends as a dead node. */
static void without_memory(void **state, enum op_kind kind, int64_t by, int64_t after, int *ends, int *errors)
{
    bool more = true;
    for (long n = 1; more; n++) {
        static keel_handle h;
        open_again(state, &at_0);
        memory_fail_at(n);
        keel_status status = start(&at_0, kind, by, &h);
        turns(30);
        more = memory_failed();
        for (int node = 0; node < 3; node++)
            if (w.node[node].fatal) {
                world_kill_node(node);
                ++*ends;
            }
        world_restore();
        turns(2000);
        assert_true(is_over(&h));
        if (status == KEEL_OK)
            status = (keel_status)(int64_t)h.opaque[1];
        assert_true(status == KEEL_OK || (status == KEEL_ERR_NOMEM && more));
        assert_true(copies_are_equal());
        *errors += status != KEEL_OK;
        if (kind == OP_ACC || status == KEEL_OK)
            assert_true(all_copies_are(&at_0, status == KEEL_OK ? after : 1));
    }
}

static void test_aimed_packed_operation_without_memory_is_whole_or_not_at_all(void **state)
{
    int ends = 0, errors = 0;
    open_warm(&at_0);
    without_memory(state, OP_ACC, 5, 6, &ends, &errors);
    without_memory(state, OP_PUT, 2, 2, &ends, &errors);
    print_message("%d agents ended, %d operations failed\n", ends, errors);
    assert_true(ends > 0 && errors > 0);
}

/* the primary has not answered yet: the handle is that operation's, whatever else it is given to. */
static void test_aimed_handle_in_use_is_refused_until_its_operation_ends(void **state)
{
    (void)state;
    static keel_handle h;
    int64_t four = 4;
    open_warm(&at_2);
    w.node[2].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 2, 0, &four, NULL, sizeof four, &h), KEEL_OK);
    keel_piece piece = {.offset = 8, .local = &four, .len = sizeof four};
    struct shaped how = {.kind = OP_PUT, .handle = &h};
    for (int t = 0; t < 5; t++) {
        assert_int_equal(rma_test(&c, &h), KEEL_IN_PROGRESS);
        assert_int_equal(rma_start(&c, OP_GET, shadow, 2, 0, NULL, &four, sizeof four, &h), KEEL_ERR_STATE);
        assert_int_equal(rma_acc_nb(&c, shadow, 2, 0, KEEL_INT64, NULL, &four, 1, &h), KEEL_ERR_STATE);
        assert_int_equal(shaped_vector(&c, &how, shadow, 2, &piece, 1), KEEL_ERR_STATE);
        assert_int_equal(rma_aggregate(&c, &h), KEEL_ERR_STATE);
        turns(1);
    }
    w.node[2].still = false;
    turns(20);
    assert_int_equal(rma_wait(&c, &h), KEEL_OK);
    assert_int_equal(word_at(2, SEG_SHADOW, 2, 0), 4);
    keel_handle moved = h; /* one that no operation was given to */
    assert_int_equal(rma_wait(&c, &moved), KEEL_ERR_ARG);
    assert_int_equal(shaped_vector(&c, &how, shadow, 2, &piece, 1), KEEL_OK);
    turns(20);
    assert_int_equal(rma_wait(&c, &h), KEEL_OK);
    assert_int_equal(word_at(2, SEG_SHADOW, 2, 8), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_handle_in_use_is_refused_until_its_operation_ends, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_packed_put_given_up_comes_before_later_ones, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_packed_put_whose_writer_dies_leaves_equal_copies, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_packed_accumulate_that_is_repeated_counts_once, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_packed_operation_without_memory_is_whole_or_not_at_all, setup,
                                        client_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
