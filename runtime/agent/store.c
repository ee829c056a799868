#include "runtime/agent/store.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/wire/layout.h"
#include "runtime/wire/wire.h"

enum { BUCKETS_FIRST = 64 };

static const uint64_t BYTES_PER_RANK_MAX = (uint64_t)1 << 46;

keel_status store_init(struct store *s, const struct store_ops *ops, struct tp *net, int slots, const int *slot_ranks)
{
    *s = (struct store){.ops = *ops, .net = net, .slots = slots, .slot_ranks = slot_ranks, .buckets = BUCKETS_FIRST};
    s->tail = &s->first;
    s->bucket = calloc(s->buckets, sizeof(struct store_segment *));
    return s->bucket ? KEEL_OK : KEEL_ERR_NOMEM;
}

static size_t memory_of(const struct store *s, const struct store_segment *g, int slot)
{
    return layout_memory_bytes(layout_copy_bytes(g->bytes_per_rank, (uint64_t)s->slot_ranks[slot]));
}

static void empty_left(struct store *s, struct store_copy *c, size_t most)
{
    size_t bytes = c->left_bytes < most ? c->left_bytes : most;
    if (!bytes)
        return;
    c->left_bytes -= bytes;
    s->ops.empty(s->ops.user, c->left, c->left_handle, c->left_bytes, bytes);
    s->leaving -= !c->left_bytes;
}

static void segment_delete(struct store *s, struct store_segment *g)
{
    for (int slot = 0; slot < s->slots; slot++) {
        struct store_copy *c = &g->copy[slot];
        store_drop(s, g, slot);
        if (c->left)
            s->ops.free(s->ops.user, c->left, memory_of(s, g, slot), c->left_handle);
        s->leaving -= c->left_bytes > 0;
    }
    free(g->copy);
    free(g->said);
    free(g);
}

void store_fini(struct store *s)
{
    for (struct store_segment *g = s->first, *next; g; g = next) {
        next = g->next;
        segment_delete(s, g);
    }
    free((void *)s->bucket);
    *s = (struct store){0};
}

static struct store_segment **bucket_of(const struct store *s, uint32_t seg)
{
    return &s->bucket[seg & (s->buckets - 1)];
}

struct store_segment *store_find(const struct store *s, uint32_t seg)
{
    struct store_segment *g = *bucket_of(s, seg);
    while (g && g->seg != seg)
        g = g->chain;
    return g;
}

bool store_was_freed(const struct store *s, uint32_t seg)
{
    return seg < s->limit && !store_find(s, seg);
}

/* More buckets when there are as many segments; without memory the chains grow. */
static void grow(struct store *s)
{
    if (s->living < s->buckets)
        return;
    struct store_segment **wider = calloc((size_t)s->buckets * 2, sizeof(struct store_segment *));
    if (!wider)
        return;
    free((void *)s->bucket);
    s->bucket = wider;
    s->buckets *= 2;
    for (struct store_segment *g = s->first; g; g = g->next) {
        g->chain = *bucket_of(s, g->seg);
        *bucket_of(s, g->seg) = g;
    }
}

keel_status store_define(struct store *s, uint32_t seg, uint64_t bytes_per_rank, uint32_t redundancy, uint64_t instance)
{
    if (bytes_per_rank > BYTES_PER_RANK_MAX || redundancy >= CLASSES)
        return KEEL_ERR_LIMIT;
    struct store_segment *g = store_find(s, seg);
    if (g)
        return g->bytes_per_rank == bytes_per_rank && g->redundancy == redundancy ? KEEL_OK : KEEL_ERR_MISMATCH;
    if (s->living >= STORE_LIVING_MAX)
        return KEEL_ERR_LIMIT;
    g = calloc(1, sizeof *g);
    struct store_copy *copy = calloc((size_t)s->slots, sizeof *copy);
    if (!g || !copy) {
        free(g);
        free(copy);
        return KEEL_ERR_NOMEM;
    }
    *g = (struct store_segment){
        .seg = seg, .redundancy = redundancy, .bytes_per_rank = bytes_per_rank, .instance = instance, .copy = copy};
    grow(s);
    g->chain = *bucket_of(s, seg);
    *bucket_of(s, seg) = g;
    *s->tail = g;
    s->tail = &g->next;
    s->living++;
    if (seg >= s->limit && seg < SEGMENT_GROUP_FIRST)
        s->limit = seg + 1;
    return KEEL_OK;
}

keel_status store_make(struct store *s, struct store_segment *g, int slot, uint64_t generation)
{
    struct store_copy *c = &g->copy[slot];
    if (c->base || c->lost)
        return KEEL_OK;
    size_t bytes = layout_copy_bytes(g->bytes_per_rank, (uint64_t)s->slot_ranks[slot]);
    void *base = c->left;
    int64_t handle = c->left_handle;
    empty_left(s, c, SIZE_MAX);
    keel_status status = base ? KEEL_OK : s->ops.make(s->ops.user, layout_memory_bytes(bytes), &base, &handle);
    if (status != KEEL_OK)
        return status;
    status = s->net->table->reg(s->net, base, bytes, wire_key(g->seg, slot, generation));
    if (status != KEEL_OK) {
        if (!c->left)
            s->ops.free(s->ops.user, base, layout_memory_bytes(bytes), handle);
        return status;
    }
    *c = (struct store_copy){.base = base, .bytes = bytes, .handle = handle, .generation = generation};
    log_debug("store: segment %u slot %d, %zu bytes", g->seg, slot, bytes);
    return KEEL_OK;
}

keel_status store_rekey(struct store *s, struct store_segment *g, int slot, uint64_t generation)
{
    struct store_copy *c = &g->copy[slot];
    if (!c->base || c->generation == generation)
        return KEEL_OK;
    keel_status status = KEEL_OK;
    s->net->table->unreg(s->net, wire_key(g->seg, slot, c->generation));
    status = s->net->table->reg(s->net, c->base, c->bytes, wire_key(g->seg, slot, generation));
    c->generation = generation;
    return status;
}

keel_status store_fill(struct store *s, const struct store_copy *c, uint64_t offset, const void *from, size_t bytes)
{
    return s->ops.fill(s->ops.user, c->base, c->handle, offset, from, bytes);
}

void store_leave(struct store *s, struct store_segment *g, int slot)
{
    struct store_copy *c = &g->copy[slot];
    if (!c->base) {
        store_drop(s, g, slot);
        return;
    }
    s->net->table->unreg(s->net, wire_key(g->seg, slot, c->generation));
    *c = (struct store_copy){.left = c->base, .left_handle = c->handle, .left_bytes = memory_of(s, g, slot)};
    s->leaving++;
}

bool store_empty_some(struct store *s)
{
    enum { SOME = 4 * 1024 * 1024 }; /* takes less time than a block that is filled */
    if (!s->leaving)
        return false;
    for (struct store_segment *g = s->first; g; g = g->next)
        for (int slot = 0; slot < s->slots; slot++)
            if (g->copy[slot].left_bytes) {
                empty_left(s, &g->copy[slot], SOME);
                return true;
            }
    return false;
}

void store_mark_lost(struct store *s, struct store_segment *g, int slot)
{
    store_drop(s, g, slot);
    g->copy[slot].lost = true;
}

void store_drop(struct store *s, struct store_segment *g, int slot)
{
    struct store_copy *c = &g->copy[slot];
    if (c->base) {
        s->net->table->unreg(s->net, wire_key(g->seg, slot, c->generation));
        s->ops.free(s->ops.user, c->base, layout_memory_bytes(c->bytes), c->handle);
    }
    *c = (struct store_copy){.left = c->left, .left_handle = c->left_handle, .left_bytes = c->left_bytes};
}

void store_free(struct store *s, uint32_t seg)
{
    struct store_segment *g = store_find(s, seg);
    if (!g)
        return;
    struct store_segment **link = bucket_of(s, seg);
    while (*link != g)
        link = &(*link)->chain;
    *link = g->chain;
    for (link = &s->first; *link != g; link = &(*link)->next)
        ;
    *link = g->next;
    if (!*link)
        s->tail = link;
    s->living--;
    segment_delete(s, g);
}
