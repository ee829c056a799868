/* The node's part of the global memory: its copies of slots' parts of segments, each a piece of memory that the owner
 * can pass to its ranks, registered with the transport under the generation of its copyset's route. */
#ifndef KEEL_AGENT_STORE_H
#define KEEL_AGENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

#include "runtime/net/transport.h"

struct store_copy {
    uint8_t *base;
    size_t bytes;
    int64_t handle;      /* of the memory */
    uint64_t generation; /* under which it is registered */
    bool lost;           /* no memory: the data died with another node */
    bool shared;         /* ranks of this node add to it by the processor's atomics, or may have */
    /* Of a copy that went to another node: processes of this one have its memory mapped, so the next copy that comes
     * here has the same. */
    uint8_t *left;
    int64_t left_handle;
    size_t left_bytes; /* so much of it, from its begin on, is still to be given back to the system */
};

struct store_segment {
    struct store_segment *next, *chain;
    uint32_t seg;
    uint32_t redundancy;
    uint64_t bytes_per_rank; /* uneven: what each would have if copies as large were divided alike */
    bool uneven;
    uint64_t instance;       /* the barrier instance that completes its allocation; 0 for the runtime's own */
    bool starved;            /* told of it, there was no memory: who asked was told so */
    bool agreed;             /* and all ranks have agreed on it meanwhile */
    keel_status *said;       /* [members] what other nodes say of it (agent/said.h); NULL: they were not asked */
    struct store_copy *copy; /* [slots] */
};

/* Memory, from the owner: for a copy and its marks (wire/marks.h). */
struct store_ops {
    void *user;
    keel_status (*make)(void *user, size_t bytes, void **base, int64_t *handle);
    void (*free)(void *user, void *base, size_t bytes, int64_t handle);
    keel_status (*fill)(void *user, void *base, int64_t handle, size_t offset, const void *from, size_t bytes);
    /* What is there is gone, and there are zeros: base + offset. */
    void (*empty)(void *user, void *base, int64_t handle, size_t offset, size_t bytes);
};

enum { STORE_LIVING_MAX = 65536 };

struct store {
    struct store_ops ops;
    struct tp *net; /* where copies are registered */
    int slots;
    const int *slot_ranks; /* [slots] */
    uint32_t limit;        /* every segment of all ranks from this number on is unknown here */
    uint32_t living;
    int leaving;      /* copies that left, and whose memory is not all given back */
    uint32_t buckets; /* power of two */
    struct store_segment **bucket;
    struct store_segment *first, **tail; /* in the order of their definition */
};

keel_status store_init(struct store *s, const struct store_ops *ops, struct tp *net, int slots, const int *slot_ranks);
void store_fini(struct store *s);

/* The segment, or NULL: it is not defined here, or was freed (then seg < limit). */
struct store_segment *store_find(const struct store *s, uint32_t seg);
/* Note that the segment exists. KEEL_ERR_MISMATCH if it is known with other arguments, KEEL_ERR_LIMIT. */
keel_status store_define(struct store *s, uint32_t seg, uint64_t bytes_per_rank, uint32_t redundancy,
                         uint64_t instance);
/* Was it defined here, and freed again? */
bool store_was_freed(const struct store *s, uint32_t seg);
/* Make this node's copy of the slot's part, zeroed and reachable under the generation; does nothing if it is there. */
keel_status store_make(struct store *s, struct store_segment *g, int slot, uint64_t generation);
/* From now on the copy is reachable under this generation only. */
keel_status store_rekey(struct store *s, struct store_segment *g, int slot, uint64_t generation);
/* Bytes of a copy that is being made: nobody reads it yet. The range lies within the copy. Not KEEL_OK: there is no
 * memory for them. */
keel_status store_fill(struct store *s, const struct store_copy *c, uint64_t offset, const void *from, size_t bytes);
/* The copy is another node's now: it is not reachable any more. What is in it stays until store_empty_some: processes
 * of this node, and nodes that are in the old view still, may be reading it. */
void store_leave(struct store *s, struct store_segment *g, int slot);
/* Give back some memory of copies that left; false: there is none left to give back. */
bool store_empty_some(struct store *s);
void store_mark_lost(struct store *s, struct store_segment *g, int slot);
void store_drop(struct store *s, struct store_segment *g, int slot);
/* Drop all copies and forget the segment. */
void store_free(struct store *s, uint32_t seg);

/* The copy, or NULL. */
static inline struct store_copy *store_copy(const struct store *s, uint32_t seg, int slot)
{
    const struct store_segment *g = store_find(s, seg);
    if (!g || slot < 0 || slot >= s->slots)
        return NULL;
    struct store_copy *c = &g->copy[slot];
    return c->base || c->lost ? c : NULL;
}
#endif
