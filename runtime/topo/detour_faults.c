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
    free(t->entry);
    free(t->slot);
    memset(t, 0, sizeof *t);
}

/* The slot of a cable, or the free one where it would be. */
static uint32_t slot_find(const struct detour_faults *t, int32_t cable)
{
    uint32_t i = slot_of(cable) & t->mask;
    while (t->slot[i] >= 0 && t->entry[t->slot[i]].cable != cable)
        i = (i + 1) & t->mask;
    return i;
}

struct detour_fault *detour_faults_find(const struct detour_faults *t, int32_t cable)
{
    if (!t->used)
        return NULL;
    int32_t i = t->slot[slot_find(t, cable)];
    return i >= 0 ? &t->entry[i] : NULL;
}

/* Make room so that at most half of the slots are in use. */
static bool faults_grow(struct detour_faults *t)
{
    uint32_t old = t->slot ? t->mask + 1 : 0;
    if (2 * (t->used + 1) <= old)
        return true;
    uint32_t slots = old ? 2 * old : 8;
    struct detour_fault *entry = realloc(t->entry, slots / 2 * sizeof *entry);
    if (!entry)
        return false;
    t->entry = entry;
    int32_t *slot = malloc(slots * sizeof *slot);
    if (!slot)
        return false;
    free(t->slot);
    t->slot = slot;
    t->mask = slots - 1;
    memset(slot, -1, slots * sizeof *slot);
    for (uint32_t i = 0; i < t->used; i++)
        slot[slot_find(t, entry[i].cable)] = (int32_t)i;
    return true;
}

static int32_t oldest(const struct detour_faults *t)
{
    assert(t->entry && t->used);
    uint32_t old = 0;
    for (uint32_t i = 1; i < t->used; i++)
        if (t->entry[i].last_ns < t->entry[old].last_ns)
            old = i;
    return t->entry[old].cable;
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
    t->slot[slot_find(t, cable)] = (int32_t)t->used;
    f = &t->entry[t->used++];
    *f = (struct detour_fault){.cable = cable};
    t->version++;
    return f;
}

struct detour_fault *detour_faults_renew(struct detour_faults *t, struct detour_fault *f)
{
    struct detour_fault *last = &t->entry[t->used - 1], swap = *f;
    uint32_t to_old = slot_find(t, last->cable), to_last = slot_find(t, f->cable);
    t->slot[to_old] = (int32_t)(f - t->entry);
    t->slot[to_last] = (int32_t)t->used - 1;
    *f = *last;
    *last = swap;
    t->version++;
    return last;
}

void detour_faults_end(struct detour_fault *f, uint64_t out_ns, uint64_t seen)
{
    f->lasting = false;
    f->works = true;
    f->told = 0;
    f->permanent = false;
    f->count = 0;
    f->out_ns = out_ns > f->out_ns ? out_ns : f->out_ns;
    f->last_ns = seen;
}

/* Free a slot: move up every later one of the run that may not stand behind a free one. */
static void slot_close(struct detour_faults *t, uint32_t gap)
{
    for (uint32_t i = (gap + 1) & t->mask; t->slot[i] >= 0; i = (i + 1) & t->mask) {
        uint32_t home = slot_of(t->entry[t->slot[i]].cable) & t->mask;
        if (((i - home) & t->mask) >= ((i - gap) & t->mask)) {
            t->slot[gap] = t->slot[i];
            gap = i;
        }
    }
    t->slot[gap] = -1;
}

bool detour_faults_remove(struct detour_faults *t, int32_t cable)
{
    if (!t->used)
        return false;
    uint32_t at = slot_find(t, cable);
    int32_t hole = t->slot[at];
    if (hole < 0)
        return false;
    slot_close(t, at);
    int32_t last = (int32_t)--t->used;
    if (hole != last) {
        t->slot[slot_find(t, t->entry[last].cable)] = hole;
        t->entry[hole] = t->entry[last];
    }
    t->version++;
    return true;
}
