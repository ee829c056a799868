#include "runtime/topo/detour_faults.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t slot_of(int32_t cable)
{
    return (uint32_t)cable * 0x9e3779b1u >> 7;
}

void detour_faults_fini(struct detour_faults *t)
{
    free(t->slot);
    memset(t, 0, sizeof *t);
}

struct detour_fault *detour_faults_find(const struct detour_faults *t, int32_t cable)
{
    if (!t->used)
        return NULL;
    for (uint32_t i = slot_of(cable) & t->mask; t->slot[i].cable >= 0; i = (i + 1) & t->mask)
        if (t->slot[i].cable == cable)
            return &t->slot[i];
    return NULL;
}

static struct detour_fault *free_slot(const struct detour_faults *t, int32_t cable)
{
    uint32_t i = slot_of(cable) & t->mask;
    while (t->slot[i].cable >= 0)
        i = (i + 1) & t->mask;
    return &t->slot[i];
}

/* Make room so that at most half of the slots are in use. */
static bool faults_grow(struct detour_faults *t)
{
    uint32_t old = t->slot ? t->mask + 1 : 0;
    if (2 * (t->used + 1) <= old)
        return true;
    uint32_t slots = old ? 2 * old : 8;
    struct detour_fault *was = t->slot, *slot = malloc(slots * sizeof *slot);
    if (!slot)
        return false;
    for (uint32_t i = 0; i < slots; i++)
        slot[i] = (struct detour_fault){.cable = -1};
    t->slot = slot;
    t->mask = slots - 1;
    for (uint32_t i = 0; i < old; i++)
        if (was[i].cable >= 0)
            *free_slot(t, was[i].cable) = was[i];
    free(was);
    return true;
}

static int32_t oldest(const struct detour_faults *t)
{
    const struct detour_fault *old = NULL;
    for (uint32_t i = 0; i <= t->mask; i++)
        if (t->slot[i].cable >= 0 && (!old || t->slot[i].last_ns < old->last_ns))
            old = &t->slot[i];
    return old ? old->cable : -1;
}

struct detour_fault *detour_faults_add(struct detour_faults *t, int32_t cable, uint32_t max)
{
    assert(cable >= 0 && max > 0);
    struct detour_fault *f = detour_faults_find(t, cable);
    if (f)
        return f;
    if (t->used >= max)
        detour_faults_remove(t, oldest(t));
    if (!faults_grow(t))
        return NULL;
    f = free_slot(t, cable);
    *f = (struct detour_fault){.cable = cable};
    t->used++;
    t->version++;
    return f;
}

bool detour_faults_remove(struct detour_faults *t, int32_t cable)
{
    struct detour_fault *f = detour_faults_find(t, cable);
    if (!f)
        return false;
    /* Close the gap: move up every later entry of the run that may not stand behind an empty slot. */
    uint32_t gap = (uint32_t)(f - t->slot);
    for (uint32_t i = (gap + 1) & t->mask; t->slot[i].cable >= 0; i = (i + 1) & t->mask) {
        uint32_t home = slot_of(t->slot[i].cable) & t->mask;
        if (((i - home) & t->mask) >= ((i - gap) & t->mask)) {
            t->slot[gap] = t->slot[i];
            gap = i;
        }
    }
    t->slot[gap].cable = -1;
    t->used--;
    t->version++;
    return true;
}
