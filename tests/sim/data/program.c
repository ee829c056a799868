/* What a rank does: random operations, in stages that end with a collective. A process that takes a rank over repeats
 * the allocations and goes on at the stage that the others are in, as an application would. */
#include <stdlib.h>

#include "runtime/base/fault.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/op/mutex.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/task.h"
#include "runtime/client/progress.h"
#include "runtime/client/replica/replica.h"
#include "tests/sim/data/program_int.h"

/* ---- tasks ---- */

/* What failed for want of memory was not done, and is done again; *again: the task is, from its beginning. */
static bool step_of_task(struct program *p, const struct planned *s, int64_t task, int step, bool *again)
{
    int rank = (int)((task + step) % p->w->setup.ranks);
    double value = task_value(task, step);
    size_t at = s->pool.offset + 8 * (size_t)(task * TASK_STEPS + step);
    keel_status status;
    do {
        program_begin(p, "an accumulate of a task");
        status = rma_acc(&p->r->client, p->seg[s->pool.segment], rank, at, KEEL_DOUBLE, &(double){1}, &value, 1);
        program_ended(p, status, true);
    } while (status == KEEL_ERR_NOMEM && p->w->setup.fail_at && !p->over);
    *again = status == KEEL_ERR_TIMEOUT && p->w->setup.timeout_ns < SEC;
    return *again || !program_data_lost(p, status, "an accumulate of a task");
}

struct ahead {
    double value[TASK_STEPS];
    keel_handle handle[TASK_STEPS];
    int begun;
};

/* All steps under way at the same time; those to one node in their order. */
static keel_status steps_begin(struct program *p, const struct planned *s, int64_t task, struct ahead *a)
{
    keel_status status = KEEL_OK;
    for (int step = 0; step < TASK_STEPS && status == KEEL_OK; step++) {
        int rank = (int)((task + step) % p->w->setup.ranks);
        size_t at = s->pool.offset + 8 * (size_t)(task * TASK_STEPS + step);
        a->value[step] = task_value(task, step);
        do
            status = rma_acc_nb(&p->r->client, p->seg[s->pool.segment], rank, at, KEEL_DOUBLE, NULL, &a->value[step], 1,
                                &a->handle[step]);
        while (status == KEEL_ERR_NOMEM && p->w->setup.fail_at && !p->over); /* it was not begun */
        a->begun += status == KEEL_OK;
    }
    return status;
}

static keel_status steps_wait(struct program *p, struct ahead *a, keel_status status)
{
    for (int i = 0; i < a->begun; i++) {
        keel_status waited = rma_wait(&p->r->client, &a->handle[i]);
        if (waited != KEEL_OK && status != KEEL_ERR_DATA_LOST)
            status = waited;
    }
    return status;
}

/* What fails in whatever way has the task run again. */
static bool judge_ahead(struct program *p, keel_status status, bool *again)
{
    bool no_memory = (status == KEEL_ERR_NOMEM || status == KEEL_ERR_STATE) && p->w->setup.fail_at;
    bool too_late = (status == KEEL_ERR_TIMEOUT || status == KEEL_ERR_STATE) && p->w->setup.timeout_ns < SEC;
    *again = no_memory || too_late;
    return *again || !program_data_lost(p, status, "non-blocking accumulates of a task");
}

static keel_status commit(struct program *p, int pool, int64_t task)
{
    keel_status status;
    do {
        program_begin(p, "keel_task_commit");
        status = task_commit(&p->r->client, p->pool[pool], task);
        program_ended(p, status, true);
    } while (status == KEEL_ERR_TIMEOUT && p->w->setup.timeout_ns < SEC && !p->over);
    return status;
}

static bool one_task(struct program *p, int pool, int64_t task)
{
    const struct planned *s = &p->w->model->planned[pool];
    struct ahead a = {.begun = 0};
    bool again = false, waits_late = task % 4 == 3;
    for (int step = 0; step < TASK_STEPS && task % 2 == 0 && !again; step++)
        if (!step_of_task(p, s, task, step, &again))
            return false;
    if (task % 2 == 1) {
        program_begin(p, "non-blocking accumulates of a task");
        keel_status status = steps_begin(p, s, task, &a);
        if (status != KEEL_OK || !waits_late)
            status = steps_wait(p, &a, status);
        program_ended(p, status, true);
        if (!judge_ahead(p, status, &again))
            return false;
    }
    if (again)
        return true;
    keel_status status = commit(p, pool, task);
    if (task % 2 == 1 && waits_late) { /* the commit has completed them */
        program_begin(p, "a wait for accumulates of a task");
        keel_status waited = steps_wait(p, &a, KEEL_OK);
        program_ended(p, waited, true);
        if (waited != KEEL_OK && status == KEEL_ERR_STATE)
            return judge_ahead(p, waited, &again);
    }
    return !program_data_lost(p, status, "keel_task_commit");
}

bool program_tasks(struct program *p)
{
    struct pool *t = &p->w->model->planned[p->tasks_of].pool;
    bool alone = !p->r->program->next;
    uint64_t patience = 20 * US;
    if (t->begun < p->round)
        t->begun = p->round;
    while (!p->over && !p->w->failed) {
        int64_t task;
        program_begin(p, "keel_task_next");
        keel_status status = task_next(&p->r->client, p->pool[p->tasks_of], &task);
        program_ended(p, status, false);
        if (status == KEEL_ERR_TIMEOUT && p->w->setup.timeout_ns < SEC)
            continue;
        if (status == KEEL_ERR_STATE && !alone) { /* another thread has one */
            process_spend(p->process, sched_below(program_random(p), patience));
            patience *= patience < 160 * US ? 2 : 1;
            continue;
        }
        patience = 20 * US;
        if (program_data_lost(p, status, "keel_task_next"))
            return false;
        if (task < 0)
            break;
        if (!one_task(p, p->tasks_of, task))
            return false;
    }
    if (p->over || p->w->failed)
        return false;
    if (t->complete < p->round)
        t->complete = p->round;
    return true;
}

/* ---- stages ---- */

/* In one call, or in two with something between them; then *in is 1 + the view that it was completed in, and *f is
 * over. */
static keel_status barrier(struct program *p, bool quiet, struct fencing *f, bool *fenced, uint64_t *in)
{
    struct client *c = &p->r->client;
    bool acts = !quiet && !p->mutexes && !p->w->setup.signals && !p->next;
    if (!sched_chance(&p->w->sched, 0.3))
        return collective_barrier(c);
    keel_status status = collective_barrier_begin(c);
    if (status != KEEL_OK)
        return status;
    program_fence_ended(p, f, status);
    *fenced = true;
    for (uint64_t n = sched_below(&p->w->sched, 4); acts && n > 0 && !p->over; n--)
        program_action(p);
    program_begin(p, "the end of a barrier");
    uint64_t epoch, looks = sched_below(&p->w->sched, 4);
    do {
        status = collective_barrier_test(c, &epoch);
        process_spend(p->process, sched_below(&p->w->sched, 20 * US));
    } while (status == KEEL_IN_PROGRESS && looks-- > 0);
    if (status == KEEL_IN_PROGRESS)
        status = collective_barrier_end(c, &epoch);
    *in = status == KEEL_OK ? epoch + 1 : 0;
    return status;
}

/* Nobody may write when the next stage begins. */
static bool flushes_next(const struct model *m, const struct stage *stage)
{
    return stage + 1 < m->stage + m->stages && stage[1].kind == STAGE_FLUSH;
}

static bool collective(struct program *p, const struct stage *stage)
{
    struct world *w = p->w;
    struct client *c = &p->r->client;
    double in[3] = {1, p->r->rank, 2}, out[3] = {0};
    uint64_t word = 0x1234, epoch = 0;
    keel_status status = KEEL_OK;
    bool fenced = false;
    struct fencing f = {
        0, -1}; /* beside other threads it is not counted on: it may wait for a rank that waits for these */
    if (!p->next)
        f = program_fence_begins(p, -1); /* as it begins with one */
    program_begin(p, "a collective");
    model_enters(p->r);
    switch (stage->kind) {
    case STAGE_BARRIER:
    case STAGE_FLUSH:
        status = barrier(p, stage->kind == STAGE_FLUSH || flushes_next(w->model, stage), &f, &fenced, &epoch);
        break;
    case STAGE_BCAST:
        word = p->r->rank == 0 ? 0x5555 : 0;
        status = collective_bcast(c, 0, &word, sizeof word);
        if (status == KEEL_OK && word != 0x5555)
            world_fail(w, "rank %d: a broadcast brought %llx", p->r->rank, (unsigned long long)word);
        if (status == KEEL_ERR_RANK_DEAD &&
            (w->model->view.rank[0].incarnation || w->model->view.rank[0].node < 0 || w->model->view.rank[0].left))
            status = KEEL_OK;
        break;
    case STAGE_SUM:
        status = collective_allreduce_sum(c, in, out, 3);
        if (status == KEEL_OK && (out[2] != 2 * out[0] || out[0] < 1 || out[0] > w->setup.ranks))
            world_fail(w, "rank %d: a sum over all is %g %g %g", p->r->rank, out[0], out[1], out[2]);
        break;
    case STAGE_KEEP:
        status = program_commits(p, 1 + (uint64_t)(stage - w->model->stage));
        break;
    case STAGE_BACK:
        status = program_rolls_back(p);
        break;
    case STAGE_RESET:
        status = taskpool_reset(c, p->pool[stage->pool]);
        break;
    }
    program_ended(p, status, false);
    if (!p->over && status == KEEL_OK)
        model_met(w, p->r, epoch);
    if (!p->over && !fenced)
        program_fence_ended(p, &f, status);
    return !program_data_lost(p, status, "a collective");
}

static uint64_t round_of(const struct model *m, int stage)
{
    uint64_t round = 1;
    for (int k = 0; k < stage; k++)
        round += m->stage[k].kind == STAGE_RESET && m->stage[k].pool == m->stage[stage].pool;
    return round;
}

/* All threads of the rank draw from the pool. */
static bool tasks(struct program *p, int pool, uint64_t round)
{
    if (sched_chance(program_random(p), 0.5))
        p->r->client.timeout_ns = p->w->setup.timeout_ns;
    p->tasks_of = pool;
    p->round = round;
    program_threads_draw(p);
    bool good = program_tasks(p);
    program_threads_join(p);
    return good && !p->over;
}

/* All wait here until nothing goes on anywhere; meanwhile the runtime may have to tell its agent something. */
void program_gate(struct program *p, int gate)
{
    struct runner *r = p->r;
    if (gate == 0 || p->w->gates >= gate)
        return;
    program_wait_all(p);
    r->at_gate = gate;
    while (p->w->gates < gate && !p->over) {
        process_spend(&r->process, sched_between(program_random(p), MS, 3 * MS));
        pthread_mutex_lock(&r->client.lock);
        client_progress(&r->client);
        pthread_mutex_unlock(&r->client.lock);
        if (p->w->setup.on_death == DEATH_PARTNER)
            replica_look_for_deaths(); /* who has not come here may wait for what a dead one was to do */
        p->over = r->client.fatal != KEEL_OK;
    }
    r->at_gate = 0;
}

/* Its neighbours flush at the same time: what it stores is its own part's. joins: they may be bringing what the
 * process before it had left. */
static bool flush_between_stores(struct program *p, bool joins)
{
    if (!joins)
        program_stores(p);
    if (p->over || !program_flush(p))
        return false;
    if (!joins)
        program_stores(p);
    return !p->over;
}

static bool one_stage(struct program *p, int k)
{
    struct world *w = p->w;
    const struct stage *stage = &w->model->stage[k];
    struct client *c = &p->r->client;
    uint64_t all = c->timeout_ns;
    if (!(k == 0 && p->kept_memory) && !program_change_segments(p, k))
        return false;
    bool flushes = flushes_next(w->model, stage);
    int actions = (int)sched_below(&w->sched, 2 * (uint64_t)w->setup.actions + 1);
    if (stage->kind == STAGE_FLUSH ||
        (flushes && k == p->first && p->r->incarnation)) /* the others may be there already */
        actions = 0;
    if (stage->kind == STAGE_FLUSH && !flush_between_stores(p, k == p->first && p->r->incarnation))
        return false;
    c->timeout_ns = w->setup.timeout_ns;
    int exit_at = sched_chance(&w->sched, w->setup.exits) ? (int)sched_below(&w->sched, (uint64_t)actions + 1) : -1;
    if (actions)
        program_threads_start(p, actions);
    for (int i = 0; i < actions && !p->over && !w->failed; i++) {
        if (i == exit_at) /* what is under way stays where it is */
            runner_exit(p->r, 0);
        program_action(p);
        if (p->kept_memory && !p->over && sched_chance(&w->sched, 0.1))
            program_reads_kept(p);
    }
    while (program_give_back(p))
        ; /* nobody waits for what this thread keeps */
    bool beside = p->next && w->setup.timeout_ns >= SEC && stage->kind != STAGE_RESET && sched_chance(&w->sched, 0.5);
    if (!beside || flushes)
        program_threads_join(p);
    c->timeout_ns = all;
    if (stage->chain) {
        program_chain_tell(p, k + 1);
        program_chain_wait(p, k + 1);
    }
    if (stage->gate || flushes || sched_chance(&w->sched, 0.4))
        program_wait_all(p);
    if (w->setup.timeout_ns < SEC)
        program_fence(p, -1); /* a collective fails if one of them did */
    if (p->over || (stage->kind == STAGE_RESET && !tasks(p, stage->pool, round_of(w->model, k))))
        return false;
    c->timeout_ns = all;
    world_trace(w, "rank %d.%u: stage %d, collective %d; %llu instances, %llu collectives", p->r->rank,
                p->r->incarnation, k, (int)stage->kind, (unsigned long long)c->segments.instance,
                (unsigned long long)c->collectives);
    bool good = collective(p, stage);
    program_threads_join(p);
    if (!good)
        return false;
    program_gate(p, stage->gate);
    return !p->over;
}

static void leak(struct program *p, const char *what, uint64_t n)
{
    if (n)
        world_fail(p->w, "rank %d.%u ends with %llu %s", p->r->rank, p->r->incarnation, (unsigned long long)n, what);
}

static void free_pools(struct program *p)
{
    struct world *w = p->w;
    for (int i = 0; i < w->model->segments && !p->over; i++) {
        if (!p->pool[i])
            continue;
        program_begin(p, "keel_taskpool_free");
        w->model->planned[i].freed = true;
        bool gone;
        keel_status status = taskpool_free(&p->r->client, p->pool[i], &gone);
        program_ended(p, status, false);
        if (program_data_lost(p, status, "keel_taskpool_free"))
            return;
    }
}

static void free_mutexes(struct program *p)
{
    if (!p->mutexes || p->over)
        return;
    program_begin(p, "keel_mutexes_free");
    p->w->model->planned[p->mutexes_at].freed = true;
    bool gone;
    keel_status status = mutexes_free(&p->r->client, p->mutexes, &gone);
    program_ended(p, status, false);
    (void)program_data_lost(p, status, "keel_mutexes_free");
}

void program_leave(struct program *p)
{
    struct runner *r = p->r;
    program_wait_all(p);
    for (int i = 0; i < SEGMENTS_MAX; i++)
        program_untrack(p, i);
    free_pools(p);
    free_mutexes(p);
    if (p->over)
        return;
    r->leaving = true;
    program_begin(p, "keel_finalize");
    keel_status status = client_leave(&r->client);
    program_ended(p, status, true);
    if (p->over)
        return;
    if (status != KEEL_OK)
        world_fail(p->w, "rank %d.%u: keel_finalize says %s", r->rank, r->incarnation, keel_status_name(status));
    leak(p, "operations", r->client.ops.living);
    leak(p, "pieces", r->client.ops.pieces_living);
    leak(p, "puts that are open", atomic_load(&r->intents->open));
    for (int i = 0; i < INTENT_MAX; i++)
        leak(p, "notes that are active", atomic_load(&r->intents->entry[i].active));
    client_fini(&r->client);
    if (!p->w->setup.checked) /* replicas remember what they did to the end */
        leak(p, "pieces of memory", r->process.heap.blocks);
}

void program_run(struct runner *r)
{
    struct world *w = r->w;
    const struct model *m = w->model;
    struct program *p = sim_alloc(sizeof *p);
    *p = (struct program){.r = r, .w = w, .process = &r->process};
    p->outstanding_max = sched_chance(&w->sched, 0.1) ? 300 : (int)sched_between(&w->sched, 0, 24);
    r->program = p;
    r->client.timeout_ns = 20 * SEC;
    int first = (int)r->client.collectives;
    r->entered = r->client.collectives;
    r->met_at = r->incarnation ? r->entered + 1 : 0;
    world_trace(w, "rank %d.%u joins: %llu instances, %llu collectives, %u segments", r->rank, r->incarnation,
                (unsigned long long)r->client.segments.instance, (unsigned long long)r->client.collectives,
                r->client.segments.known);
    p->first = first;
    bool ok = true;
    for (int k = 0; k < first && k < m->stages && ok; k++)
        ok = program_change_segments(p, k);
    FAULT_POINT("rank.resuming");
    r->client.resumed = true;
    if (w->setup.keeps && ok)
        ok = (first > 0 || program_change_segments(p, 0)) && program_keeps(p);
    first = (int)r->client.collectives; /* it may have ended a commit */
    if (first > 0 && first <= m->stages && ok)
        program_gate(p, m->stage[first - 1].gate);
    if (first > 0 && ok && w->setup.signals && !(first < m->stages && m->stage[first].kind == STAGE_FLUSH))
        program_chain_tell(p, first); /* what a process before it did not */
    for (int k = first; k < m->stages && ok && !w->failed; k++)
        ok = one_stage(p, k);
    if (ok && !p->over)
        program_leave(p);
    if (ok && !p->over)
        return;
    while (!w->failed) /* its agent, or somebody, will end it */
        process_spend(&r->process, 10 * MS);
}
