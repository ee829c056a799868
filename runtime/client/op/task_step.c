/* The accumulates of a task: each copyset's come one after the other, and are numbered. */
#include <stdlib.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/task.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"

struct steps_of {
    const struct client *c;
    int copyset;
};

static bool rests(void *arg)
{
    const struct steps_of *of = arg;
    for (const struct op *op = of->c->ops.active; op; op = op->next)
        if (op->of_task.is && (of->copyset < 0 || op->copyset == of->copyset))
            return false;
    return true;
}

void task_rest(struct client *c, int copyset)
{
    struct steps_of of = {c, copyset};
    if (!rests(&of))
        client_wait(c, rests, &of, &(struct wait){.call = WAIT_ACC, .whom = waits_for_any_op});
}

keel_status task_turn(struct client *c, const struct keel_segment *s, int rank)
{
    task_rest(c, copyset_of((int)page_rank(c->page, rank)->slot, s->redundancy));
    FAULT_POINT("task.accumulating");
    return c->task_run.broken ? KEEL_ERR_STATE : KEEL_OK;
}

void task_mark(const struct task_run *run, struct op_task *of)
{
    of->is = true;
    of->id = run->id;
    of->round = run->round;
}

int64_t task_step(struct task_run *run, int copyset)
{
    for (int i = 0; i < run->copysets; i++)
        if (run->steps[i].copyset == copyset)
            return run->steps[i].steps++;
    if (run->copysets == run->copysets_max) {
        int wider = run->copysets_max ? 2 * run->copysets_max : 8;
        struct task_steps *steps = realloc(run->steps, (size_t)wider * sizeof *steps);
        if (!steps)
            return -1;
        run->steps = steps;
        run->copysets_max = wider;
    }
    run->steps[run->copysets++] = (struct task_steps){copyset, 1};
    return 0;
}

void task_unstep(struct task_run *run, int copyset)
{
    for (int i = 0; i < run->copysets; i++)
        if (run->steps[i].copyset == copyset && run->steps[i].steps > 0)
            run->steps[i].steps--;
}
