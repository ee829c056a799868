/* A run: the system is built, disasters come, everything is healed, and then it must come to rest. */
#include "tests/sim/data/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "tests/sim/data/flips.h"
#include "tests/sim/data/model.h"
#include "tests/sim/data/replicas.h"
#include "tests/sim/data/returns.h"

enum { STEPS_LIMIT = 40000000 };
static const uint64_t HEALED_LIMIT = 60 * SEC;

struct world *world_now;
bool world_spared;

void world_fail(struct world *w, const char *fmt, ...)
{
    if (w->failed)
        return;
    w->failed = true;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, ap);
    va_end(ap);
}

void world_also(struct world *w, const char *more)
{
    size_t at = strlen(w->why);
    snprintf(w->why + at, sizeof w->why - at, "%s", more);
}

void world_say(struct world *w, const char *fmt, ...)
{
    if (!w->setup.verbose)
        return;
    va_list ap;
    va_start(ap, fmt);
    printf("%12.6f ms  ", (double)w->sched.now / MS);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

struct runner *world_rank(const struct world *w, int rank)
{
    for (struct runner *r = w->runners; r; r = r->next)
        if (r->rank == rank && r->state == RUNNER_RUNS)
            return r;
    return NULL;
}

bool world_node_up(const struct world *w, int node)
{
    return !w->node[node].dead;
}

/* ---- gates ---- */

static bool all_at_gate(const struct world *w, int gate)
{
    const struct model *m = w->model;
    int waiting = 0;
    for (int rank = 0; rank < w->setup.ranks; rank++) {
        const struct view_rank *k = &m->view.rank[rank];
        if (k->state != RANK_RUNNING || k->left)
            continue;
        bool here = false;
        for (const struct runner *r = w->runners; r; r = r->next)
            here = here || (r->rank == rank && r->state == RUNNER_RUNS && r->incarnation == k->incarnation &&
                            r->at_gate == gate && !r->node->dead);
        if (!here)
            return false;
        waiting++;
    }
    return waiting > 0;
}

static void look_at_gate(struct world *w)
{
    const char *why;
    if (w->gates == w->model->gates || !all_at_gate(w, w->gates + 1))
        return;
    if (!model_is_quiet(w, &why)) {
        flips_not_quiet(w);
        return;
    }
    if (!flips_are_over(w))
        return;
    w->flipped = false;
    model_check_quiet(w);
    replicas_check_quiet(w);
    if (w->gates + 1 == w->model->gates) {
        model_check_end(w);
        replicas_check_end(w);
    }
    world_say(w, "gate %d: quiet", w->gates + 1);
    w->gates++;
}

/* Have the agents nothing under way? What the job's end finds on its way between them arrives soon. */
static bool is_settled(struct world *w)
{
    bool under_way = false;
    for (int i = 0; i < w->members; i++) {
        const struct agent *a = &w->node[i].agent;
        under_way = under_way || (!w->node[i].dead && (a->waiters || a->stash.first || a->segments.waits));
    }
    w->over_at = w->over_at ? w->over_at : w->sched.now;
    return !under_way || w->hopeless || w->sched.now > w->over_at + SEC;
}

/* Has everything ended? */
static bool is_over(const struct world *w)
{
    if (w->hopeless)
        return true;
    for (int i = 0; i < w->members; i++)
        if (!w->node[i].dead && (!w->node[i].over || w->node[i].working))
            return false;
    return true;
}

static void not_in_time(struct world *w)
{
    const char *why = "";
    char text[160] = "";
    bool quiet = model_is_quiet(w, &why);
    int at = 0;
    for (const struct runner *r = w->runners; r && at < 120; r = r->next) {
        uint64_t since;
        const char *call = r->state == RUNNER_RUNS ? program_call(r, &since) : NULL;
        if (r->state == RUNNER_RUNS)
            at += snprintf(text + at, sizeof text - (size_t)at, "; rank %d.%u %s", r->rank, r->incarnation,
                           r->at_gate ? "at a gate"
                           : call     ? call
                                      : "computes");
    }
    world_fail(w, "no end: %s%s", quiet ? "quiet" : why, text);
}

static void watch(void *arg, uint64_t n)
{
    struct world *w = arg;
    look_at_gate(w);
    replicas_check(w, "at some time");
    uint64_t since;
    for (struct runner *r = w->runners; w->setup.verbose && r; r = r->next)
        if (!r->dumped && r->state == RUNNER_RUNS && program_call(r, &since) && w->sched.now - since > 5 * SEC) {
            r->dumped = true;
            world_dump(w, r);
        }
    if (n % 16 == 0 && !w->failed)
        model_check(w, "at some time");
    if (is_over(w) && is_settled(w)) {
        model_check_whole(w, "at the end");
        replicas_check_told(w, "at the end");
        w->done = true;
    } else if (w->healing && w->sched.now > w->healed_at + HEALED_LIMIT)
        not_in_time(w);
    else
        sched_at(&w->sched, w->sched.now + MS / 4, watch, w, n + 1);
}

static void heal(void *arg, uint64_t unused)
{
    (void)unused;
    struct world *w = arg;
    world_say(w, "everything is healed");
    w->healing = true;
    w->healed_at = w->sched.now;
    disasters_heal(w);
}

/* ---- leaks of agents ---- */

static void check_agent(struct world *w, const struct node *n)
{
    const struct agent *a = &n->agent;
    if (a->waiters || a->stash.first || a->segments.waits)
        world_fail(w, "node %d ends with %s", n->id,
                   a->waiters       ? "answers that wait"
                   : a->stash.first ? "requests that wait"
                                    : "segments that are waited for");
    /* Doubts go when their copyset was made equal; those of ranks that ended with the job have nothing to be made equal
     * for. */
}

static void end_agents(struct world *w)
{
    for (int i = 0; i < w->members && !w->failed && !w->hopeless; i++) {
        struct node *n = &w->node[i];
        if (n->dead)
            continue;
        if (!w->setup.fail_at) /* a job that is ended for that ends in the middle of things */
            check_agent(w, n);
        struct heap *outer = heap_enter(&n->process.heap);
        agent_fini(&n->agent);
        heap_enter(outer);
        if (n->process.heap.blocks)
            world_fail(w, "node %d ends with %llu pieces of memory", i, (unsigned long long)n->process.heap.blocks);
    }
    for (const struct memory *m = w->memory; m && !w->failed && !w->hopeless; m = m->next)
        if (!w->node[m->node].dead && m->agents)
            world_fail(w, "node %d: memory of a copy is left", m->node);
}

/* ---- a run ---- */

static void build(struct world *w)
{
    int first = w->setup.nodes + w->setup.spares;
    w->members = first + w->setup.joiners;
    returns_begin(w);
    net_init(&w->net, &w->sched, w->members);
    if ((w->setup.sets && !replicas_init(w)) || !model_init(w)) {
        world_fail(w, "no model");
        return;
    }
    if (w->replicas)
        replicas_plan(w);
    else
        program_plan(w);
    for (int i = 0; i < first && !w->failed; i++)
        node_init(w, i);
    for (int i = 0; i < first && !w->failed; i++)
        node_start(&w->node[i]);
    for (int i = first; i < w->members; i++)
        node_joins(w, i);
    disasters_plan(w);
    watch(w, 1);
}

static void tear_down(struct world *w)
{
    for (int i = 0; i < w->members; i++)
        if (w->node[i].page)
            node_fini(&w->node[i]);
    for (struct runner *r = w->runners; r; r = r->next)
        runner_free(r);
    model_fini(w);
    replicas_fini(w);
    pages_free_all();
    sim_free_all();
}

static const char *world_text(const char *fmt, uint64_t n)
{
    static char text[40];
    snprintf(text, sizeof text, fmt, (unsigned long long)n);
    return text;
}

static bool is_spared(const struct world *w)
{
    const struct heap *h = w->setup.fail_node >= 0 ? &w->node[w->setup.fail_node].process.heap : NULL;
    for (const struct runner *r = w->runners; !h && r; r = r->next)
        if (r->rank == w->setup.fail_rank && r->incarnation == 0)
            h = &r->process.heap;
    return h && h->allocations < h->fail_at;
}

bool world_run(const struct setup *setup)
{
    pages_free_all(); /* of a run that was given up */
    struct world *w = sim_alloc(sizeof *w);
    w->setup = *setup;
    world_now = w;
    sched_init(&w->sched, setup->seed);
    fault_hook = disasters_point;
    fault_armed = 1;
    build(w);
    sched_at(&w->sched, sched_between(&w->sched, 100 * MS, 300 * MS), heal, w, 0);
    while (!w->failed && !w->done && sched_step(&w->sched))
        if (w->sched.steps > STEPS_LIMIT)
            not_in_time(w);
    if (!w->failed)
        end_agents(w);
    bool ok = !w->failed;
    if (!ok)
        printf("seed %llu: %s\n  at %.6f ms; again: sim-data --scenario %s --seed %llu%s --verbose\n",
               (unsigned long long)setup->seed, w->why, (double)w->sched.now / MS, setup->scenario,
               (unsigned long long)setup->seed, setup->each ? world_text(" --fail-at %llu", setup->fail_at) : "");
    if (setup->verbose)
        printf("%s: %.3f ms, %llu steps, %llu items, %llu views, %llu checks, %d gates%s\n", ok ? "well" : "FAILED",
               (double)w->sched.now / MS, (unsigned long long)w->sched.steps, (unsigned long long)w->net.items,
               (unsigned long long)w->model->commits, (unsigned long long)w->model->checks, w->gates,
               w->hopeless ? ", data lost" : "");
    world_spared = is_spared(w);
    tear_down(w);
    world_now = NULL;
    return ok;
}
