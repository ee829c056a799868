/* Segments: collective allocation, and the mappings of this node's copies. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/client.h"
#include "runtime/protocol/collective_slot.h"

enum { KIND_ALLOC = 1 };

struct alloc_arguments {
    uint64_t bytes;
    uint32_t redundancy;
    uint32_t index;
    int32_t made; /* a keel_status: what became of it at this rank */
    uint32_t pad;
    uint64_t base; /* in the address range */
};

/* Where the copies of all slots lie, one after the other; their bytes, 0: more than there are addresses. */
static uint64_t lay_out(const struct client *c, uint64_t bytes_per_rank, uint64_t *slot_at)
{
    uint64_t at = 0, ranks;
    if (bytes_per_rank > c->range.bytes)
        return 0;
    memset(slot_at, 0, c->page->nodes * sizeof *slot_at);
    for (uint32_t r = 0; r < c->page->ranks; r++)
        slot_at[page_rank(c->page, (int)r)->slot]++;
    for (uint32_t slot = 0; slot < c->page->nodes; slot++) {
        ranks = slot_at[slot];
        slot_at[slot] = at;
        at += layout_copy_bytes(bytes_per_rank, ranks);
        if (at > c->range.bytes)
            return 0;
    }
    return at;
}

struct keel_segment *segment_attach(struct client *c, uint32_t index, uint64_t bytes_per_rank,
                                    keel_redundancy redundancy)
{
    struct keel_segment *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->client = c;
    s->index = index;
    s->bytes_per_rank = bytes_per_rank;
    s->stride = layout_stride(bytes_per_rank);
    s->redundancy = redundancy;
    s->slot_at = calloc(c->page->nodes, sizeof *s->slot_at);
    s->map = calloc(c->page->nodes, sizeof *s->map);
    s->map_bytes = calloc(c->page->nodes, sizeof *s->map_bytes);
    s->shared = calloc(c->page->nodes, sizeof *s->shared);
    s->near = calloc(c->page->ranks, sizeof *s->near);
    if (!s->map || !s->map_bytes || !s->shared || !s->near || !s->slot_at) {
        segment_release(s);
        return NULL;
    }
    uint64_t bytes = lay_out(c, bytes_per_rank, s->slot_at);
    s->base = bytes ? range_take(&c->range, bytes, s) : 0;
    s->next = c->segments;
    c->segments = s;
    return s;
}

void segment_release(struct keel_segment *s)
{
    struct client *c = s->client;
    for (struct keel_segment **link = &c->segments; *link; link = &(*link)->next)
        if (*link == s) {
            *link = s->next;
            break;
        }
    for (uint32_t slot = 0; s->map && slot < c->page->nodes; slot++) {
        uint8_t *base = atomic_load(&s->map[slot]);
        if (base)
            c->env.unmap(c->env.user, base, s->map_bytes[slot]);
    }
    if (s->view)
        c->env.unmap(c->env.user, s->view, s->map_bytes[s->view_slot]);
    if (s->base)
        range_give(&c->range, s->base);
    free(s->slot_at);
    free((void *)s->map);
    free(s->map_bytes);
    free((void *)s->shared);
    free(s->near);
    free(s);
}

uint8_t *segment_map(struct keel_segment *s, int slot, keel_status *status)
{
    struct client *c = s->client;
    *status = KEEL_OK;
    uint8_t *base = atomic_load_explicit(&s->map[slot], memory_order_acquire);
    if (base)
        return base;
    struct control r = {.type = CONTROL_SEG_MAP, .seg = s->index, .slot = slot};
    void *m = s->base ? (void *)(uintptr_t)(s->base + s->slot_at[slot]) : NULL; // NOLINT(performance-no-int-to-ptr)
    *status = c->env.request(c->env.user, &r, &m);
    if (*status != KEEL_OK)
        return NULL;
    uint8_t *expected = NULL;
    s->map_bytes[slot] = r.bytes;
    if (!atomic_compare_exchange_strong(&s->map[slot], &expected, m)) {
        if (m != expected)
            c->env.unmap(c->env.user, m, r.bytes); /* another thread was first */
        return expected;
    }
    return m;
}

keel_status segment_map_twice(struct keel_segment *s, int rank, uint8_t **view)
{
    struct client *c = s->client;
    int slot = (int)page_rank(c->page, rank)->slot;
    keel_status status;
    *view = s->view ? s->view : segment_map(s, slot, &status);
    if (s->view || !*view)
        return s->view ? KEEL_OK : status;
    struct control r = {.type = CONTROL_SEG_MAP, .seg = s->index, .slot = slot};
    void *m = NULL;
    status = c->env.request(c->env.user, &r, &m);
    if (status != KEEL_OK)
        return status;
    s->view = *view;
    s->view_slot = slot;
    atomic_store(&s->map[slot], (uint8_t *)m);
    for (int other = 0; other < c->size; other++) /* none of them points to the old place */
        if ((int)page_rank(c->page, other)->slot == slot)
            memset((void *)&s->near[other], 0, sizeof s->near[other]);
    return KEEL_OK;
}

/* All ranks pass what they were given, and whether they could; each compares its own with everybody's. *agreed is the same at
 * all: that the arguments differ, or the lowest rank's error. */
static keel_status agree_on_arguments(struct client *c, const struct alloc_arguments *mine, keel_status *agreed)
{
    keel_status status = collective_contribute(c, KIND_ALLOC, mine, sizeof *mine);
    if (status == KEEL_OK)
        status = collective_enter(c);
    *agreed = KEEL_OK;
    for (int r = 0; r < c->size && status == KEEL_OK; r++) {
        struct alloc_arguments theirs;
        bool present;
        status = collective_read(c, r, KIND_ALLOC, &theirs, sizeof theirs, &present);
        if (status != KEEL_OK || !present)
            continue;
        if (theirs.bytes != mine->bytes || theirs.redundancy != mine->redundancy || theirs.index != mine->index ||
            (theirs.base && mine->base && theirs.base != mine->base)) /* 0: without memory for it */
            *agreed = KEEL_ERR_MISMATCH;
        else if (*agreed == KEEL_OK)
            *agreed = (keel_status)theirs.made;
    }
    return status;
}

/* Every rank's agent makes its copies before the barrier, so that all are there after it. A rank that cannot, or whose
 * arguments differ, takes part all the same, so that everybody learns of it; then nothing is left. */
static keel_status alloc_together(struct client *c, const struct control *r, uint64_t base, keel_status made)
{
    struct control request = *r;
    keel_status agreed;
    keel_status before = rma_fence(c, -1); /* what an earlier operation of this rank met is everybody's error, too */
    if (made == KEEL_OK)
        made = before;
    if (made == KEEL_OK)
        made = c->env.request(c->env.user, &request, NULL);
    if (made == KEEL_ERR_AGENT_GONE || made == KEEL_ERR_FENCED)
        return made;
    struct alloc_arguments mine = {
        .bytes = r->bytes, .redundancy = r->redundancy, .index = r->seg, .made = (int32_t)made, .base = base};
    keel_status status = agree_on_arguments(c, &mine, &agreed);
    if (status != KEEL_OK)
        return status;
    if (agreed == KEEL_OK)
        return made; /* not what the others were told, if it was a predecessor that told them */
    request =
        (struct control){.type = CONTROL_SEG_FREE, .seg = r->seg, .a = (int64_t)agreed, .b = (int64_t)c->instance};
    (void)c->env.request(c->env.user, &request, NULL); /* lost with the agent, if at all */
    return agreed;
}

keel_status segment_alloc(struct client *c, size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out)
{
    return segment_alloc_if(c, KEEL_OK, bytes_per_rank, redundancy, out);
}

keel_status segment_alloc_if(struct client *c, keel_status able, size_t bytes_per_rank, keel_redundancy redundancy,
                             keel_segment **out)
{
    if (!out)
        return KEEL_ERR_ARG;
    *out = NULL;
    if (!c->ready)
        return KEEL_ERR_STATE;
    if ((unsigned)redundancy >= CLASSES)
        return KEEL_ERR_ARG;
    if (c->segments_next == UINT32_MAX)
        return KEEL_ERR_LIMIT;
    uint32_t index = c->segments_next;
    bool exists = index < c->segments_known; /* from before this process joined */
    struct control r = {.type = CONTROL_SEG_CREATE,
                        .seg = index,
                        .bytes = bytes_per_rank,
                        .redundancy = (uint32_t)redundancy,
                        .b = (int64_t)c->instance + 1};
    struct keel_segment *s = segment_attach(c, index, bytes_per_rank, redundancy);
    if (!s)
        able = KEEL_ERR_NOMEM;
    keel_status status = able;
    if (!exists)
        status = alloc_together(c, &r, s ? s->base : 0, able);
    else if (able == KEEL_OK)
        status = c->env.request(c->env.user, &r, NULL);
    c->segments_next++;
    if (status != KEEL_OK || !s) {
        if (s)
            segment_release(s);
        return status == KEEL_OK ? KEEL_ERR_NOMEM : status;
    }
    s->freed = exists && r.a == 1 && (uint64_t)r.b <= c->instance; /* else the barrier that freed it is to come here */
    *out = s;
    return KEEL_OK;
}

/* ---- addresses ---- */

static uint64_t address_of(const keel_segment *s, int rank)
{
    const struct page_rank *r = page_rank(s->client->page, rank);
    return s->base + s->slot_at[r->slot] + (uint64_t)r->index * s->stride;
}

void *segment_address(keel_segment *s, int rank)
{
    if (!s || !s->client->ready || rank < 0 || rank >= s->client->size)
        return NULL;
    const struct page_rank *r = page_rank(s->client->page, rank);
    keel_status status;
    bool viewed = s->view && s->view_slot == (int)r->slot;
    uint8_t *copy = viewed ? s->view : segment_map(s, (int)r->slot, &status);
    if (copy)
        return copy + (uint64_t)r->index * s->stride;
    return s->base ? (void *)(uintptr_t)address_of(s, rank) : NULL; // NOLINT(performance-no-int-to-ptr)
}

keel_status segment_locate(struct client *c, int rank, const void *address, keel_segment **segment, size_t *offset)
{
    uint64_t at = (uintptr_t)address;
    keel_segment *s = c->ready && rank >= 0 && rank < c->size ? range_find(&c->range, at) : NULL;
    if (!segment || !offset)
        return KEEL_ERR_ARG;
    *segment = NULL;
    *offset = 0;
    if (!s || s == c->system || at < address_of(s, rank) || at - address_of(s, rank) >= s->bytes_per_rank)
        return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    *segment = s;
    *offset = (size_t)(at - address_of(s, rank));
    return KEEL_OK;
}

keel_status segment_free(struct client *c, struct keel_segment *segment)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (!segment)
        return KEEL_OK;
    keel_status status = KEEL_OK;
    if (!segment->freed) { /* else the others freed it before this process joined */
        keel_status before = rma_fence(c, -1);
        status = collective_enter(c);
        if (status != KEEL_OK)
            return status;
        struct control r = {.type = CONTROL_SEG_FREE, .seg = segment->index, .b = (int64_t)c->instance};
        status = c->env.request(c->env.user, &r, NULL);
        status = status != KEEL_OK ? status : before;
    }
    segment_release(segment);
    return status;
}
