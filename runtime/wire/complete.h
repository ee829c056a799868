/* How far all live ranks are with what they do together, as a view carries it for those who join with it: two numbers
 * in one, of which the greatest is the greatest in both, as every rank does the same in the same order. */
#ifndef KEEL_WIRE_COMPLETE_H
#define KEEL_WIRE_COMPLETE_H

#include <stdint.h>

/* segments: allocations and frees. collectives: barriers, broadcasts, sums, resets of pools. */
static inline uint64_t complete_value(uint64_t segments, uint64_t collectives)
{
    return segments << 32 | (collectives & 0xffffffff);
}
static inline uint64_t complete_segments(uint64_t value)
{
    return value >> 32;
}
static inline uint64_t complete_collectives(uint64_t value)
{
    return value & 0xffffffff;
}
#endif
