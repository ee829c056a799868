/* Messages, mutexes, task pools: who gets what is the moment's. The leading replica takes it, the others hear it.
 *
 * A mutex is taken by the leading set alone: a rank of another set has it when the leading one says so, and the leading
 * one gives it back only when its replicas have come to the unlock as well. So no two ranks of any set have it at a
 * time, and all sets have it in the same order. Tasks likewise: the leading set draws and commits, the others run what
 * they are told. Both are kept in memory of the leading set; where that is retired, what its ranks held is not known to
 * be free, so further calls on them are refused. */
#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

#define BELOW replica.below

/* ---- messages ---- */

keel_status replica_message_send(int rank, uint32_t tag, const void *data, size_t len)
{
    keel_status status;
    if (replica.sets == REPLICAS_MAX && data && len) {
        status = replica_meet_before(CALL_message_send, rank, NULL, tag, &data, len);
    } else {
        replica_did_bytes(CALL_message_send, rank, NULL, tag, data, data ? len : 0);
        status = replica_meet(CALL_message_send);
    }
    return status != KEEL_OK ? status : replica_after(BELOW->message_send(replica_native_of(rank), tag, data, len));
}

static int rank_of(int native)
{
    return native < 0 ? native : replica_of(&replica.client->replicas, native).rank;
}

keel_status replica_message_receive(int rank, uint32_t tag, void *data, size_t max, size_t *len, int *from)
{
    struct replica_answer a;
    int who = -1;
    keel_status status;
    if (rank != KEEL_ANY_RANK) {
        status = replica_after(BELOW->message_receive(replica_native_of(rank), tag, data, max, len, &who));
    } else if (replica_decides(&a)) {
        status = replica_after(BELOW->message_receive(KEEL_ANY_RANK, tag, data, max, len, &who));
        (void)replica_tell((struct replica_answer){{status, rank_of(who)}});
    } else if (a.value[1] < 0) {
        return (keel_status)a.value[0];
    } else {
        status = replica_after(BELOW->message_receive(replica_native_of((int)a.value[1]), tag, data, max, len, &who));
    }
    if (from && who >= 0)
        *from = rank_of(who);
    return status;
}

/* The message that the leading one has seen comes here, too. */
static keel_status await(int rank, uint32_t tag, size_t *len)
{
    keel_status status;
    while ((status = BELOW->message_test(replica_native_of(rank), tag, len, NULL)) == KEEL_IN_PROGRESS)
        replica.client->env.sleep(replica.client->env.user, 1);
    return replica_after(status);
}

keel_status replica_message_test(int rank, uint32_t tag, size_t *len, int *from)
{
    struct replica_answer a;
    size_t bytes = 0;
    int who = -1;
    keel_status status;
    if (replica_decides(&a)) {
        int native = rank == KEEL_ANY_RANK ? rank : replica_native_of(rank);
        status = replica_after(BELOW->message_test(native, tag, &bytes, &who));
        who = rank_of(who);
        (void)replica_tell((struct replica_answer){{status, who}});
    } else {
        status = (keel_status)a.value[0];
        who = (int)a.value[1];
        if (status == KEEL_OK)
            status = await(who, tag, &bytes);
    }
    if (len && status == KEEL_OK)
        *len = bytes;
    if (from && status == KEEL_OK)
        *from = who;
    return status;
}

/* ---- what the leading set holds ---- */

static int holder = -1; /* the set that has taken locks and tasks; -1: none yet */

/* The values of an answer: status, number, and whose it is. */
static keel_status answer(struct replica_answer *a)
{
    holder = (int)a->value[2];
    return (keel_status)a->value[0];
}

static keel_status decided(keel_status status, int64_t value)
{
    (void)replica_tell((struct replica_answer){{status, value, replica.set}});
    return status;
}

/* The one that decides is another one than before. */
static bool is_lost(void)
{
    bool lost = holder >= 0 && holder != replica.set;
    if (!lost)
        holder = replica.set;
    return lost;
}

static keel_status lock(keel_mutexes *mutexes, int rank, int number, int *dead, enum replica_call call)
{
    struct replica_answer a;
    if (dead)
        *dead = -1; /* nobody of the set has died */
    if (!replica_decides(&a))
        return answer(&a);
    if (is_lost())
        return decided(replica_refuses(call), 0);
    keel_status status = call == CALL_mutex_try ? BELOW->mutex_try(mutexes, replica_native_of(rank), number, NULL)
                                                : BELOW->mutex_lock(mutexes, replica_native_of(rank), number, NULL);
    return decided(replica_after(status), 0);
}

keel_status replica_mutex_lock(keel_mutexes *mutexes, int rank, int number, int *dead)
{
    return lock(mutexes, rank, number, dead, CALL_mutex_lock);
}

keel_status replica_mutex_try(keel_mutexes *mutexes, int rank, int number, int *dead)
{
    return lock(mutexes, rank, number, dead, CALL_mutex_try);
}

keel_status replica_mutex_unlock(keel_mutexes *mutexes, int rank, int number)
{
    struct replica_answer a;
    replica_did(CALL_mutex_unlock, rank, NULL, (uint64_t)number, 0, 0);
    keel_status status = replica_meet(CALL_mutex_unlock);
    if (status != KEEL_OK)
        return status;
    if (!replica_decides(&a))
        return answer(&a);
    if (is_lost())
        return decided(replica_refuses(CALL_mutex_unlock), 0);
    return decided(replica_after(BELOW->mutex_unlock(mutexes, replica_native_of(rank), number)), 0);
}

keel_status replica_mutexes_create(int per_rank, keel_mutexes **out)
{
    keel_status status = replica_meet(CALL_mutexes_create);
    return status != KEEL_OK ? status : replica_after(BELOW->mutexes_create(per_rank, out));
}

keel_status replica_mutexes_free(keel_mutexes *mutexes)
{
    keel_status status = replica_meet(CALL_mutexes_free);
    return status != KEEL_OK ? status : replica_after(BELOW->mutexes_free(mutexes));
}

/* ---- tasks ---- */

static struct {
    const keel_taskpool *pool; /* NULL: none is open */
    int64_t task;
} open;

keel_status replica_task_next(keel_taskpool *pool, int64_t *task)
{
    struct replica_answer a;
    int64_t drawn = -1;
    keel_status status;
    if (!task)
        return KEEL_ERR_ARG;
    *task = -1;
    if (!replica_decides(&a)) {
        status = answer(&a);
        drawn = a.value[1];
    } else if (is_lost()) {
        return decided(replica_refuses(CALL_task_next), -1);
    } else {
        status = replica_after(BELOW->task_next(pool, &drawn));
        (void)decided(status, drawn);
    }
    *task = status == KEEL_OK ? drawn : -1;
    if (*task >= 0) {
        open.pool = pool;
        open.task = *task;
    }
    return status;
}

keel_status replica_task_commit(keel_taskpool *pool, int64_t task)
{
    struct replica_answer a;
    if (!pool || open.pool != pool || open.task != task)
        return KEEL_ERR_ARG;
    replica_did(CALL_task_commit, -1, NULL, (uint64_t)task, 0, 0);
    keel_status status = replica_meet(CALL_task_commit);
    if (status != KEEL_OK)
        return status;
    if (!replica_decides(&a))
        status = answer(&a);
    else if (is_lost())
        status = decided(replica_refuses(CALL_task_commit), 0);
    else
        status = decided(replica_after(BELOW->task_commit(pool, task)), 0);
    if (status == KEEL_OK)
        open.pool = NULL;
    return status;
}

keel_status replica_taskpool_create(int64_t count, keel_taskpool **out)
{
    keel_status status = replica_meet(CALL_taskpool_create);
    return status != KEEL_OK ? status : replica_after(BELOW->taskpool_create(count, out));
}

keel_status replica_taskpool_free(keel_taskpool *pool)
{
    keel_status status = replica_meet(CALL_taskpool_free);
    return status != KEEL_OK ? status : replica_after(BELOW->taskpool_free(pool));
}

keel_status replica_taskpool_reset(keel_taskpool *pool)
{
    keel_status status = replica_fence_all();
    return status != KEEL_OK ? status : replica_after(BELOW->taskpool_reset(pool));
}
