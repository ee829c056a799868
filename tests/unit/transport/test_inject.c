/* Faults put in on purpose, over the in-process transport. */
#include "tests/lib/net/inject.h"
#include "tests/unit/transport/tp_peer.h"
#include "tests/lib/net/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct plan {
    enum inject_point point;
    uint64_t nth;
    struct inject_verdict verdict;
    int asked[INJECT_POINT_COUNT];
};

static struct inject_verdict decide_once(void *arg, const struct inject_at *at)
{
    struct plan *plan = arg;
    plan->asked[at->point]++;
    if (at->point == plan->point && at->nth == plan->nth)
        return plan->verdict;
    return (struct inject_verdict){.action = INJECT_PASS};
}

struct pair {
    struct world world;
    struct peer a, b; /* a sits behind the injector */
    struct tp_ep *a_ep, *b_ep;
    uint64_t remote[64], local[64];
};

static void pair_open(struct pair *p, inject_decide decide, void *arg)
{
    *p = (struct pair){0};
    peer_open(&p->world, &p->a, &tp_mem, "a", false);
    peer_open(&p->world, &p->b, &tp_mem, "b", true);
    assert_int_equal(tp_inject_open(p->a.tp, NULL, NULL, &p->a.tp), KEEL_OK);
    p->a.table = p->a.tp->table;
    world_connect(&p->world, &p->a, &p->b, &p->a_ep, &p->b_ep);
    assert_int_equal(tp_mem.reg(p->b.tp, p->remote, sizeof(p->remote), 1), KEEL_OK);
    tp_inject_set(p->a.tp, decide, arg);
}

static void pair_close(struct pair *p)
{
    peer_close(&p->world, &p->a);
    peer_close(&p->world, &p->b);
}

static void send_number(struct pair *p, uint64_t number)
{
    assert_int_equal(tp_send(p->a_ep, &number, sizeof(number), NULL, 0, NULL), KEEL_OK);
}

static void expect_number(struct pair *p, uint64_t number)
{
    struct peer_record *record = world_await(&p->world, &p->b, TP_RECV, p->b_ep);
    assert_memory_equal(record->event.data, &number, sizeof(number));
    record_free(record);
}

static void test_inject_delay_holds_back_what_follows_in_order(void **state)
{
    (void)state;
    struct pair p;
    struct plan plan = {.point = INJECT_SEND, .nth = 1, .verdict = {.action = INJECT_DELAY, .polls = 30}};
    pair_open(&p, decide_once, &plan);
    for (uint64_t i = 0; i < 3; i++)
        send_number(&p, i);
    expect_number(&p, 0);
    for (int i = 0; i < 25; i++)
        world_step(&p.world);
    assert_null(p.b.first);
    expect_number(&p, 1);
    expect_number(&p, 2);
    assert_int_equal(plan.asked[INJECT_SEND], 3);
    pair_close(&p);
}

static void test_inject_has_no_room_while_it_holds_something_back(void **state)
{
    (void)state;
    struct pair p;
    struct plan plan = {.point = INJECT_SEND, .nth = 0, .verdict = {.action = INJECT_DELAY, .polls = 5}};
    pair_open(&p, decide_once, &plan);
    assert_true(tp_room(p.a_ep));
    send_number(&p, 0);
    assert_false(tp_room(p.a_ep));
    expect_number(&p, 0);
    assert_true(tp_room(p.a_ep));
    pair_close(&p);
}

static void test_inject_held_connection_is_silent_until_released(void **state)
{
    (void)state;
    struct pair p;
    struct tp_op op = {0};
    pair_open(&p, NULL, NULL);
    tp_inject_hold(p.a_ep);
    send_number(&p, 7);
    p.local[0] = 42;
    assert_int_equal(tp_write(p.a_ep, p.local, 8, 1, 0, &op), KEEL_OK);
    assert_int_equal(tp_send(p.b_ep, "x", 1, NULL, 0, NULL), KEEL_OK);
    world_expect_none(&p.world, &p.b, TP_RECV, 5);
    world_expect_none(&p.world, &p.a, TP_RECV, 5);
    assert_int_equal(p.remote[0], 0);
    tp_inject_release(p.a_ep);
    expect_number(&p, 7);
    assert_int_equal(world_await_status(&p.world, &p.a, TP_DONE, p.a_ep), KEEL_OK);
    assert_int_equal(p.remote[0], 42);
    record_free(world_await(&p.world, &p.a, TP_RECV, p.a_ep));
    pair_close(&p);
}

static void test_inject_disconnect_of_a_held_connection_ends_it(void **state)
{
    (void)state;
    struct pair p;
    struct tp_op op = {0};
    pair_open(&p, NULL, NULL);
    tp_inject_hold(p.a_ep);
    assert_int_equal(tp_write(p.a_ep, p.local, 8, 1, 0, &op), KEEL_OK);
    assert_int_equal(tp_send(p.b_ep, "x", 1, NULL, 0, NULL), KEEL_OK);
    world_step(&p.world);
    tp_disconnect(p.a_ep);
    assert_int_equal(world_await_status(&p.world, &p.a, TP_DONE, p.a_ep), KEEL_ERR_LINK);
    assert_int_equal(world_await_status(&p.world, &p.a, TP_CLOSED, p.a_ep), KEEL_ERR_LINK);
    world_expect_none(&p.world, &p.a, TP_RECV, 5);
    pair_close(&p);
}

/* The two halves of "outcome unknown": the op failed, and it either happened or not. */
static void break_at_write(enum inject_action action, enum inject_point point, uint64_t expected)
{
    struct pair p;
    struct tp_op ops[3] = {{{0}, 0, 0, 0}};
    struct plan plan = {.point = point, .nth = 1, .verdict = {.action = action}};
    pair_open(&p, decide_once, &plan);
    for (int i = 0; i < 3; i++) {
        p.local[i] = 1;
        keel_status status = tp_write(p.a_ep, &p.local[i], 8, 1, (uint64_t)i * 8, &ops[i]);
        assert_int_equal(status, i < 2 || point == INJECT_DONE ? KEEL_OK : KEEL_ERR_LINK);
        while (i == 0 && !p.a.first)
            world_step(&p.world);
    }
    assert_int_equal(world_await_status(&p.world, &p.a, TP_DONE, p.a_ep), KEEL_OK);
    assert_int_equal(world_await_status(&p.world, &p.a, TP_DONE, p.a_ep), KEEL_ERR_LINK);
    assert_int_equal(world_await_status(&p.world, &p.a, TP_CLOSED, p.a_ep), KEEL_ERR_LINK);
    assert_int_equal(world_await_status(&p.world, &p.b, TP_CLOSED, p.b_ep), KEEL_ERR_LINK);
    assert_int_equal(p.remote[0], 1);
    assert_int_equal(p.remote[1], expected);
    pair_close(&p);
}

static void test_inject_break_before_a_write_it_fails_and_did_not_happen(void **state)
{
    (void)state;
    break_at_write(INJECT_BREAK_BEFORE, INJECT_WRITE, 0);
}

static void test_inject_break_before_its_done_it_fails_and_did_happen(void **state)
{
    (void)state;
    break_at_write(INJECT_BREAK_BEFORE, INJECT_DONE, 1);
}

static void test_inject_break_after_a_message_it_still_arrives(void **state)
{
    (void)state;
    struct pair p;
    struct plan plan = {.point = INJECT_SEND, .nth = 2, .verdict = {.action = INJECT_BREAK_AFTER}};
    pair_open(&p, decide_once, &plan);
    for (uint64_t i = 0; i < 3; i++)
        send_number(&p, i);
    assert_int_equal(tp_send(p.a_ep, "x", 1, NULL, 0, NULL), KEEL_ERR_LINK);
    for (uint64_t i = 0; i < 3; i++)
        expect_number(&p, i);
    assert_int_equal(world_await_status(&p.world, &p.b, TP_CLOSED, p.b_ep), KEEL_ERR_LINK);
    pair_close(&p);
}

enum { RANDOM_OPS = 400, RANDOM_STEPS = 20000 };

struct tally {
    struct tp_op ops[RANDOM_OPS];
    int owed[RANDOM_OPS]; /* TP_DONEs still to come */
    int outstanding;
    bool closed;
    uint64_t next; /* lowest number the receiver may still get */
};

static void count_ours(struct pair *p, struct tally *tally)
{
    while (p->a.first) {
        struct peer_record *record = world_await(&p->world, &p->a, p->a.first->event.type, NULL);
        assert_false(tally->closed); /* nothing comes after the close */
        if (record->event.type == TP_DONE) {
            tally->owed[record->event.op - tally->ops]--;
            tally->outstanding--;
        }
        tally->closed = record->event.type == TP_CLOSED;
        record_free(record);
    }
}

static void check_theirs(struct pair *p, struct tally *tally)
{
    while (p->b.first && p->b.first->event.type == TP_RECV) {
        struct peer_record *record = world_await(&p->world, &p->b, TP_RECV, p->b_ep);
        uint64_t number;
        memcpy(&number, record->event.data, sizeof(number));
        assert_true(number >= tally->next);
        tally->next = number + 1;
        record_free(record);
    }
}

/* Whatever the injector does: each op is told exactly once, before the close, and messages keep their order. */
static bool random_run(uint64_t seed)
{
    struct pair p;
    struct inject_random random = {.delay_ppm = 200000, .break_ppm = 2000, .max_delay = 9};
    struct tally tally = {0};
    struct rng rng;
    uint64_t posted = 0;
    rng_seed(&rng, seed);
    rng_seed(&random.rng, ~seed);
    pair_open(&p, inject_random_decide, &random);
    for (int step = 0; step < RANDOM_STEPS && !tally.closed && (posted < RANDOM_OPS || tally.outstanding); step++) {
        if (posted < RANDOM_OPS) {
            struct tp_op *op = &tally.ops[posted];
            keel_status status = rng_below(&rng, 2) ? tp_write(p.a_ep, p.local, 8, 1, 0, op)
                                                    : tp_send(p.a_ep, &posted, sizeof(posted), NULL, 0, op);
            tally.owed[posted++] += status == KEEL_OK;
            tally.outstanding += status == KEEL_OK;
        }
        peer_step(&p.a);
        if (rng_below(&rng, 2))
            peer_step(&p.b);
        count_ours(&p, &tally);
        check_theirs(&p, &tally);
    }
    assert_int_equal(tally.outstanding, 0);
    for (int i = 0; i < RANDOM_OPS; i++)
        assert_int_equal(tally.owed[i], 0);
    pair_close(&p);
    return tally.closed;
}

static void test_inject_random_faults_every_op_is_told_once(void **state)
{
    (void)state;
    const char *text = getenv("KEEL_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 4711;
    print_message("seed %llu (KEEL_TEST_SEED)\n", (unsigned long long)seed);
    int broken = 0;
    for (uint64_t i = 0; i < 200; i++)
        broken += random_run(seed + i);
    assert_in_range(broken, 1, 199); /* both kinds of run were there */
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inject_delay_holds_back_what_follows_in_order),
        cmocka_unit_test(test_inject_has_no_room_while_it_holds_something_back),
        cmocka_unit_test(test_inject_held_connection_is_silent_until_released),
        cmocka_unit_test(test_inject_disconnect_of_a_held_connection_ends_it),
        cmocka_unit_test(test_inject_break_before_a_write_it_fails_and_did_not_happen),
        cmocka_unit_test(test_inject_break_before_its_done_it_fails_and_did_happen),
        cmocka_unit_test(test_inject_break_after_a_message_it_still_arrives),
        cmocka_unit_test(test_inject_random_faults_every_op_is_told_once),
    };
    return cmocka_run_group_tests_name("inject", tests, NULL, NULL);
}
