/* The pool: every task once, any number of threads; an early end when it is told to, when a task fails, when a worker
 * cannot open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "sim/cli/pool.h"

enum { TASKS = 1000, THREADS = 4 };

struct tally {
    int runs[TASKS];
    int done, opened[THREADS], closed[THREADS];
    int64_t fail_at, stop_at;
    int bad_worker;
    int64_t seen; /* tasks finished when the caller looked last */
    atomic_bool stop;
};

static const char *open_one(struct pool *p, int worker)
{
    struct tally *t = p->arg;
    t->opened[worker]++;
    return worker == t->bad_worker ? "cannot open" : NULL;
}

static void close_one(struct pool *p, int worker)
{
    struct tally *t = p->arg;
    t->closed[worker]++;
}

static const char *run_task(struct pool *p, int worker, int64_t task)
{
    struct tally *t = p->arg;
    (void)worker;
    t->runs[task]++; /* a task is one worker's, so no two threads write here */
    if (task == t->stop_at)
        atomic_store(&t->stop, true);
    return task == t->fail_at ? "task fails" : NULL;
}

static void note_done(struct pool *p, int worker, int64_t task)
{
    struct tally *t = p->arg;
    assert_true(p->at[worker] == -1);
    assert_int_equal(t->runs[task], 1);
    t->done++;
}

static void look(struct pool *p, double seconds)
{
    struct tally *t = p->arg;
    assert_true(seconds >= 0);
    t->seen = p->finished;
}

static const char *run_pool(struct tally *t, int threads, int64_t tasks)
{
    struct pool p = {.threads = threads,
                     .tasks = tasks,
                     .arg = t,
                     .stop = &t->stop,
                     .open = open_one,
                     .close = close_one,
                     .run = run_task,
                     .done = note_done,
                     .watch = look};
    const char *wrong = pool_run(&p);
    assert_true(p.finished == t->done);
    assert_true(t->seen == t->done);
    for (int i = 0; i < threads; i++) {
        assert_int_equal(t->opened[i], 1);
        assert_int_equal(t->closed[i], 1);
    }
    return wrong;
}

static const struct tally fresh = {.fail_at = -1, .stop_at = -1, .bad_worker = -1, .seen = -1};

static void test_pool_any_number_of_threads_runs_every_task_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= THREADS; threads++) {
        struct tally t = fresh;
        assert_null(run_pool(&t, threads, TASKS));
        assert_int_equal(t.done, TASKS);
        for (int i = 0; i < TASKS; i++)
            assert_int_equal(t.runs[i], 1);
    }
}

static void test_pool_without_tasks_opens_and_closes(void **state)
{
    (void)state;
    struct tally t = fresh;
    assert_null(run_pool(&t, 2, 0));
    assert_int_equal(t.done, 0);
}

static void test_pool_failing_task_ends_it_with_its_text(void **state)
{
    (void)state;
    struct tally t = fresh;
    t.fail_at = 7;
    assert_string_equal(run_pool(&t, 1, TASKS), "task fails");
    assert_int_equal(t.done, 7);
    assert_int_equal(t.runs[8], 0);
}

static void test_pool_worker_that_cannot_open_ends_it_with_its_text(void **state)
{
    (void)state;
    struct tally t = fresh;
    t.bad_worker = 2;
    assert_string_equal(run_pool(&t, THREADS, TASKS), "cannot open");
}

static void test_pool_told_to_stop_begins_no_further_task(void **state)
{
    (void)state;
    struct tally t = fresh;
    t.stop_at = 10;
    assert_null(run_pool(&t, 1, TASKS));
    assert_int_equal(t.done, 11);
    assert_int_equal(t.runs[11], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_any_number_of_threads_runs_every_task_once),
        cmocka_unit_test(test_pool_without_tasks_opens_and_closes),
        cmocka_unit_test(test_pool_failing_task_ends_it_with_its_text),
        cmocka_unit_test(test_pool_worker_that_cannot_open_ends_it_with_its_text),
        cmocka_unit_test(test_pool_told_to_stop_begins_no_further_task),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
