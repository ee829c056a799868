/* The public calls of keel/task.h, on the process's instance. */
#include "runtime/client/api/calls.h"
#include "runtime/client/api/living.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/task.h"

/* Pools are numbers to the program (living.h). A number that cannot be had is this rank's error in a collective of
 * all. */
static keel_taskpool *pool_of(const keel_taskpool *number)
{
    return living_find(number, LIVING_POOL);
}

keel_status call_taskpool_create(int64_t count, keel_taskpool **out)
{
    void *number = out ? living_take(LIVING_POOL) : NULL;
    keel_taskpool *made = NULL;
    keel_status able = out && !number ? KEEL_ERR_NOMEM : KEEL_OK;
    keel_status status = taskpool_create(&process_client, able, count, out ? &made : NULL);
    living_set(number, made);
    if (status != KEEL_OK)
        living_give_back(number);
    if (out)
        *out = status == KEEL_OK ? number : NULL;
    return status;
}

keel_status call_taskpool_free(keel_taskpool *pool)
{
    keel_taskpool *p = pool_of(pool);
    if (pool && !p)
        return public_wrong();
    bool gone = false;
    keel_status status = taskpool_free(&process_client, p, &gone);
    if (gone)
        living_give_back(pool);
    return status;
}

keel_status call_taskpool_reset(keel_taskpool *pool)
{
    keel_taskpool *p = pool_of(pool);
    return p ? taskpool_reset(&process_client, p) : public_wrong();
}

keel_status call_task_next(keel_taskpool *pool, int64_t *task)
{
    keel_taskpool *p = pool_of(pool);
    return p ? task_next(&process_client, p, task) : public_wrong();
}

keel_status call_task_commit(keel_taskpool *pool, int64_t task)
{
    keel_taskpool *p = pool_of(pool);
    return p ? task_commit(&process_client, p, task) : public_wrong();
}
