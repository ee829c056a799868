#include "sim/route/batch.h"

#include "sim/cli/pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the hooks of the pool share. */
struct run {
    struct batch *b;
    _Atomic uint32_t *permille; /* [thread] of the run in hand */
};

const char *batch_outages(const struct batch_cell *c, uint64_t seed, int rep, struct outages *o)
{
    const struct fabric *f = c->config.fabric;
    struct rng rng;
    rng_seed(&rng, seed * 1000003u + (uint64_t)rep);
    for (size_t i = 0; c->fixed && i < c->fixed->n; i++)
        if (!outages_add(o, c->fixed->list[i].cable, c->fixed->list[i].start_ns, c->fixed->list[i].end_ns))
            return "out of memory";
    if (c->trace) {
        const char *wrong = trace_outages(c->trace, f, c->config.time_ns, c->lasting, &rng, o);
        if (wrong)
            return wrong;
        for (size_t i = 0; i < o->n && c->at_once; i++)
            o->list[i].start_ns = 0;
        if (outages_keep_connected(o, f) < 0)
            return "out of memory";
    }
    if (c->random.count == 0)
        return NULL;
    struct outage_random random = c->random;
    random.time_ns = c->config.time_ns;
    return outages_random(o, f, &random, &rng);
}

enum { BEST_MAX = 4096 }; /* endpoints; a route for every pair of them is kept */

/* The best ways that are known when all permanent failures are, for a run with them from its begin. */
static const char *best_routes(const struct batch_cell *cell, const struct outages *o, struct detour_path **routes)
{
    const struct sim_config *c = &cell->config;
    const struct fabric *f = c->fabric;
    struct flow_plan plan = *cell->best;
    struct flow flow = {0};
    struct flow_traffic traffic = sim_flow_traffic(c);
    if (!flow_takes(f))
        return "the best routes are known of grids of one or two dimensions and of trees only";
    if (c->pattern != SIM_UNIFORM && c->pattern != SIM_TRANSPOSE && c->pattern != SIM_COMPLEMENT)
        return "the best routes are known of uniform, transpose and complement traffic only";
    if (f->endpoints > BEST_MAX)
        return "the best routes are known of networks of at most 4096 endpoints only";
    uint8_t *avoid = calloc((size_t)fabric_links(f) + 1, 1);
    int32_t *partner = sim_partners(f, c->pattern);
    size_t pairs = (size_t)f->endpoints * (size_t)f->endpoints;
    const char *wrong = "out of memory";
    *routes = calloc(pairs, sizeof **routes);
    if (!avoid || !*routes || (!partner && c->pattern != SIM_UNIFORM) || !flow_init(&flow, f, &traffic))
        goto out;
    for (size_t i = 0; i < o->n; i++)
        if (o->list[i].end_ns == OUTAGE_FOREVER)
            avoid[o->list[i].cable] = avoid[f->reverse[o->list[i].cable]] = 1;
    flow.avoid = avoid;
    plan.partner = partner;
    plan.stop = c->stop;
    plan.routes = partner ? calloc((size_t)f->endpoints, sizeof *plan.routes) : *routes;
    if (!plan.routes || !flow_expect(&flow, &plan))
        goto out;
    wrong = NULL;
    for (size_t e = 0; partner && e < (size_t)f->endpoints; e++)
        if (partner[e] >= 0)
            (*routes)[e * (size_t)f->endpoints + (size_t)partner[e]] = plan.routes[e];
out:
    if (plan.routes != *routes)
        free(plan.routes);
    flow_fini(&flow);
    free(avoid);
    free(partner);
    return wrong;
}

const char *batch_run_one(const struct batch_cell *cell, uint64_t seed, int rep, const struct outages *o,
                          struct sim_result *r, float *link_busy)
{
    struct sim_config c = cell->config;
    struct detour_path *routes = NULL;
    c.outages = o;
    c.seed = seed * 7919u + (uint64_t)rep;
    const char *wrong = cell->best ? best_routes(cell, o, &routes) : NULL;
    c.routes = routes;
    if (!wrong)
        wrong = sim_run(&c, r, link_busy);
    free(routes);
    return wrong;
}

/* Repetition by repetition: an early end leaves whole ones. */
static size_t slot_of(const struct batch *b, int64_t task)
{
    return (size_t)(task % b->ncells * b->reps + task / b->ncells);
}

static const char *run_one(struct pool *p, int worker, int64_t task)
{
    struct run *run = p->arg;
    struct batch *b = run->b;
    struct outages o = {0};
    struct batch_cell c = b->cell[task % b->ncells];
    int rep = (int)(task / b->ncells);
    const char *wrong = batch_outages(&c, b->seed, rep, &o);
    c.config.stop = &p->quit;
    c.config.permille = &run->permille[worker];
    if (!wrong)
        wrong = batch_run_one(&c, b->seed, rep, &o, &b->result[slot_of(b, task)], NULL);
    outages_fini(&o);
    return wrong;
}

static void note_run(struct pool *p, int worker, int64_t task)
{
    struct run *run = p->arg;
    struct batch *b = run->b;
    const struct sim_result *r = &b->result[slot_of(b, task)];
    atomic_store(&run->permille[worker], 0);
    if (r->stopped)
        return;
    b->done[slot_of(b, task)] = true;
    b->events += r->events;
    b->cpu_seconds += r->seconds;
    b->finished++;
}

static void show(const struct run *run, double seconds)
{
    enum { WIDTH = 40 };
    const struct batch *b = run->b;
    double all = b->ncells * b->reps, at = b->finished;
    for (int i = 0; i < b->threads; i++)
        at += atomic_load(&run->permille[i]) / 1000.0;
    double share = at > all ? 1 : at / all;
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < (int)(share * WIDTH) ? '#' : '.';
    bar[WIDTH] = '\0';
    double left = share > 0 ? seconds / share - seconds : 0;
    fprintf(stderr, "\r[%s] %3d %%  %d of %d runs  %.0f s, %.0f s to go  ", bar, (int)(share * 100), b->finished,
            b->ncells * b->reps, seconds, left);
}

static void watch(struct pool *p, double seconds)
{
    const struct run *run = p->arg;
    if (run->b->show_progress)
        show(run, seconds);
}

const char *batch_run(struct batch *b)
{
    size_t runs = (size_t)b->ncells * (size_t)b->reps;
    struct run run = {.b = b, .permille = calloc((size_t)b->threads, sizeof *run.permille)};
    struct pool pool = {.threads = b->threads,
                        .tasks = (int64_t)runs,
                        .arg = &run,
                        .stop = b->stop,
                        .run = run_one,
                        .done = note_run,
                        .watch = watch};
    const char *wrong = "out of memory";
    b->result = calloc(runs, sizeof *b->result);
    b->done = calloc(runs, sizeof *b->done);
    if (b->result && b->done && run.permille)
        wrong = pool_run(&pool);
    if (b->show_progress)
        fputc('\n', stderr);
    b->wall_seconds = pool.seconds;
    free(run.permille);
    return wrong;
}

void batch_fini(struct batch *b)
{
    free(b->result);
    free(b->done);
    b->result = NULL;
    b->done = NULL;
}

static double batch_student(int degrees)
{
    static const double t[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                               2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080,
                               2.074, 2.069,  2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    if (degrees < 1)
        return 0;
    return degrees <= 30 ? t[degrees] : 1.96 + 2.4 / degrees;
}

static struct batch_mean mean_of(const double *x, int n)
{
    struct batch_mean m = {.n = n};
    double square = 0;
    for (int i = 0; i < n; i++)
        m.mean += x[i] / n;
    for (int i = 0; i < n; i++)
        square += (x[i] - m.mean) * (x[i] - m.mean);
    if (n > 1)
        m.half = batch_student(n - 1) * sqrt(square / (n - 1) / n);
    return m;
}

static struct batch_mean collect(const struct batch *b, int cell, batch_value *value, int reference)
{
    struct batch_mean m = {0};
    double *x = malloc((size_t)b->reps * sizeof *x);
    int n = 0;
    for (int rep = 0; x && rep < b->reps; rep++) {
        int i = cell * b->reps + rep, j = reference * b->reps + rep;
        if (!b->done[i] || (reference >= 0 && !b->done[j]))
            continue;
        double v = value(&b->result[i]);
        if (reference >= 0)
            v = 100 * (v / value(&b->result[j]) - 1);
        if (!isnan(v))
            x[n++] = v;
    }
    if (x && n)
        m = mean_of(x, n);
    free(x);
    return m;
}

struct batch_mean batch_mean(const struct batch *b, int cell, batch_value *value)
{
    return collect(b, cell, value, -1);
}

struct batch_mean batch_degradation(const struct batch *b, int cell, batch_value *value)
{
    return collect(b, cell, value, b->cell[cell].reference);
}

struct batch_mean batch_against(const struct batch *b, int cell, int reference, batch_value *value)
{
    return collect(b, cell, value, reference);
}

int batch_runs(const struct batch *b, int cell)
{
    int n = 0;
    for (int rep = 0; rep < b->reps; rep++)
        n += b->done[cell * b->reps + rep];
    return n;
}

double batch_measured(const struct sim_result *r, double value)
{
    return r->measured ? value : (double)NAN;
}

double batch_latency_us(const struct sim_result *r)
{
    return batch_measured(r, r->latency_ns / 1000);
}

double batch_hops(const struct sim_result *r)
{
    return batch_measured(r, r->hops);
}

double batch_delivered(const struct sim_result *r)
{
    return r->created ? 100.0 * (double)r->delivered / (double)r->created : (double)NAN;
}

double batch_accepted(const struct sim_result *r)
{
    return r->accepted_gbps;
}
