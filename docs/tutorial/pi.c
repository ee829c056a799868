/* Pi as the area under 4 / (1 + x^2), cut into tasks; several rounds, to have time to break something.
 * Usage: pi [TASKS [ROUNDS [STEPS]]]: tasks in a round, rounds, steps of the sum in a task. */
#include "check.h"

#include <inttypes.h>

enum { COUNT, PI, FIELDS }; /* a round's two numbers on rank 0 */

static double strip(int64_t task, int64_t tasks, int64_t steps)
{
    double sum = 0, h = 1.0 / ((double)tasks * (double)steps);
    for (int64_t i = 0; i < steps; i++) {
        double x = ((double)task * (double)steps + (double)i + 0.5) * h;
        sum += 4.0 / (1.0 + x * x);
    }
    return sum * h;
}

/* The lowest live rank speaks for all. */
static bool speaker(void)
{
    int r = 0;
    while (r < keel_size() && !keel_rank_alive(r))
        r++;
    return r == keel_rank();
}

int main(int argc, char **argv)
{
    int64_t tasks = argc > 1 ? atoll(argv[1]) : 200, rounds = argc > 2 ? atoll(argv[2]) : 5;
    int64_t steps = argc > 3 ? atoll(argv[3]) : 1000000;
    if (tasks < 1 || rounds < 1 || steps < 1) {
        fprintf(stderr, "usage: pi [TASKS [ROUNDS [STEPS]]]\n");
        return 2;
    }
    keel_segment *results;
    keel_taskpool *pool;
    uint64_t round = 0;
    check(keel_init(), "init");
    check(keel_segment_alloc(FIELDS * sizeof(double) * (size_t)rounds, KEEL_REDUNDANCY_SHADOW, &results),
          "segment_alloc");
    check(keel_taskpool_create(tasks, &pool), "taskpool_create");
    check(keel_resume(&round), "resume"); /* each round makes one collective, the reset: the count is the round */
    if (keel_restarted())
        fprintf(stderr, "rank %d came back in round %" PRIu64 " on node %d\n", keel_rank(), round,
                keel_rank_node(keel_rank()));

    for (; round < (uint64_t)rounds; round++) {
        int64_t task;
        size_t at = FIELDS * sizeof(double) * (size_t)round;
        check(keel_task_next(pool, &task), "task_next");
        while (task >= 0) {
            double sum[FIELDS] = {[COUNT] = 1, [PI] = strip(task, tasks, steps)};
            check(keel_acc_double(results, 0, at, 1.0, sum, FIELDS), "acc_double");
            check(keel_task_commit(pool, task), "task_commit");
            if (task == tasks / 2)
                check(keel_event("half", (int64_t)round, NULL), "event");
            check(keel_task_next(pool, &task), "task_next");
        }
        double sum[FIELDS];
        check(keel_get(results, 0, at, sum, sizeof sum), "get");
        if (speaker())
            printf("round %" PRIu64 ": %.0f tasks counted, pi = %.10f\n", round, sum[COUNT], sum[PI]);
        fflush(stdout);
        check(keel_taskpool_reset(pool), "taskpool_reset");
    }
    check(keel_taskpool_free(pool), "taskpool_free");
    check(keel_segment_free(results), "segment_free");
    check(keel_finalize(), "finalize");
    return 0;
}
