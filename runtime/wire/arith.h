/* What accumulates and atomics do to memory, at the primary copy and, where a part has one copy only, by the ranks of
 * its node themselves: one table of types and operations. Pure. */
#ifndef KEEL_WIRE_ARITH_H
#define KEEL_WIRE_ARITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/type.h>

enum arith_rmw { ARITH_ADD, ARITH_SWAP, ARITH_CAS, ARITH_AND, ARITH_OR, ARITH_XOR, ARITH_RMW_OPS };

enum { ARITH_SCALE_MAX = 16 };

/* Bytes of an element, and of what it must be aligned to; 0: no such type. */
size_t arith_size(unsigned type);
size_t arith_align(unsigned type);
/* Can elements of the type be accumulated? */
bool arith_can_add(unsigned type);

/* to[i] += scale * by[i], n elements. Integers wrap. `to` is aligned, `by` and scale need not be; scale has the type.
 * shared    others may do the same at this moment: each component is added by the processor's atomics. */
void arith_add(unsigned type, void *to, const void *by, size_t n, const void *scale, bool shared);
/* The type's one, for a scale. */
const void *arith_one(unsigned type);

/* Atomic on the word of 4 or 8 bytes; the value before, sign-extended. CAS: stores b if the word is a. */
int64_t arith_rmw(enum arith_rmw op, size_t bytes, void *word, int64_t a, int64_t b);
#endif
