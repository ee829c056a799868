/* Mutexes: words of a segment, 0 when free, else 1 + the owner. A dead owner's is taken over by the next who wants it, with a
 * line on standard error: what the owner was changing may be half-done. */
#include <stdio.h>

#include "armci/armci_int.h"

static keel_segment *words;
static int64_t counts_max;

ARMCI_EXPORT int ARMCI_Create_mutexes(int count)
{
    static const keel_combine largest = {.type = KEEL_INT64, .op = KEEL_MAX};
    int64_t mine = count;
    if (words || count < 0)
        armci_end("ARMCI_Create_mutexes", keel_rank(), "a negative count, or there are mutexes already");
    keel_status status = keel_group_allreduce(keel_group_world(), &mine, &counts_max, 1, &largest);
    if (status == KEEL_OK)
        status = keel_segment_alloc((size_t)counts_max * sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &words);
    return status == KEEL_OK ? 0 : 1;
}

ARMCI_EXPORT int ARMCI_Destroy_mutexes(void)
{
    if (!words)
        armci_end("ARMCI_Destroy_mutexes", keel_rank(), "there are none");
    keel_status status = keel_segment_free(words);
    words = NULL;
    return status == KEEL_OK ? 0 : 1;
}

static size_t place_of(const char *call, int mutex, int proc)
{
    if (!words || mutex < 0 || mutex >= counts_max || proc < 0 || proc >= keel_size())
        armci_end(call, proc, "no such mutex");
    return (size_t)mutex * sizeof(int64_t);
}

ARMCI_EXPORT void ARMCI_Lock(int mutex, int proc)
{
    size_t at = place_of("ARMCI_Lock", mutex, proc);
    int64_t mine = 1 + keel_rank(), expected = 0, owner;
    for (unsigned tries = 0;; tries++) {
        armci_check(keel_compare_swap(words, proc, at, expected, mine, &owner), "ARMCI_Lock", proc);
        if (owner == expected)
            break;
        bool dead = owner && !keel_rank_alive((int)owner - 1);
        expected = dead ? owner : 0;
        if (owner && !dead)
            armci_pause(tries);
    }
    if (owner)
        fprintf(stderr, "rank %d: ARMCI_Lock: mutex %d of process %d was held by process %d, which died\n", keel_rank(),
                mutex, proc, (int)owner - 1);
}

ARMCI_EXPORT void ARMCI_Unlock(int mutex, int proc)
{
    size_t at = place_of("ARMCI_Unlock", mutex, proc);
    int64_t mine = 1 + keel_rank(), owner;
    armci_check(keel_compare_swap(words, proc, at, mine, 0, &owner), "ARMCI_Unlock", proc);
    if (owner != mine)
        armci_end("ARMCI_Unlock", proc, "the mutex is not held by this process");
}
