/* Numbers that tell two states apart: made by arithmetic alone, so that all machines get the same. */
#ifndef KEEL_TOPO_DIGEST_H
#define KEEL_TOPO_DIGEST_H
#include <stdint.h>

/* The finaliser of splitmix64 over what was before and the next value. */
static inline uint64_t digest_add(uint64_t sum, int64_t value)
{
    uint64_t z = (sum ^ (uint64_t)value) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint64_t digest_add_list(uint64_t sum, const int32_t *list, int32_t n)
{
    sum = digest_add(sum, n);
    for (int32_t i = 0; i < n; i++)
        sum = digest_add(sum, list[i]);
    return sum;
}
#endif
