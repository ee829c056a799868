/* Mutexes: Keel's. A dead owner's is taken over by the next who waits, with a line on standard error: what the owner
 * was changing may be half-done. */
#include <stdio.h>
#include <stdlib.h>

#include "armci/armci_int.h"

static keel_mutexes *mutexes;
static int64_t *counts; /* [processes] */

/* The dead have told no count (0): nobody knows theirs, so they have as many as who has most, as with memory. */
static int64_t count_of(int proc, int64_t most)
{
    return (counts[proc] ? counts[proc] : most) - 1;
}

ARMCI_EXPORT int ARMCI_Create_mutexes(int count)
{
    int64_t mine = (int64_t)count + 1, most = 1;
    armci_running("ARMCI_Create_mutexes");
    if (mutexes || count < 0)
        armci_end("ARMCI_Create_mutexes", keel_rank(), "a negative count, or there are mutexes already");
    counts = calloc((size_t)keel_size(), sizeof *counts);
    if (!counts)
        armci_end("ARMCI_Create_mutexes", keel_rank(), "out of memory");
    keel_status status = keel_group_allgather(keel_group_world(), &mine, counts, sizeof mine);
    for (int p = 0; p < keel_size(); p++)
        most = counts[p] > most ? counts[p] : most;
    for (int p = 0; p < keel_size(); p++)
        counts[p] = count_of(p, most);
    if (status == KEEL_OK)
        do /* who is stopped is waited for, here as in ARMCI_Malloc */
            status = keel_mutexes_create((int)most - 1, &mutexes);
        while (status == KEEL_ERR_TIMEOUT);
    armci_loss_look();
    if (status != KEEL_OK) {
        free(counts);
        counts = NULL;
    }
    return status == KEEL_OK ? 0 : 1;
}

static int destroy(const char *call)
{
    keel_status status;
    while ((status = keel_mutexes_free(mutexes)) == KEEL_ERR_TIMEOUT)
        ;
    if (status == KEEL_ERR_STATE)
        armci_end(call, keel_rank(), "this process holds a mutex");
    mutexes = NULL;
    free(counts);
    counts = NULL;
    return status == KEEL_OK ? 0 : 1;
}

ARMCI_EXPORT int ARMCI_Destroy_mutexes(void)
{
    if (!mutexes)
        armci_end("ARMCI_Destroy_mutexes", keel_rank(), "there are none");
    return destroy("ARMCI_Destroy_mutexes");
}

void armci_mutexes_fini(void)
{
    if (mutexes)
        (void)destroy("ARMCI_Finalize");
}

static void check_place(const char *call, int mutex, int proc)
{
    if (!mutexes || proc < 0 || proc >= keel_size() || mutex < 0 || mutex >= counts[proc])
        armci_end(call, proc, "no such mutex");
}

ARMCI_EXPORT void ARMCI_Lock(int mutex, int proc)
{
    int dead;
    check_place("ARMCI_Lock", mutex, proc);
    armci_check(keel_mutex_lock(mutexes, proc, mutex, &dead), "ARMCI_Lock", proc);
    if (dead >= 0)
        fprintf(stderr, "rank %d: ARMCI_Lock: mutex %d of process %d was held by process %d, which died\n", keel_rank(),
                mutex, proc, dead);
}

ARMCI_EXPORT void ARMCI_Unlock(int mutex, int proc)
{
    check_place("ARMCI_Unlock", mutex, proc);
    keel_status status = keel_mutex_unlock(mutexes, proc, mutex);
    if (status == KEEL_ERR_STATE)
        armci_end("ARMCI_Unlock", proc, "the mutex is not held by this process");
    armci_check(status, "ARMCI_Unlock", proc);
}
