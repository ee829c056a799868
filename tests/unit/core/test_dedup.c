#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/core/task_id.h"
#include "runtime/redundancy/dedup.h"

static void test_dedup_repeated_operation_gives_first_result(void **state)
{
    (void)state;
    struct dedup d;
    int64_t result;
    assert_true(dedup_init(&d, 4));
    assert_false(dedup_seen(&d, 2, 1, 10, &result));
    assert_true(dedup_record(&d, 2, 1, 10, 77));
    assert_true(dedup_seen(&d, 2, 1, 10, &result));
    assert_int_equal(result, 77);
    assert_false(dedup_seen(&d, 1, 1, 10, &result)); /* another origin */
    dedup_fini(&d);
}

/* An older operation may arrive after a newer one: both count. */
static void test_dedup_out_of_order_operation_is_new(void **state)
{
    (void)state;
    struct dedup d;
    int64_t result;
    assert_true(dedup_init(&d, 1));
    assert_true(dedup_record(&d, 0, 1, 6, 0));
    assert_false(dedup_seen(&d, 0, 1, 5, &result));
    assert_true(dedup_record(&d, 0, 1, 5, 0));
    assert_true(dedup_seen(&d, 0, 1, 5, &result));
    dedup_fini(&d);
}

static void test_dedup_window_keeps_every_operation_in_flight(void **state)
{
    (void)state;
    struct dedup d;
    int64_t result;
    assert_true(dedup_init(&d, 1));
    for (uint64_t seq = 1; seq <= 1000; seq++)
        assert_true(dedup_record(&d, 0, 1, 3 * seq, (int64_t)seq));
    for (uint64_t seq = 1001 - DEDUP_WINDOW; seq <= 1000; seq++) {
        assert_true(dedup_seen(&d, 0, 1, 3 * seq, &result));
        assert_int_equal(result, seq);
        assert_false(dedup_seen(&d, 0, 1, 3 * seq + 1, &result));
    }
    assert_true(dedup_seen(&d, 0, 1, 3, &result)); /* long ago: complete */
    dedup_fini(&d);
}

static void test_dedup_older_incarnation_never_counts(void **state)
{
    (void)state;
    struct dedup d;
    int64_t result;
    assert_true(dedup_init(&d, 1));
    assert_true(dedup_record(&d, 0, 2, 1, 0));
    assert_true(dedup_seen(&d, 0, 1, 99, &result));
    assert_false(dedup_seen(&d, 0, 3, 1, &result));
    dedup_fini(&d);
}

static void test_dedup_task_steps_count_once_for_any_runner(void **state)
{
    (void)state;
    struct dedup d;
    assert_true(dedup_init(&d, 1));
    uint64_t task = task_id(3, 1, 500);
    for (uint32_t step = 0; step < 8; step++) {
        assert_false(dedup_task_seen(&d, task, step));
        assert_true(dedup_task_record(&d, task, step));
    }
    for (uint32_t step = 0; step < 8; step++)
        assert_true(dedup_task_seen(&d, task, step));
    assert_false(dedup_task_seen(&d, task, 8));
    assert_false(dedup_task_seen(&d, task_id(3, 2, 500), 0)); /* next round */
    assert_false(dedup_task_seen(&d, task_id(4, 1, 500), 0)); /* another pool */
    dedup_fini(&d);
}

static void test_dedup_many_rounds_memory_stays_bounded(void **state)
{
    (void)state;
    struct dedup d;
    assert_true(dedup_init(&d, 1));
    for (uint32_t round = 1; round <= 200; round++)
        for (uint32_t t = 0; t < 1000; t++)
            assert_true(dedup_task_record(&d, task_id(1, round, t), 0));
    assert_true(d.task_capacity <= 32768);
    for (uint32_t t = 0; t < 1000; t++)
        assert_true(dedup_task_seen(&d, task_id(1, 200, t), 0));
    dedup_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dedup_repeated_operation_gives_first_result),
        cmocka_unit_test(test_dedup_out_of_order_operation_is_new),
        cmocka_unit_test(test_dedup_window_keeps_every_operation_in_flight),
        cmocka_unit_test(test_dedup_older_incarnation_never_counts),
        cmocka_unit_test(test_dedup_task_steps_count_once_for_any_runner),
        cmocka_unit_test(test_dedup_many_rounds_memory_stays_bounded),
    };
    return cmocka_run_group_tests_name("dedup", tests, NULL, NULL);
}
