#include "sim/place/worst_best.h"

#include <string.h>

void worst_best_init(struct worst_best *b)
{
    memset(b->nodes, 0, sizeof b->nodes);
    pthread_mutex_init(&b->lock, NULL);
    for (int i = 0; i <= WORST_MAX; i++)
        atomic_init(&b->key[i], worst_key(-1, 0));
}

void worst_best_note(struct worst_best *b, int32_t failures, int32_t collisions, uint32_t task, const int32_t *nodes)
{
    if (collisions < worst_best_need(b, failures, task))
        return;
    pthread_mutex_lock(&b->lock);
    if (collisions >= worst_best_need(b, failures, task)) {
        memcpy(b->nodes[failures], nodes, (size_t)failures * sizeof *nodes);
        atomic_store(&b->key[failures], worst_key(collisions, task));
    }
    pthread_mutex_unlock(&b->lock);
}
