/* The view page: what an agent tells its ranks about the view, in shared memory (a memfd that ranks map read-only).
 * Written by the agent's data thread only; ranks read single atomic words. One word holds all that routes an operation, so
 * a rank never needs a lock: it loads the slot's word, acts on it, loads it again when the operation has completed, and
 * acts again if it changed. The layout is the same for every process of one build (checked through PAGE_MAGIC). */
#ifndef KEEL_CORE_PAGE_H
#define KEEL_CORE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/core/view.h"
#include "runtime/transport/transport.h"

#define PAGE_MAGIC 0x6b65656c70670003ull
enum { PAGE_NO_NODE = 0xffff };

struct page_node {
    _Atomic uint32_t alive;
    uint32_t pad;
    uint64_t incarnation;
    struct tp_addr addr; /* where its data listener is */
};

/* route: bits 0-15 primary, 16-31 shadow, 32-35 mode (enum slot_mode), 36-63 generation */
struct page_slot {
    _Atomic uint64_t route;
    _Atomic uint64_t lost_at;
    uint64_t ranks; /* of this slot */
};

struct page_rank {
    _Atomic uint64_t where; /* bits 0-31 incarnation, 32-63 node (0xffffffff: nobody runs it) */
    uint32_t slot;
    uint32_t index;
};

struct page {
    uint64_t magic;
    uint32_t nodes, members, ranks;
    uint32_t self;
    _Atomic uint64_t epoch;
    _Atomic uint32_t fenced; /* the agent has lost the job: every operation fails */
    uint32_t pad;
    /* followed by page_node[members], page_slot[nodes], page_rank[ranks] */
};

static inline size_t page_bytes(uint32_t nodes, uint32_t members, uint32_t ranks)
{
    return sizeof(struct page) + members * sizeof(struct page_node) + nodes * sizeof(struct page_slot) +
           ranks * sizeof(struct page_rank);
}
static inline struct page_node *page_node(const struct page *p, int node)
{
    return (struct page_node *)(p + 1) + node;
}
static inline struct page_slot *page_slot(const struct page *p, int slot)
{
    return (struct page_slot *)((struct page_node *)(p + 1) + p->members) + slot;
}
static inline struct page_rank *page_rank(const struct page *p, int rank)
{
    return (struct page_rank *)((struct page_slot *)((struct page_node *)(p + 1) + p->members) + p->nodes) + rank;
}

static inline uint64_t page_route(const struct page *p, int slot)
{
    return atomic_load_explicit(&page_slot(p, slot)->route, memory_order_acquire);
}
static inline int route_primary(uint64_t route)
{
    return (int)(route & 0xffff);
}
static inline int route_shadow(uint64_t route)
{
    return (int)(route >> 16 & 0xffff);
}
static inline enum slot_mode route_mode(uint64_t route)
{
    return (enum slot_mode)(route >> 32 & 0xf);
}
static inline uint64_t route_make(const struct view_slot *s)
{
    uint64_t primary = s->primary < 0 ? PAGE_NO_NODE : (uint64_t)s->primary;
    uint64_t shadow = s->shadow < 0 ? PAGE_NO_NODE : (uint64_t)s->shadow;
    return primary | shadow << 16 | (uint64_t)s->mode << 32 | s->changed << 36;
}
#endif
