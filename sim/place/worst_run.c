/* A search from its begin to its end: what is known quickly, then the tasks, one for each node that can die first, by a
 * pool of threads; the memory it may take; its state.
 *
 * Why the result does not depend on threads and interruptions, the sequences included: among all sequences with the
 * most collisions let S be the one of the earliest task, and in that task the first in the order in which it looks. A
 * map on the way of S was met by no earlier task, or that one would have had S's end in it; nor before in its own task,
 * or another end of the same would come first. So S is followed, and a bound that leaves out only what cannot reach the
 * best known of later tasks, or beat that of earlier ones, does not leave it out. An order of two failures that
 * changes nothing is followed with the lower node first (worst_zero.h), which comes first as well. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cli/pool.h"
#include "sim/place/worst_int.h"
#include "sim/place/worst_zero.h"

enum { SAVE_EVERY_S = 10, DEFAULT_MEMORY = 1 << 30 };

struct run {
    struct search *search;
    struct zero *zero; /* NULL: any method's search */
    struct progress progress;
    struct progress before; /* as this run began */
    struct walker *walker;  /* [threads] */
    struct zero **branch;   /* [threads] */
    int32_t *todo;          /* [tasks] of this stage */
    double saved, earlier;  /* seconds into the stage of the last save; of the stages before */
};

static const char *open_worker(struct pool *p, int i)
{
    struct run *r = p->arg;
    if (!r->zero)
        return walker_open(&r->walker[i], r->search, r->search->failures, &p->quit) ? NULL : "out of memory";
    r->branch[i] = zero_branch(r->zero, &p->quit);
    return r->branch[i] ? NULL : "out of memory";
}

static void close_worker(struct pool *p, int i)
{
    struct run *r = p->arg;
    if (r->zero)
        zero_branch_end(r->branch[i]);
    else
        walker_close(&r->walker[i]);
}

static const char *follow(struct pool *p, int i, int64_t task)
{
    struct run *r = p->arg;
    if (r->zero)
        zero_follow(r->branch[i], r->todo[task]);
    else
        walker_follow(&r->walker[i], r->todo[task]);
    return NULL;
}

/* A task that was broken off is not done. */
static void done(struct pool *p, int i, int64_t task)
{
    struct run *r = p->arg;
    if (atomic_load(&p->quit))
        return;
    r->progress.done[r->todo[task]] = true;
    if (r->zero) {
        zero_counts(r->branch[i], &r->progress.maps, &r->progress.cannot);
        return;
    }
    r->progress.maps += r->walker[i].maps;
    r->progress.cannot += r->walker[i].cannot;
    r->walker[i].maps = r->walker[i].cannot = 0;
}

static void show(const struct run *r, const struct pool *p, double seconds)
{
    const struct search *s = r->search;
    fprintf(stderr, "\r%s", s->config->label ? s->config->label : "");
    if (r->progress.stages > 1)
        fprintf(stderr, " %d of %d failures,", r->progress.stage + 1, r->progress.stages);
    fprintf(stderr, " %lld of %d first nodes, %.3g maps, worst so far %d, %.0f s \033[K",
            (long long)(r->progress.tasks - p->tasks + p->finished), r->progress.tasks, (double)r->progress.maps,
            worst_best_value(&s->best, r->zero ? r->progress.stage + 1 : s->failures), seconds + r->earlier);
}

static void watch(struct pool *p, double seconds)
{
    struct run *r = p->arg;
    const struct worst_config *c = r->search->config;
    if (c->progress && isatty(STDERR_FILENO))
        show(r, p, seconds);
    if (c->state && seconds + r->earlier - r->saved > SAVE_EVERY_S) {
        (void)worst_state_save(r->search, &r->progress, r->zero); /* a full disk may have room next time */
        r->saved = seconds + r->earlier;
    }
}

static const char *run_stage(struct run *r, int threads)
{
    struct pool pool = {.threads = threads,
                        .arg = r,
                        .stop = r->search->config->stop,
                        .open = open_worker,
                        .close = close_worker,
                        .run = follow,
                        .done = done,
                        .watch = watch};
    if (r->zero && !zero_stage(r->zero, r->progress.stage + 1))
        return "out of memory";
    for (int32_t i = 0; i < r->progress.tasks; i++)
        if (!r->progress.done[i])
            r->todo[pool.tasks++] = i;
    const char *why = pool_run(&pool);
    r->earlier += pool.seconds;
    return why;
}

static const char *run_stages(struct run *r, int threads)
{
    struct search *s = r->search;
    const char *why = NULL;
    while (!why && r->progress.stage < r->progress.stages && !atomic_load(s->config->stop)) {
        why = run_stage(r, threads);
        if (why || atomic_load(s->config->stop))
            break;
        for (int32_t i = 0; i < r->progress.tasks; i++)
            r->progress.done[i] = false;
        seen_clear(&s->seen);
        r->progress.stage++;
    }
    if (s->config->progress && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    return why;
}

static const char *climb(struct run *r)
{
    struct walker *w = malloc(sizeof *w);
    const char *why = "out of memory";
    if (!w)
        return why;
    if (walker_open(w, r->search, 1, r->search->config->stop)) {
        walker_climb(w);
        why = NULL;
    }
    walker_close(w);
    free(w);
    r->progress.climbed = !atomic_load(r->search->config->stop);
    return why;
}

/* How many threads the memory is enough for, and what is left of it for the maps met; 0 threads: not for one. */
static int fit_threads(const struct search *s, size_t shared, size_t each, size_t memory, size_t *left)
{
    int threads = s->config->threads > 1 ? s->config->threads : 1;
    while (threads && shared + (size_t)threads * each >= memory)
        threads--;
    *left = threads ? memory - shared - (size_t)threads * each : 0;
    return threads;
}

/* 0D has a search of its own when its tables leave something for the maps met. */
static bool zero_fits(const struct search *s, size_t memory)
{
    const struct worst_config *c = s->config;
    return !c->full && c->draw == DRAW_JOB && !c->ndead && worst_zero_fits(s->setup, &s->base, s->failures) &&
           zero_size(&s->base, s->failures, false) + zero_size(&s->base, s->failures, true) < memory / 4 * 3;
}

static const char *search(struct run *r, int threads)
{
    const struct worst_config *c = r->search->config;
    const char *why = NULL;
    if (c->resume)
        why = worst_state_load(r->search, &r->progress, r->zero);
    if (!why && !c->full && !r->progress.climbed)
        why = climb(r);
    if (!why)
        why = run_stages(r, threads);
    if (!why && c->state && r->progress.stage < r->progress.stages)
        why = worst_state_save(r->search, &r->progress, r->zero);
    else if (!why && c->state)
        unlink(c->state);
    return why;
}

static const char *with_tables(struct search *s, struct worst_result *result)
{
    size_t memory = s->config->memory ? s->config->memory : (size_t)2 * DEFAULT_MEMORY, left;
    bool zero = zero_fits(s, memory);
    size_t base = walker_size(s, 0);
    int threads = zero ? fit_threads(s, base + zero_size(&s->base, s->failures, false),
                                     zero_size(&s->base, s->failures, true), memory, &left)
                       : fit_threads(s, base, walker_size(s, s->failures), memory, &left);
    if (!threads)
        return "the search does not fit its memory; see --memory";
    int32_t tasks = zero ? s->base.place.slots : s->setup->grid.nodes;
    struct run r = {.search = s, .progress = {.stages = zero ? s->failures : 1, .tasks = tasks}};
    seen_init(&s->seen, left, threads);
    r.progress.done = calloc((size_t)tasks, sizeof *r.progress.done);
    r.todo = malloc((size_t)tasks * sizeof *r.todo);
    r.walker = calloc((size_t)threads, sizeof *r.walker);
    r.branch = calloc((size_t)threads, sizeof(struct zero *));
    r.zero = zero ? worst_zero(s) : NULL;
    const char *why = NULL;
    if (!r.progress.done || !r.todo || !r.walker || !r.branch || (zero && !r.zero))
        why = "out of memory";
    else
        why = search(&r, threads);
    result->maps = r.progress.maps;
    result->cannot = r.progress.cannot;
    result->interrupted = r.progress.stage < r.progress.stages;
    result->full = atomic_load(&s->seen.full);
    worst_zero_end(r.zero);
    seen_fini(&s->seen);
    free(r.progress.done);
    free(r.todo);
    free(r.walker);
    free(r.branch);
    return why;
}

/* Ordered sequences of 1..failures of n nodes. */
static double sequences(int32_t n, int32_t failures)
{
    double of_this = 1, sum = 0;
    for (int32_t f = 0; f < failures; f++) {
        of_this *= n - f;
        sum += of_this;
    }
    return sum;
}

static const char *begin(struct search *s, const struct worst_config *c, struct worst_result *r)
{
    *r = (struct worst_result){0};
    for (int i = 0; i <= WORST_MAX; i++)
        r->collisions[i] = -1;
    *s = (struct search){.config = c, .setup = &c->setup, .failures = c->failures};
    worst_best_init(&s->best);
    if (!job_open(&s->base, &c->setup))
        return "out of memory";
    for (int32_t i = 0; i < c->ndead; i++)
        job_fail(&s->base, c->dead[i]);
    if (s->base.place.nfree > WORST_FREE_MAX || c->setup.grid.nodes >= 1 << SEEN_TASK_BITS)
        return "the grid is too large for a search";
    return search_prepare(s) ? NULL : "out of memory";
}

static void end(struct search *s, struct worst_result *r)
{
    for (int32_t f = 1; f <= s->failures; f++) {
        r->collisions[f] = worst_best_value(&s->best, f);
        for (int32_t i = 0; i < f; i++)
            r->nodes[f][i] = s->best.nodes[f][i];
    }
    pthread_mutex_destroy(&s->best.lock);
    search_free(s);
    free(s);
}

const char *worst_run(const struct worst_config *c, struct worst_result *r)
{
    struct search *s = malloc(sizeof *s);
    if (!s)
        return "out of memory";
    const char *why = begin(s, c, r);
    r->sequences = sequences(c->draw == DRAW_JOB ? s->base.place.slots : c->setup.grid.nodes, c->failures);
    if (!why)
        why = with_tables(s, r);
    end(s, r);
    return why;
}

const char *worst_climb(const struct worst_config *c, struct worst_result *r)
{
    struct search *s = malloc(sizeof *s);
    if (!s)
        return "out of memory";
    struct run run = {.search = s};
    const char *why = begin(s, c, r);
    if (!why)
        why = climb(&run);
    r->interrupted = atomic_load(c->stop);
    end(s, r);
    return why;
}
