/* Task pools: wrap_turn.c says what they are made of. */
#include <assert.h>
#include <stdlib.h>

#include "runtime/base/fault.h"
#include "runtime/client/api/living.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/wrap_turn.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"

#define BELOW replica.below

enum { POOL_BYTES = 4 * TURNS_WORD };

struct pool {
    keel_segment *segment;
    int home; /* whose part the words are in */
    int64_t count;
    uint64_t round;
    bool exhausted;
};

static struct {
    const struct pool *pool; /* NULL: none is open */
    int64_t task;
} open;

bool replica_is_in_task(void)
{
    return open.pool != NULL;
}

static uint64_t pools; /* that were made */

static struct pool *pool_of(const keel_taskpool *number)
{
    return living_find(number, LIVING_POOL);
}

static size_t drawn_at(uint64_t round)
{
    return (round & 1) * 2 * TURNS_WORD;
}

static size_t done_at(uint64_t round)
{
    return drawn_at(round) + TURNS_WORD;
}

keel_status replica_taskpool_create(int64_t count, keel_taskpool **out)
{
    replica_did(CALL_taskpool_create, -1, NULL, (uint64_t)count, 0, 0);
    bool can_be = out && count >= 0 && count <= UINT32_MAX;
    keel_status status = turns_meet_alike(CALL_taskpool_create, can_be ? count : -1);
    replica_bound_by(BOUND_TURNS);
    if (out)
        *out = NULL;
    if (status != KEEL_OK)
        return status;
    assert(out); /* else all have refused it */
    keel_taskpool *number = living_take(LIVING_POOL);
    struct pool *p = calloc(1, sizeof *p);
    bool able = number && p;
    status = turns_allocate(able, POOL_BYTES, able ? &p->segment : NULL);
    if (status != KEEL_OK || !p) {
        living_give_back(number);
        free(p);
        return status;
    }
    p->count = count;
    p->home = (int)(pools++ % (uint64_t)replica.size);
    living_set(number, p);
    *out = number;
    return KEEL_OK;
}

keel_status replica_taskpool_free(keel_taskpool *pool)
{
    struct pool *p = pool_of(pool);
    keel_status status = turns_meet_apart(CALL_taskpool_free);
    if (status != KEEL_OK || !pool)
        return status;
    if (!p)
        return public_wrong();
    if (open.pool == p)
        return KEEL_ERR_STATE;
    status = turns_free(p->segment);
    if (status == KEEL_OK) {
        living_give_back(pool);
        free(p);
    }
    return status;
}

/* Nobody uses the words of the next round before the barrier, and every rank writes the same. */
keel_status replica_taskpool_reset(keel_taskpool *pool)
{
    struct pool *p = pool_of(pool);
    const int64_t zeros[2] = {0, 0};
    if (!p)
        return public_wrong();
    keel_status status = replica_before(CALL_taskpool_reset, PARTNER_PUT, p->home, sizeof zeros);
    replica_used(PARTNER_PUT, p->home, sizeof zeros);
    if (status == KEEL_OK)
        status = replica_after(
            BELOW->put(p->segment, replica_native_of(p->home), drawn_at(p->round + 1), zeros, sizeof zeros));
    if (status == KEEL_OK)
        status = replica_barrier();
    if (status != KEEL_OK)
        return status;
    p->round++;
    p->exhausted = false;
    return KEEL_OK;
}

keel_status replica_task_next(keel_taskpool *pool, int64_t *task)
{
    struct pool *p = pool_of(pool);
    keel_status status = KEEL_OK;
    int64_t drawn = -1;
    if (!p)
        return public_wrong();
    if (!task)
        return KEEL_ERR_ARG;
    *task = -1;
    if (open.pool)
        return KEEL_ERR_STATE;
    if (!p->exhausted)
        status = replica_before(CALL_task_next, PARTNER_EXCHANGE, p->home, TURNS_WORD);
    if (!p->exhausted && status == KEEL_OK)
        status = replica_add(p->segment, p->home, drawn_at(p->round), 1, &drawn);
    if (status != KEEL_OK)
        return status;
    p->exhausted = p->exhausted || drawn >= p->count;
    if (p->exhausted) /* nobody goes on before all are committed */
        return turns_wait_for(p->segment, p->home, done_at(p->round), p->count, WAIT_TASK);
    FAULT_POINT("replica.task_drawn");
    open.pool = p;
    open.task = *task = drawn;
    return KEEL_OK;
}

static bool no_accumulates(void *arg)
{
    const struct client *c = arg;
    for (const struct op *op = c->ops.active; op; op = op->next)
        if (op->kind == OP_ACC)
            return false;
    return true;
}

/* What the task has accumulated is there before it counts as done. */
static void rest(struct client *c)
{
    client_lock(c);
    if (!no_accumulates(c))
        client_wait(c, no_accumulates, c, &(struct wait){.call = WAIT_ACC, .whom = waits_for_any_op});
    pthread_mutex_unlock(&c->lock);
}

keel_status replica_task_commit(keel_taskpool *pool, int64_t task)
{
    const struct pool *p = pool_of(pool);
    int64_t before;
    if (!p)
        return public_wrong();
    if (task < 0 || task >= p->count)
        return KEEL_ERR_ARG;
    if (open.pool != p || open.task != task)
        return KEEL_ERR_STATE;
    replica_did(CALL_task_commit, -1, NULL, (uint64_t)task, 0, 0);
    keel_status status = replica_meet(CALL_task_commit);
    if (status != KEEL_OK)
        return status;
    rest(replica.client);
    status = replica_add(p->segment, p->home, done_at(p->round), 1, &before);
    if (status == KEEL_OK)
        open.pool = NULL;
    return status;
}
