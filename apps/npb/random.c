#include "apps/npb/random.h"

struct random random_at(uint64_t seed, uint64_t skip)
{
    uint64_t x = seed & RANDOM_MASK;
    for (uint64_t power = RANDOM_MULTIPLIER; skip > 0; skip >>= 1, power *= power)
        if ((skip & 1) != 0)
            x *= power;
    return (struct random){.x = x & RANDOM_MASK};
}
