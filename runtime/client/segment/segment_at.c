/* Where a part is: its address, and the nodes that have copies of it. */
#include "runtime/client/client.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/marks.h"

static uint64_t address_of(const keel_segment *s, int rank)
{
    const struct page_rank *r = page_rank(s->client->page, rank);
    return s->base + s->slot_at[r->slot] + s->part_at[rank];
}

void segment_seen(keel_segment *s, int slot, bool seen)
{
    const struct client *c = s->client;
    const struct page_rank *own = page_rank(c->page, c->rank);
    uint8_t *copy = atomic_load(&s->map[slot]);
    if (s->redundancy == KEEL_REDUNDANCY_NONE || !copy || (int)own->slot != slot)
        return;
    if (seen)
        unseen_add(unseen_of(copy, s->map_bytes[slot]), own->index);
    else
        holders_remove(unseen_of(copy, s->map_bytes[slot]), own->index);
}

void *segment_address(keel_segment *s, int rank)
{
    if (!s || !s->client->ready || s->retired || rank < 0 || rank >= s->client->size)
        return NULL;
    const struct page_rank *r = page_rank(s->client->page, rank);
    keel_status status = KEEL_OK;
    bool viewed = s->view && s->view_slot == (int)r->slot;
    bool is_own = r->slot == page_rank(s->client->page, s->client->rank)->slot;
    uint8_t *copy = viewed                                            ? s->view
                    : is_own && s->redundancy == KEEL_REDUNDANCY_NONE ? segment_map_home(s, &status)
                                                                      : segment_map_whole(s, (int)r->slot, &status);
    if (copy && !viewed)
        segment_seen(s, (int)r->slot, true);
    if (copy)
        return copy + s->part_at[rank];
    if (status == KEEL_ERR_NOMEM) /* it is here, and cannot be mapped */
        return NULL;
    return s->base ? (void *)(uintptr_t)address_of(s, rank) : NULL; // NOLINT(performance-no-int-to-ptr)
}

keel_status segment_locate(struct client *c, int rank, const void *address, keel_segment **segment, size_t *offset)
{
    uint64_t at = (uintptr_t)address;
    keel_segment *s = c->ready && rank >= 0 && rank < c->size ? range_find(&c->segments.range, at) : NULL;
    if (!segment || !offset)
        return KEEL_ERR_ARG;
    *segment = NULL;
    *offset = 0;
    if (!s || s == c->segments.system || s->what || at < address_of(s, rank) ||
        at - address_of(s, rank) >= s->part_bytes[rank])
        return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    *segment = s;
    *offset = (size_t)(at - address_of(s, rank));
    return KEEL_OK;
}

keel_status segment_copies(const keel_segment *s, int rank, int *nodes, int *n)
{
    struct route route;
    if (!s || s->retired || rank < 0 || rank >= s->client->size || !nodes || !n)
        return KEEL_ERR_ARG;
    const struct page *page = s->client->page;
    while (!page_route_read(page, copyset_of((int)page_rank(page, rank)->slot, s->redundancy), &route)) {
        if (s->client->env.agent_is_gone(s->client->env.user))
            return KEEL_ERR_AGENT_GONE;
        s->client->env.yield(s->client->env.user); /* a view is being made */
    }
    *n = route.lost                ? 0
         : route.copies < LEGS_MAX ? route.copies
                                   : LEGS_MAX; /* behind these is one that is made where the slot is to go */
    for (int i = 0; i < *n; i++)
        nodes[i] = route.node[i];
    return KEEL_OK;
}
