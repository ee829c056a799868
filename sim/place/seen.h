/* A set of hashes of 128 bits: which maps a search has met. At 2^-128 per pair, two maps that share one are not
 * expected in any search that ends. */
#ifndef KEEL_SIM_PLACE_SEEN_H
#define KEEL_SIM_PLACE_SEEN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen {
    uint64_t (*slot)[2]; /* open addressing; zero is empty */
    size_t used, cap;
    size_t most; /* it takes no more than so many; 0: no limit */
};

/* returns   1 new (and, unless full, from now on known), 0 known, -1 out of memory */
int seen_add(struct seen *s, const uint64_t h[2]);
/* Empty again. */
void seen_free(struct seen *s);
/* Adds what v stands for to a hash that does not depend on the order; adding it with times -1 takes it out. */
static inline void seen_mix(uint64_t h[2], uint64_t v, uint64_t times)
{
    for (int i = 0; i < 2; i++) {
        uint64_t z = i ? v * 3 + 0x7f4a7c159e3779b9u : v + 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        h[i] += times * (z ^ (z >> 31));
    }
}
#endif
