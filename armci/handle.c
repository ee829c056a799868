/* Non-blocking operations. A Keel handle has more bytes than an ARMCI one, and an entry in a table here. What the ARMCI
 * handle holds is a value, which programs copy and forget: the number of the entry and which use of it this is. Who
 * asks for a use that is over asks for what is complete. */
#include <stdlib.h>

#include "armci/armci_int.h"

enum { INDEX_BITS = 20, USES = 1 << (31 - INDEX_BITS), ENTRIES_FIRST = 64, ENTRIES_MAX = 1 << INDEX_BITS };

struct entry {
    keel_handle handle;
    int use; /* 1 .. USES - 1 */
    bool taken;
};

static struct entry *entries[ENTRIES_MAX / ENTRIES_FIRST]; /* in chunks: each stays where it is */
static int entries_n;
static int *spare; /* those that are not taken */
static int spares;

static struct entry *entry_at(int i)
{
    return &entries[i / ENTRIES_FIRST][i % ENTRIES_FIRST];
}

static struct entry *entry_of(const armci_hdl_t *h)
{
    int i = h->target & (ENTRIES_MAX - 1);
    struct entry *s = h->target > 0 && i < entries_n ? entry_at(i) : NULL;
    return s && s->taken && s->use == h->target >> INDEX_BITS ? s : NULL;
}

static void give_back(int i)
{
    struct entry *s = entry_at(i);
    s->taken = false;
    s->use = s->use % (USES - 1) + 1;
    spare[spares++] = i;
}

static void more_entries(void)
{
    int n = entries_n ? 2 * entries_n : ENTRIES_FIRST;
    int *wider = realloc(spare, (size_t)n * sizeof *wider);
    if (!wider)
        armci_end("a non-blocking call", keel_rank(), "out of memory");
    spare = wider;
    while (entries_n < n) {
        struct entry *chunk = calloc(ENTRIES_FIRST, sizeof *chunk);
        if (!chunk)
            armci_end("a non-blocking call", keel_rank(), "out of memory");
        entries[entries_n / ENTRIES_FIRST] = chunk;
        for (int i = 0; i < ENTRIES_FIRST; i++)
            give_back(entries_n++);
    }
}

/* Of handles that were forgotten the operations end all the same. If few have, there are more entries, so that this is
 * not looked for at each call. */
static void find_spares(void)
{
    for (int i = 0; i < entries_n; i++) {
        keel_status status =
            entries_n < ENTRIES_MAX ? keel_test(&entry_at(i)->handle) : keel_wait(&entry_at(i)->handle);
        if (status == KEEL_IN_PROGRESS)
            continue;
        give_back(i);
        armci_check(status, "a non-blocking call", keel_rank());
    }
    if (spares < entries_n / 2 || entries_n == 0)
        more_entries();
}

static struct entry *entry_take(armci_hdl_t *h)
{
    if (spares == 0)
        find_spares();
    int i = spare[--spares];
    struct entry *s = entry_at(i);
    s->taken = true;
    h->target = s->use << INDEX_BITS | i;
    return s;
}

keel_handle *armci_handle(armci_hdl_t *h)
{
    if (!h)
        return NULL;
    struct entry *s = entry_of(h);
    if (s && !h->aggregate)
        (void)ARMCI_Wait(h); /* used again before it was waited for */
    if (!s || !h->aggregate) {
        s = entry_take(h);
        armci_check(keel_handle_aggregate(&s->handle), "a non-blocking call", keel_rank());
    }
    return &s->handle;
}

ARMCI_EXPORT void ARMCI_INIT_HANDLE(armci_hdl_t *handle)
{
    handle->target = 0;
    handle->aggregate = 0;
}

ARMCI_EXPORT void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle)
{
    handle->aggregate = 1;
}

ARMCI_EXPORT void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle)
{
    handle->aggregate = 0;
}

static int complete(armci_hdl_t *h, keel_status status, const char *call)
{
    give_back(h->target & (ENTRIES_MAX - 1));
    h->target = 0;
    armci_check(status, call, keel_rank());
    return 0;
}

ARMCI_EXPORT int ARMCI_Wait(armci_hdl_t *handle)
{
    struct entry *s = handle ? entry_of(handle) : NULL;
    return s ? complete(handle, keel_wait(&s->handle), "ARMCI_Wait") : 0;
}

ARMCI_EXPORT int ARMCI_Test(armci_hdl_t *handle)
{
    struct entry *s = handle ? entry_of(handle) : NULL;
    keel_status status = s ? keel_test(&s->handle) : KEEL_OK;
    if (status == KEEL_IN_PROGRESS)
        return 1;
    return s ? complete(handle, status, "ARMCI_Test") : 0;
}

ARMCI_EXPORT int ARMCI_WaitProc(int proc)
{
    armci_running("ARMCI_WaitProc");
    armci_check(armci_fence_of(proc), "ARMCI_WaitProc", proc);
    return 0;
}

/* Those without a handle, and those with one. */
ARMCI_EXPORT int ARMCI_WaitAll(void)
{
    armci_running("ARMCI_WaitAll");
    ARMCI_AllFence();
    for (int i = 0; i < entries_n; i++)
        if (entry_at(i)->taken) {
            keel_status status = keel_wait(&entry_at(i)->handle);
            give_back(i);
            armci_check(status, "ARMCI_WaitAll", keel_rank());
        }
    return 0;
}

/* Blocking operations are complete on all copies when they return. */
ARMCI_EXPORT void ARMCI_Fence(int proc)
{
    armci_running("ARMCI_Fence");
    armci_check(armci_fence_of(proc), "ARMCI_Fence", proc);
}

ARMCI_EXPORT void ARMCI_GroupFence(ARMCI_Group *group)
{
    const keel_group *g = armci_group(group, "ARMCI_GroupFence");
    for (int m = 0; m < keel_group_size(g); m++)
        armci_check(keel_fence(keel_group_to_world(g, m)), "ARMCI_GroupFence", keel_group_to_world(g, m));
}

ARMCI_EXPORT void ARMCI_AllFence(void)
{
    armci_running("ARMCI_AllFence");
    armci_check(keel_fence_all(), "ARMCI_AllFence", keel_rank());
}

ARMCI_EXPORT void ARMCI_Barrier(void)
{
    armci_running("ARMCI_Barrier");
    ARMCI_AllFence();
    armci_msg_barrier();
}
