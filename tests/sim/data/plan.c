/* The program of a run: segments, pools, stages, and what the model has to watch in them. */
#include <string.h>

#include "runtime/wire/arith.h"
#include "tests/sim/data/lock.h"
#include "tests/sim/data/model.h"

static void add_region(struct world *w, int segment, int rank, size_t offset, size_t len, int writer)
{
    struct model *m = w->model;
    struct region *g = sim_alloc(sizeof *g);
    *g = (struct region){.next = m->regions,
                         .number = m->regions ? m->regions->number + 1 : 0,
                         .segment = segment,
                         .rank = rank,
                         .offset = offset,
                         .len = len,
                         .writer = writer,
                         .base = sim_alloc(len)};
    g->changed = sim_alloc((look_blocks(len) + 1) * sizeof *g->changed);
    m->regions = g;
}

static void add_sum(struct world *w, const struct sum *like)
{
    struct model *m = w->model;
    struct sum *sum = sim_alloc(sizeof *sum);
    *sum = *like;
    sum->next = m->sums;
    sum->done = sim_alloc(sum->n * sizeof(double));
    sum->expected = sim_alloc(sum->n * arith_size(sum->type));
    sum->changed = sim_alloc((look_blocks(sum->n * arith_size(sum->type)) + 1) * sizeof *sum->changed);
    m->sums = sum;
}

/* A rank's part: blocks that one rank each writes, words of atomics, sums, results of tasks, one wide block. */
static void watch(struct world *w, int segment)
{
    struct model *m = w->model;
    struct planned *s = &m->planned[segment];
    int ranks = w->setup.ranks;
    for (int rank = 0; rank < ranks; rank++) {
        size_t at = 0;
        for (int writer = 0; writer < ranks; writer++, at += s->own)
            add_region(w, segment, rank, at, s->own, writer);
        for (int i = 0; i < WORDS_PER_RANK; i++, at += 8) {
            struct word *word = sim_alloc(sizeof *word);
            *word = (struct word){.next = m->words, .segment = segment, .rank = rank, .offset = at};
            word->half = i < 2 && sched_chance(&w->sched, 0.3); /* the third one is put to, as a whole */
            if (word->half && sched_chance(&w->sched, 0.5))
                word->offset += 4;
            m->words = word;
        }
        for (int bell = BELL_OF_ALL; w->setup.signals && bell <= BELL_OF_ONE; bell++, at += 8)
            add_sum(w, &(struct sum){.segment = segment,
                                     .rank = rank,
                                     .type = KEEL_INT64,
                                     .bell = (enum bell)bell,
                                     .offset = at,
                                     .n = 1});
        add_sum(w, &(struct sum){.segment = segment,
                                 .rank = rank,
                                 .type = s->sum_type,
                                 .offset = at,
                                 .n = 8 * s->sum_n / arith_size(s->sum_type)});
        at += 8 * s->sum_n;
        s->pool.offset = at;
        at += 8 * (size_t)(s->pool.tasks * TASK_STEPS);
        if (s->wide)
            add_region(w, segment, rank, at, s->wide, (int)sched_below(&w->sched, (uint64_t)ranks));
        s->bytes = at + s->wide;
    }
}

/* Some parts have more behind what all have: up to their last byte. */
static void watch_ends(struct world *w, int segment)
{
    struct planned *s = &w->model->planned[segment];
    struct sched *r = &w->sched;
    s->part = sim_alloc((size_t)w->setup.ranks * sizeof *s->part);
    for (int rank = 0; rank < w->setup.ranks; rank++) {
        size_t more = sched_chance(r, 0.3) ? 0 : sched_between(r, 1, sched_chance(r, 0.3) ? 200000 : 3000);
        s->part[rank] = s->bytes + more;
        if (more)
            add_region(w, segment, rank, s->bytes, more, (int)sched_below(r, (uint64_t)w->setup.ranks));
    }
}

static void plan_segment(struct world *w, int tasks)
{
    struct model *m = w->model;
    struct sched *r = &w->sched;
    int i = m->segments++;
    struct planned *s = &m->planned[i];
    *s = (struct planned){.index = -1, .free_at = -1};
    unsigned kind = (unsigned)sched_below(r, 10);
    s->redundancy = tasks || kind < 6 ? KEEL_REDUNDANCY_SHADOW : kind < 8 ? (keel_redundancy)2 : KEEL_REDUNDANCY_NONE;
    if (tasks && sched_chance(r, 0.2))
        s->redundancy = (keel_redundancy)2;
    if (w->setup.triple)
        s->redundancy = (keel_redundancy)2;
    s->own = 8 * sched_between(r, 1, 48);
    s->sum_n = sched_chance(r, 0.1) ? sched_between(r, 2049, 20000) : sched_between(r, 1, 12);
    static const keel_type types[] = {KEEL_DOUBLE, KEEL_DOUBLE, KEEL_INT64,
                                      KEEL_INT32,  KEEL_FLOAT,  KEEL_COMPLEX_DOUBLE};
    s->sum_type = types[sched_below(r, sizeof types / sizeof types[0])];
    s->sum_n += s->sum_n & 1; /* pairs, for the widest type */
    if (w->setup.wide || (sched_chance(r, 0.25) && !w->setup.scant))
        s->wide = sched_chance(r, 0.1)   ? sched_between(r, 300000, 1200000)
                  : sched_chance(r, 0.5) ? sched_between(r, 140000, 400000) /* chunks */
                                         : sched_between(r, 17000, 120000);
    if (w->setup.triple)
        s->wide = sched_between(r, 140000, 1200000);
    s->pool.tasks = tasks;
    if (i > 0 && !tasks && sched_chance(r, 0.3))
        s->alloc_at = (int)sched_below(r, (uint64_t)m->stages);
    if (!tasks && sched_chance(r, 0.2))
        s->free_at = s->alloc_at + 1 + (int)sched_below(r, (uint64_t)m->stages);
    watch(w, i);
    if (w->setup.uneven && sched_chance(r, 0.8))
        watch_ends(w, i);
    s->pool.tasks = 0;
}

static void plan_pool(struct world *w)
{
    struct model *m = w->model;
    int64_t tasks = (int64_t)sched_between(&w->sched, 1, 12);
    plan_segment(w, (int)tasks);
    int results = m->segments - 1, i = m->segments++;
    struct planned *s = &m->planned[i];
    *s = (struct planned){.index = -1, .free_at = -1, .redundancy = KEEL_REDUNDANCY_SHADOW, .is_pool = true};
    s->pool = (struct pool){.segment = results, .offset = m->planned[results].pool.offset, .tasks = tasks};
    m->planned[results].alloc_at = 0;
    for (int k = 0; k < m->stages; k++)
        if (sched_chance(&w->sched, 0.4)) {
            m->stage[k].kind = STAGE_RESET;
            m->stage[k].pool = i;
        }
}

/* Each guards some bytes of the first segment. */
static void plan_mutexes(struct world *w)
{
    struct model *m = w->model;
    int i = m->segments++, ranks = w->setup.ranks;
    size_t at = m->planned[0].bytes;
    m->planned[i] = (struct planned){.index = -1,
                                     .free_at = -1,
                                     .redundancy = KEEL_REDUNDANCY_SHADOW,
                                     .mutexes = w->setup.mutexes,
                                     .bytes = (size_t)w->setup.mutexes * 8 * (2 + (size_t)ranks)};
    m->planned[0].free_at = -1;
    lock_plan(w, i, w->setup.mutexes);
    for (struct lock *l = m->locks; l; l = l->next) {
        add_region(w, 0, l->home, at + 24 * (size_t)l->number, 24, -1);
        l->guarded = m->regions;
    }
    m->planned[0].bytes = at + 24 * (size_t)w->setup.mutexes;
}

/* Blocks in the parts of all; who is no member when it is made has none, and nobody writes there. */
static void plan_group_segment(struct world *w)
{
    struct model *m = w->model;
    struct sched *r = &w->sched;
    int i = m->segments++, ranks = w->setup.ranks;
    size_t own = 8 * sched_between(r, 1, 48);
    m->planned[i] =
        (struct planned){.index = -1,
                         .free_at = -1,
                         .alloc_at = (int)sched_below(r, (uint64_t)m->stages),
                         .redundancy = sched_chance(r, 0.5) ? KEEL_REDUNDANCY_SHADOW : KEEL_REDUNDANCY_TRIPLE,
                         .bytes = own * (size_t)ranks,
                         .of_group = true};
    for (int rank = 0; rank < ranks; rank++)
        for (int writer = 0; writer < ranks; writer++)
            add_region(w, i, rank, own * (size_t)writer, own, writer);
    watch_ends(w, i);
}

/* Made and freed, if nobody refuses it, by all or by a group. */
static void plan_vast_segments(struct world *w)
{
    struct model *m = w->model;
    struct sched *r = &w->sched;
    for (int n = (int)sched_between(r, 1, 3); n > 0 && m->segments < SEGMENTS_MAX; n--) {
        struct planned *s = &m->planned[m->segments++];
        *s = (struct planned){.index = -1,
                              .alloc_at = (int)sched_below(r, (uint64_t)m->stages),
                              .redundancy = (keel_redundancy)sched_below(r, CLASSES),
                              .bytes = VAST,
                              .of_group = sched_chance(r, 0.5),
                              .vast = true};
        s->free_at = s->alloc_at + 1;
        if (!s->of_group)
            continue;
        s->part = sim_alloc((size_t)w->setup.ranks * sizeof *s->part);
        for (int rank = 0; rank < w->setup.ranks; rank++)
            s->part[rank] = s->bytes;
    }
}

void program_plan(struct world *w)
{
    struct model *m = w->model;
    struct sched *r = &w->sched;
    m->stages = w->setup.rounds;
    for (int k = 0; k < m->stages; k++) {
        unsigned kind = (unsigned)sched_below(r, 10);
        m->stage[k].kind = kind < 7 ? STAGE_BARRIER : kind < 8 ? STAGE_BCAST : STAGE_SUM;
    }
    for (int k = 0; w->setup.keeps && k < m->stages; k++)
        if (sched_chance(r, 0.6))
            m->stage[k].kind = sched_chance(r, 0.15) ? STAGE_BACK : STAGE_KEEP;
    int segments = (int)sched_between(r, 1, 3);
    for (int i = 0; i < segments; i++)
        plan_segment(w, 0);
    if (sched_chance(r, 0.5))
        plan_pool(w);
    if (w->setup.mutexes)
        plan_mutexes(w);
    if (w->setup.grouped)
        plan_group_segment(w);
    if (w->setup.scant)
        plan_vast_segments(w);
    if (w->setup.signals)
        m->planned[0].free_at = -1;
    for (int k = 0; w->setup.signals && k < m->stages; k++)
        m->stage[k].chain = sched_chance(r, 0.5);
    for (int i = 0; w->setup.stores && i < segments; i++)
        m->planned[i].tracked = m->planned[i].redundancy != KEEL_REDUNDANCY_NONE && sched_chance(r, 0.8);
    for (int k = 1; w->setup.stores && k < m->stages; k++)
        if (m->stage[k].kind == STAGE_BARRIER && m->stage[k - 1].kind != STAGE_FLUSH && sched_chance(r, 0.5)) {
            m->stage[k].kind = STAGE_FLUSH;
            m->stage[k].chain = m->stage[k - 1].chain = false;
        }
    for (int i = 0; w->setup.keeps && i < m->segments;
         i++) { /* a version begins where nothing is to be made any more */
        m->planned[i].alloc_at = 0;
        m->planned[i].free_at = -1;
    }
    for (int k = 0; k + 1 < m->stages; k++)
        if (sched_chance(r, 0.15))
            m->stage[k].gate = ++m->gates;
    m->stage[m->stages - 1].gate = ++m->gates;
}
