/* Sets of node or rank ids as arrays of 64-bit words; the caller owns the memory, which must be zeroed first.
 * Every function takes the number of words, BITSET_WORDS(n) for ids 0..n-1. */
#ifndef KEEL_BASE_BITSET_H
#define KEEL_BASE_BITSET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BITSET_WORDS(n) (((unsigned)(n) + 63u) / 64u)

static inline void bitset_add(uint64_t *s, int id)
{
    s[id >> 6] |= 1ull << (id & 63);
}
static inline void bitset_del(uint64_t *s, int id)
{
    s[id >> 6] &= ~(1ull << (id & 63));
}
static inline bool bitset_has(const uint64_t *s, int id)
{
    return s[id >> 6] >> (id & 63) & 1;
}
static inline int bitset_count(const uint64_t *s, unsigned words)
{
    int n = 0;
    for (unsigned i = 0; i < words; i++)
        n += __builtin_popcountll(s[i]);
    return n;
}
/* The least member that is >= from, or -1. */
static inline int bitset_next(const uint64_t *s, unsigned words, int from)
{
    unsigned i = (unsigned)from >> 6;
    if (i >= words)
        return -1;
    uint64_t w = s[i] & (~0ull << (from & 63));
    while (!w) {
        if (++i == words)
            return -1;
        w = s[i];
    }
    return (int)(i * 64) + __builtin_ctzll(w);
}
/* Ids 0..n-1 */
static inline void bitset_fill(uint64_t *s, int n)
{
    for (int i = 0; i < n; i++)
        bitset_add(s, i);
}
/* True if every member of b is in a. */
static inline bool bitset_covers(const uint64_t *a, const uint64_t *b, unsigned words)
{
    for (unsigned i = 0; i < words; i++)
        if (b[i] & ~a[i])
            return false;
    return true;
}
#endif
