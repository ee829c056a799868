/* What a segment is made of, where its parts lie, and what becomes of it when it was freed. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/op/near.h"
#include "runtime/client/segment/segment_int.h"
#include "runtime/wire/layout.h"

enum { RETIRED_MIN = 1024 }; /* segments that were freed and stay what they are */

#define SLOT_BYTES_MAX (SIZE_MAX / 4)

static size_t part_of(const struct segment_want *want, uint32_t rank)
{
    return want->parts ? want->parts[rank] : (size_t)want->bytes;
}

/* Parts that differ lie one behind the other in their slot's copy, in the order of their ranks. The agents make all
 * copies for parts of one size: for one with which the fullest slot has room, or, where that is beyond what can be
 * counted, for one that none of them makes. */
static void lay_out_parts(struct keel_segment *s, const struct segment_want *want)
{
    const struct page *page = s->client->page;
    uint64_t *used = s->slot_at; /* so far; laid out later */
    bool countable = true;
    for (uint32_t r = 0; r < page->ranks; r++) {
        const struct page_rank *k = page_rank(page, (int)r);
        size_t bytes = part_of(want, r);
        s->part_bytes[r] = bytes;
        s->part_at[r] = want->parts ? used[k->slot] : (uint64_t)k->index * layout_stride(bytes);
        countable = countable && bytes <= SLOT_BYTES_MAX && used[k->slot] <= SLOT_BYTES_MAX - bytes;
        used[k->slot] += layout_stride(bytes);
        s->largest = bytes > s->largest ? bytes : s->largest;
    }
    s->unit = want->parts ? 0 : want->bytes;
    for (uint32_t slot = 0; want->parts && slot < page->nodes; slot++) {
        uint64_t ranks = 0;
        for (uint32_t r = 0; r < page->ranks; r++)
            ranks += page_rank(page, (int)r)->slot == slot;
        uint64_t unit = ranks ? (used[slot] + ranks - 1) / ranks : 0;
        s->unit = unit > s->unit ? unit : s->unit;
    }
    if (want->parts && !countable)
        s->unit = UINT64_MAX;
}

uint64_t segment_lay_out(struct keel_segment *s)
{
    const struct client *c = s->client;
    uint64_t at = 0, ranks;
    if (s->unit > c->segments.range.bytes)
        return 0;
    memset(s->slot_at, 0, c->page->nodes * sizeof *s->slot_at);
    for (uint32_t r = 0; r < c->page->ranks; r++)
        s->slot_at[page_rank(c->page, (int)r)->slot]++;
    for (uint32_t slot = 0; slot < c->page->nodes; slot++) {
        ranks = s->slot_at[slot];
        s->slot_at[slot] = at;
        at += layout_memory_bytes(layout_copy_bytes(s->unit, ranks));
        if (at > c->segments.range.bytes)
            return 0;
    }
    return at;
}

uint64_t segment_fingerprint(const struct client *c, const struct segment_want *want)
{
    uint64_t hash = 0xcbf29ce484222325u ^ want->redundancy ^ want->what << 8;
    for (uint32_t r = 0; r < c->page->ranks; r++)
        hash = (hash ^ part_of(want, r)) * 0x100000001b3u;
    return hash;
}

static void unmap_all(struct keel_segment *s)
{
    struct client *c = s->client;
    for (uint32_t slot = 0; s->map && slot < c->page->nodes; slot++) {
        uint8_t *base = atomic_load(&s->map[slot]);
        if (base)
            c->env.unmap(c->env.user, base, layout_memory_bytes(s->map_bytes[slot]));
    }
    if (s->view)
        c->env.unmap(c->env.user, s->view, layout_memory_bytes(s->map_bytes[s->view_slot]));
    if (s->base)
        range_give(&c->segments.range, s->base);
}

static void destroy(struct keel_segment *s)
{
    free(s->slot_at);
    free((void *)s->map);
    free(s->map_bytes);
    free((void *)s->shared);
    free(s->near);
    free(s->part_bytes);
    free(s->part_at);
    free(s);
}

/* What the program still has is a pointer to it: it stays what it is, a segment without bytes, until others have been
 * freed after it; then it becomes another segment. */
static void retire(struct keel_segment *s)
{
    const struct page *page = s->client->page;
    struct segments *all = &s->client->segments;
    memset(s->part_bytes, 0, page->ranks * sizeof *s->part_bytes);
    struct near *fresh = calloc(page->ranks, sizeof *fresh); /* most of it was never touched */
    if (fresh) {
        free(s->near);
        s->near = fresh;
    } else {
        memset((void *)s->near, 0, page->ranks * sizeof *s->near);
    }
    memset((void *)s->map, 0, page->nodes * sizeof *s->map);
    s->largest = s->base = 0;
    s->view = NULL;
    s->group = NULL;
    s->next = NULL;
    s->retired = true;
    if (all->retired)
        all->retired_last->next = s;
    else
        all->retired = s;
    all->retired_last = s;
    all->retired_n++;
}

static struct keel_segment *come_back(struct segments *all)
{
    struct keel_segment *s = all->retired;
    if (all->retired_n < RETIRED_MIN)
        return NULL;
    all->retired = s->next;
    all->retired_n--;
    return s;
}

/* It is not among the client's any more. */
static void let_go(struct keel_segment *s)
{
    struct client *c = s->client;
    if (c->env.leaving)
        c->env.leaving(c->env.user, s);
    unmap_all(s);
    if (s->map && s->near && s->part_bytes)
        retire(s);
    else
        destroy(s);
}

void segment_release(struct keel_segment *s)
{
    for (struct keel_segment **link = &s->client->segments.first; *link; link = &(*link)->next)
        if (*link == s) {
            *link = s->next;
            break;
        }
    let_go(s);
}

void segment_forget_all(struct client *c)
{
    for (struct keel_segment *s; (s = c->segments.first);) {
        c->segments.first = s->next;
        let_go(s);
    }
    for (struct keel_segment *s = c->segments.retired, *next; s; s = next) {
        next = s->next;
        destroy(s);
    }
    c->segments.retired = NULL;
    c->segments.retired_n = 0;
}

/* Zeroed, but for what one that was retired keeps. NULL: out of memory. */
static struct keel_segment *make(struct client *c)
{
    struct keel_segment *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->client = c;
    s->slot_at = calloc(c->page->nodes, sizeof *s->slot_at);
    s->map = calloc(c->page->nodes, sizeof *s->map);
    s->map_bytes = calloc(c->page->nodes, sizeof *s->map_bytes);
    s->shared = calloc(c->page->nodes, sizeof *s->shared);
    s->near = calloc(c->page->ranks, sizeof *s->near);
    s->part_bytes = calloc(c->page->ranks, sizeof *s->part_bytes);
    s->part_at = calloc(c->page->ranks, sizeof *s->part_at);
    if (!s->map || !s->map_bytes || !s->shared || !s->near || !s->slot_at || !s->part_bytes || !s->part_at) {
        destroy(s);
        return NULL;
    }
    return s;
}

static void clear(struct keel_segment *s)
{
    const struct page *page = s->client->page;
    struct keel_segment kept = *s;
    *s = (struct keel_segment){.client = kept.client,
                               .slot_at = kept.slot_at,
                               .map = kept.map,
                               .map_bytes = kept.map_bytes,
                               .shared = kept.shared,
                               .near = kept.near,
                               .part_bytes = kept.part_bytes,
                               .part_at = kept.part_at};
    memset(s->slot_at, 0, page->nodes * sizeof *s->slot_at);
    memset(s->map_bytes, 0, page->nodes * sizeof *s->map_bytes);
    memset((void *)s->shared, 0, page->nodes * sizeof *s->shared);
}

struct keel_segment *segment_new(struct client *c, uint32_t index, const struct segment_want *want)
{
    struct keel_segment *s = come_back(&c->segments);
    if (s)
        clear(s);
    else if (!(s = make(c)))
        return NULL;
    s->index = index;
    s->redundancy = want->redundancy;
    s->what = want->what;
    lay_out_parts(s, want);
    s->next = c->segments.first;
    c->segments.first = s;
    return s;
}

struct keel_segment *segment_place(struct client *c, uint32_t index, const struct segment_want *want)
{
    struct keel_segment *s = segment_new(c, index, want);
    uint64_t bytes = s ? segment_lay_out(s) : 0;
    if (bytes)
        s->base = range_take(&c->segments.range, bytes, s);
    return s;
}

struct keel_segment *segment_attach(struct client *c, uint32_t index, uint64_t bytes_per_rank,
                                    keel_redundancy redundancy)
{
    const struct segment_want want = {.bytes = bytes_per_rank, .redundancy = redundancy};
    return segment_place(c, index, &want);
}
