#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "dedup_bytes.h"
#include "memory.h"
#include "runtime/agent/dedup.h"
#include "runtime/wire/task_id.h"
#include "seed.h"

static void record(struct dedup *d, uint32_t rank, uint32_t incarnation, uint32_t lane, uint64_t number, int64_t result)
{
    assert_true(dedup_reserve(d, life_of((int)rank, incarnation), lane));
    dedup_record(d, life_of((int)rank, incarnation), lane, number, result);
}

static enum dedup_verdict look(const struct dedup *d, uint32_t rank, uint32_t incarnation, uint32_t lane,
                               uint64_t number)
{
    int64_t result;
    return dedup_look(d, life_of((int)rank, incarnation), lane, number, 0, &result);
}

static void record_task(struct dedup *d, uint64_t task, uint32_t round, uint32_t step)
{
    assert_int_equal(dedup_task_look(d, task, round, step), DEDUP_NEW);
    assert_true(dedup_task_reserve(d, task, round));
    dedup_task_record(d, task, round, step);
}

static int setup(void **state)
{
    static struct dedup d;
    *state = &d;
    return dedup_init(&d, 4) ? 0 : -1;
}

static int teardown(void **state)
{
    dedup_fini(*state);
    return memory_living() == 0 ? 0 : -1;
}

/* ---- lanes ---- */

static void test_dedup_repeated_operation_is_seen_with_its_result(void **state)
{
    struct dedup *d = *state;
    int64_t result = 5;
    assert_int_equal(dedup_look(d, life_of(2, 1), 3, 10, 0, &result), DEDUP_NEW);
    record(d, 2, 1, 3, 10, -77);
    assert_int_equal(dedup_look(d, life_of(2, 1), 3, 10, 0, &result), DEDUP_SEEN);
    assert_int_equal(result, -77);
    assert_int_equal(look(d, 2, 1, 3, 11), DEDUP_NEW);
    assert_int_equal(look(d, 2, 1, 3, 9), DEDUP_ECHO);
    assert_int_equal(look(d, 2, 1, 2, 9), DEDUP_NEW);  /* another lane */
    assert_int_equal(look(d, 1, 1, 3, 10), DEDUP_NEW); /* another rank */
}

static void test_dedup_number_that_was_left_out_is_an_echo(void **state)
{
    struct dedup *d = *state;
    record(d, 0, 0, 0, 5, 1);
    record(d, 0, 0, 0, 9, 2);
    for (uint64_t number = 1; number < 9; number++)
        assert_int_equal(look(d, 0, 0, 0, number), DEDUP_ECHO); /* its origin has its answer: never executed */
}

static void test_dedup_128_lanes_each_keep_their_last(void **state)
{
    struct dedup *d = *state;
    int64_t result;
    for (uint64_t number = 1; number <= 20; number++)
        for (uint32_t lane = 0; lane < LANES_MAX; lane++)
            record(d, 3, 0, (lane * 37) % LANES_MAX, number, (int64_t)(number * 1000 + (lane * 37) % LANES_MAX));
    for (uint32_t lane = 0; lane < LANES_MAX; lane++) {
        assert_int_equal(dedup_look(d, life_of(3, 0), lane, 20, 0, &result), DEDUP_SEEN);
        assert_int_equal(result, 20000 + lane);
        assert_int_equal(look(d, 3, 0, lane, 21), DEDUP_NEW);
    }
    assert_int_equal(d->origin[3]->lanes, LANES_MAX);
}

static void test_dedup_one_slow_lane_is_not_forgotten_while_others_go_on(void **state)
{
    struct dedup *d = *state;
    int64_t result;
    record(d, 1, 0, 7, 1, 42);
    for (uint64_t number = 1; number <= 100000; number++)
        record(d, 1, 0, (uint32_t)(number % 2) * 90, number, 0);
    assert_int_equal(dedup_look(d, life_of(1, 0), 7, 1, 0, &result), DEDUP_SEEN);
    assert_int_equal(result, 42);
}

static void test_dedup_older_incarnation_is_an_echo_newer_starts_again(void **state)
{
    struct dedup *d = *state;
    record(d, 0, 2, 0, 50, 0);
    assert_int_equal(look(d, 0, 1, 0, 99), DEDUP_ECHO);
    assert_int_equal(look(d, 0, 1, 9, 1), DEDUP_ECHO);
    assert_int_equal(look(d, 0, 3, 0, 1), DEDUP_NEW);
    record(d, 0, 3, 1, 1, 0);
    assert_int_equal(look(d, 0, 3, 0, 1), DEDUP_NEW); /* nothing of the dead process counts for it */
    assert_int_equal(look(d, 0, 2, 0, 50), DEDUP_ECHO);
}

static void test_dedup_random_operations_agree_with_a_plain_table(void **state)
{
    struct dedup *d = *state;
    uint64_t number[4][LANES_MAX] = {0};
    int64_t value[4][LANES_MAX] = {0};
    struct rng rng;
    seed_rng(&rng);
    for (int i = 0; i < 200000; i++) {
        uint32_t rank = (uint32_t)rng_below(&rng, 4), lane = (uint32_t)rng_below(&rng, LANES_MAX);
        uint64_t n = 1 + rng_below(&rng, number[rank][lane] + 3);
        int64_t result;
        enum dedup_verdict verdict = dedup_look(d, life_of((int)rank, 0), lane, n, 0, &result);
        assert_int_equal(verdict, n > number[rank][lane]    ? DEDUP_NEW
                                  : n == number[rank][lane] ? DEDUP_SEEN
                                                            : DEDUP_ECHO);
        if (verdict == DEDUP_SEEN)
            assert_int_equal(result, value[rank][lane]);
        if (verdict != DEDUP_NEW)
            continue;
        number[rank][lane] = n;
        value[rank][lane] = (int64_t)rng_u64(&rng);
        record(d, rank, 0, lane, n, value[rank][lane]);
    }
}

/* ---- tasks ---- */

static void test_dedup_task_steps_in_order_early_is_told(void **state)
{
    struct dedup *d = *state;
    uint64_t task = task_id(3, 500);
    assert_int_equal(dedup_task_look(d, task, 1, 1), DEDUP_EARLY);
    for (uint32_t step = 0; step < 8; step++) {
        assert_int_equal(dedup_task_look(d, task, 1, step + 1), DEDUP_EARLY);
        record_task(d, task, 1, step);
        for (uint32_t known = 0; known <= step; known++)
            assert_int_equal(dedup_task_look(d, task, 1, known), DEDUP_SEEN);
    }
    assert_int_equal(dedup_task_look(d, task_id(3, 501), 1, 0), DEDUP_NEW);
    assert_int_equal(dedup_task_look(d, task_id(4, 500), 1, 0), DEDUP_NEW); /* another pool */
}

static void test_dedup_task_of_an_earlier_round_is_an_echo(void **state)
{
    struct dedup *d = *state;
    uint64_t task = task_id(3, 7);
    record_task(d, task, 5, 0);
    assert_int_equal(dedup_task_look(d, task, 4, 0), DEDUP_ECHO);
    assert_int_equal(dedup_task_look(d, task, 6, 0), DEDUP_NEW);
    assert_int_equal(dedup_task_look(d, task, 6, 1), DEDUP_EARLY);
    record_task(d, task, 6, 0);
    assert_int_equal(dedup_task_look(d, task, 5, 0), DEDUP_ECHO);
}

static void test_dedup_rounds_go_on_beyond_the_wrap(void **state)
{
    struct dedup *d = *state;
    assert_true(task_round_before(0xffffffff, 0) && !task_round_before(0, 0xffffffff) && !task_round_before(7, 7));
    assert_true(task_round_before(0, 0x7fffffff) && task_round_before(2097120, 2097121));
    for (uint32_t round = 0xffffff00; round != 0x100; round++)
        for (uint32_t number = 0; number < 50; number++) {
            uint64_t task = task_id(1, number);
            record_task(d, task, round, 0);
            record_task(d, task, round, 1);
            assert_int_equal(dedup_task_look(d, task, round, 1), DEDUP_SEEN);
            assert_int_equal(dedup_task_look(d, task, round - 1, 0), DEDUP_ECHO);
        }
    assert_true(d->task_capacity <= 512);
}

static void test_dedup_many_rounds_memory_stays_bounded(void **state)
{
    struct dedup *d = *state;
    for (uint32_t round = 1; round <= 200; round++)
        for (uint32_t number = 0; number < 1000; number++)
            record_task(d, task_id(1, number), round, 0);
    assert_true(dedup_bytes(d) <= 8 * 1000 * sizeof(struct dedup_task));
    for (uint32_t number = 0; number < 1000; number++)
        assert_int_equal(dedup_task_look(d, task_id(1, number), 200, 0), DEDUP_SEEN);
}

/* Rounds of which each has other tasks: their records go when the pool is further. */
static void test_dedup_tasks_of_past_rounds_make_room(void **state)
{
    struct dedup *d = *state;
    for (uint32_t round = 1; round <= 1000; round++)
        for (uint32_t number = 0; number < 100; number++)
            record_task(d, task_id(1, round * 100 + number), round, 0);
    assert_true(dedup_bytes(d) <= 16 * 300 * sizeof(struct dedup_task));
    for (uint32_t number = 0; number < 100; number++) {
        assert_int_equal(dedup_task_look(d, task_id(1, 1000 * 100 + number), 1000, 0), DEDUP_SEEN);
        assert_int_equal(dedup_task_look(d, task_id(1, 999 * 100 + number), 999, 0), DEDUP_SEEN); /* the round before */
    }
}

static void test_dedup_thousand_pools_leave_no_memory_behind(void **state)
{
    struct dedup *d = *state;
    record_task(d, task_id(0, 1), 1, 0); /* of a pool that stays */
    size_t most = 0;
    for (uint32_t pool = 1; pool <= 1000; pool++) {
        for (uint32_t number = 0; number < 500; number++)
            record_task(d, task_id(pool, number), 1, 0);
        most = dedup_bytes(d) > most ? dedup_bytes(d) : most;
        dedup_pool_forget(d, pool);
        assert_int_equal(d->task_count, 1);
        assert_int_equal(dedup_task_look(d, task_id(pool, 3), 1, 0), DEDUP_NEW);
    }
    assert_int_equal(dedup_task_look(d, task_id(0, 1), 1, 0), DEDUP_SEEN);
    assert_true(most <= 8 * 501 * sizeof(struct dedup_task));
    assert_true(dedup_bytes(d) <= 64 * sizeof(struct dedup_task));
    dedup_pool_forget(d, 77); /* not there */
    dedup_pool_forget(d, 0);
    assert_int_equal(dedup_bytes(d), 0);
}

/* ---- filling a copy ---- */

static void test_dedup_origin_loaded_decides_as_where_it_came_from(void **state)
{
    struct dedup *d = *state, copy;
    int64_t result;
    for (uint32_t lane = 0; lane < 20; lane++)
        record(d, 2, 3, lane, 100 + lane, lane);
    assert_true(dedup_init(&copy, 4));
    record(&copy, 2, 2, 0, 9, 9);
    assert_true(dedup_origin_load(&copy, d->origin[2], dedup_origin_bytes(d->origin[2])));
    for (uint32_t lane = 0; lane < 20; lane++) {
        assert_int_equal(dedup_look(&copy, life_of(2, 3), lane, 100 + lane, 0, &result), DEDUP_SEEN);
        assert_int_equal(result, lane);
    }
    for (uint32_t lane = 0; lane < LANES_MAX; lane++)
        record(&copy, 2, 3, lane, 200, 0); /* it goes on from there */
    assert_true(dedup_origin_bytes(copy.origin[2]) <= WIRE_BODY_MAX);
    dedup_fini(&copy);
}

static void test_dedup_malformed_origin_is_refused_and_changes_nothing(void **state)
{
    struct dedup *d = *state;
    static union {
        struct dedup_origin head;
        uint8_t bytes[64 * 1024];
    } r;
    record(d, 1, 0, 0, 5, 0);
    struct dedup_origin *before = d->origin[1];
    r.head = (struct dedup_origin){.rank = 1, .lanes = 4};
    size_t len = dedup_origin_bytes(&r.head);
    for (size_t wrong = 0; wrong < len; wrong++)
        assert_false(dedup_origin_load(d, &r, wrong));
    assert_false(dedup_origin_load(d, &r, len + 1));
    r.head.rank = 4;
    assert_false(dedup_origin_load(d, &r, len));
    r.head = (struct dedup_origin){.rank = 1, .lanes = 2 * LANES_MAX};
    assert_false(dedup_origin_load(d, &r, dedup_origin_bytes(&r.head)));
    r.head.lanes = UINT32_MAX;
    assert_false(dedup_origin_load(d, &r, sizeof r));
    for (uint32_t lanes = 0; lanes <= LANES_MAX; lanes++) { /* what dedup_reserve never makes, it cannot make larger */
        r.head.lanes = lanes;
        if (lanes != 4 && lanes != 8 && lanes != 16 && lanes != 32 && lanes != 64 && lanes != 128)
            assert_false(dedup_origin_load(d, &r, dedup_origin_bytes(&r.head)));
    }
    assert_ptr_equal(d->origin[1], before);
    assert_int_equal(look(d, 1, 0, 0, 5), DEDUP_SEEN);
}

/* ---- out of memory ---- */

static void test_dedup_without_memory_no_operation_is_half_known(void **state)
{
    struct dedup *d = *state;
    record(d, 0, 1, 0, 5, 50);
    uint32_t failures = 0;
    for (uint32_t lane = 0; lane < LANES_MAX; lane++) {
        memory_fail_at(1);
        bool reserved = dedup_reserve(d, life_of(0, 1), lane);
        failures += !reserved;
        assert_int_equal(reserved, !memory_failed());
        assert_int_equal(look(d, 0, 1, 0, lane ? 6 : 5), DEDUP_SEEN);
        assert_int_equal(look(d, 0, 1, lane, 7), DEDUP_NEW);
        record(d, 0, 1, lane, 6, 60);
    }
    assert_int_equal(failures, 5); /* from 4 lanes to 128 */
    memory_fail_at(1);
    assert_false(dedup_reserve(d, life_of(1, 0), 0)); /* a new origin */
    assert_true(memory_failed());
    assert_null(d->origin[1]);
    assert_int_equal(look(d, 1, 0, 0, 1), DEDUP_NEW);
    memory_fail_at(1);
    struct dedup_origin *before = d->origin[0];
    assert_false(dedup_origin_load(d, before, dedup_origin_bytes(before)));
    assert_true(memory_failed());
    assert_ptr_equal(d->origin[0], before);
}

static void test_dedup_without_memory_no_task_is_forgotten(void **state)
{
    struct dedup *d = *state;
    int failures = 0;
    for (uint32_t number = 0; number < 5000; number++) {
        memory_fail_at(1);
        bool reserved = dedup_task_reserve(d, task_id(1, number), 1);
        failures += !reserved;
        assert_int_equal(reserved, !memory_failed());
        assert_int_equal(d->task_count, number);
        assert_int_equal(dedup_task_look(d, task_id(1, number), 1, 0), DEDUP_NEW);
        assert_int_equal(dedup_task_look(d, task_id(1, number / 2), 1, 0), number ? DEDUP_SEEN : DEDUP_NEW);
        record_task(d, task_id(1, number), 1, 0);
    }
    assert_true(failures > 3 && failures < 15);
    record_task(d, task_id(2, 0), 1, 0);
    memory_fail_at(1);
    dedup_pool_forget(d, 1); /* they stay a while longer, and the others are untouched */
    assert_true(memory_failed());
    assert_int_equal(dedup_task_look(d, task_id(2, 0), 1, 0), DEDUP_SEEN);
    dedup_pool_forget(d, 1);
    assert_int_equal(d->task_count, 1);
}

static void test_dedup_init_without_memory_fails(void **state)
{
    (void)state;
    struct dedup d;
    memory_fail_at(1);
    assert_false(dedup_init(&d, 4));
    assert_true(memory_failed());
    dedup_fini(&d);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_dedup_repeated_operation_is_seen_with_its_result),
        TEST(test_dedup_number_that_was_left_out_is_an_echo),
        TEST(test_dedup_128_lanes_each_keep_their_last),
        TEST(test_dedup_one_slow_lane_is_not_forgotten_while_others_go_on),
        TEST(test_dedup_older_incarnation_is_an_echo_newer_starts_again),
        TEST(test_dedup_random_operations_agree_with_a_plain_table),
        TEST(test_dedup_task_steps_in_order_early_is_told),
        TEST(test_dedup_task_of_an_earlier_round_is_an_echo),
        TEST(test_dedup_rounds_go_on_beyond_the_wrap),
        TEST(test_dedup_many_rounds_memory_stays_bounded),
        TEST(test_dedup_tasks_of_past_rounds_make_room),
        TEST(test_dedup_thousand_pools_leave_no_memory_behind),
        TEST(test_dedup_origin_loaded_decides_as_where_it_came_from),
        TEST(test_dedup_malformed_origin_is_refused_and_changes_nothing),
        TEST(test_dedup_without_memory_no_operation_is_half_known),
        TEST(test_dedup_without_memory_no_task_is_forgotten),
        cmocka_unit_test(test_dedup_init_without_memory_fails),
    };
    return cmocka_run_group_tests_name("dedup", tests, NULL, NULL);
}
