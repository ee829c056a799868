/* How the parts of a slot's ranks lie in one copy of a segment. Pure. */
#ifndef KEEL_WIRE_LAYOUT_H
#define KEEL_WIRE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/limits.h"

/* Bytes of one rank's part, rounded to a cache line; the part of the slot's i-th rank starts at i times this. */
static inline size_t layout_stride(uint64_t bytes_per_rank)
{
    return (size_t)(bytes_per_rank + 63) & ~(size_t)63;
}

/* Bytes of a copy: whole pages, at least one. */
static inline size_t layout_copy_bytes(uint64_t bytes_per_rank, uint64_t ranks)
{
    size_t bytes = layout_stride(bytes_per_rank) * (size_t)ranks;
    return bytes ? (bytes + 4095) & ~(size_t)4095 : 4096;
}

/* A copy is looked at in pieces of so many bytes, where stores of programs are found out (client/segment/twins.c) and
 * where writes are marked (marks.h): a mapping's parts are few in every system. */
static inline size_t layout_piece_bytes(size_t copy_bytes)
{
    size_t piece = 65536;
    while (copy_bytes / piece > 8192)
        piece *= 2;
    return piece;
}

static inline size_t layout_pieces(size_t copy_bytes)
{
    size_t piece = layout_piece_bytes(copy_bytes);
    return (copy_bytes + piece - 1) / piece;
}

/* Behind a copy, in pages of their own, are its marks and, at this place in them, its holders (marks.h). */
static inline size_t layout_holders_at(size_t copy_bytes)
{
    return (layout_pieces(copy_bytes) * sizeof(uint32_t) + 7) & ~(size_t)7;
}

/* And behind these, likewise, who may store there unseen. */
static inline size_t layout_unseen_at(size_t copy_bytes)
{
    return layout_holders_at(copy_bytes) + layout_pieces(copy_bytes) * sizeof(uint64_t);
}

/* Bytes of the memory that a copy is in. */
static inline size_t layout_memory_bytes(size_t copy_bytes)
{
    return copy_bytes + ((layout_unseen_at(copy_bytes) + sizeof(uint64_t) + 4095) & ~(size_t)4095);
}

/* Segments of groups are numbered from here on, in the order in which numbers were drawn (system.h); those of all ranks
 * below, in the order of their allocation. */
#define SEGMENT_GROUP_FIRST 0x80000000u

/* The copyset of a slot and a redundancy class: what has its copies on the same nodes. */
static inline int copyset_of(int slot, unsigned redundancy)
{
    return slot * CLASSES + (int)redundancy;
}
static inline int copyset_slot(int copyset)
{
    return copyset / CLASSES;
}
static inline unsigned copyset_class(int copyset)
{
    return (unsigned)(copyset % CLASSES);
}
#endif
