/* The benchmarks' pseudorandom numbers: x(k+1) = a x(k) mod 2^46, as numbers x / 2^46 between 0 and 1. Pure. */
#ifndef KEEL_NPB_RANDOM_H
#define KEEL_NPB_RANDOM_H

#include <stdint.h>

#define RANDOM_MULTIPLIER UINT64_C(1220703125) /* 5^13 */
#define RANDOM_SEED UINT64_C(314159265)        /* of all kernels but EP */
#define RANDOM_MASK ((UINT64_C(1) << 46) - 1)

struct random {
    uint64_t x; /* below 2^46; odd seeds have the longest period, 2^44 */
};

/* The stream of the seed, as it is after skip numbers: each rank begins where its share of the stream does. Time
 * grows with the logarithm of skip. */
struct random random_at(uint64_t seed, uint64_t skip);

/* 2^46 divides 2^64, so what the product loses above 64 bits is no part of the result. */
static inline double random_next(struct random *random)
{
    random->x = (random->x * RANDOM_MULTIPLIER) & RANDOM_MASK;
    return (double)random->x * 0x1p-46;
}

#endif
