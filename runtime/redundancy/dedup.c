#include "runtime/redundancy/dedup.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/task_id.h"

bool dedup_init(struct dedup *d, int ranks)
{
    memset(d, 0, sizeof *d);
    d->ranks = ranks;
    d->origin = calloc((size_t)ranks, sizeof(struct dedup_origin *));
    return d->origin != NULL;
}

void dedup_fini(struct dedup *d)
{
    for (int r = 0; d->origin && r < d->ranks; r++)
        free(d->origin[r]);
    free(d->origin);
    free(d->task);
    memset(d, 0, sizeof *d);
}

bool dedup_seen(const struct dedup *d, uint32_t rank, uint32_t incarnation, uint64_t seq, int64_t *result)
{
    const struct dedup_origin *o = d->origin[rank];
    *result = 0;
    if (!o || incarnation > o->incarnation)
        return false;
    if (incarnation < o->incarnation)
        return true;
    if (seq > o->last)
        return false;
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->entry[i].seq == seq) {
            *result = o->entry[i].result;
            return true;
        }
        if (o->entry[i].seq < oldest)
            oldest = o->entry[i].seq;
    }
    return o->count == DEDUP_WINDOW && seq < oldest;
}

bool dedup_record(struct dedup *d, uint32_t rank, uint32_t incarnation, uint64_t seq, int64_t result)
{
    struct dedup_origin *o = d->origin[rank];
    if (!o) {
        o = calloc(1, sizeof *o);
        if (!o)
            return false;
        o->rank = rank;
        d->origin[rank] = o;
    }
    if (o->incarnation != incarnation) {
        o->incarnation = incarnation;
        o->last = 0;
        o->next = o->count = 0;
    }
    o->entry[o->next] = (struct dedup_entry){seq, result};
    o->next = (o->next + 1) % DEDUP_WINDOW;
    if (o->count < DEDUP_WINDOW)
        o->count++;
    if (seq > o->last)
        o->last = seq;
    return true;
}

bool dedup_origin_load(struct dedup *d, const struct dedup_origin *origin)
{
    if (origin->rank >= (uint32_t)d->ranks || origin->count > DEDUP_WINDOW || origin->next >= DEDUP_WINDOW)
        return false;
    struct dedup_origin *o = d->origin[origin->rank];
    if (!o && !(o = d->origin[origin->rank] = malloc(sizeof *o)))
        return false;
    *o = *origin;
    return true;
}

static size_t hash(uint64_t task)
{
    return (size_t)((task * 0x9e3779b97f4a7c15u) >> 20);
}

/* The place of the task, or the empty place where it would go. The table is never full. */
static struct dedup_task *find(const struct dedup *d, uint64_t task)
{
    size_t i = hash(task) & (d->task_capacity - 1);
    while (d->task[i].steps && d->task[i].task != task)
        i = (i + 1) & (d->task_capacity - 1);
    return &d->task[i];
}

bool dedup_task_seen(const struct dedup *d, uint64_t task, uint32_t step)
{
    return d->task_capacity && find(d, task)->steps > step;
}

/* Is the entry of no use any more, now that a step of `task` came? */
static bool is_stale(const struct dedup_task *t, uint64_t task)
{
    return !t->steps ||
           (task_id_pool(t->task) == task_id_pool(task) && task_id_round(t->task) + 1 < task_id_round(task));
}

/* A new table with room for twice the tasks that are still of use beside `task`. */
static bool rehash(struct dedup *d, uint64_t task)
{
    struct dedup old = *d;
    size_t keep = 0;
    for (size_t i = 0; i < old.task_capacity; i++)
        keep += !is_stale(&old.task[i], task);
    size_t capacity = 64;
    while (capacity < 4 * (keep + 1))
        capacity *= 2;
    struct dedup_task *table = calloc(capacity, sizeof *table);
    if (!table)
        return false;
    d->task = table;
    d->task_capacity = capacity;
    d->task_count = keep;
    for (size_t i = 0; i < old.task_capacity; i++)
        if (!is_stale(&old.task[i], task))
            *find(d, old.task[i].task) = old.task[i];
    free(old.task);
    return true;
}

bool dedup_task_record(struct dedup *d, uint64_t task, uint32_t step)
{
    if (2 * (d->task_count + 1) > d->task_capacity && !rehash(d, task))
        return false;
    struct dedup_task *t = find(d, task);
    if (!t->steps)
        d->task_count++;
    t->task = task;
    if (step + 1 > t->steps)
        t->steps = step + 1;
    return true;
}
