/* A rank whose process is stopped: who waits for it, and who does not. */
#include "tests/unit/data/direct_steps.h"

static void stop(int r, bool stopped)
{
    rank[r].asleep = stopped;
    atomic_store(&page_rank(page, r)->process, stopped ? PAGE_PROCESS_STOPPED : PAGE_PROCESS_RUNS);
    atomic_store(&page_rank(page, r)->looked, UINT64_MAX);
}

static struct keel_request *others;

static void agree_on_nine(void)
{
    struct engine_call call = {.kind = ENGINE_AGREE, .agree = ENGINE_MAX, .value = 9};
    stop(1, false);
    assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, &others), KEEL_OK);
}

/* What the runtime agrees on by itself waits for a process that is stopped: the other one hears what both have. */
static void test_direct_agreement_waits_for_who_is_stopped(void **state)
{
    (void)state;
    struct engine_call call = {.kind = ENGINE_AGREE, .agree = ENGINE_MAX, .value = 7};
    struct keel_request *r = NULL;
    uint64_t value = 0;
    meet();
    rank[0].c.timeout_ns = 100 * KEEL_NS_PER_MS;
    stop(1, true);
    sleeps = 2000;
    then = agree_on_nine;
    assert_int_equal(coll_call(rank[0].c.coll.world, &call, NULL, &r), KEEL_OK);
    assert_int_equal(coll_wait(r, NULL, &value), KEEL_OK);
    assert_int_equal(value, 9);
    assert_int_equal(coll_wait(others, NULL, &value), KEEL_OK);
    assert_int_equal(value, 9);
}

static void give_up(void)
{
    fail_msg("the caller still waits for a process that is stopped");
}

static void enter_late(void)
{
    struct engine_call call = {.kind = ENGINE_BARRIER};
    others = NULL;
    rank[1].asleep = false;
    assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, &others), KEEL_OK);
}

/* Who waits in a collective for long has the agent look whether that node lives: now and then, and not at all when
 * it was short. */
static void test_direct_collective_that_waits_asks_whether_the_node_lives(void **state)
{
    (void)state;
    struct engine_call call = {.kind = ENGINE_BARRIER};
    meet();
    memset(checked, 0, sizeof checked);
    for (int late = 0; late < 2; late++) {
        uint64_t begin = now_ns;
        rank[1].asleep = true;
        sleeps = late ? 300 : 2;
        then = enter_late;
        assert_int_equal(coll_run(rank[0].c.coll.world, &call, NULL), KEEL_OK);
        assert_int_equal(coll_wait(others, NULL, NULL), KEEL_OK);
        if (late)
            assert_in_range(checked[1], 1, (now_ns - begin) / (200 * KEEL_NS_PER_MS) + 1);
        else
            assert_int_equal(checked[1], 0);
    }
    assert_int_equal(checked[0], 0); /* its own agent needs no question */
}

/* The bytes of a long message to one that is stopped are the caller's again when the call has ended; also of one that
 * is longer than what may be on its way. */
static void long_message_to_who_is_stopped(size_t len)
{
    uint8_t *data = malloc(len), *out = calloc(1, len);
    struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .root = 0, .out = data, .len = len};
    memset(data, 0x5a, len);
    meet();
    rank[0].c.timeout_ns = 100 * KEEL_NS_PER_MS;
    stop(1, true);
    sleeps = 5000;
    then = give_up;
    assert_int_equal(coll_run(rank[0].c.coll.world, &call, NULL), KEEL_ERR_TIMEOUT);
    memset(data, 0, len);
    free(data);
    stop(1, false);
    sleeps = 5000;
    call.out = out;
    keel_status status = coll_run(rank[1].c.coll.world, &call, NULL);
    assert_true(status == KEEL_OK || status == KEEL_ERR_REVOKED);
    for (size_t i = 0; i < len && status == KEEL_OK; i++)
        assert_int_equal(out[i], 0x5a); /* what was sent is what was there */
    send_some(0, 3, 100);               /* the stream goes on */
    get_all(1, 100);
    free(out);
    sleeps = 0;
}

static void test_direct_long_message_to_who_is_stopped_ends_with_the_call(void **state)
{
    long_message_to_who_is_stopped(100000);
    assert_int_equal(tear_down(state), 0);
    assert_int_equal(set_up(state), 0);
    long_message_to_who_is_stopped(5000000);
}

/* Those who go on without the one that is stopped wait for nothing that is for it, not even to leave. */
static void test_direct_group_without_who_is_stopped_does_not_wait_for_it(void **state)
{
    (void)state;
    size_t len = 12000000; /* more than may be on its way */
    uint8_t *data = calloc(1, len);
    struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .root = 0, .out = data, .len = len};
    keel_group *alone;
    meet();
    rank[0].c.timeout_ns = 100 * KEEL_NS_PER_MS;
    stop(1, true);
    sleeps = 5000;
    then = give_up;
    assert_int_equal(coll_run(rank[0].c.coll.world, &call, NULL), KEEL_ERR_TIMEOUT);
    free(data);
    assert_int_equal(coll_create(&rank[0].c, (int[]){0}, 1, 1, &alone), KEEL_OK);
    call = (struct engine_call){.kind = ENGINE_BARRIER};
    assert_int_equal(coll_run(alone, &call, NULL), KEEL_OK);
    sleeps = 0;
    stop(1, false);
    pump();
    send_some(0, 3, 100); /* the stream goes on */
    get_all(1, 100);
}

/* Rank 0 returns from a small sum with rank 1's data, and wants to leave; rank 1 has not got its data, and computes. */
static void one_returns_and_leaves(double *out, struct keel_request **other)
{
    static double in[RANKS] = {1, 2};
    struct engine_call call = {.kind = ENGINE_MOVE,
                               .move = SCHEDULE_ALLREDUCE,
                               .in = &in[1],
                               .out = &out[1],
                               .len = sizeof in[0],
                               .element = {.type = ELEMENT_DOUBLE, .op = ELEMENT_SUM},
                               .early = true};
    meet();
    assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, other), KEEL_OK);
    pump();
    rank[1].asleep = true;
    call.in = &in[0];
    call.out = &out[0];
    assert_int_equal(coll_run(rank[0].c.coll.world, &call, NULL), KEEL_OK);
    assert_true(out[0] == 3);
    coll_settle(&rank[0].c);
    pump();
    assert_false(coll_is_settled(&rank[0].c));
}

static void test_direct_who_leaves_waits_until_others_have_what_it_returned(void **state)
{
    (void)state;
    double out[RANKS];
    struct keel_request *other = NULL;
    one_returns_and_leaves(out, &other);
    rank[1].asleep = false;
    pump();
    assert_true(coll_is_settled(&rank[0].c));
    assert_int_equal(coll_wait(other, NULL, NULL), KEEL_OK);
    assert_true(out[1] == 3);
}

static void test_direct_who_leaves_does_not_wait_for_who_is_stopped(void **state)
{
    (void)state;
    double out[RANKS];
    struct keel_request *other = NULL;
    rank[0].c.timeout_ns = 100 * KEEL_NS_PER_MS;
    one_returns_and_leaves(out, &other);
    stop(1, true);
    for (int i = 0; i < 100; i++)
        pump();
    assert_true(coll_is_settled(&rank[0].c));
    stop(1, false);
    keel_status status = coll_wait(other, NULL, NULL);
    assert_true(status == KEEL_ERR_REVOKED || (status == KEEL_OK && out[1] == 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_direct_agreement_waits_for_who_is_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_collective_that_waits_asks_whether_the_node_lives, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_long_message_to_who_is_stopped_ends_with_the_call, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_group_without_who_is_stopped_does_not_wait_for_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_who_leaves_waits_until_others_have_what_it_returned, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_who_leaves_does_not_wait_for_who_is_stopped, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
