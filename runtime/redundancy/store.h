/* The node's part of the global memory: its copies of slots' parts of segments, each a memfd that the agent maps,
 * registers with the transport and passes to its ranks. Used by the agent's data thread only. */
#ifndef KEEL_REDUNDANCY_STORE_H
#define KEEL_REDUNDANCY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

#include "runtime/transport/transport.h"

enum { STORE_SEGMENTS_MAX = 4096 };

struct store_copy {
    uint8_t *base;
    size_t bytes;
    int fd;
    bool lost; /* no memory: the data died with another node (unreplicated segments) */
};

struct store_segment {
    bool known;
    bool freed;
    uint64_t bytes_per_rank;
    uint32_t redundancy;
    uint64_t instance;       /* the barrier instance that completes its allocation; 0 for the runtime's own */
    struct store_copy *copy; /* [slots] */
};

struct store {
    struct tp *net; /* where copies are registered */
    int slots;
    const int *slot_ranks;         /* [slots] */
    uint32_t count;                /* segments 0..count-1 may be known */
    struct store_segment *segment; /* [STORE_SEGMENTS_MAX] */
};

keel_status store_init(struct store *s, struct tp *net, int slots, const int *slot_ranks);
void store_fini(struct store *s);

/* Bytes of one rank's part, rounded to a cache line; and where a rank's part starts. */
size_t store_stride(uint64_t bytes_per_rank);

/* Note that the segment exists. KEEL_ERR_MISMATCH if it is known with other arguments. */
keel_status store_define(struct store *s, uint32_t seg, uint64_t bytes_per_rank, uint32_t redundancy,
                         uint64_t instance);
/* Make this node's copy of the slot's part, zeroed; does nothing if it is there. */
keel_status store_make(struct store *s, uint32_t seg, int slot);
void store_mark_lost(struct store *s, uint32_t seg, int slot);
void store_drop(struct store *s, uint32_t seg, int slot);
/* Drop all copies and remember that the segment was freed. */
void store_free(struct store *s, uint32_t seg);

/* The copy, or NULL. */
static inline struct store_copy *store_copy(struct store *s, uint32_t seg, int slot)
{
    if (seg >= s->count || !s->segment[seg].known || s->segment[seg].freed || slot < 0 || slot >= s->slots)
        return NULL;
    struct store_copy *c = &s->segment[seg].copy[slot];
    return c->base || c->lost ? c : NULL;
}
#endif
