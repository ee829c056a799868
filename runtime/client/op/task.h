/* What keel/task.h promises, on an instance; and what makes an accumulate one of the task's. */
#ifndef KEEL_CLIENT_OP_TASK_H
#define KEEL_CLIENT_OP_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/keel.h>

struct client;
struct op;

keel_status taskpool_create(struct client *c, keel_status able, int64_t count, keel_taskpool **out);
/* *gone: the pool is not there any more. */
keel_status taskpool_free(struct client *c, keel_taskpool *pool, bool *gone);
keel_status taskpool_reset(struct client *c, keel_taskpool *pool);
keel_status task_next(struct client *c, keel_taskpool *pool, int64_t *task);
keel_status task_commit(struct client *c, keel_taskpool *pool, int64_t task);
/* The number of the task's next operation towards the copyset; -1: out of memory. */
int64_t task_step(struct client *c, int copyset);
/* Wait until no accumulate of the task to the copyset is under way; -1: none at all. Lock held. */
void task_rest(struct client *c, int copyset);
/* Wait for the turn of the task's next accumulate to the rank's part: those to a copyset come one after the other. Lock
 * held. errors    KEEL_ERR_STATE: nothing more of the task is accepted. */
keel_status task_turn(struct client *c, const struct keel_segment *s, int rank);
/* Make the operation one of the task's. */
void task_mark(const struct client *c, struct op *op);
/* It has not taken effect, and never will. */
void task_unstep(struct client *c, int copyset);
#endif
