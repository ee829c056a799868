/* The worst cases known so far, shared by the threads of a search.
 *
 * Of several sequences with the same number of collisions the one of the earliest task counts, and in a task the first
 * that is met. Task 0 is what was known before the search. */
#ifndef KEEL_SIM_PLACE_WORST_BEST_H
#define KEEL_SIM_PLACE_WORST_BEST_H
#include <pthread.h>

#include "sim/place/worst.h"

struct worst_best {
    _Atomic uint64_t key[WORST_MAX + 1]; /* collisions + 1, then the task, which counts the less the lower it is */
    int32_t nodes[WORST_MAX + 1][WORST_MAX];
    pthread_mutex_t lock; /* of nodes, and for raising a key */
};

static inline uint64_t worst_key(int32_t collisions, uint32_t task)
{
    return (uint64_t)(collisions + 1) << 32 | (UINT32_MAX - task);
}

static inline int32_t worst_best_value(const struct worst_best *b, int32_t failures)
{
    return (int32_t)(atomic_load_explicit(&b->key[failures], memory_order_relaxed) >> 32) - 1;
}

static inline uint32_t worst_best_task(const struct worst_best *b, int32_t failures)
{
    return UINT32_MAX - (uint32_t)atomic_load_explicit(&b->key[failures], memory_order_relaxed);
}

/* With how many collisions would a sequence of this task be taken? */
static inline int32_t worst_best_need(const struct worst_best *b, int32_t failures, uint32_t task)
{
    uint64_t key = atomic_load_explicit(&b->key[failures], memory_order_relaxed);
    return (int32_t)(key >> 32) - (task < UINT32_MAX - (uint32_t)key);
}

void worst_best_init(struct worst_best *b);
/* A sequence of so many failures that leads to so many collisions. */
void worst_best_note(struct worst_best *b, int32_t failures, int32_t collisions, uint32_t task, const int32_t *nodes);
#endif
