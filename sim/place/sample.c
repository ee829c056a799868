#include "sim/place/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/rng.h"
#include "sim/cli/pool.h"

/* What the hooks of the pool share. Task t is sequence todo[t], or after those next + t - ntodo. */
struct run {
    const struct sample_config *config;
    struct sample_result *result;
    struct sample_pending from; /* what was open when this run began */
    struct sample_pending save; /* scratch: what is open now */
    struct worker *worker;      /* [threads] */
    int64_t *broken;            /* sequences that were broken off */
    int32_t nbroken;
    int64_t before; /* sequences done before this run */
    double saved;   /* seconds into the run of the last save */
};

struct worker {
    struct run *run;
    struct job job;
    struct rng rng;
    struct sample_row *row;
    int64_t (*link_loads)[SAMPLE_LINK_LOADS];
    bool whole;    /* the sequence it was at went to its end */
    int32_t *pool; /* nodes that may still die, for DRAW_JOB and DRAW_ANY */
    int32_t npool;
};

static void pool_fill(struct worker *w)
{
    const struct place *p = &w->job.place;
    w->npool = 0;
    if (w->run->config->draw == DRAW_JOB) {
        for (int32_t r = 0; r < p->slots; r++)
            if (p->slot_at[p->node_of[r]] == r)
                w->pool[w->npool++] = p->node_of[r];
    } else
        for (int32_t n = 0; n < p->grid.nodes; n++)
            if (p->slot_at[n] != PLACE_DEAD)
                w->pool[w->npool++] = n;
}

/* The next node to die, -1 when none is left. */
static int32_t draw(struct worker *w)
{
    const struct place *p = &w->job.place;
    if (w->run->config->draw == DRAW_ACTIVE) {
        if (p->homeless == p->slots)
            return -1;
        for (;;) {
            int32_t slot = (int32_t)rng_below(&w->rng, (uint64_t)p->slots);
            if (p->slot_at[p->node_of[slot]] == slot)
                return p->node_of[slot];
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

/* returns   false when it was broken off: on a large grid a sequence takes long. */
static bool sequence(struct worker *w, int64_t index, const atomic_bool *quit)
{
    const struct sample_config *c = w->run->config;
    rng_seed(&w->rng, c->seed * 0x9e3779b97f4a7c15u + (uint64_t)index);
    if (atomic_load(quit))
        return false;
    job_reset(&w->job);
    if (c->draw != DRAW_ACTIVE)
        pool_fill(w);
    record(w, 0);
    for (int32_t f = 1; f <= w->run->result->failures; f++) {
        if (atomic_load(quit))
            return false;
        int32_t node = draw(w);
        if (node < 0)
            return true;
        enum place_result got = job_fail(&w->job, node);
        struct sample_row *row = &w->row[f];
        if (got == PLACE_CANNOT) {
            row->cannot++;
            return true;
        }
        if (got == PLACE_MOVED) {
            row->step[w->job.plan.step]++;
            row->moves += w->job.plan.count;
        } else
            row->idle++;
        record(w, f);
    }
    return true;
}

static void merge(struct sample_result *r, const struct worker *w)
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
        r->cases += f ? b->cases : 0; /* the launch is no case */
        for (int n = 0; r->link_loads && n < SAMPLE_LINK_LOADS; n++)
            r->link_loads[f][n] += w->link_loads[f][n];
    }
}

static void clear(const struct sample_result *r, struct worker *w)
{
    memset(w->row, 0, ((size_t)r->failures + 1) * sizeof *w->row);
    if (w->link_loads)
        memset(w->link_loads, 0, ((size_t)r->failures + 1) * sizeof *w->link_loads);
}

static int64_t sequence_of(const struct run *run, int64_t task)
{
    return task < run->from.ntodo ? run->from.todo[task] : run->from.next + task - run->from.ntodo;
}

static const char *worker_open(struct pool *p, int index)
{
    struct run *run = p->arg;
    struct worker *w = &run->worker[index];
    const struct sample_config *c = run->config;
    size_t rows = (size_t)run->result->failures + 1;
    w->run = run;
    if (!job_open_until(&w->job, &c->setup, &p->quit))
        return atomic_load(&p->quit) ? NULL : "out of memory";
    w->row = calloc(rows, sizeof *w->row);
    w->pool = malloc((size_t)c->setup.grid.nodes * sizeof *w->pool);
    if (c->links)
        w->link_loads = calloc(rows, sizeof *w->link_loads);
    for (int32_t i = 0; i < c->ndead; i++)
        job_fail(&w->job, c->dead[i]);
    if (c->ndead)
        job_launch(&w->job);
    return w->row && w->pool && (w->link_loads || !c->links) ? NULL : "out of memory";
}

static void worker_close(struct pool *p, int index)
{
    struct worker *w = &((struct run *)p->arg)->worker[index];
    job_close(&w->job);
    free(w->row);
    free(w->pool);
    free(w->link_loads);
}

static const char *run_sequence(struct pool *p, int index, int64_t task)
{
    struct run *run = p->arg;
    run->worker[index].whole = sequence(&run->worker[index], sequence_of(run, task), &p->quit);
    return NULL;
}

static void note_sequence(struct pool *p, int index, int64_t task)
{
    struct run *run = p->arg;
    if (run->worker[index].whole) {
        merge(run->result, &run->worker[index]);
        run->result->done++;
    } else
        run->broken[run->nbroken++] = sequence_of(run, task);
    clear(run->result, &run->worker[index]);
}

static void bar(const struct run *run, double elapsed)
{
    const struct sample_result *r = run->result;
    double part = (double)r->done / (double)r->sequences;
    double rate = elapsed > 0 ? (double)r->cases / elapsed : 0;
    double left =
        r->done > run->before ? elapsed * (double)(r->sequences - r->done) / (double)(r->done - run->before) : 0;
    char fill[31];
    for (int i = 0; i < 30; i++)
        fill[i] = i < (int)(part * 30) ? '#' : '.';
    fill[30] = '\0';
    fprintf(stderr, "\r%-14s [%s] %3.0f%%  %.3g cases/s  %.0f s left \033[K",
            run->config->label ? run->config->label : "", fill, part * 100, rate, left);
}

/* Unfinished sequences below next: those of the list this run began with that are not handed out, and those workers
 * are at. */
static const char *save(const struct pool *p)
{
    struct run *run = p->arg;
    struct sample_pending *s = &run->save;
    s->next = p->next > run->from.ntodo ? sequence_of(run, p->next - 1) + 1 : run->from.next;
    s->ntodo = 0;
    for (int64_t i = p->next; i < run->from.ntodo; i++)
        s->todo[s->ntodo++] = run->from.todo[i];
    for (int t = 0; p->at && t < p->threads; t++)
        if (p->at[t] >= 0)
            s->todo[s->ntodo++] = sequence_of(run, p->at[t]);
    for (int32_t i = 0; i < run->nbroken; i++)
        s->todo[s->ntodo++] = run->broken[i];
    return sample_state_save(run->config, run->result, s);
}

enum { SAVE_EVERY_S = 10 };

static void watch(struct pool *p, double seconds)
{
    struct run *run = p->arg;
    if (run->config->progress && isatty(STDERR_FILENO))
        bar(run, seconds);
    if (run->config->state && seconds - run->saved > SAVE_EVERY_S) {
        (void)save(p); /* a disk that is full now may have room next time */
        run->saved = seconds;
    }
}

static const char *run_pool(struct run *run, const atomic_bool *stop)
{
    const struct sample_config *c = run->config;
    struct sample_result *r = run->result;
    struct pool pool = {.threads = c->threads,
                        .tasks = run->from.ntodo + r->sequences - run->from.next,
                        .arg = run,
                        .stop = stop,
                        .open = worker_open,
                        .close = worker_close,
                        .run = run_sequence,
                        .done = note_sequence,
                        .watch = watch};
    run->before = r->done;
    const char *why = pool_run(&pool);
    if (c->progress && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    r->seconds = pool.seconds;
    r->interrupted = r->done < r->sequences;
    if (!why && c->state && (r->interrupted || c->keep_state))
        r->unsaved = save(&pool);
    return why;
}

const char *sample_run(const struct sample_config *c, const atomic_bool *stop, struct sample_result *r)
{
    *r = (struct sample_result){.failures = c->failures};
    if (!r->failures)
        r->failures = spare_count(&c->setup.layout, &c->setup.grid);
    size_t rows = (size_t)r->failures + 1, room = SAMPLE_MAX_TODO + (size_t)c->threads;
    r->sequences = r->failures ? (c->cases + r->failures - 1) / r->failures : 1;
    r->row = calloc(rows, sizeof *r->row);
    if (c->links)
        r->link_loads = calloc(rows, sizeof *r->link_loads);
    struct run run = {.config = c, .result = r, .worker = calloc((size_t)c->threads, sizeof *run.worker)};
    run.broken = calloc((size_t)c->threads, sizeof *run.broken);
    run.from.todo = calloc(room, sizeof *run.from.todo);
    run.save.todo = calloc(room, sizeof *run.save.todo);
    const char *why = NULL;
    if (!r->row || (c->links && !r->link_loads) || !run.worker || !run.broken || !run.from.todo || !run.save.todo)
        why = "out of memory";
    if (!why && c->resume)
        why = sample_state_load(c, r, &run.from);
    if (!why)
        why = run_pool(&run, stop);
    if (!why && c->state && !r->interrupted && !c->keep_state)
        unlink(c->state);
    free(run.worker);
    free(run.broken);
    free(run.from.todo);
    free(run.save.todo);
    return why;
}

void sample_free(struct sample_result *r)
{
    free(r->row);
    free(r->link_loads);
    *r = (struct sample_result){0};
}
