/* What a rank does: random operations, in stages that end with a collective. A process that takes a rank over repeats the
 * allocations and goes on at the stage that the others are in, as an application would. */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/base/fault.h"
#include "runtime/client/mutex.h"
#include "runtime/protocol/arith.h"
#include "tests/sim/data/lock.h"
#include "tests/sim/data/model.h"

/* An operation that was started and not waited for. */
struct outstanding {
    struct outstanding *next;
    keel_handle handle;
    bool implicit, strong;
    struct pending *pending; /* a put; NULL: a get */
    struct region *region;
    size_t offset, len;
    uint64_t changes;
    uint8_t *base;
    uint8_t bytes[];
};

struct program {
    struct runner *r;
    struct world *w;
    keel_segment *seg[SEGMENTS_MAX];
    keel_taskpool *pool[SEGMENTS_MAX];
    keel_mutexes *mutexes;
    int mutexes_at; /* of the plan */
    struct outstanding *out;
    int outstanding, outstanding_max;
    bool over; /* the job is lost for this process */
};

/* ---- calls ---- */

static void begin(struct program *p, const char *call)
{
    p->r->call_at = p->w->sched.now;
    p->r->call = call;
    p->r->process.frozen_ns = 0;
}

/* Its time: nothing takes longer than the operations' limit, but for what the process itself did not live. */
static void ended(struct program *p, keel_status status, bool limited)
{
    struct runner *r = p->r;
    uint64_t took = p->w->sched.now - r->call_at - r->process.frozen_ns;
    r->call_at = 0;
    if (limited && took > r->client.timeout_ns + SEC)
        world_fail(p->w, "rank %d.%u: %s took %llu ms", r->rank, r->incarnation, r->call,
                   (unsigned long long)(took / MS));
    if (status == KEEL_ERR_FENCED || status == KEEL_ERR_AGENT_GONE)
        p->over = true;
}

/* ---- what is outstanding ---- */

static void out_remove(struct program *p, struct outstanding *o)
{
    struct outstanding **link = &p->out;
    while (*link != o)
        link = &(*link)->next;
    *link = o->next;
    p->outstanding--;
    free(o->base);
    free(o);
}

static void out_ended(struct program *p, struct outstanding *o, keel_status status)
{
    if (o->pending) {
        model_status(p->w, p->r, o->region->segment, o->region->rank, status, "a put");
        model_put_done(p->w, o->pending, status);
    } else {
        model_status(p->w, p->r, o->region->segment, o->region->rank, status, "a get");
        if (status == KEEL_OK)
            model_got(p->w, p->r, o->region, o->offset, o->bytes, o->len, o->base, o->changes);
        if (status == KEEL_OK && o->strong)
            model_got_strong(p->w, p->r, o->region, o->offset, o->bytes, o->len, o->base);
    }
    out_remove(p, o);
}

static void out_wait(struct program *p, struct outstanding *o)
{
    begin(p, "keel_wait");
    keel_status status = rma_wait(&p->r->client, &o->handle);
    ended(p, status, true);
    out_ended(p, o, status);
}

/* All implicit ones to the rank (-1: to any) are over. */
static void implicit_ended(struct program *p, int rank, keel_status status)
{
    for (struct outstanding *o = p->out, *next; o; o = next) {
        next = o->next;
        if (!o->implicit)
            continue;
        const struct region *g = o->region;
        if (status != KEEL_OK && o->pending) {
            /* which of them it was is not known; one in doubt is completed by a later one only */
            model_put_done(p->w, o->pending, KEEL_ERR_TIMEOUT);
            out_remove(p, o);
        } else if (rank < 0 || g->rank == rank) {
            out_ended(p, o, KEEL_OK);
        }
    }
}

static void fence(struct program *p, int rank)
{
    begin(p, "keel_fence");
    keel_status status = rma_fence(&p->r->client, rank);
    if (status != KEEL_OK &&
        rank >= 0) { /* which of them it was is not said; the others must end before they are given up */
        (void)rma_fence(&p->r->client, -1);
        rank = -1;
    }
    ended(p, status, true);
    implicit_ended(p, rank, status);
}

static void wait_all(struct program *p)
{
    fence(p, -1);
    while (p->out && !p->over)
        out_wait(p, p->out);
}

/* ---- operations ---- */

static struct sched *random_of(const struct program *p)
{
    return &p->w->sched;
}

static int some_segment(const struct program *p)
{
    int at[SEGMENTS_MAX], n = 0;
    for (int i = 0; i < p->w->model->segments; i++)
        if (p->seg[i] && !p->w->model->planned[i].is_pool)
            at[n++] = i;
    return n ? at[sched_below(random_of(p), (uint64_t)n)] : -1;
}

static struct region *some_region(struct program *p, int segment, bool own)
{
    struct region *at[4 * RANKS_MAX * RANKS_MAX];
    int n = 0;
    for (struct region *g = p->w->model->regions; g; g = g->next)
        if (g->segment == segment && (!own || g->writer == p->r->rank) &&
            !(p->w->model->planned[segment].part && !p->w->model->planned[segment].part[g->rank]))
            at[n++] = g;
    return n ? at[sched_below(random_of(p), (uint64_t)n)] : NULL;
}

static void some_range(struct program *p, const struct region *g, size_t *offset, size_t *len)
{
    struct sched *s = random_of(p);
    unsigned kind = (unsigned)sched_below(s, 10);
    if (kind < 3 && g->len >= 8) { /* whole words */
        *len = 8 * sched_between(s, 1, sched_chance(s, 0.5) ? 1 : g->len / 8);
        *offset = 8 * sched_below(s, (g->len - *len) / 8 + 1);
    } else if (kind < 6) { /* a few bytes */
        *len = sched_between(s, 1, g->len < 20 ? g->len : 20);
        *offset = sched_below(s, g->len - *len + 1);
    } else {
        *len = sched_between(s, 1, g->len);
        *offset = sched_below(s, g->len - *len + 1);
    }
}

/* Two puts of one rank to the same bytes at the same time are a race of its own. */
static void wait_for_overlap(struct program *p, const struct region *g, size_t offset, size_t len)
{
    for (struct outstanding *o = p->out; o && !p->over; o = o->next) {
        if (!o->pending || o->region != g || o->offset >= offset + len || offset >= o->offset + o->len)
            continue;
        if (o->implicit)
            fence(p, -1);
        else
            out_wait(p, o);
        wait_for_overlap(p, g, offset, len);
        return;
    }
}

static void fill(struct program *p, uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i += 8) {
        uint64_t x = rng_u64(&random_of(p)->rng);
        memcpy(bytes + i, &x, len - i < 8 ? len - i : 8);
    }
}

static struct outstanding *out_new(struct program *p, struct region *g, size_t offset, size_t len)
{
    struct outstanding *o = sim_alloc(sizeof *o + len);
    o->region = g;
    o->offset = offset;
    o->len = len;
    o->next = p->out;
    p->out = o;
    p->outstanding++;
    return o;
}

static void put(struct program *p, int segment)
{
    struct sched *s = random_of(p);
    struct region *g = some_region(p, segment, true);
    size_t offset, len;
    for (int tries = 0; p->w->setup.wide && g && g->len <= WIRE_BODY_MAX && tries < 3; tries++)
        g = some_region(p, segment, true);
    if (!g)
        return;
    some_range(p, g, &offset, &len);
    wait_for_overlap(p, g, offset, len);
    if (p->over)
        return;
    struct outstanding *o = out_new(p, g, offset, len);
    fill(p, o->bytes, len);
    o->pending = model_put(p->w, p->r, g, offset, o->bytes, len);
    size_t at = g->offset + offset;
    if (sched_chance(s, 0.4) || p->outstanding > p->outstanding_max) {
        begin(p, "keel_put");
        keel_status status = rma_put(&p->r->client, p->seg[segment], g->rank, at, o->bytes, len);
        ended(p, status, true);
        out_ended(p, o, status);
        return;
    }
    o->implicit = sched_chance(s, 0.3);
    keel_status status = rma_start(&p->r->client, OP_PUT, p->seg[segment], g->rank, at, o->bytes, NULL, len,
                                   o->implicit ? NULL : &o->handle);
    if (status != KEEL_OK)
        out_ended(p, o, status);
}

static void get(struct program *p, int segment)
{
    struct sched *s = random_of(p);
    struct region *g = some_region(p, segment, sched_chance(s, 0.3));
    size_t offset, len;
    if (!g)
        return;
    some_range(p, g, &offset, &len);
    struct outstanding *o = out_new(p, g, offset, len);
    o->changes = g->changes;
    o->base = sim_alloc(g->len);
    memcpy(o->base, g->base, g->len);
    size_t at = g->offset + offset;
    o->strong = sched_chance(s, 0.5);
    world_trace(p->w, "rank %d: get %zu+%zu from rank %d, segment %d, region of %d", p->r->rank, offset, len, g->rank,
                g->segment, g->writer);
    if (sched_chance(s, 0.6)) {
        begin(p, "keel_get");
        keel_status status =
            (o->strong ? rma_get_strong : rma_get)(&p->r->client, p->seg[segment], g->rank, at, o->bytes, len);
        ended(p, status, true);
        out_ended(p, o, status);
        return;
    }
    keel_status status =
        o->strong ? rma_start_strong(&p->r->client, p->seg[segment], g->rank, at, o->bytes, len, &o->handle)
                  : rma_start(&p->r->client, OP_GET, p->seg[segment], g->rank, at, NULL, o->bytes, len, &o->handle);
    if (status != KEEL_OK)
        out_ended(p, o, status);
}

static void accumulate(struct program *p, int segment)
{
    struct sched *s = random_of(p);
    int rank = (int)sched_below(s, (uint64_t)p->w->setup.ranks);
    struct sum *sum = p->w->model->sums;
    while (sum->segment != segment || sum->rank != rank)
        sum = sum->next;
    size_t n = sched_chance(s, 0.2) ? sum->n : sched_between(s, 1, sum->n < 8 ? sum->n : 8);
    size_t first = sched_below(s, sum->n - n + 1);
    double value = 2.0 * (double)sched_between(s, 1, sum->type == KEEL_FLOAT ? 1 << 9 : 1 << 19);
    uint8_t scale[ARITH_SCALE_MAX], *src = sim_alloc(n * arith_size(sum->type) + 1);
    sum_write(sum->type, scale, 2);
    for (size_t i = 0; i < n; i++)
        sum_write(sum->type, src + i * arith_size(sum->type), value / 2);
    struct adding *a = model_add(p->w, p->r, sum, first, n, value);
    begin(p, "keel_acc");
    keel_status status = rma_acc(&p->r->client, p->seg[segment], rank, sum->offset + first * arith_size(sum->type),
                                 sum->type, scale, src, n);
    ended(p, status, true);
    world_trace(p->w, "rank %d: accumulate %zu+%zu to rank %d, segment %d (at %zu): %.0f, %s", p->r->rank, first, n,
                rank, segment, sum->offset, value, keel_status_name(status));
    model_status(p->w, p->r, segment, rank, status, "an accumulate");
    model_add_done(p->w, a, status);
    free(src);
}

enum { PIECES_MAX = 40 };

/* Pieces as a shape has them, and as a vector, which comes in another order. */
struct pieces {
    size_t n, stride;
    keel_strided shape;
    keel_piece piece[PIECES_MAX];
    uint8_t *bytes;
};

/* Pieces of len bytes somewhere in room bytes; false: there is no room for two. */
static bool some_pieces(struct program *p, struct pieces *q, size_t len, size_t align, size_t room, size_t *first)
{
    struct sched *s = random_of(p);
    size_t most = room / len < PIECES_MAX ? room / len : PIECES_MAX;
    if (most < 2)
        return false;
    q->n = sched_between(s, 2, most);
    q->stride = len + align * sched_below(s, (room / q->n - len) / align + 1);
    size_t extent = q->stride * (q->n - 1) + len, local = len + sched_below(s, 9);
    *first = align * sched_below(s, (room - extent) / align + 1);
    q->bytes = sim_alloc(local * q->n);
    q->shape = (keel_strided){.levels = 1, .count = {len, q->n}, .global_stride = {q->stride}, .local_stride = {local}};
    for (size_t i = 0; i < q->n; i++)
        q->piece[i] = (keel_piece){*first + i * q->stride, q->bytes + i * local, len};
    return true;
}

/* The call: strided or vector, blocking or not. Another error than the last piece's may have been the first: all are in doubt. */
static keel_status pieces_run(struct program *p, struct pieces *q, struct shaped how, int segment, int rank, size_t at)
{
    struct sched *s = random_of(p);
    struct client *c = &p->r->client;
    keel_handle handle = {{0}};
    keel_status status;
    how.blocks = sched_chance(s, 0.5);
    how.handle = how.blocks ? NULL : &handle;
    begin(p, "a call with pieces");
    if (sched_chance(s, 0.5)) {
        status = shaped_strided(c, &how, p->seg[segment], rank, at + q->piece[0].offset, q->bytes, &q->shape);
    } else {
        for (size_t i = q->n; i > 1; i--) {
            size_t j = sched_below(s, i);
            keel_piece swap = q->piece[i - 1];
            q->piece[i - 1] = q->piece[j];
            q->piece[j] = swap;
        }
        for (size_t i = 0; i < q->n; i++)
            q->piece[i].offset += at;
        status = shaped_vector(c, &how, p->seg[segment], rank, q->piece, q->n);
    }
    if (how.handle && status == KEEL_OK)
        status = rma_wait(c, &handle);
    ended(p, status, true);
    model_status(p->w, p->r, segment, rank, status, "a call with pieces");
    return status == KEEL_OK ? KEEL_OK : KEEL_ERR_TIMEOUT;
}

static void put_pieces(struct program *p, int segment)
{
    struct region *g = some_region(p, segment, true);
    struct pieces q;
    struct pending *pending[PIECES_MAX];
    size_t first, len = 1 + sched_below(random_of(p), 24);
    if (!g)
        return;
    wait_for_overlap(p, g, 0, g->len);
    if (p->over || !some_pieces(p, &q, len, 1, g->len < 4096 ? g->len : 4096, &first))
        return;
    fill(p, q.bytes, q.shape.local_stride[0] * (q.n - 1) + len);
    for (size_t i = 0; i < q.n; i++)
        pending[i] = model_put(p->w, p->r, g, q.piece[i].offset, q.piece[i].local, len);
    keel_status status = pieces_run(p, &q, (struct shaped){.kind = OP_PUT}, segment, g->rank, g->offset);
    for (size_t i = 0; i < q.n; i++)
        model_put_done(p->w, pending[i], status);
    free(q.bytes);
}

static void accumulate_pieces(struct program *p, int segment)
{
    struct sched *s = random_of(p);
    int rank = (int)sched_below(s, (uint64_t)p->w->setup.ranks);
    struct sum *sum = p->w->model->sums;
    while (sum->segment != segment || sum->rank != rank)
        sum = sum->next;
    struct pieces q;
    struct adding *adding[PIECES_MAX];
    size_t first, size = arith_size(sum->type);
    if (!some_pieces(p, &q, size * (1 + sched_below(s, 3)), size, sum->n * size, &first))
        return;
    double value = (double)sched_between(s, 1, sum->type == KEEL_FLOAT ? 1 << 10 : 1 << 20);
    for (size_t i = 0; i < q.n; i++) {
        for (size_t k = 0; k < q.shape.count[0]; k += size)
            sum_write(sum->type, (uint8_t *)q.piece[i].local + k, value);
        adding[i] = model_add(p->w, p->r, sum, q.piece[i].offset / size, q.shape.count[0] / size, value);
    }
    struct shaped how = {.kind = OP_ACC, .type = sum->type};
    keel_status status = pieces_run(p, &q, how, segment, rank, sum->offset);
    for (size_t i = 0; i < q.n; i++)
        model_add_done(p->w, adding[i], status);
    free(q.bytes);
}

/* One operation on a word: to the first one adds, to the second one all atomics, to the third one puts of the rank whose part
 * it is in; gets, everywhere, strong ones and plain ones; these count as strong where nothing goes wrong. */
static struct history_op some_word_op(struct program *p, int which, int rank)
{
    static const keel_rmw_op some_rmw[] = {KEEL_RMW_ADD,  KEEL_RMW_ADD, KEEL_RMW_COMPARE_SWAP, KEEL_RMW_COMPARE_SWAP,
                                           KEEL_RMW_SWAP, KEEL_RMW_AND, KEEL_RMW_OR,           KEEL_RMW_XOR};
    struct sched *s = random_of(p);
    keel_rmw_op rmw = which == 1 ? some_rmw[sched_below(s, 8)] : KEEL_RMW_ADD;
    bool cas = rmw == KEEL_RMW_COMPARE_SWAP;
    struct history_op op = {.kind = HISTORY_RMW,
                            .rmw = (enum arith_rmw)rmw,
                            .a = (int64_t)sched_below(s, cas ? 3 : 5) + (cas ? 0 : 1),
                            .b = (int64_t)sched_below(s, 4),
                            .called = p->w->sched.now,
                            .rank = p->r->rank};
    if (sched_chance(s, 0.3) || (which == 2 && rank != p->r->rank))
        op.kind = p->w->setup.quiet || sched_chance(s, 0.5) ? HISTORY_GET : HISTORY_PLAIN_GET;
    else if (which == 2) {
        op.kind = HISTORY_PUT;
        op.a = (int64_t)rng_u64(&s->rng);
    }
    return op;
}

static keel_status run_word_op(struct program *p, keel_segment *segment, int rank, size_t offset,
                               const struct history_op *op, int64_t *result)
{
    struct client *c = &p->r->client;
    bool cas = op->rmw == (enum arith_rmw)KEEL_RMW_COMPARE_SWAP;
    if (op->kind == HISTORY_RMW)
        return rma_rmw(c, segment, rank, offset, KEEL_INT64, (keel_rmw_op)op->rmw, cas ? &op->b : &op->a, &op->a,
                       result);
    if (op->kind == HISTORY_PUT)
        return rma_put(c, segment, rank, offset, &op->a, sizeof op->a);
    bool plain = op->kind == HISTORY_PLAIN_GET || (p->w->setup.quiet && sched_chance(random_of(p), 0.5));
    return (plain ? rma_get : rma_get_strong)(c, segment, rank, offset, result, sizeof *result);
}

static void word_op(struct program *p, int segment)
{
    static const char *const call[] = {[HISTORY_RMW] = "keel_rmw",
                                       [HISTORY_PUT] = "keel_put of a word",
                                       [HISTORY_GET] = "a get of a word",
                                       [HISTORY_PLAIN_GET] = "a plain get of a word"};
    struct sched *s = random_of(p);
    struct word *word = p->w->model->words;
    int rank = (int)sched_below(s, (uint64_t)p->w->setup.ranks), which = (int)sched_below(s, WORDS_PER_RANK);
    if (which == 2 && sched_chance(s, 0.4))
        rank = p->r->rank;
    for (int seen = 0;; word = word->next)
        if (word->segment == segment && word->rank == rank && seen++ == WORDS_PER_RANK - 1 - which)
            break;
    struct history_op op = some_word_op(p, which, rank);
    size_t at = history_call(&word->history, &op);
    int64_t old = 0;
    begin(p, call[op.kind]);
    keel_status status = run_word_op(p, p->seg[segment], rank, word->offset, &op, &old);
    ended(p, status, true);
    world_trace(p->w, "rank %d: %s of %zu of rank %d, segment %d: %s", p->r->rank, call[op.kind], word->offset, rank,
                segment, keel_status_name(status));
    model_status(p->w, p->r, segment, rank, status, call[op.kind]);
    if (status == KEEL_OK && !model_is_zombie(p->w, p->r->rank, p->r->incarnation))
        history_return(&word->history, at, old, p->w->sched.now);
}

/* What it guards is as the last holder left it; then it is changed. */
static void change_guarded(struct program *p, struct region *g)
{
    struct client *c = &p->r->client;
    uint64_t changes = g->changes;
    uint8_t *before = sim_alloc(2 * g->len), *bytes = before + g->len;
    memcpy(before, g->base, g->len);
    begin(p, "a get under a mutex");
    keel_status status = rma_get(c, p->seg[g->segment], g->rank, g->offset, bytes, g->len);
    ended(p, status, true);
    model_status(p->w, p->r, g->segment, g->rank, status, "a get under a mutex");
    if (status == KEEL_OK)
        model_got(p->w, p->r, g, 0, bytes, g->len, before, changes);
    size_t offset = sched_below(random_of(p), g->len), len = sched_between(random_of(p), 1, g->len - offset);
    fill(p, bytes, len);
    struct pending *put = model_put(p->w, p->r, g, offset, bytes, len);
    begin(p, "a put under a mutex");
    status = rma_put(c, p->seg[g->segment], g->rank, g->offset + offset, bytes, len);
    ended(p, status, true);
    model_status(p->w, p->r, g->segment, g->rank, status, "a put under a mutex");
    model_put_done(p->w, put, status);
    free(before);
}

static void critical(struct program *p)
{
    struct world *w = p->w;
    struct sched *s = random_of(p);
    int home = (int)sched_below(s, sched_chance(s, 0.6) ? 1 : (uint64_t)w->setup.ranks), dead = -1;
    int number = (int)sched_below(s, (uint64_t)w->setup.mutexes);
    struct lock *l = lock_find(w, p->mutexes_at, home, number);
    bool waits = sched_chance(s, 0.8);
    begin(p, waits ? "keel_mutex_lock" : "keel_mutex_try");
    keel_status status = mutex_lock(p->mutexes, home, number, waits, &dead);
    ended(p, status, false);
    if (!waits && status == KEEL_IN_PROGRESS)
        return;
    model_status(w, p->r, l->segment, home, status, "a mutex");
    if (status != KEEL_OK)
        return;
    lock_taken(w, p->r, l, dead);
    if (sched_chance(s, 0.3))
        process_spend(&p->r->process, sched_below(s, 500 * US));
    if (p->seg[l->guarded->segment])
        change_guarded(p, l->guarded);
    if (p->over)
        return;
    lock_given_back(w, p->r, l);
    begin(p, "keel_mutex_unlock");
    status = mutex_unlock(p->mutexes, home, number);
    ended(p, status, false);
    model_status(w, p->r, l->segment, home, status, "keel_mutex_unlock");
}

static void one_action(struct program *p)
{
    struct sched *s = random_of(p);
    int segment = some_segment(p);
    unsigned kind = (unsigned)sched_below(s, 100);
    if (p->mutexes && sched_chance(s, 0.4)) {
        critical(p);
        return;
    }
    if (segment < 0 || kind < 8)
        process_spend(&p->r->process, sched_below(s, 200 * US));
    else if (kind < 48)
        put(p, segment);
    else if (kind < 55)
        put_pieces(p, segment);
    else if (kind < 70 || p->w->model->planned[segment].of_group)
        get(p, segment);
    else if (kind < 77)
        accumulate(p, segment);
    else if (kind < 80)
        accumulate_pieces(p, segment);
    else if (kind < 92)
        word_op(p, segment);
    else if (kind < 95)
        fence(p, (int)sched_below(s, (uint64_t)p->w->setup.ranks));
    else if (p->out && !p->out->implicit)
        out_wait(p, p->out);
}

/* ---- tasks ---- */

static bool data_lost(struct program *p, keel_status status, const char *call)
{
    struct world *w = p->w;
    if (status == KEEL_OK)
        return false;
    if (p->over)
        return true;
    if (status == KEEL_ERR_NOMEM && w->setup.each && !w->setup.kills)
        runner_exit(p->r, 3);
    if (status == KEEL_ERR_NOMEM && w->setup.fail_at) /* as an application would */
        runner_kill(p->r, 6);
    for (int g = 0; g < w->setup.nodes * CLASSES; g++)
        if (w->model->lost[g])
            w->hopeless = true; /* what the pools, or the runtime, keep there is gone */
    if (!w->hopeless)
        world_fail(w, "rank %d.%u: %s says %s", p->r->rank, p->r->incarnation, call, keel_status_name(status));
    return true;
}

static bool one_task(struct program *p, int pool, int64_t task)
{
    const struct planned *s = &p->w->model->planned[pool];
    for (int step = 0; step < TASK_STEPS; step++) {
        int rank = (int)((task + step) % p->w->setup.ranks);
        double value = task_value(task, step);
        size_t at = s->pool.offset + 8 * (size_t)(task * TASK_STEPS + step);
        begin(p, "an accumulate of a task");
        keel_status status = rma_acc_double(&p->r->client, p->seg[s->pool.segment], rank, at, 1.0, &value, 1);
        ended(p, status, true);
        if (data_lost(p, status, "an accumulate of a task"))
            return false;
    }
    begin(p, "keel_task_commit");
    keel_status status = task_commit(&p->r->client, p->pool[pool], task);
    ended(p, status, true);
    return !data_lost(p, status, "keel_task_commit");
}

static bool tasks(struct program *p, int pool, uint64_t round)
{
    struct pool *t = &p->w->model->planned[pool].pool;
    if (t->begun < round)
        t->begun = round;
    for (;;) {
        int64_t task;
        begin(p, "keel_task_next");
        keel_status status = task_next(&p->r->client, p->pool[pool], &task);
        ended(p, status, false);
        if (data_lost(p, status, "keel_task_next"))
            return false;
        if (task < 0)
            break;
        if (!one_task(p, pool, task))
            return false;
    }
    if (t->complete < round)
        t->complete = round;
    return true;
}

/* ---- stages ---- */

static bool collective(struct program *p, const struct stage *stage)
{
    struct world *w = p->w;
    struct client *c = &p->r->client;
    double in[3] = {1, p->r->rank, 2}, out[3] = {0};
    uint64_t word = 0x1234;
    keel_status status = KEEL_OK;
    begin(p, "a collective");
    switch (stage->kind) {
    case STAGE_BARRIER:
        status = collective_barrier(c);
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
    case STAGE_RESET:
        status = taskpool_reset(c, p->pool[stage->pool]);
        break;
    }
    ended(p, status, false);
    /* It began with a fence of all implicit operations. */
    if (!p->over)
        implicit_ended(p, -1, status);
    return !data_lost(p, status, "a collective");
}

/* Those of the first processes that live make it; a death, or a member that stands still, may keep them from it. */
static bool allocate_in_group(struct program *p, int i)
{
    struct world *w = p->w;
    struct client *c = &p->r->client;
    struct planned *s = &w->model->planned[i];
    keel_group *g = NULL;
    if (p->r->incarnation > 0)
        return true;
    begin(p, "keel_group_shrink");
    keel_status status = coll_shrink(c->coll.world, &g);
    ended(p, status, false);
    int n = status == KEEL_OK ? group_size(g->ranks) : 0;
    size_t bytes[RANKS_MAX], part[RANKS_MAX] = {0};
    for (int member = 0; member < n; member++) {
        int rank = group_rank(g->ranks, member);
        part[rank] = bytes[member] = s->part[rank];
    }
    begin(p, "keel_segment_alloc_group");
    if (status == KEEL_OK)
        status = segment_alloc_group(g, bytes, s->redundancy, &p->seg[i]);
    ended(p, status, false);
    world_trace(w, "rank %d.%u: a segment of %d members: %s", p->r->rank, p->r->incarnation, n,
                keel_status_name(status));
    if (p->over || model_is_zombie(w, p->r->rank, 0))
        return !p->over;
    if (status == KEEL_ERR_RANK_DEAD || status == KEEL_ERR_REVOKED || status == KEEL_ERR_TIMEOUT)
        return true;
    if (data_lost(p, status, "keel_segment_alloc_group"))
        return false;
    int64_t index = p->seg[i]->index;
    if (s->made && (s->index != index || memcmp(s->part, part, (size_t)w->setup.ranks * sizeof *part) != 0))
        world_fail(w, "rank %d: the group's segment has number %lld, not %lld, or other members", p->r->rank,
                   (long long)index, (long long)s->index);
    memcpy(s->part, part, (size_t)w->setup.ranks * sizeof *part);
    s->index = index;
    s->made = true;
    return true;
}

static bool allocate(struct program *p, int i)
{
    struct world *w = p->w;
    struct planned *s = &w->model->planned[i];
    if (s->of_group)
        return allocate_in_group(p, i);
    int64_t index = p->r->client.segments_next;
    fence(p, -1);
    begin(p, "an allocation");
    keel_status status = s->is_pool   ? taskpool_create(&p->r->client, s->pool.tasks, &p->pool[i])
                         : s->mutexes ? mutexes_create(&p->r->client, s->mutexes, &p->mutexes)
                         : s->part    ? segment_alloc_parts(&p->r->client, s->part, s->redundancy, &p->seg[i])
                                      : segment_alloc(&p->r->client, s->bytes, s->redundancy, &p->seg[i]);
    if (s->mutexes)
        p->mutexes_at = i;
    ended(p, status, false);
    if (p->r->incarnation == 0 && !model_is_zombie(w, p->r->rank, 0)) {
        s->made = s->made || status == KEEL_OK;
        s->refused = s->refused || status == KEEL_ERR_NOMEM;
        if (s->made && s->refused)
            world_fail(w, "rank %d: allocation %d says %s, and another one to others", p->r->rank, i,
                       keel_status_name(status));
    }
    if (p->r->incarnation > 0 && s->refused && status == KEEL_OK)
        world_fail(w, "rank %d.%u: allocation %d, which the others were refused, says KEEL_OK", p->r->rank,
                   p->r->incarnation, i);
    if (status == KEEL_ERR_NOMEM && w->setup.fail_at) /* all get it, and end together */
        runner_exit(p->r, 3);
    if (data_lost(p, status, "an allocation"))
        return false;
    if (s->index >= 0 && s->index != index)
        world_fail(w, "rank %d.%u: segment %d has number %lld, not %lld", p->r->rank, p->r->incarnation, i,
                   (long long)index, (long long)s->index);
    s->index = index;
    return true;
}

static bool release(struct program *p, int i)
{
    struct planned *s = &p->w->model->planned[i];
    wait_all(p);
    if (p->over)
        return false;
    begin(p, "keel_segment_free");
    s->freed = true;
    keel_status status = segment_free(&p->r->client, p->seg[i]);
    p->seg[i] = NULL;
    ended(p, status, false);
    return !data_lost(p, status, "keel_segment_free");
}

static bool change_segments(struct program *p, int stage)
{
    const struct model *m = p->w->model;
    for (int i = 0; i < m->segments; i++)
        if (m->planned[i].alloc_at == stage && !allocate(p, i))
            return false;
    for (int i = 0; i < m->segments; i++)
        if (m->planned[i].free_at == stage && p->seg[i] && !release(p, i))
            return false;
    return true;
}

static uint64_t round_of(const struct model *m, int stage)
{
    uint64_t round = 1;
    for (int k = 0; k < stage; k++)
        round += m->stage[k].kind == STAGE_RESET && m->stage[k].pool == m->stage[stage].pool;
    return round;
}

/* All wait here until nothing goes on anywhere; meanwhile the runtime may have to tell its agent something. */
static void wait_at_gate(struct program *p, int gate)
{
    struct runner *r = p->r;
    if (gate == 0 || p->w->gates >= gate)
        return;
    wait_all(p);
    r->at_gate = gate;
    while (p->w->gates < gate && !p->over) {
        process_spend(&r->process, sched_between(random_of(p), MS, 3 * MS));
        pthread_mutex_lock(&r->client.lock);
        client_progress(&r->client);
        pthread_mutex_unlock(&r->client.lock);
        p->over = r->client.fatal != KEEL_OK;
    }
    r->at_gate = 0;
}

static bool one_stage(struct program *p, int k)
{
    struct world *w = p->w;
    const struct stage *stage = &w->model->stage[k];
    struct client *c = &p->r->client;
    uint64_t all = c->timeout_ns;
    if (!change_segments(p, k))
        return false;
    int actions = (int)sched_below(&w->sched, 2 * (uint64_t)w->setup.actions + 1);
    c->timeout_ns = w->setup.timeout_ns;
    int exit_at = sched_chance(&w->sched, w->setup.exits) ? (int)sched_below(&w->sched, (uint64_t)actions + 1) : -1;
    for (int i = 0; i < actions && !p->over && !w->failed; i++) {
        if (i == exit_at) /* what is under way stays where it is */
            runner_exit(p->r, 0);
        one_action(p);
    }
    c->timeout_ns = all;
    if (stage->gate || sched_chance(&w->sched, 0.4))
        wait_all(p);
    if (w->setup.timeout_ns < SEC)
        fence(p, -1); /* a collective fails if one of them did */
    if (p->over || (stage->kind == STAGE_RESET && !tasks(p, stage->pool, round_of(w->model, k))))
        return false;
    world_trace(w, "rank %d.%u: stage %d, collective %d; %llu instances, %llu collectives", p->r->rank,
                p->r->incarnation, k, (int)stage->kind, (unsigned long long)c->instance,
                (unsigned long long)c->collectives);
    if (!collective(p, stage))
        return false;
    wait_at_gate(p, stage->gate);
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
        begin(p, "keel_taskpool_free");
        w->model->planned[i].freed = true;
        keel_status status = taskpool_free(&p->r->client, p->pool[i]);
        ended(p, status, false);
        if (data_lost(p, status, "keel_taskpool_free"))
            return;
    }
}

static void free_mutexes(struct program *p)
{
    if (!p->mutexes || p->over)
        return;
    begin(p, "keel_mutexes_free");
    p->w->model->planned[p->mutexes_at].freed = true;
    keel_status status = mutexes_free(&p->r->client, p->mutexes);
    ended(p, status, false);
    (void)data_lost(p, status, "keel_mutexes_free");
}

static void leave(struct program *p)
{
    struct runner *r = p->r;
    wait_all(p);
    free_pools(p);
    free_mutexes(p);
    if (p->over)
        return;
    r->leaving = true;
    begin(p, "keel_finalize");
    keel_status status = client_leave(&r->client);
    ended(p, status, true);
    if (p->over)
        return;
    if (status != KEEL_OK)
        world_fail(p->w, "rank %d.%u: keel_finalize says %s", r->rank, r->incarnation, keel_status_name(status));
    leak(p, "operations", r->client.ops_living);
    leak(p, "pieces", r->client.pieces_living);
    leak(p, "puts that are open", atomic_load(&r->intents->open));
    for (int i = 0; i < INTENT_MAX; i++)
        leak(p, "notes that are active", atomic_load(&r->intents->entry[i].active));
    client_fini(&r->client);
    leak(p, "pieces of memory", r->process.heap.blocks);
}

void program_run(struct runner *r)
{
    struct world *w = r->w;
    const struct model *m = w->model;
    struct program *p = sim_alloc(sizeof *p);
    *p = (struct program){.r = r, .w = w};
    p->outstanding_max = sched_chance(&w->sched, 0.1) ? 300 : (int)sched_between(&w->sched, 0, 24);
    r->program = p;
    r->client.timeout_ns = 20 * SEC;
    int first = (int)r->client.collectives;
    world_trace(w, "rank %d.%u joins: %llu instances, %llu collectives, %u segments", r->rank, r->incarnation,
                (unsigned long long)r->client.instance, (unsigned long long)r->client.collectives,
                r->client.segments_known);
    bool ok = true;
    for (int k = 0; k < first && k < m->stages && ok; k++)
        ok = change_segments(p, k);
    FAULT_POINT("rank.resuming");
    r->client.resumed = true;
    if (first > 0 && first <= m->stages && ok)
        wait_at_gate(p, m->stage[first - 1].gate);
    for (int k = first; k < m->stages && ok && !w->failed; k++)
        ok = one_stage(p, k);
    if (ok && !p->over)
        leave(p);
    if (ok && !p->over)
        return;
    while (!w->failed) /* its agent, or somebody, will end it */
        process_spend(&r->process, 10 * MS);
}
