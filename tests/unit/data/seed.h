/* The seed of a random test: KEEL_SEED, or the time; printed, so that a run can be repeated. */
#ifndef KEEL_TEST_SEED_H
#define KEEL_TEST_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/rng.h"

static inline void seed_rng(struct rng *rng)
{
    const char *text = getenv("KEEL_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    printf("KEEL_SEED=%llu\n", (unsigned long long)seed);
    rng_seed(rng, seed);
}
#endif
