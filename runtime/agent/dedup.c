#include "runtime/agent/dedup.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/wire/task_id.h"

enum { LANES_FIRST = 4, TASKS_FIRST = 64 };

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

/* ---- operations outside tasks ---- */

enum dedup_verdict dedup_look(const struct dedup *d, struct life origin, uint32_t lane, uint64_t number, uint32_t piece,
                              int64_t *result)
{
    const struct dedup_origin *o = d->origin[origin.rank];
    *result = 0;
    if (o && origin.incarnation < o->incarnation)
        return DEDUP_ECHO;
    bool known = o && o->incarnation == origin.incarnation && lane < o->lanes;
    struct dedup_lane last = known ? o->lane[lane] : (struct dedup_lane){0};
    if (number < last.number)
        return DEDUP_ECHO;
    uint64_t pieces = number == last.number ? (uint64_t)last.result : 0; /* of it, executed */
    if (number == last.number && piece <= pieces) {
        *result = last.result;
        return DEDUP_SEEN;
    }
    return piece <= pieces + 1 ? DEDUP_NEW : DEDUP_EARLY;
}

bool dedup_reserve(struct dedup *d, struct life origin, uint32_t lane)
{
    struct dedup_origin *o = d->origin[origin.rank];
    uint32_t lanes = o ? o->lanes : LANES_FIRST, before = o ? o->lanes : 0;
    while (lanes <= lane)
        lanes *= 2;
    if (!o || lanes > before) {
        struct dedup_origin *grown = realloc(o, sizeof *o + lanes * sizeof o->lane[0]);
        if (!grown)
            return false;
        memset(&grown->lane[before], 0, (lanes - before) * sizeof grown->lane[0]);
        if (!o)
            *grown = (struct dedup_origin){.rank = (uint32_t)origin.rank, .incarnation = origin.incarnation};
        grown->lanes = lanes;
        d->origin[origin.rank] = o = grown;
    }
    if (o->incarnation != origin.incarnation) {
        o->incarnation = origin.incarnation;
        memset(o->lane, 0, o->lanes * sizeof o->lane[0]);
    }
    return true;
}

void dedup_record(struct dedup *d, struct life origin, uint32_t lane, uint64_t number, int64_t result)
{
    d->origin[origin.rank]->lane[lane] = (struct dedup_lane){number, result};
}

/* As many as dedup_reserve makes. */
static bool is_number_of_lanes(uint32_t lanes)
{
    return lanes >= LANES_FIRST && lanes <= LANES_MAX && (lanes & (lanes - 1)) == 0;
}

bool dedup_origin_load(struct dedup *d, const void *record, size_t len)
{
    struct dedup_origin head;
    if (len < sizeof head)
        return false;
    memcpy(&head, record, sizeof head);
    if (head.rank >= (uint32_t)d->ranks || !is_number_of_lanes(head.lanes) || len != dedup_origin_bytes(&head))
        return false;
    struct dedup_origin *o = malloc(len);
    if (!o)
        return false;
    memcpy(o, record, len);
    free(d->origin[head.rank]);
    d->origin[head.rank] = o;
    return true;
}

/* ---- operations of tasks ---- */

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

enum dedup_verdict dedup_task_look(const struct dedup *d, uint64_t task, uint32_t round, uint32_t step)
{
    const struct dedup_task *t = d->task_capacity ? find(d, task) : NULL;
    if (t && t->steps && task_round_before(round, t->round))
        return DEDUP_ECHO; /* nobody runs a task of an earlier round any more */
    uint32_t steps = t && t->steps && t->round == round ? t->steps : 0;
    return step < steps ? DEDUP_SEEN : step == steps ? DEDUP_NEW : DEDUP_EARLY;
}

/* A new table without the tasks for which `forget` says so, with room for twice the others and one more. */
static bool rehash(struct dedup *d, bool (*forget)(const struct dedup_task *t, uint64_t task, uint32_t round),
                   uint64_t task, uint32_t round)
{
    struct dedup old = *d;
    size_t keep = 0, capacity = TASKS_FIRST;
    for (size_t i = 0; i < old.task_capacity; i++)
        keep += old.task[i].steps && !forget(&old.task[i], task, round);
    while (capacity < 4 * (keep + 1))
        capacity *= 2;
    struct dedup_task *table = calloc(capacity, sizeof *table);
    if (!table)
        return false;
    d->task = table;
    d->task_capacity = capacity;
    d->task_count = keep;
    for (size_t i = 0; i < old.task_capacity; i++)
        if (old.task[i].steps && !forget(&old.task[i], task, round))
            *find(d, old.task[i].task) = old.task[i];
    free(old.task);
    return true;
}

/* Of the same pool, and two rounds back or more: who runs a task of that round is fenced. */
static bool is_old(const struct dedup_task *t, uint64_t task, uint32_t round)
{
    return task_id_pool(t->task) == task_id_pool(task) && task_round_before(t->round + 1, round);
}

static bool is_of_pool(const struct dedup_task *t, uint64_t task, uint32_t round)
{
    (void)round;
    return task_id_pool(t->task) == task_id_pool(task);
}

bool dedup_task_reserve(struct dedup *d, uint64_t task, uint32_t round)
{
    return 2 * (d->task_count + 1) <= d->task_capacity || rehash(d, is_old, task, round);
}

void dedup_task_record(struct dedup *d, uint64_t task, uint32_t round, uint32_t step)
{
    struct dedup_task *t = find(d, task);
    if (!t->steps)
        d->task_count++;
    else if (t->round == round && t->steps > step)
        return; /* passed on once more */
    *t = (struct dedup_task){.task = task, .round = round, .steps = step + 1};
}

void dedup_pool_forget(struct dedup *d, uint32_t pool)
{
    size_t of_pool = 0;
    for (size_t i = 0; i < d->task_capacity; i++)
        of_pool += d->task[i].steps && task_id_pool(d->task[i].task) == pool;
    if (of_pool == 0)
        return;
    if (of_pool == d->task_count) {
        free(d->task);
        d->task = NULL;
        d->task_capacity = d->task_count = 0;
    } else {
        (void)rehash(d, is_of_pool, task_id(pool, 0), 0); /* without memory they stay a while longer */
    }
}
