/* The fast path: parts that this process reaches by plain loads and stores (struct near). */
#ifndef KEEL_CLIENT_OP_NEAR_H
#define KEEL_CLIENT_OP_NEAR_H

#include "runtime/base/words.h"
#include "runtime/client/client.h"
#include "runtime/client/segment/segment.h"

/* A rank's part that this process reaches by plain loads and stores as long as the route's tag has the value it had
 * when this was filled in. 0 is no tag: not reachable so. Zeroed memory that was never touched is right for all
 * others. */
struct near {
    const _Atomic uint64_t *tag;
    uint64_t get_tag, put_tag; /* puts: unreplicated only, others tell the other copies */
    uint64_t signal_tag;       /* signals: the same, and the agent knows that ranks do them */
    uint64_t add_tag;          /* accumulates and atomics: likewise, and no other set must know in which order */
    _Atomic(uint8_t *) base;
};

static inline bool near_outside(const struct client *c, const keel_segment *s, int rank, size_t offset, size_t len)
{
    return !s || rank < 0 || rank >= c->size || len > s->part_bytes[rank] || offset > s->part_bytes[rank] - len;
}

static inline bool near_bad_range(const struct client *c, const keel_segment *s, int rank, size_t offset, size_t len)
{
    return !c->ready || near_outside(c, s, rank, offset, len);
}

static inline bool near_valid(const struct near *n, const uint64_t *wanted)
{
    uint64_t tag = __atomic_load_n(wanted, __ATOMIC_ACQUIRE); /* 0: nothing was filled in yet */
    return tag != 0 && tag == atomic_load_explicit(__atomic_load_n(&n->tag, __ATOMIC_RELAXED), memory_order_acquire);
}

static inline uint8_t *near_base(const struct near *n)
{
    return atomic_load_explicit(&n->base, memory_order_acquire);
}

/* They have ended: n of them, of so many bytes; the counter is of those that end here. */
static inline void near_counts(const struct client *c, enum counter counter, uint64_t n, uint64_t bytes)
{
    counters_near(&c->intents->counters, counter, n, bytes);
}
#endif
