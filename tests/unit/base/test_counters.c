/* Counters of threads that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "runtime/base/counters.h"

enum { AT_ONCE = COUNTER_BLOCKS + 3, TIMES = 100 };

static struct counter_page page;
static pthread_barrier_t all;

static int begin(void **state)
{
    (void)state;
    memset(&page, 0, sizeof page);
    counters_process(&page);
    return 0;
}

static uint64_t sum_of(enum counter c)
{
    uint64_t sum[COUNTERS_N] = {0};
    counters_take_page(sum, &page);
    return sum[c];
}

static void *work(void *together)
{
    if (together)
        pthread_barrier_wait(&all);
    for (int i = 0; i < TIMES; i++)
        counters_near(&page, COUNTER_puts_here, 1, 8);
    if (together)
        pthread_barrier_wait(&all); /* each has its block while all count */
    return NULL;
}

static void test_counters_names_are_apart(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTERS_N; c++) {
        assert_true(counters[c].help[0]);
        for (int d = 0; d < c; d++)
            assert_string_not_equal(counters[c].name, counters[d].name);
    }
}

static void test_counters_bytes_follow_their_number(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTERS_N; c++) {
        const char *end = strstr(counters[c].name, "_here_bytes");
        if (end)
            assert_memory_equal(counters[c].name, counters[c - 1].name, (size_t)(end - counters[c].name));
    }
}

static void test_counters_of_threads_that_follow_each_other_share_a_block(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, work, NULL), 0);
        pthread_join(t, NULL);
    }
    assert_int_equal(sum_of(COUNTER_puts_here), 10 * TIMES);
    assert_int_equal(sum_of(COUNTER_puts_here_bytes), 10 * TIMES * 8);
    assert_int_equal(page.used, COUNTER_THREADS + 1);
}

static void test_counters_of_more_threads_than_blocks_are_exact(void **state)
{
    (void)state;
    pthread_t t[AT_ONCE];
    pthread_barrier_init(&all, NULL, AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++)
        assert_int_equal(pthread_create(&t[i], NULL, work, &all), 0);
    for (int i = 0; i < AT_ONCE; i++)
        pthread_join(t[i], NULL);
    pthread_barrier_destroy(&all);
    assert_int_equal(sum_of(COUNTER_puts_here), AT_ONCE * TIMES);
    assert_int_equal(page.used, COUNTER_BLOCKS);
    assert_int_equal(page.block[COUNTER_SHARED].count[COUNTER_puts_here], (AT_ONCE - 254) * TIMES);
}

static void test_counters_without_a_page_of_the_process_are_shared(void **state)
{
    (void)state;
    counters_process(NULL);
    counters_near(&page, COUNTER_gets_here, 2, 16);
    assert_int_equal(sum_of(COUNTER_gets_here), 2);
    assert_int_equal(page.block[COUNTER_SHARED].count[COUNTER_gets_here_bytes], 16);
}

static void test_counters_join_adds_and_keeps_the_greatest(void **state)
{
    (void)state;
    counter_add(&page.block[0], COUNTER_requests, 3);
    counter_most(&page.block[0], COUNTER_requests_most, 5);
    counter_most(&page.block[0], COUNTER_requests_most, 2);
    uint64_t sum[COUNTERS_N] = {0}, more[COUNTERS_N] = {[COUNTER_requests] = 4, [COUNTER_requests_most] = 4};
    counters_take_page(sum, &page);
    counters_sum(sum, more);
    assert_int_equal(sum[COUNTER_requests], 7);
    assert_int_equal(sum[COUNTER_requests_most], 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_counters_names_are_apart, begin),
        cmocka_unit_test_setup(test_counters_bytes_follow_their_number, begin),
        cmocka_unit_test_setup(test_counters_of_threads_that_follow_each_other_share_a_block, begin),
        cmocka_unit_test_setup(test_counters_of_more_threads_than_blocks_are_exact, begin),
        cmocka_unit_test_setup(test_counters_without_a_page_of_the_process_are_shared, begin),
        cmocka_unit_test_setup(test_counters_join_adds_and_keeps_the_greatest, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
