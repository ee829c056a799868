/* The marks of a copy: of each piece (layout.h) how many times it was written to through Keel, in the memory behind the
 * copy, which the agent and the ranks of its node share. Who tracks plain stores (client/segment/twins.c) compares
 * memory with what it was before; a mark that is another one by now says that the other copies may be different from
 * both.
 *
 * A mark is set behind the bytes that it stands for, and before the write counts as complete. Who takes the bytes reads
 * the mark first: so it has the bytes, or finds another mark when all writes are complete. Nobody sets marks before a
 * process of the node has tracked a segment (page.tracked): they would cost memory. */
#ifndef KEEL_WIRE_MARKS_H
#define KEEL_WIRE_MARKS_H

#include <stdatomic.h>

#include "runtime/wire/layout.h"
#include "runtime/wire/page.h"

static inline _Atomic uint32_t *marks_of(uint8_t *copy, size_t copy_bytes)
{
    return (_Atomic uint32_t *)(void *)(copy + copy_bytes);
}

/* Of each piece the processes of the node that have stored plainly there, and not brought it to the other copies: a bit
 * for each rank of the slot. It stays where one dies: then nobody knows what only this copy has. Those from the 64th on
 * have one bit, which stays, too; and so has everybody who may store where nothing tells of it. */
enum { HOLDERS_LAST = 63 };
static inline _Atomic uint64_t *holders_of(uint8_t *copy, size_t copy_bytes)
{
    return (_Atomic uint64_t *)(void *)(copy + copy_bytes + layout_holders_at(copy_bytes));
}

/* index: of the rank in its slot. False: somebody else, or a process before this one, holds it, or may. */
static inline bool holders_add(_Atomic uint64_t *holders, uint32_t index)
{
    return atomic_fetch_or(holders, (uint64_t)1 << (index < HOLDERS_LAST ? index : HOLDERS_LAST)) == 0;
}

/* len bytes from offset on, which lie within the copy, may be stored to unseen: from now on nobody is alone there. */
static inline void holders_add_unseen(uint8_t *copy, size_t copy_bytes, uint64_t offset, uint64_t len)
{
    size_t piece = layout_piece_bytes(copy_bytes);
    for (size_t i = (size_t)offset / piece; len && i <= (size_t)(offset + len - 1) / piece; i++)
        (void)holders_add(&holders_of(copy, copy_bytes)[i], HOLDERS_LAST);
}

static inline void holders_remove(_Atomic uint64_t *holders, uint32_t index)
{
    if (index < HOLDERS_LAST)
        (void)atomic_fetch_and(holders, ~((uint64_t)1 << index));
}

/* Of the copy: the ranks of its slot that know where it is (keel_address) and do not track it, a bit for each, those
 * from the 64th on one together, which stays. What they store there nobody is told of before they bring it to the other
 * copies. */
static inline _Atomic uint64_t *unseen_of(uint8_t *copy, size_t copy_bytes)
{
    return (_Atomic uint64_t *)(void *)(copy + copy_bytes + layout_unseen_at(copy_bytes));
}

static inline void unseen_add(_Atomic uint64_t *unseen, uint32_t index)
{
    uint64_t bit = (uint64_t)1 << (index < HOLDERS_LAST ? index : HOLDERS_LAST);
    if (!(atomic_load_explicit(unseen, memory_order_relaxed) & bit))
        (void)atomic_fetch_or(unseen, bit);
}

/* len bytes from offset on, which lie within the copy, were written. */
static inline void marks_set(uint8_t *copy, size_t copy_bytes, uint64_t offset, uint64_t len)
{
    size_t piece = layout_piece_bytes(copy_bytes);
    for (size_t i = (size_t)offset / piece; len && i <= (size_t)(offset + len - 1) / piece; i++)
        (void)atomic_fetch_add(&marks_of(copy, copy_bytes)[i], 1);
}

static inline bool marks_wanted(const struct page *p)
{
    return atomic_load_explicit(&p->tracked, memory_order_acquire) != 0;
}
#endif
