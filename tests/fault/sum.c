/* sum TASKS ROUNDS [MICROSECONDS]: adds up k*k for k in 1..TASKS, ROUNDS times, each term in a task of its own that
 * accumulates it into a replicated word of every rank. Prints the sum when it is right on every rank; exit code 1 and
 * both numbers when it is not, 3 when data is lost. The last argument is how long a task computes.
 * A small application whose result is known, for tests that kill. */
#include <keel/keel.h>

#include "rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void expect_ok(keel_status status, const char *what, int of)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "sum: rank %d: %s of rank %d: %s\n", keel_rank(), what, of, keel_status_text(status));
    fflush(NULL);
    _exit(status == KEEL_ERR_DATA_LOST ? 3 : 4);
}

static void run_round(keel_taskpool *pool, keel_segment *total, unsigned compute_us)
{
    int64_t task;
    for (;;) {
        expect_ok(keel_task_next(pool, &task), "task_next", -1);
        if (task < 0)
            return;
        double term = (double)(task + 1) * (double)(task + 1);
        for (int r = 0; r < keel_size(); r++) {
            expect_ok(keel_acc_double(total, r, 0, 1.0, &term, 1), "acc", r);
            if (compute_us)
                usleep(compute_us);
        }
        expect_ok(keel_task_commit(pool, task), "task_commit", -1);
    }
}

static void check(keel_segment *total, double expected)
{
    for (int r = 0; r < keel_size(); r++) {
        double got;
        expect_ok(keel_get(total, r, 0, &got, sizeof got), "get", r);
        if (got != expected) {
            fprintf(stderr, "sum: rank %d: WRONG: %.0f on rank %d instead of %.0f\n", keel_rank(), got, r, expected);
            fflush(NULL);
            _exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    long tasks = argc > 2 ? atol(argv[1]) : 0, rounds = argc > 2 ? atol(argv[2]) : 0;
    unsigned compute_us = argc > 3 ? (unsigned)atol(argv[3]) : 0;
    if (tasks < 1 || rounds < 1) {
        fprintf(stderr, "usage: sum TASKS ROUNDS [MICROSECONDS]\n");
        return 2;
    }
    keel_segment *total;
    keel_taskpool *pool;
    uint64_t done = 0;
    expect_ok(keel_init(), "init", -1);
    expect_ok(keel_segment_alloc(sizeof(double), KEEL_REDUNDANCY_SHADOW, &total), "alloc", -1);
    expect_ok(keel_taskpool_create(tasks, &pool), "taskpool_create", -1);
    if (keel_restarted())
        expect_ok(keel_resume(&done), "resume", -1);
    double t = (double)tasks, once = t * (t + 1) * (2 * t + 1) / 6;
    for (long round = (long)done / 2; round < rounds; round++) {
        (void)keel_event("phase", round + 1, NULL);
        if (done % 2 == 0) {
            run_round(pool, total, compute_us);
            expect_ok(keel_barrier(), "barrier", -1);
            check(total, once * (double)(round + 1));
        }
        rest_point(round + 1, round + 1 == rounds);
        done = 0; /* who came back between the barrier and the reset goes straight to the reset */
        expect_ok(keel_taskpool_reset(pool), "taskpool_reset", -1);
    }
    check(total, once * (double)rounds);
    printf("sum: %.0f\n", once * (double)rounds);
    fflush(stdout);
    expect_ok(keel_finalize(), "finalize", -1);
    return 0;
}
