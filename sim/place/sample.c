#include "sim/place/sample.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/rng.h"

/* Shared by the workers; everything below lock is under it. */
struct run {
    const struct sample_config *config;
    volatile int *stop;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct sample_result *result;
    struct sample_pending pending;
    int64_t *taken; /* [threads] the sequence each worker is at, -1 none */
    int running;
    bool failed; /* a worker ran out of memory */
};

struct worker {
    struct run *run;
    int index;
    pthread_t thread;
    struct job job;
    struct rng rng;
    struct sample_row *row;
    int64_t (*link_loads)[SAMPLE_LINK_LOADS];
    int32_t *pool; /* nodes that may still die, for DRAW_JOB and DRAW_ANY */
    int32_t npool;
};

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pool_fill(struct worker *w)
{
    const struct place *p = &w->job.place;
    w->npool = 0;
    if (w->run->config->draw == DRAW_JOB) {
        for (int32_t r = 0; r < p->ranks; r++)
            if (p->rank_at[p->node_of[r]] == r)
                w->pool[w->npool++] = p->node_of[r];
    } else
        for (int32_t n = 0; n < p->grid.nodes; n++)
            if (p->rank_at[n] != PLACE_DEAD)
                w->pool[w->npool++] = n;
}

/* The next node to die, -1 when none is left. */
static int32_t draw(struct worker *w)
{
    const struct place *p = &w->job.place;
    if (w->run->config->draw == DRAW_ACTIVE) {
        if (p->homeless == p->ranks)
            return -1;
        for (;;) {
            int32_t rank = (int32_t)rng_below(&w->rng, (uint64_t)p->ranks);
            if (p->rank_at[p->node_of[rank]] == rank)
                return p->node_of[rank];
        }
    }
    if (!w->npool)
        return -1;
    int32_t i = (int32_t)rng_below(&w->rng, (uint64_t)w->npool), node = w->pool[i];
    w->pool[i] = w->pool[--w->npool];
    return node;
}

static void record(struct worker *w, int32_t f)
{
    const struct load *l = &w->job.load;
    struct sample_row *row = &w->row[f];
    int64_t c = load_collisions(l);
    row->worst = row->cases && row->worst > c ? row->worst : c;
    row->best = row->cases && row->best < c ? row->best : c;
    row->cases++;
    row->collisions += c;
    row->collisions_sq += c * c;
    row->mean_load += (int64_t)(load_mean(l) * 1e6 + 0.5);
    if (!w->link_loads)
        return;
    for (int32_t ph = 0; ph < l->pattern->phases; ph++)
        for (int32_t n = 0; n <= l->phase[ph].max; n++)
            w->link_loads[f][n < SAMPLE_LINK_LOADS ? n : SAMPLE_LINK_LOADS - 1] += l->phase[ph].hist[n];
}

static void sequence(struct worker *w, int64_t index)
{
    const struct sample_config *c = w->run->config;
    rng_seed(&w->rng, c->seed * 0x9e3779b97f4a7c15u + (uint64_t)index);
    job_reset(&w->job);
    if (c->draw != DRAW_ACTIVE)
        pool_fill(w);
    record(w, 0);
    for (int32_t f = 1; f <= w->run->result->failures; f++) {
        int32_t node = draw(w);
        if (node < 0)
            return;
        enum place_result got = job_fail(&w->job, node);
        struct sample_row *row = &w->row[f];
        if (got == PLACE_CANNOT) {
            row->cannot++;
            return;
        }
        if (got == PLACE_MOVED) {
            row->step[w->job.plan.step]++;
            row->moves += w->job.plan.count;
        } else
            row->idle++;
        record(w, f);
    }
}

static void merge(struct sample_result *r, struct worker *w)
{
    for (int32_t f = 0; f <= r->failures; f++) {
        struct sample_row *a = &r->row[f], *b = &w->row[f];
        if (b->cases) {
            a->worst = a->cases && a->worst > b->worst ? a->worst : b->worst;
            a->best = a->cases && a->best < b->best ? a->best : b->best;
        }
        a->cases += b->cases;
        a->collisions += b->collisions;
        a->collisions_sq += b->collisions_sq;
        a->mean_load += b->mean_load;
        a->moves += b->moves;
        a->idle += b->idle;
        a->cannot += b->cannot;
        for (int s = 0; s < PLACE_MAX_STEPS; s++)
            a->step[s] += b->step[s];
        r->cases += b->cases;
        for (int n = 0; r->link_loads && n < SAMPLE_LINK_LOADS; n++)
            r->link_loads[f][n] += w->link_loads[f][n];
    }
    memset(w->row, 0, ((size_t)r->failures + 1) * sizeof *w->row);
    if (w->link_loads)
        memset(w->link_loads, 0, ((size_t)r->failures + 1) * sizeof *w->link_loads);
}

static int64_t take(struct run *run)
{
    if (*run->stop || run->failed)
        return -1;
    if (run->pending.ntodo)
        return run->pending.todo[--run->pending.ntodo];
    return run->pending.next < run->result->sequences ? run->pending.next++ : -1;
}

static bool worker_open(struct worker *w)
{
    const struct sample_config *c = w->run->config;
    if (!job_open(&w->job, &c->setup))
        return false;
    size_t rows = (size_t)w->run->result->failures + 1;
    w->row = calloc(rows, sizeof *w->row);
    w->pool = malloc((size_t)c->setup.grid.nodes * sizeof *w->pool);
    if (c->links)
        w->link_loads = calloc(rows, sizeof *w->link_loads);
    for (int32_t i = 0; i < c->ndead; i++)
        job_fail(&w->job, c->dead[i]);
    job_launch(&w->job);
    return w->row && w->pool && (w->link_loads || !c->links);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct run *run = w->run;
    bool ok = worker_open(w);
    pthread_mutex_lock(&run->lock);
    run->failed |= !ok;
    for (int64_t i; ok && (i = take(run)) >= 0;) {
        run->taken[w->index] = i;
        pthread_mutex_unlock(&run->lock);
        sequence(w, i);
        pthread_mutex_lock(&run->lock);
        run->taken[w->index] = -1;
        merge(run->result, w);
        run->result->done++;
    }
    run->running--;
    pthread_cond_signal(&run->ended);
    pthread_mutex_unlock(&run->lock);
    job_close(&w->job);
    free(w->row);
    free(w->pool);
    free(w->link_loads);
    return NULL;
}

static void bar(const struct run *run, double elapsed, int64_t before)
{
    const struct sample_result *r = run->result;
    double part = (double)r->done / (double)r->sequences;
    double rate = elapsed > 0 ? (double)r->cases / elapsed : 0;
    double left = r->done > before ? elapsed * (double)(r->sequences - r->done) / (double)(r->done - before) : 0;
    char fill[31];
    for (int i = 0; i < 30; i++)
        fill[i] = i < (int)(part * 30) ? '#' : '.';
    fill[30] = '\0';
    fprintf(stderr, "\r%-14s [%s] %3.0f%%  %.3g cases/s  %.0f s left \033[K",
            run->config->label ? run->config->label : "", fill, part * 100, rate, left);
}

/* Unfinished sequences below next: those queued and those workers are at. Under the lock. */
static const char *save(struct run *run, struct sample_pending *snapshot)
{
    snapshot->next = run->pending.next;
    snapshot->ntodo = 0;
    for (int32_t i = 0; i < run->pending.ntodo; i++)
        snapshot->todo[snapshot->ntodo++] = run->pending.todo[i];
    for (int t = 0; t < run->config->threads; t++)
        if (run->taken[t] >= 0)
            snapshot->todo[snapshot->ntodo++] = run->taken[t];
    return sample_state_save(run->config, run->result, snapshot);
}

enum { SAVE_EVERY_S = 10 };

/* Wait for the workers; meanwhile the bar and now and then the state file. */
static const char *watch(struct run *run, double start, struct sample_pending *snapshot)
{
    const char *why = NULL;
    bool tty = run->config->progress && isatty(STDERR_FILENO);
    double saved = start;
    int64_t before = run->result->done;
    pthread_mutex_lock(&run->lock);
    while (run->running) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 200000000;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&run->ended, &run->lock, &t);
        double now = seconds_now();
        if (tty)
            bar(run, now - start, before);
        if (run->config->state && now - saved > SAVE_EVERY_S && !why) {
            why = save(run, snapshot);
            saved = now;
        }
    }
    if (tty)
        fputs("\r\033[K", stderr);
    if (run->config->state && run->result->done < run->result->sequences && !why)
        why = save(run, snapshot);
    pthread_mutex_unlock(&run->lock);
    return why;
}

static const char *run_workers(struct run *run, struct worker *worker, struct sample_pending *snapshot)
{
    const struct sample_config *c = run->config;
    double start = seconds_now();
    int started = 0;
    pthread_mutex_lock(&run->lock);
    for (; started < c->threads; started++) {
        worker[started] = (struct worker){.run = run, .index = started};
        run->taken[started] = -1;
        if (pthread_create(&worker[started].thread, NULL, work, &worker[started]) != 0)
            break;
        run->running++;
    }
    pthread_mutex_unlock(&run->lock);
    const char *why = started ? watch(run, start, snapshot) : "cannot start a thread";
    for (int t = 0; t < started; t++)
        pthread_join(worker[t].thread, NULL);
    run->result->seconds = seconds_now() - start;
    run->result->interrupted = run->result->done < run->result->sequences;
    return run->failed ? "out of memory" : why;
}

const char *sample_run(const struct sample_config *c, volatile int *stop, struct sample_result *r)
{
    *r = (struct sample_result){.failures = c->failures};
    if (!r->failures)
        r->failures = spare_count(&c->setup.layout, &c->setup.grid);
    size_t rows = (size_t)r->failures + 1;
    r->sequences = r->failures ? (c->cases + r->failures - 1) / r->failures : 1;
    r->row = calloc(rows, sizeof *r->row);
    if (c->links)
        r->link_loads = calloc(rows, sizeof *r->link_loads);
    struct run run = {.config = c, .stop = stop, .result = r};
    struct worker *worker = calloc((size_t)c->threads, sizeof *worker);
    struct sample_pending snapshot = {0};
    size_t room = 4096 + (size_t)c->threads;
    run.taken = calloc((size_t)c->threads, sizeof *run.taken);
    run.pending.todo = calloc(room, sizeof *run.pending.todo);
    snapshot.todo = calloc(room, sizeof *snapshot.todo);
    const char *why = NULL;
    if (!r->row || (c->links && !r->link_loads) || !worker || !run.taken || !run.pending.todo || !snapshot.todo)
        why = "out of memory";
    if (!why && c->resume)
        why = sample_state_load(c, r, &run.pending);
    if (!why) {
        pthread_mutex_init(&run.lock, NULL);
        pthread_cond_init(&run.ended, NULL);
        why = run_workers(&run, worker, &snapshot);
        pthread_cond_destroy(&run.ended);
        pthread_mutex_destroy(&run.lock);
    }
    if (!why && c->state && !r->interrupted)
        unlink(c->state);
    free(worker);
    free(run.taken);
    free(run.pending.todo);
    free(snapshot.todo);
    return why;
}

void sample_free(struct sample_result *r)
{
    free(r->row);
    free(r->link_loads);
    *r = (struct sample_result){0};
}
