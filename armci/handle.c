/* Non-blocking operations. A Keel handle has more bytes than an ARMCI one, and a place of its own: the ARMCI handle holds its
 * number. */
#include <stdlib.h>

#include "armci/armci_int.h"

struct slot {
    keel_handle handle;
    const armci_hdl_t *owner; /* NULL: free */
};

static struct slot **slots; /* each stays where it is */
static int slots_n;

static struct slot *slot_of(const armci_hdl_t *h)
{
    int i = h->target - 1;
    return i >= 0 && i < slots_n && slots[i]->owner == h ? slots[i] : NULL;
}

static struct slot *slot_take(armci_hdl_t *h)
{
    int i = 0;
    while (i < slots_n && slots[i]->owner)
        i++;
    if (i == slots_n) {
        struct slot **wider = realloc((void *)slots, (size_t)(slots_n + 1) * sizeof(struct slot *));
        struct slot *more = calloc(1, sizeof *more);
        if (!wider || !more)
            armci_end("a non-blocking call", keel_rank(), "out of memory");
        slots = wider;
        slots[slots_n++] = more;
    }
    slots[i]->owner = h;
    h->target = i + 1;
    return slots[i];
}

keel_handle *armci_handle(armci_hdl_t *h)
{
    if (!h)
        return NULL;
    struct slot *s = slot_of(h);
    if (s && !h->aggregate)
        (void)ARMCI_Wait(h); /* used again before it was waited for */
    if (!s || !h->aggregate) {
        s = slot_take(h);
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

static int complete(armci_hdl_t *h, struct slot *s, keel_status status, const char *call)
{
    s->owner = NULL;
    h->target = 0;
    armci_check(status, call, keel_rank());
    return 0;
}

ARMCI_EXPORT int ARMCI_Wait(armci_hdl_t *handle)
{
    struct slot *s = handle ? slot_of(handle) : NULL;
    return s ? complete(handle, s, keel_wait(&s->handle), "ARMCI_Wait") : 0;
}

ARMCI_EXPORT int ARMCI_Test(armci_hdl_t *handle)
{
    struct slot *s = handle ? slot_of(handle) : NULL;
    keel_status status = s ? keel_test(&s->handle) : KEEL_OK;
    if (status == KEEL_IN_PROGRESS)
        return 1;
    return s ? complete(handle, s, status, "ARMCI_Test") : 0;
}

ARMCI_EXPORT int ARMCI_WaitProc(int proc)
{
    armci_running("ARMCI_WaitProc");
    armci_check(keel_fence(proc), "ARMCI_WaitProc", proc);
    return 0;
}

/* Those without a handle, and those with one. */
ARMCI_EXPORT int ARMCI_WaitAll(void)
{
    armci_running("ARMCI_WaitAll");
    ARMCI_AllFence();
    for (int i = 0; i < slots_n; i++)
        if (slots[i]->owner)
            armci_check(keel_wait(&slots[i]->handle), "ARMCI_WaitAll", keel_rank());
    return 0;
}

/* Blocking operations are complete on all copies when they return. */
ARMCI_EXPORT void ARMCI_Fence(int proc)
{
    armci_running("ARMCI_Fence");
    armci_check(keel_fence(proc), "ARMCI_Fence", proc);
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
