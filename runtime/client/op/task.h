/* What keel/task.h promises, on an instance; and what makes an accumulate one of the task's. */
#ifndef KEEL_CLIENT_OP_TASK_H
#define KEEL_CLIENT_OP_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/keel.h>

struct client;
struct op_task;

/* The task that the process runs. */
struct task_run {
    uint64_t id; /* task_id.h */
    uint32_t round;
    bool open;    /* there is one */
    bool drawing; /* some thread draws one */
    bool broken;  /* an accumulate of it may have taken effect in part: it is run again from its beginning */
    struct task_steps {
        int copyset;
        uint32_t steps;
    } * steps; /* [copysets] its operations towards each copyset */
    int copysets, copysets_max;
};

keel_status taskpool_create(struct client *c, keel_status able, int64_t count, keel_taskpool **out);
/* *gone: the pool is not there any more. */
keel_status taskpool_free(struct client *c, keel_taskpool *pool, bool *gone);
keel_status taskpool_reset(struct client *c, keel_taskpool *pool);
keel_status task_next(struct client *c, keel_taskpool *pool, int64_t *task);
keel_status task_commit(struct client *c, keel_taskpool *pool, int64_t task);

/* task_step.c */
/* Wait until no accumulate of the task to the copyset is under way; -1: none at all. Lock held. */
void task_rest(struct client *c, int copyset);
/* The number of the task's next operation towards the copyset; -1: out of memory. */
int64_t task_step(struct task_run *run, int copyset);
/* Wait for the turn of the task's next accumulate to the rank's part: those to a copyset come one after the other. Lock
 * held. errors    KEEL_ERR_STATE: nothing more of the task is accepted. */
keel_status task_turn(struct client *c, const struct keel_segment *s, int rank);
/* Make the operation one of the task's. */
void task_mark(const struct task_run *run, struct op_task *of);
/* It has not taken effect, and never will. */
void task_unstep(struct task_run *run, int copyset);
#endif
