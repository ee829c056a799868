/* What a rank of a set does: what all its replicas do, in its own time. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/near.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/digest.h"
#include "runtime/client/replica/replica.h"
#include "tests/sim/data/below.h"
#include "tests/sim/data/replicas.h"
#include "tests/sim/data/state.h"

static uint64_t below(struct replica_program *q, uint64_t n)
{
    return rng_below(&q->rng, n);
}

static struct client *client_of(struct replica_program *q)
{
    return &q->p.r->client;
}

/* As its calls count ranks: with a wrapper as the program does. */
static int native_of(const struct replica_program *q, int rank)
{
    return q->p.w->setup.checked ? rank : replica_native(&q->all->map, rank, q->set);
}

/* Only a set that has lost somebody is told of anything but success; it is ended soon. What succeeds is what all sets
 * are told, also under the view by which the own one is retired. */
static bool went(struct replica_program *q, keel_status status)
{
    struct program *p = &q->p;
    if (status == KEEL_OK || p->over)
        return !p->over;
    for (int g = 0; status == KEEL_ERR_DATA_LOST && g < p->w->setup.nodes * CLASSES; g++)
        p->w->hopeless = p->w->hopeless || p->w->model->lost[g]; /* the runtime's own, with all nodes that had it */
    bool may = p->w->setup.plain ? q->all->early : replicas_is_hit(p->w, q->set);
    if (!may && !p->w->hopeless)
        world_fail(p->w, "rank %d of set %d: %s says %s", q->rank, q->set, p->call, keel_status_name(status));
    p->over = true;
    return false;
}

/* What has an order has no time-out, however short the others' are. */
static void begin_ordered(struct replica_program *q, const char *call)
{
    program_begin(&q->p, call);
    client_of(q)->timeout_ns = q->p.w->setup.timeout_ns;
}

static bool ended(struct replica_program *q, keel_status status)
{
    client_of(q)->timeout_ns = 20 * SEC;
    program_ended(&q->p, status, false);
    return went(q, status);
}

/* ---- what is begun and not waited for ---- */

static void wait_for(struct replica_program *q, int i)
{
    struct replica_out *o = &q->out[i];
    program_begin(&q->p, "keel_wait");
    (void)ended(q, q->calls->wait(&o->handle));
    free(q->out[i].bytes);
    q->out[i] = q->out[--q->outs];
}

static void wait_for_all(struct replica_program *q)
{
    while (q->outs && !q->p.over)
        wait_for(q, q->outs - 1);
}

static struct replica_out *out_new(struct replica_program *q, size_t len)
{
    if (q->outs == REPLICA_OUT)
        wait_for(q, (int)below(q, REPLICA_OUT));
    struct replica_out *o = &q->out[q->outs++];
    *o = (struct replica_out){.bytes = sim_alloc(len)};
    return o;
}

/* ---- atomics ---- */

static const struct {
    enum arith_rmw how;
    keel_rmw_op op;
} operations[] = {{ARITH_ADD, KEEL_RMW_ADD}, {ARITH_SWAP, KEEL_RMW_SWAP}, {ARITH_XOR, KEEL_RMW_XOR}};

static keel_status run_atomic(struct replica_program *q, struct history_op *h, int segment, int rank, size_t at)
{
    keel_segment *s = q->seg[segment];
    if (h->rmw == ARITH_CAS)
        return q->calls->compare_swap(s, rank, at, h->a, h->b, &h->result);
    if (h->rmw == ARITH_ADD)
        return q->calls->fetch_add(s, rank, at, h->a, &h->result);
    return q->calls->rmw(s, rank, at, KEEL_INT64, operations[h->rmw == ARITH_XOR ? 2 : 1].op, &h->a, NULL, &h->result);
}

static void atomic(struct replica_program *q, int segment, int target)
{
    static const enum arith_rmw hows[] = {ARITH_ADD, ARITH_ADD, ARITH_SWAP, ARITH_CAS, ARITH_XOR};
    int word = (int)below(q, REPLICA_WORDS);
    struct history *all = replicas_history(q, segment, target, word);
    struct history_op h = {.kind = HISTORY_RMW, .rmw = hows[below(q, 5)], .rank = q->rank, .called = q->p.w->sched.now};
    h.a = h.rmw == ARITH_CAS ? (int64_t)below(q, 4) : 1 + (int64_t)below(q, 3);
    h.b = (int64_t)below(q, 4);
    size_t at = replicas_call(q, all, &h);
    begin_ordered(q, "an atomic");
    keel_status status = run_atomic(q, &h, segment, native_of(q, target), replica_word_at(q->all, word));
    if (!ended(q, status))
        return;
    replicas_return(q, all, at, h.result);
    world_trace(q->p.w, "rank %d of set %d: step %d, atomic %d of %lld on word %d of rank %d, segment %d: %lld",
                q->rank, q->set, q->steps, (int)h.rmw, (long long)h.a, word, target, segment, (long long)h.result);
    replicas_found(q->p.w, q, h.result);
}

/* Of 32 bits; the other half is another word. */
static void half(struct replica_program *q, int segment, int target)
{
    size_t at = replica_word_at(q->all, REPLICA_HALVES) + 4 * below(q, 2);
    int32_t by = (int32_t)below(q, 1000), old = 0;
    keel_rmw_op op = operations[below(q, 3)].op;
    begin_ordered(q, "an atomic of 32 bits");
    if (ended(q, q->calls->rmw(q->seg[segment], native_of(q, target), at, KEEL_INT32, op, &by, NULL, &old)))
        replicas_found(q->p.w, q, old);
}

/* ---- accumulates ---- */

/* Sums depend on their order: thirds of very different sizes. */
static void add_doubles(struct replica_program *q, int segment, int target)
{
    const struct replica_segment_plan *g = &q->all->segment[segment];
    size_t n = below(q, 4) ? 1 + below(q, g->doubles < 8 ? g->doubles : 8) : g->doubles;
    size_t at = replica_word_at(q->all, REPLICA_DOUBLES) + 8 * below(q, g->doubles - n + 1);
    struct replica_out *o = out_new(q, n * sizeof(double));
    if (q->p.over)
        return;
    double *by = (double *)(void *)o->bytes, scale = 1 + (double)below(q, 3);
    for (size_t i = 0; i < n; i++)
        by[i] = rng_double(&q->rng) / 3 * (double)(UINT64_C(1) << below(q, 50));
    bool blocks = below(q, 2);
    begin_ordered(q, "an accumulate");
    keel_status status =
        blocks ? q->calls->acc(q->seg[segment], native_of(q, target), at, KEEL_DOUBLE, &scale, by, n)
               : q->calls->acc_nb(q->seg[segment], native_of(q, target), at, KEEL_DOUBLE, &scale, by, n, &o->handle);
    if (!ended(q, status) || !blocks)
        return;
    free(o->bytes);
    q->outs--;
}

/* Many in a message. Only where the wrapper cuts them: the library here has no such call. */
static void add_runs(struct replica_program *q, int segment, int target)
{
    const struct replica_segment_plan *g = &q->all->segment[segment];
    size_t stride = 1 + below(q, 3), most = 1 + (g->doubles - 1) / stride, n = 1 + below(q, most < 8 ? most : 8);
    size_t at = replica_word_at(q->all, REPLICA_DOUBLES) + 8 * below(q, g->doubles - (n - 1) * stride);
    const keel_strided how = {.levels = 1, .count = {8, n}, .global_stride = {8 * stride}, .local_stride = {8}};
    double by[8], scale = 1 + (double)below(q, 3);
    for (size_t i = 0; i < n; i++)
        by[i] = rng_double(&q->rng) / 3 * (double)(UINT64_C(1) << below(q, 50));
    begin_ordered(q, "a strided accumulate");
    (void)ended(q, q->calls->acc_strided(q->seg[segment], native_of(q, target), at, KEEL_DOUBLE, &scale, by, &how));
}

static void add_number(struct replica_program *q, int segment, int target)
{
    int64_t by = 1 + (int64_t)below(q, 1000), scale = 1;
    size_t at = replica_word_at(q->all, REPLICA_NUMBER);
    begin_ordered(q, "an accumulate of a whole number");
    keel_status status = q->calls->acc(q->seg[segment], native_of(q, target), at, KEEL_INT64, &scale, &by, 1);
    if (ended(q, status))
        q->added[segment][target] += by;
}

/* ---- puts, signals, gets ---- */

/* One put of the run has a bit that flips, in one of the sets. What a rank puts to itself is not looked at. */
static bool flips_now(struct replica_program *q, int target)
{
    struct replicas *s = q->all;
    if (!q->p.w->setup.flip || target == q->rank || q->rank != s->flip_rank || ++q->puts != s->flip_put ||
        q->set != s->flip_set)
        return false;
    return s->flipped = true;
}

static void put(struct replica_program *q, int segment, int target, bool blocks)
{
    size_t from = below(q, REPLICA_OWN), len = 1 + below(q, REPLICA_OWN - from);
    size_t at = replica_own_at(q->rank) + from;
    if (!blocks)
        wait_for_all(q); /* what is under way may lie there */
    struct replica_out *o = out_new(q, len);
    if (q->p.over)
        return;
    for (size_t i = 0; i < len; i++)
        q->own[segment][target][from + i] = o->bytes[i] = (uint8_t)below(q, 256);
    bool flips = blocks && flips_now(q, target);
    if (flips && q->p.w->setup.flip == FLIP_SENDER)
        o->bytes[len / 2] ^= 4;
    program_begin(&q->p, "a put");
    keel_status status = blocks
                             ? q->calls->put(q->seg[segment], native_of(q, target), at, o->bytes, len)
                             : q->calls->put_nb(q->seg[segment], native_of(q, target), at, o->bytes, len, &o->handle);
    if (!ended(q, status) || !blocks)
        return;
    free(o->bytes);
    q->outs--;
    if (flips && q->p.w->setup.flip == FLIP_TARGET)
        replicas_flip(q, segment, target, at + len / 2);
    if (q->p.w->setup.flip)
        (void)ended(q, q->calls->fence_all());
}

/* Whether it goes to the agent is the moment's in each set, as after a view. */
static void send_signal(struct replica_program *q, int segment, int target)
{
    int64_t by = 1 + (int64_t)below(q, 9);
    if (sched_chance(&q->p.w->sched, 0.5))
        q->seg[segment]->near[replica_native(&q->all->map, target, q->set)].signal_tag = 0;
    begin_ordered(q, "keel_signal");
    keel_status status =
        q->calls->signal(q->seg[segment], native_of(q, target), replica_word_at(q->all, REPLICA_BELL), by);
    if (ended(q, status))
        q->signalled[segment][target] += by;
}

static void put_signal(struct replica_program *q, int segment, int target)
{
    wait_for_all(q);
    if (!q->p.over)
        put(q, segment, target, true);
    if (!q->p.over)
        send_signal(q, segment, target);
}

static void get(struct replica_program *q, int segment, int target)
{
    uint8_t bytes[REPLICA_OWN];
    wait_for_all(q);
    if (q->p.over)
        return;
    program_begin(&q->p, "a get");
    keel_status status =
        q->calls->get(q->seg[segment], native_of(q, target), replica_own_at(q->rank), bytes, sizeof bytes);
    if (ended(q, status) && memcmp(bytes, q->own[segment][target], sizeof bytes) != 0)
        world_fail(q->p.w, "rank %d of set %d: a get of what it has put to rank %d, segment %d, gives something else",
                   q->rank, q->set, target, segment);
}

/* ---- mutexes and tasks, which are the wrapper's ---- */

/* Nobody else of the set has it. What is found there is the same in each set. */
static void add_by_turns(struct replica_program *q)
{
    bool *locked = &q->all->locked[q->set];
    size_t at = replica_word_at(q->all, REPLICA_LOCKED);
    int64_t is = 0;
    wait_for_all(q);
    begin_ordered(q, "keel_mutex_lock");
    if (q->p.over || !ended(q, q->calls->mutex_lock(q->mutexes, 0, 0, NULL)))
        return;
    if (*locked && !replicas_act(q->p.w)) /* else somebody else gives back what the dead had */
        world_fail(q->p.w, "rank %d of set %d has the mutex that another one has", q->rank, q->set);
    *locked = true;
    program_begin(&q->p, "a get under the mutex");
    if (!ended(q, q->calls->get(q->seg[0], 0, at, &is, sizeof is)))
        return;
    replicas_found(q->p.w, q, is++);
    if (replicas_act(q->p.w) && below(q, 2)) { /* who gets it may be waiting for the mutex */
        int to = (int)below(q, (uint64_t)q->all->map.ranks);
        if (!ended(q, replicas_write(q, to)))
            return;
    }
    program_begin(&q->p, "a put under the mutex");
    if (!ended(q, q->calls->put(q->seg[0], 0, at, &is, sizeof is)))
        return;
    q->locks++;
    *locked = false;
    begin_ordered(q, "keel_mutex_unlock");
    (void)ended(q, q->calls->mutex_unlock(q->mutexes, 0, 0));
}

static void run_task(struct replica_program *q)
{
    int64_t task = -1, by = 1 + (int64_t)below(q, 1000), scale = 1;
    begin_ordered(q, "keel_task_next");
    if (!ended(q, q->calls->task_next(q->pool, &task)))
        return;
    replicas_found(q->p.w, q, task);
    q->all->drawn[q->set]++;
    begin_ordered(q, "an accumulate of a task");
    if (!ended(q, q->calls->acc(q->seg[0], 0, replica_word_at(q->all, REPLICA_NUMBER), KEEL_INT64, &scale, &by, 1)))
        return;
    q->added[0][0] += by;
    begin_ordered(q, "keel_task_commit");
    (void)ended(q, q->calls->task_commit(q->pool, task));
}

/* ---- stages ---- */

static void act(struct replica_program *q)
{
    int segment = (int)below(q, (uint64_t)q->all->segments), target = (int)below(q, (uint64_t)q->all->map.ranks);
    const struct setup *s = &q->p.w->setup;
    unsigned kind = (unsigned)below(q, replicas_act(q->p.w) ? 21 : s->checked ? 18 : 16);
    q->steps++;
    if (replicas_act(q->p.w) && !s->plain && below(q, 40) == 0)
        (void)q->calls->address(q->seg[segment], (q->rank + 1) % q->all->map.ranks); /* nobody does it for the dead */
    if (kind < 6)
        atomic(q, segment, target);
    else if (kind < 7)
        half(q, segment, target);
    else if (kind < 10 && replicas_act(q->p.w) && below(q, 3) == 0)
        add_runs(q, segment, target);
    else if (kind < 10)
        add_doubles(q, segment, target);
    else if (kind < 11)
        add_number(q, segment, target);
    else if (kind < 12)
        put_signal(q, segment, target);
    else if (kind < 13)
        put(q, segment, target, false);
    else if (kind < 14)
        get(q, segment, target);
    else if (kind < 16)
        wait_for_all(q);
    else if (kind < 17)
        add_by_turns(q);
    else if (kind < 18)
        run_task(q);
    else
        (void)ended(q, replicas_write(q, target));
    if (!q->p.over && sched_chance(&q->p.w->sched, 0.2))
        process_spend(q->p.process, sched_below(&q->p.w->sched, 100 * US));
}

/* The next rank hears that this one has come here, and this one waits for the one before. */
static void chain(struct replica_program *q)
{
    size_t at = replica_word_at(q->all, REPLICA_CHAIN);
    int64_t got = 0;
    begin_ordered(q, "keel_signal to the next rank");
    keel_status status = q->calls->signal(q->seg[0], native_of(q, (q->rank + 1) % q->all->map.ranks), at, 1);
    if (!ended(q, status))
        return;
    q->chained++;
    program_begin(&q->p, "keel_wait_until the rank before");
    (void)ended(q, q->calls->wait_until(q->seg[0], at, KEEL_GE, q->chained, KEEL_ANY_RANK, &got));
}

/* What others have put, which nobody changes meanwhile, and what all say. */
static bool look_around(struct replica_program *q, int k)
{
    uint8_t bytes[RANKS_MAX * REPLICA_OWN];
    int segment = (int)below(q, (uint64_t)q->all->segments), target = (int)below(q, (uint64_t)q->all->map.ranks);
    int ranks = q->all->map.ranks, root = k % ranks;
    double mine[2] = {q->rank + 1, q->rank * q->rank}, sum[2];
    int64_t said = q->rank == root ? 7 * root : -1;
    program_begin(&q->p, "a get of what all have put");
    if (!ended(q, q->calls->get(q->seg[segment], target, 0, bytes, (size_t)ranks * REPLICA_OWN)))
        return false;
    q->steps++;
    replicas_found(q->p.w, q, (int64_t)digest(bytes, (size_t)ranks * REPLICA_OWN, 0));
    program_begin(&q->p, "keel_allreduce_sum");
    if (!ended(q, q->calls->allreduce_sum(mine, sum, 2)))
        return false;
    program_begin(&q->p, "keel_bcast");
    if (!ended(q, q->calls->bcast(root, &said, sizeof said)))
        return false;
    if (sum[0] != ranks * (ranks + 1) / 2. || sum[1] != (ranks - 1) * ranks * (2 * ranks - 1) / 6. || said != 7 * root)
        world_fail(q->p.w, "rank %d of set %d: all ranks together say %g, %g and %lld", q->rank, q->set, sum[0], sum[1],
                   (long long)said);
    return !q->p.w->failed;
}

static bool barrier(struct replica_program *q)
{
    program_begin(&q->p, "a barrier of the set");
    if (q->p.w->setup.checked)
        return ended(q, q->calls->barrier());
    return ended(q, q->calls->fence_all()) && ended(q, q->calls->group_barrier(q->group));
}

static bool one_stage(struct replica_program *q, int k)
{
    struct world *w = q->p.w;
    const struct stage *stage = &w->model->stage[k];
    for (uint64_t n = below(q, 2 * (uint64_t)w->setup.actions + 1); n > 0 && !q->p.over && !w->failed; n--)
        act(q);
    wait_for_all(q);
    if (stage->chain && !q->p.over)
        chain(q);
    if (replicas_act(w) && !q->p.over && !ended(q, replicas_read_letters(q)))
        return false;
    if (q->p.over || !barrier(q) || (w->setup.plain && !look_around(q, k)))
        return false;
    program_gate(&q->p, stage->gate);
    return !q->p.over;
}

/* ---- the whole of it ---- */

static bool allocate(struct replica_program *q, int i)
{
    size_t bytes[RANKS_MAX];
    struct replica_segment_plan *g = &q->all->segment[i];
    for (int r = 0; r < q->all->map.ranks; r++)
        bytes[r] = g->bytes;
    program_begin(&q->p, "keel_segment_alloc_group");
    bool checked = q->p.w->setup.checked;
    if (!ended(q, checked ? q->calls->segment_alloc(g->bytes, g->redundancy, &q->seg[i])
                          : q->calls->segment_alloc_group(q->group, bytes, g->redundancy, &q->seg[i])))
        return false;
    if (g->index[q->set] >= 0 && g->index[q->set] != q->seg[i]->index)
        world_fail(q->p.w, "rank %d of set %d: segment %d has another number than for others", q->rank, q->set, i);
    g->index[q->set] = q->seg[i]->index;
    return true;
}

static bool begin(struct replica_program *q)
{
    int natives[RANKS_MAX];
    bool good = true;
    for (int r = 0; r < q->all->map.ranks; r++)
        natives[r] = native_of(q, r);
    q->calls = &below_calls;
    program_begin(&q->p, "keel_group_create");
    if (q->p.w->setup.checked) {
        state_new(q->p.r->rank);
        q->p.process->variables = 1 + q->p.r->rank;
        good = ended(q, replica_begin(client_of(q)));
        q->calls = calls_now();
    } else
        good = ended(q, q->calls->group_create(natives, q->all->map.ranks, 0, &q->group));
    for (int i = 0; i < q->all->segments && good; i++)
        good = allocate(q, i);
    if (q->p.w->setup.checked && good) {
        program_begin(&q->p, "keel_mutexes_create");
        good = ended(q, q->calls->mutexes_create(1, &q->mutexes));
    }
    if (q->p.w->setup.checked && good) {
        program_begin(&q->p, "keel_taskpool_create");
        good = ended(q, q->calls->taskpool_create(REPLICA_STEPS, &q->pool));
    }
    q->all->begun += good;
    return good;
}

static bool end_turns(struct replica_program *q)
{
    program_begin(&q->p, "keel_mutexes_free");
    if (!ended(q, q->calls->mutexes_free(q->mutexes)))
        return false;
    program_begin(&q->p, "keel_taskpool_free");
    return ended(q, q->calls->taskpool_free(q->pool));
}

/* How many collectives that rank still makes, before it leaves. */
static int stays(const struct replica_program *q, int rank)
{
    struct rng rng;
    rng_seed(&rng, q->p.w->setup.seed * 31 + (uint64_t)rank);
    return (int)rng_below(&rng, 4);
}

/* Some leave before others, whose collectives go on without them. */
static bool leave_one_by_one(struct replica_program *q)
{
    double mine = q->rank + 1;
    for (int i = 0; i < stays(q, q->rank); i++) {
        double sum = -1, expected = 0;
        for (int r = 0; r < q->all->map.ranks; r++)
            expected += stays(q, r) > i ? r + 1 : 0;
        program_begin(&q->p, "keel_allreduce_sum of who has not left");
        if (!ended(q, q->calls->allreduce_sum(&mine, &sum, 1)))
            return false;
        if (sum != expected)
            world_fail(q->p.w, "rank %d of set %d: those who have not left say %g, not %g", q->rank, q->set, sum,
                       expected);
    }
    return !q->p.w->failed;
}

void replicas_run(struct runner *r)
{
    struct world *w = r->w;
    struct replica_program *q = sim_alloc(sizeof *q);
    struct replica me = replica_of(&w->replicas->map, r->rank);
    *q = (struct replica_program){
        .p = {.r = r, .w = w, .process = &r->process}, .all = w->replicas, .rank = me.rank, .set = me.set};
    rng_seed(&q->rng, w->setup.seed * 977 + (uint64_t)me.rank);
    r->program = &q->p;
    r->client.timeout_ns = 20 * SEC;
    r->client.resumed = true;
    bool good = begin(q);
    for (int k = 0; k < w->model->stages && good && !w->failed; k++)
        good = one_stage(q, k);
    if (w->setup.plain && good && !q->p.over)
        good = end_turns(q);
    for (int i = 0; i < q->all->segments && w->setup.plain && good && !q->p.over; i++) {
        program_begin(&q->p, "keel_segment_free");
        good = ended(q, q->calls->segment_free(q->seg[i]));
    }
    if (w->setup.plain && good && !q->p.over)
        good = leave_one_by_one(q);
    if (good && !q->p.over) {
        program_begin(&q->p, "keel_finalize");
        (void)q->calls->finalize();
    }
    if (good && !q->p.over)
        return;
    while (!w->failed) /* its set has lost somebody: its agent ends it */
        process_spend(&r->process, 10 * MS);
}
