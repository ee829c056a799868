#include "sim/place/seen.h"

#include <stdlib.h>

enum { FIRST = 64 }; /* slots of a shard at the begin */
static const uint64_t tasks = (UINT64_C(1) << SEEN_TASK_BITS) - 1;

void seen_init(struct seen *s, size_t bytes, int threads)
{
    /* While a shard grows its old table is there, too; each thread may be at one. */
    size_t most = bytes / sizeof(uint64_t[2]) / (SEEN_SHARDS + (size_t)(threads + 1) / 2);
    s->most = FIRST / 2;
    while (s->most * 2 <= most)
        s->most *= 2;
    atomic_init(&s->full, false);
    for (int i = 0; i < SEEN_SHARDS; i++) {
        s->shard[i] = (struct seen_shard){0};
        pthread_mutex_init(&s->shard[i].lock, NULL);
    }
}

void seen_clear(struct seen *s)
{
    for (int i = 0; i < SEEN_SHARDS; i++) {
        free(s->shard[i].slot);
        s->shard[i].slot = NULL;
        s->shard[i].used = s->shard[i].cap = 0;
    }
}

void seen_fini(struct seen *s)
{
    seen_clear(s);
    for (int i = 0; i < SEEN_SHARDS; i++)
        pthread_mutex_destroy(&s->shard[i].lock);
}

static void grow(struct seen *s, struct seen_shard *t)
{
    size_t cap = t->cap ? t->cap * 2 : FIRST;
    uint64_t(*slot)[2] = cap <= s->most ? calloc(cap, sizeof *slot) : NULL;
    if (!slot)
        return;
    for (size_t i = 0; i < t->cap; i++) {
        if (!t->slot[i][0])
            continue;
        size_t at = t->slot[i][0] & (cap - 1);
        while (slot[at][0])
            at = (at + 1) & (cap - 1);
        slot[at][0] = t->slot[i][0];
        slot[at][1] = t->slot[i][1];
    }
    free(t->slot);
    t->slot = slot;
    t->cap = cap;
}

static bool add(struct seen *s, struct seen_shard *t, const uint64_t h[2], uint32_t task)
{
    if (t->used * 4 >= t->cap * 3)
        grow(s, t);
    size_t at = t->cap ? h[0] & (t->cap - 1) : 0;
    for (; t->cap && t->slot[at][0]; at = (at + 1) & (t->cap - 1)) {
        uint64_t *slot = t->slot[at];
        if (slot[0] != h[0] || (slot[1] | tasks) != (h[1] | tasks))
            continue;
        if ((slot[1] & tasks) <= task)
            return false;
        slot[1] = (h[1] & ~tasks) | task;
        return true;
    }
    if (t->used * 4 >= t->cap * 3) {
        atomic_store(&s->full, true);
        return true;
    }
    t->slot[at][0] = h[0];
    t->slot[at][1] = (h[1] & ~tasks) | task;
    t->used++;
    return true;
}

bool seen_add(struct seen *s, const uint64_t h[2], uint32_t task)
{
    uint64_t key[2] = {h[0] ? h[0] : 1, h[1]};
    struct seen_shard *t = &s->shard[key[0] >> 58];
    pthread_mutex_lock(&t->lock);
    bool fresh = add(s, t, key, task);
    pthread_mutex_unlock(&t->lock);
    return fresh;
}
