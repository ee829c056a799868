/* The public calls of keel/mutex.h, on the process's instance. */
#include "runtime/client/api/calls.h"
#include "runtime/client/api/living.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/mutex.h"

/* Mutexes are numbers to the program (living.h). A number that cannot be had is this rank's error in a collective of
 * all. */
static keel_mutexes *mutexes_of(const keel_mutexes *number)
{
    return living_find(number, LIVING_MUTEXES);
}

keel_status call_mutexes_create(int per_rank, keel_mutexes **out)
{
    void *number = out ? living_take(LIVING_MUTEXES) : NULL;
    keel_mutexes *made = NULL;
    keel_status able = out && !number ? KEEL_ERR_NOMEM : KEEL_OK;
    keel_status status = mutexes_create(&process_client, able, per_rank, out ? &made : NULL);
    living_set(number, made);
    if (status != KEEL_OK)
        living_give_back(number);
    if (out)
        *out = status == KEEL_OK ? number : NULL;
    return status;
}

keel_status call_mutexes_free(keel_mutexes *mutexes)
{
    keel_mutexes *m = mutexes_of(mutexes);
    if (mutexes && !m)
        return public_wrong();
    bool gone = false;
    keel_status status = mutexes_free(&process_client, m, &gone);
    if (gone)
        living_give_back(mutexes);
    return status;
}

keel_status call_mutex_lock(keel_mutexes *mutexes, int rank, int number, int *dead)
{
    keel_mutexes *m = mutexes_of(mutexes);
    return m ? mutex_lock(m, rank, number, true, dead) : public_wrong();
}

keel_status call_mutex_try(keel_mutexes *mutexes, int rank, int number, int *dead)
{
    keel_mutexes *m = mutexes_of(mutexes);
    return m ? mutex_lock(m, rank, number, false, dead) : public_wrong();
}

keel_status call_mutex_unlock(keel_mutexes *mutexes, int rank, int number)
{
    keel_mutexes *m = mutexes_of(mutexes);
    return m ? mutex_unlock(m, rank, number) : public_wrong();
}
