/* The names of what counts once (client/op/lane.h), as the client gives them: by its calls, not by what comes back. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aimed.h"
#include "runtime/client/op/op.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/waits.h"
#include "seed.h"

static const int64_t one = 1;

static struct dedup_origin *record_of_client(int slot)
{
    return w.node[slot].agent.dedup[copyset_of(slot, KEEL_REDUNDANCY_SHADOW)].origin[3];
}

/* ---- the same calls, twice ---- */

enum { CALLS = 600, HANDLES = 10, ELEMENTS = 6000 };
enum call_kind { FETCH_ADD, ACC, ACC_IMPLICIT, TEST_IT, WAIT_FOR_IT, ACC_HANDLE, FENCE, CALL_KINDS };

struct a_call {
    enum call_kind kind;
    int handle, rank;
    size_t n;       /* elements */
    keel_status is; /* what it told the program */
};

static struct rng rng; /* of what comes back when */
static keel_handle handles[HANDLES];
static int64_t ones[ELEMENTS];
static int64_t added[4][ELEMENTS]; /* by rank: what its part should have */

/* Each agent runs, or stands still for a while. */
static void weather(void)
{
    for (int node = 0; node < 3; node++)
        if (rng_below(&rng, 4) == 0)
            w.node[node].still = rng_below(&rng, 2);
    turns((int)rng_below(&rng, 6));
}

static void while_it_sleeps(void)
{
    int node = (int)rng_below(&rng, 3);
    w.node[node].still = rng_below(&rng, 3) == 0;
    world_turn();
}

static void adds(const struct a_call *q, size_t n)
{
    for (size_t i = 0; i < n; i++)
        added[q->rank][i]++;
}

/* A handle that is in use is told to be so: in the other run, too, for the program is told the same. */
static keel_status start(struct a_call *q, keel_handle *handle, bool known)
{
    if (known && q->is != KEEL_OK)
        return q->is;
    while (known && handle && handle->opaque[0])
        turns(1), while_it_sleeps();
    keel_status is = rma_acc_nb(&c, shadow, q->rank, 0, KEEL_INT64, NULL, ones, q->n, handle);
    if (is == KEEL_OK)
        adds(q, q->n);
    return is;
}

static keel_status test_handle(const struct a_call *q, bool known)
{
    if (known && q->is != KEEL_OK)
        return q->is;
    while (known && handles[q->handle].opaque[0])
        turns(1), while_it_sleeps();
    return rma_test(&c, &handles[q->handle]);
}

static keel_status call_make(struct a_call *q, bool known)
{
    switch (q->kind) {
    case FETCH_ADD:
        adds(q, 1);
        return rma_fetch_add(&c, shadow, q->rank, 0, 1, NULL);
    case ACC:
        adds(q, q->n);
        return rma_acc(&c, shadow, q->rank, 0, KEEL_INT64, NULL, ones, q->n);
    case ACC_IMPLICIT:
        return start(q, NULL, known);
    case ACC_HANDLE:
        return start(q, &handles[q->handle], known);
    case TEST_IT:
        return test_handle(q, known);
    case WAIT_FOR_IT:
        return rma_wait(&c, &handles[q->handle]);
    default:
        return rma_fence(&c, q->rank == 3 ? -1 : q->rank);
    }
}

static uint64_t names[2][CALLS]; /* after each call: a sum over the last number of each lane, and what was named last */

static uint64_t names_now(void)
{
    uint64_t sum = (uint64_t)c.ops.lanes.newest;
    for (int i = 0; i < LANES_MAX; i++)
        sum = (sum ^ c.ops.lanes.lane[i].number) * 0x9e3779b97f4a7c15u + (uint64_t)i;
    return sum;
}

static void everything_counted_once(void)
{
    for (int node = 0; node < 3; node++)
        w.node[node].still = false;
    turns(2000);
    assert_null(c.ops.active);
    for (int rank = 0; rank < 3; rank++)
        for (size_t i = 0; i < ELEMENTS; i++)
            assert_int_equal(word_at(rank, SEG_SHADOW, rank, 8 * i), added[rank][i]);
}

static void run(struct a_call *calls, bool known)
{
    world_open(4, 0, VIEW_DEGRADE);
    client_open();
    memset(added, 0, sizeof added);
    on_sleep = while_it_sleeps;
    for (int h = 0; h < HANDLES; h++) {
        handles[h] = (keel_handle){{0}};
        if (h < 2)
            assert_int_equal(rma_aggregate(&c, &handles[h]), KEEL_OK);
        else
            assert_int_equal(rma_use_at_once(&c, &handles[h]), KEEL_OK);
    }
    for (int i = 0; i < CALLS; i++) {
        weather();
        keel_status is = call_make(&calls[i], known);
        assert_true(is == KEEL_OK || is == KEEL_IN_PROGRESS || is == KEEL_ERR_STATE);
        assert_true(!known || is == calls[i].is);
        calls[i].is = is;
        names[known][i] = names_now();
    }
    everything_counted_once();
    on_sleep = NULL;
    assert_int_equal(client_close(NULL), 0);
}

static void test_aimed_same_calls_same_names_whatever_comes_back_when(void **state)
{
    (void)state;
    static struct a_call calls[CALLS];
    seed_rng(&rng);
    for (size_t i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < CALLS; i++) {
            size_t n = 1 + (rng_below(&rng, 5) ? 0 : rng_below(&rng, ELEMENTS - 1)); /* some go in pieces */
            calls[i] = (struct a_call){(enum call_kind)rng_below(&rng, CALL_KINDS), (int)rng_below(&rng, HANDLES),
                                       (int)rng_below(&rng, 3), n, KEEL_OK};
            bool tells = calls[i].kind != ACC_IMPLICIT && calls[i].kind != ACC_HANDLE;
            if (round % 2 && tells && rng_below(&rng, 30)) /* more than there are lanes, in two handles, and implicit */
                calls[i] = (struct a_call){rng_below(&rng, 2) ? ACC_HANDLE : ACC_IMPLICIT, (int)rng_below(&rng, 2),
                                           (int)rng_below(&rng, 3), n, KEEL_OK};
            if (calls[i].kind == FENCE)
                calls[i].rank = (int)rng_below(&rng, 4);
        }
        run(calls, false);
        run(calls, true);
        assert_memory_equal(names[0], names[1], sizeof names[0]);
    }
}

/* ---- what waits for a lane ---- */

static int open_ops(int rank)
{
    int n = 0;
    for (const struct op *op = c.ops.active; op; op = op->next)
        n += op->rank == rank;
    return n;
}

/* The first of many goes to a node that stands still: whoever gets its lane waits with it, and says for which node. */
static void test_aimed_who_has_the_lane_of_one_that_is_stuck_waits_alone(void **state)
{
    (void)state;
    client_open();
    assert_int_equal(rma_acc(&c, shadow, 0, 0, KEEL_INT64, NULL, &one, 1), KEEL_OK);
    assert_int_equal(rma_acc(&c, shadow, 1, 0, KEEL_INT64, NULL, &one, 1), KEEL_OK);
    w.node[1].still = true;
    assert_int_equal(rma_acc_nb(&c, shadow, 1, 0, KEEL_INT64, NULL, &one, 1, NULL), KEEL_OK);
    for (int i = 1; i < 3 * LANES_MAX; i++)
        assert_int_equal(rma_acc_nb(&c, triple, 2, 0, KEEL_INT64, NULL, &one, 1, NULL), KEEL_OK);
    turns(200);
    assert_int_equal(open_ops(1), 1);
    assert_int_equal(open_ops(2), 2);
    struct wait_said said = {.node = -1, .rank = -1};
    waits_for_op(&c, c.ops.active_last, &said);
    assert_int_equal(said.whom, WAIT_FOR_NODE);
    assert_int_equal(said.node, 1);
    w.node[1].still = false;
    turns(200);
    assert_null(c.ops.active);
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 0), 2);
    assert_int_equal(word_at(2, SEG_TRIPLE, 2, 0), 3 * LANES_MAX - 1);
}

/* While others are free nobody waits for the lane of one that is stuck. */
static void test_aimed_nobody_waits_for_a_lane_while_others_are_free(void **state)
{
    (void)state;
    client_open();
    assert_int_equal(rma_acc(&c, shadow, 1, 0, KEEL_INT64, NULL, &one, 1), KEEL_OK);
    w.node[1].still = true;
    assert_int_equal(rma_acc_nb(&c, shadow, 1, 0, KEEL_INT64, NULL, &one, 1, NULL), KEEL_OK);
    uint64_t from = w.now;
    for (int i = 0; i < 3 * LANES_MAX; i++)
        assert_int_equal(rma_fetch_add(&c, triple, 2, 0, 1, NULL), KEEL_OK);
    assert_true(w.now - from < 3000000000);
    w.node[1].still = false;
    assert_int_equal(rma_fence(&c, -1), KEEL_OK);
}

/* It was given up in the line of its lane: the lane is whole. */
static void test_aimed_one_that_is_given_up_before_its_turn_leaves_its_lane_as_it_was(void **state)
{
    (void)state;
    client_open();
    assert_int_equal(rma_acc(&c, shadow, 1, 0, KEEL_INT64, NULL, &one, 1), KEEL_OK);
    w.node[1].still = true;
    for (int i = 0; i <= LANES_MAX; i++)
        assert_int_equal(rma_acc_nb(&c, shadow, 1, 0, KEEL_INT64, NULL, &one, 1, NULL), KEEL_OK);
    pthread_mutex_lock(&c.lock);
    assert_true(c.ops.active_last->name.waits);
    op_fail(c.ops.active_last, KEEL_ERR_TIMEOUT);
    pthread_mutex_unlock(&c.lock);
    assert_int_equal(c.doubts.behind, 0); /* it was nowhere */
    w.node[1].still = false;
    assert_int_equal(rma_fence(&c, -1), KEEL_ERR_TIMEOUT);
    assert_int_equal(rma_acc(&c, shadow, 1, 0, KEEL_INT64, NULL, &one, 1), KEEL_OK);
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 0), LANES_MAX + 2);
}

/* ---- names that the caller brings ---- */

static keel_status add_named(int part, size_t offset, int64_t by, uint64_t name)
{
    const struct rma_named how = {
        .name = name, .kind = OP_RMW, .unordered = true, .what = KEEL_RMW_ADD, .word = sizeof by, .a = by};
    return rma_run_named(&c, shadow, part, offset, &how, NULL);
}

/* Partners bring an addition to each set under one name, and again where they do not know whether it has come. */
static void test_aimed_addition_of_one_name_counts_once_in_each_part(void **state)
{
    (void)state;
    client_open();
    lanes_set_apart(&c.ops.lanes);
    uint64_t first = rma_draw_name(&c);
    for (int part = 0; part < 2; part++)
        assert_int_equal(add_named(part, 0, 5, first), KEEL_OK);
    uint64_t second = rma_draw_name(&c);
    assert_true(second > first);
    for (int again = 0; again < 3; again++)
        assert_int_equal(add_named(1, 0, 7, second), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 0), 5);
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 0), 12);
    assert_int_equal(rma_add(&c, shadow, 0, 0, 1), KEEL_OK); /* and the lane is whole */
    assert_int_equal(add_named(0, 1, 1, 0), KEEL_ERR_ARG);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 0), 6);
}

/* An accumulate and an atomic that come again: counted once, and the atomic is told the same. */
static void test_aimed_what_has_a_name_counts_once_and_is_told_the_same(void **state)
{
    (void)state;
    int64_t by[] = {3, 4}, operand = 9, found = 0;
    struct rma_named sum = {.kind = OP_ACC, .what = KEEL_INT64, .a = 2, .src = by, .len = sizeof by}, swap;
    client_open();
    lanes_set_apart(&c.ops.lanes);
    sum.name = rma_draw_name(&c);
    for (int again = 0; again < 3; again++)
        assert_int_equal(rma_run_named(&c, shadow, 1, 0, &sum, NULL), KEEL_OK);
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 0), 6);
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 8), 8);
    assert_false(rma_name_rmw(KEEL_DOUBLE, KEEL_RMW_SWAP, &operand, NULL, &swap));
    assert_false(rma_name_rmw(KEEL_INT64, KEEL_RMW_COMPARE_SWAP, &operand, NULL, &swap));
    assert_true(rma_name_rmw(KEEL_INT64, KEEL_RMW_SWAP, &operand, NULL, &swap));
    swap.name = rma_draw_name(&c);
    for (int again = 0; again < 3; again++) {
        assert_int_equal(rma_run_named(&c, shadow, 1, 8, &swap, &found), KEEL_OK);
        assert_int_equal(found, 8);
    }
    assert_int_equal(word_at(1, SEG_SHADOW, 1, 8), 9);
    sum.len = RMA_NAMED_MAX + 8; /* more than a message */
    assert_int_equal(rma_run_named(&c, shadow, 1, 0, &sum, NULL), KEEL_ERR_ARG);
}

/* ---- what agents keep ---- */

static void test_aimed_few_under_way_leave_small_records(void **state)
{
    (void)state;
    static int64_t many[3 * 16 * 1024];
    client_open();
    for (int i = 0; i < 200; i++) {
        keel_handle h[2] = {{{0}}};
        assert_int_equal(rma_fetch_add(&c, shadow, 0, 0, 1, NULL), KEEL_OK);
        for (int k = 0; k < 2; k++)
            assert_int_equal(rma_acc_nb(&c, shadow, 0, 0, KEEL_INT64, NULL, many, i % 50 ? 1 : 24 * 1024, &h[k]),
                             KEEL_OK);
        assert_int_equal(rma_acc_nb(&c, shadow, 0, 0, KEEL_INT64, NULL, &one, 1, NULL), KEEL_OK);
        assert_int_equal(rma_wait_all(&c, h, 2), KEEL_OK);
        assert_int_equal(rma_fence(&c, i % 2 ? -1 : 0), KEEL_OK);
    }
    const struct dedup_origin *o = record_of_client(0);
    assert_int_equal(o->lanes, 4);
    assert_int_equal(o->lane[0].number, 400); /* each fetch-and-add, and the first accumulate after it */
    assert_int_equal(o->lane[1].number, 200);
    assert_int_equal(o->lane[2].number, 200);
    assert_int_equal(o->lane[3].number, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, client_close)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aimed_same_calls_same_names_whatever_comes_back_when),
        TEST(test_aimed_who_has_the_lane_of_one_that_is_stuck_waits_alone),
        TEST(test_aimed_nobody_waits_for_a_lane_while_others_are_free),
        TEST(test_aimed_one_that_is_given_up_before_its_turn_leaves_its_lane_as_it_was),
        TEST(test_aimed_addition_of_one_name_counts_once_in_each_part),
        TEST(test_aimed_what_has_a_name_counts_once_and_is_told_the_same),
        TEST(test_aimed_few_under_way_leave_small_records),
    };
    return cmocka_run_group_tests_name("aimed_names", tests, NULL, NULL);
}
