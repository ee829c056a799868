/* Task pools: numbered tasks drawn from a global counter, each of whose accumulates takes effect exactly once, also
 * when its first runner died half-way and another rank runs it again (guarantee G4).
 *
 *      keel_taskpool *pool;
 *      check(keel_taskpool_create(count, &pool));       // collective
 *      check(keel_task_next(pool, &task));
 *      while (task >= 0) {
 *          ... compute; check(keel_acc_double(...)) ... // the same calls in the same order whenever this task is run
 *          check(keel_task_commit(pool, task));
 *          check(keel_task_next(pool, &task));
 *      }
 *      check(keel_taskpool_reset(pool));                // collective: all tasks are open again
 *
 * A task must be deterministic: run twice on the same global data it must make the same accumulates in the same order
 * with the same values. It must not put, and not read what tasks of the same round accumulate.
 *
 * An accumulate of a task that ends with KEEL_ERR_TIMEOUT, one of many pieces that ends with KEEL_ERR_NOMEM, or a
 * non-blocking one whose operation ends with any error, may have taken effect in part, or not in its place. The
 * task's further accumulates, and its commit, are KEEL_ERR_STATE then, and keel_task_next gives the same task again, to
 * be run from its beginning: what has taken effect does not count a second time.
 *  threads   any; the process has one task at a time, which all its threads' accumulates belong to. keel_task_next is
 *            KEEL_ERR_STATE while
 *            another thread draws a task or one is open.
 *  errors    KEEL_ERR_ARG, also for a pool that was freed; KEEL_ERR_STATE before keel_init, and in a restarted process
 *            before keel_resume
 *            (keel/job.h); those of keel/rma.h. */
#ifndef KEEL_TASK_H
#define KEEL_TASK_H

#include <stdint.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_taskpool keel_taskpool;

/* Collective. A pool of count tasks, numbered 0..count-1, in replicated memory that survives any one node at a time;
 * any two, if a segment with three copies (KEEL_REDUNDANCY_TRIPLE) was allocated by all ranks before it.
 * blocks    until all live ranks have called it.
 * errors    as keel_segment_alloc: KEEL_ERR_MISMATCH on all ranks if the counts differ. */
KEEL_MUST_CHECK keel_status keel_taskpool_create(int64_t count, keel_taskpool **out);
/* Collective; frees the pool. NULL is allowed.
 * blocks    until all live ranks have called it.
 * errors    as keel_segment_free. */
keel_status keel_taskpool_free(keel_taskpool *pool);
/* Collective: opens all tasks again for a new round.
 * blocks    until all live ranks have called it.
 * errors    as keel_barrier. */
KEEL_MUST_CHECK keel_status keel_taskpool_reset(keel_taskpool *pool);

/* Draw a task (fetch-and-add on the pool's counter) and begin it: accumulates of this thread's process belong to the
 * task until keel_task_commit. When the counter is used up, tasks whose runner died are given out again; when all tasks
 * of the round are committed on all copies it sets *task to -1 and returns KEEL_OK.
 * blocks    at the end of a round, while live ranks still run theirs. Not a collective, but no rank gets -1 before
 *           every
 *           task is committed, so what the round accumulated may be read without a barrier. */
KEEL_MUST_CHECK keel_status keel_task_next(keel_taskpool *pool, int64_t *task);
/* All accumulates of the task are complete on all copies, non-blocking ones that were not waited for, too, and the task
 * will not be run again.
 * blocks    as keel_put. */
KEEL_MUST_CHECK keel_status keel_task_commit(keel_taskpool *pool, int64_t task);

#ifdef __cplusplus
}
#endif
#endif
