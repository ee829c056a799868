/* The check of histories that the simulation of the data half uses: it must find what is wrong, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "tests/sim/data/history.h"
#include "tests/sim/data/sched.h"

/* The simulation's own would need its processes. */
void *sim_alloc(size_t bytes)
{
    void *p = calloc(1, bytes);
    assert_non_null(p);
    return p;
}

static struct history h;

static int setup(void **state)
{
    (void)state;
    h = (struct history){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(h.op);
    return 0;
}

/* returned 0: never. */
static void op(enum history_kind kind, int64_t value, uint64_t called, uint64_t returned)
{
    const struct history_op o = {.kind = kind, .a = value, .called = called};
    size_t at = history_call(&h, &o);
    if (returned)
        history_return(&h, at, value, returned);
}

static void test_history_get_misses_a_complete_put_is_broken(void **state)
{
    (void)state;
    op(HISTORY_PUT, 5, 10, 20);
    op(HISTORY_GET, 0, 21, 22);
    assert_int_equal(history_check(&h, 0), HISTORY_BROKEN);
}

static void test_history_strong_get_that_is_taken_back_is_broken(void **state)
{
    (void)state;
    op(HISTORY_PUT, 5, 10, 0);
    op(HISTORY_GET, 5, 21, 22);
    op(HISTORY_GET, 0, 23, 24);
    assert_int_equal(history_check(&h, 0), HISTORY_BROKEN);
}

static void test_history_plain_get_of_a_put_under_way_may_be_taken_back(void **state)
{
    (void)state;
    op(HISTORY_PUT, 5, 10, 40);
    op(HISTORY_PLAIN_GET, 5, 21, 22);
    op(HISTORY_GET, 0, 23, 24);
    op(HISTORY_PLAIN_GET, 0, 25, 26);
    op(HISTORY_GET, 5, 41, 42);
    assert_int_equal(history_check(&h, 0), HISTORY_OK);
}

static void test_history_plain_get_misses_a_complete_put_is_broken(void **state)
{
    (void)state;
    op(HISTORY_PUT, 5, 10, 20);
    op(HISTORY_PLAIN_GET, 0, 21, 22);
    assert_int_equal(history_check(&h, 0), HISTORY_BROKEN);
}

static void test_history_plain_get_of_what_nobody_has_written_yet_is_broken(void **state)
{
    (void)state;
    op(HISTORY_PLAIN_GET, 5, 10, 20);
    op(HISTORY_PUT, 5, 21, 22);
    assert_int_equal(history_check(&h, 0), HISTORY_BROKEN);
}

static void test_history_plain_get_beside_a_put_sees_either(void **state)
{
    (void)state;
    op(HISTORY_PUT, 5, 10, 20);
    op(HISTORY_PUT, 6, 20, 30);
    op(HISTORY_PLAIN_GET, 5, 25, 26);
    op(HISTORY_PLAIN_GET, 6, 20, 20); /* called in the moment in which the put was */
    assert_int_equal(history_check(&h, 0), HISTORY_OK);
    op(HISTORY_PLAIN_GET, 0, 25, 26);
    assert_int_equal(history_check(&h, 0), HISTORY_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_history_get_misses_a_complete_put_is_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history_strong_get_that_is_taken_back_is_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history_plain_get_of_a_put_under_way_may_be_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history_plain_get_misses_a_complete_put_is_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history_plain_get_of_what_nobody_has_written_yet_is_broken, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_history_plain_get_beside_a_put_sees_either, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
