/* A set of hashes: which maps a search has met, and in which task. Several threads use it side by side.
 *
 * A map that an earlier task has met is known; one that only a later task has met counts as new, and is the earlier
 * one's from then on. So what a task follows does not depend on how far later ones have come, see worst.h. Of a hash of
 * 128 bits 108 are kept: two maps that share them are not expected in any search that ends. Memory is bounded: when it
 * is full, nothing more is kept, and maps are followed again. */
#ifndef KEEL_SIM_PLACE_SEEN_H
#define KEEL_SIM_PLACE_SEEN_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEEN_SHARDS = 64, SEEN_TASK_BITS = 20 };

struct seen_shard {
    pthread_mutex_t lock;
    uint64_t (*slot)[2]; /* open addressing; zero is empty */
    size_t used, cap;
};

struct seen {
    struct seen_shard shard[SEEN_SHARDS];
    size_t most;      /* slots of a shard, at most */
    atomic_bool full; /* something was not kept */
};

/* bytes: all it may take with so many threads at work. */
void seen_init(struct seen *s, size_t bytes, int threads);
void seen_fini(struct seen *s);
/* returns   is it new for this task? */
bool seen_add(struct seen *s, const uint64_t h[2], uint32_t task);
/* Empty again; full stays. */
void seen_clear(struct seen *s);
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
