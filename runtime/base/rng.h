/* Seeded random numbers: xoshiro256** with a splitmix64 seeding. The same seed gives the same sequence on every
 * machine. A stream belongs to its caller; no function here is shared between threads without the caller's lock. */
#ifndef KEEL_BASE_RNG_H
#define KEEL_BASE_RNG_H
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_u64(struct rng *r);
/* uniform in [0, n), n > 0, without modulo bias */
uint64_t rng_below(struct rng *r, uint64_t n);
/* uniform in [0, 1) with 53 bits */
double rng_double(struct rng *r);
#endif
