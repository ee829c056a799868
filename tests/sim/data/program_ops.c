/* Operations of a rank's program: random puts, gets, accumulates, in one piece and in many, atomics, mutexes. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/op/mutex.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/shaped.h"
#include "runtime/wire/arith.h"
#include "tests/sim/data/lock.h"
#include "tests/sim/data/program_int.h"

struct sched *program_random(const struct program *p)
{
    return &p->w->sched;
}

static int some_segment(const struct program *p)
{
    int at[SEGMENTS_MAX], n = 0;
    for (int i = 0; i < p->w->model->segments; i++)
        if (p->seg[i] && !p->w->model->planned[i].is_pool && !p->w->model->planned[i].vast)
            at[n++] = i;
    return n ? at[sched_below(program_random(p), (uint64_t)n)] : -1;
}

/* Two threads that put to the same bytes at the same time are a race of the program: each has regions of its own. */
static bool is_of_thread(const struct program *p, const struct region *g)
{
    return g->number % (p->w->setup.threads + 1) == p->thread;
}

static struct region *some_region(struct program *p, int segment, bool own)
{
    struct region *at[4 * RANKS_MAX * RANKS_MAX];
    int n = 0;
    for (struct region *g = p->w->model->regions; g; g = g->next)
        if (g->segment == segment && (!own || (g->writer == p->r->rank && is_of_thread(p, g))) &&
            !(p->w->model->planned[segment].part && !p->w->model->planned[segment].part[g->rank]))
            at[n++] = g;
    return n ? at[sched_below(program_random(p), (uint64_t)n)] : NULL;
}

static void some_range(struct program *p, const struct region *g, size_t *offset, size_t *len)
{
    struct sched *s = program_random(p);
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
    struct outstanding *o = p->out;
    while (o && !p->over)
        if (!o->pending || o->region != g || o->offset >= offset + len || offset >= o->offset + o->len) {
            o = o->next;
        } else if (o->implicit) {
            program_fence(p, -1);
            process_spend(p->process, US); /* another thread's fence may still complete it */
            o = p->out;
        } else {
            program_out_wait(p, o);
            o = p->out;
        }
}

static void fill(struct program *p, uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i += 8) {
        uint64_t x = rng_u64(&program_random(p)->rng);
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
    struct sched *s = program_random(p);
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
        program_begin(p, "keel_put");
        keel_status status = rma_put(&p->r->client, p->seg[segment], g->rank, at, o->bytes, len);
        program_ended(p, status, true);
        program_out_ended(p, o, status);
        return;
    }
    o->implicit = sched_chance(s, 0.3);
    o->starting = true;
    keel_status status = rma_start(&p->r->client, OP_PUT, p->seg[segment], g->rank, at, o->bytes, NULL, len,
                                   o->implicit ? NULL : &o->handle);
    o->starting = false;
    o->born = p->r->fences;
    if (status != KEEL_OK)
        program_out_ended(p, o, status);
}

/* It has died, and all have met since this rank knew of it. */
static bool is_gone(const struct program *p, int rank)
{
    const struct page_rank *k = page_rank(p->r->client.page, rank);
    uint64_t died = atomic_load(&k->died);
    return (int32_t)(atomic_load(&k->where) >> 32) < 0 && died && died <= p->r->met_seen;
}

/* A region of the rank's own part whose writer is gone; rather one that it left in doubt. NULL: there is none. */
static struct region *region_of_the_gone(const struct program *p, int segment)
{
    struct region *found = NULL;
    for (struct region *g = p->w->model->regions; g; g = g->next) {
        if (g->segment != segment || g->rank != p->r->rank || g->writer == g->rank || !is_gone(p, g->writer))
            continue;
        found = g;
        if (g->pending)
            break;
    }
    return found;
}

/* Into its own part, by the rank's own thread. Few wait for a flush at a time: the model cannot tell many apart.
 * updates: perhaps within one. */
static void store(struct program *p, int segment, bool updates)
{
    struct region *g = sched_chance(program_random(p), 0.4) ? region_of_the_gone(p, segment) : NULL;
    size_t offset, len;
    for (int tries = 0; !(g && g->rank == p->r->rank) && tries < 8; tries++)
        g = some_region(p, segment, true);
    if (!g || g->rank != p->r->rank)
        return;
    some_range(p, g, &offset, &len);
    if (g->writer != g->rank && g->pending && sched_chance(program_random(p), 0.7)) { /* over what it left */
        offset = g->pending->offset;
        len = g->pending->len;
    }
    wait_for_overlap(p, g, offset, len);
    int waiting = 0;
    for (const struct pending *q = g->pending; q; q = q->next)
        waiting += q->plain && q->offset / sizeof(uint64_t) <= (offset + len) / sizeof(uint64_t) &&
                   offset / sizeof(uint64_t) <= (q->offset + q->len) / sizeof(uint64_t);
    if (p->over || waiting > 1)
        return;
    uint8_t *bytes = sim_alloc(len);
    fill(p, bytes, len);
    g->stored = true;
    if (updates && sched_chance(program_random(p), 0.2))
        program_update(p, g, offset, bytes, len);
    else
        program_store(p, g, offset, bytes, len);
    free(bytes);
}

void program_stores(struct program *p)
{
    for (uint64_t n = sched_below(program_random(p), 4); n > 0 && !p->over; n--) {
        int segment = (int)sched_below(program_random(p), (uint64_t)p->w->model->segments);
        if (p->twins[segment])
            store(p, segment, false);
        process_spend(p->process, sched_below(program_random(p), 20 * US));
    }
}

bool program_put_to(struct program *p, int segment, int rank)
{
    struct region *g = p->w->model->regions;
    while (g && !(g->segment == segment && g->rank == rank && g->writer == p->r->rank && is_of_thread(p, g)))
        g = g->next;
    if (!g)
        return true;
    size_t offset, len;
    some_range(p, g, &offset, &len);
    wait_for_overlap(p, g, offset, len);
    if (p->over)
        return false;
    uint8_t *bytes = sim_alloc(len);
    fill(p, bytes, len);
    struct pending *put = model_put(p->w, p->r, g, offset, bytes, len);
    program_begin(p, "a put before a signal");
    keel_status status = rma_put(&p->r->client, p->seg[segment], rank, g->offset + offset, bytes, len);
    program_ended(p, status, true);
    model_status(p->w, p->r, segment, rank, status, "a put before a signal");
    model_put_done(p->w, put, status);
    free(bytes);
    return status == KEEL_OK;
}

/* A strong get of what only one copy has does not end before it has been brought to the others. */
static bool may_wait_for_a_flush(const struct model *m, const struct region *g)
{
    return g->stored || (m->planned[g->segment].tracked && g->writer == g->rank);
}

static void get(struct program *p, int segment)
{
    struct sched *s = program_random(p);
    struct region *g = some_region(p, segment, sched_chance(s, 0.3));
    size_t offset, len;
    if (!g)
        return;
    some_range(p, g, &offset, &len);
    struct outstanding *o = out_new(p, g, offset, len);
    o->changes = g->changes;
    o->base = sim_alloc(len);
    memcpy(o->base, g->base + offset, len);
    size_t at = g->offset + offset;
    o->strong = sched_chance(s, 0.5) && !may_wait_for_a_flush(p->w->model, g);
    world_trace(p->w, "rank %d: get %zu+%zu from rank %d, segment %d, region of %d", p->r->rank, offset, len, g->rank,
                g->segment, g->writer);
    if (sched_chance(s, 0.6)) {
        program_begin(p, "keel_get");
        keel_status status =
            (o->strong ? rma_get_strong : rma_get)(&p->r->client, p->seg[segment], g->rank, at, o->bytes, len);
        program_ended(p, status, true);
        program_out_ended(p, o, status);
        return;
    }
    keel_status status =
        o->strong ? rma_start_strong(&p->r->client, p->seg[segment], g->rank, at, o->bytes, len, &o->handle)
                  : rma_start(&p->r->client, OP_GET, p->seg[segment], g->rank, at, NULL, o->bytes, len, &o->handle);
    if (status != KEEL_OK)
        program_out_ended(p, o, status);
}

static void accumulate(struct program *p, int segment)
{
    struct sched *s = program_random(p);
    int rank = (int)sched_below(s, (uint64_t)p->w->setup.ranks);
    struct sum *sum = p->w->model->sums;
    while (sum->segment != segment || sum->rank != rank || sum->bell)
        sum = sum->next;
    size_t n = sched_chance(s, 0.2) ? sum->n : sched_between(s, 1, sum->n < 8 ? sum->n : 8);
    size_t first = sched_below(s, sum->n - n + 1);
    double value = 2.0 * (double)sched_between(s, 1, sum->type == KEEL_FLOAT ? 1 << 9 : 1 << 19);
    uint8_t scale[ARITH_SCALE_MAX], *src = sim_alloc(n * arith_size(sum->type) + 1);
    sum_write(sum->type, scale, 2);
    for (size_t i = 0; i < n; i++)
        sum_write(sum->type, src + i * arith_size(sum->type), value / 2);
    struct adding *a = model_add(p->w, p->r, sum, first, n, value);
    program_begin(p, "keel_acc");
    keel_status status = rma_acc(&p->r->client, p->seg[segment], rank, sum->offset + first * arith_size(sum->type),
                                 sum->type, scale, src, n);
    program_ended(p, status, true);
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
    struct sched *s = program_random(p);
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

/* The call: strided or vector, blocking or not. Another error than the last piece's may have been the first: all are
 * in doubt. */
static keel_status pieces_run(struct program *p, struct pieces *q, struct shaped how, int segment, int rank, size_t at)
{
    struct sched *s = program_random(p);
    struct client *c = &p->r->client;
    keel_handle handle = {{0}};
    keel_status status;
    how.blocks = sched_chance(s, 0.5);
    how.handle = how.blocks ? NULL : &handle;
    program_begin(p, "a call with pieces");
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
    program_ended(p, status, true);
    model_status(p->w, p->r, segment, rank, status, "a call with pieces");
    return status == KEEL_OK ? KEEL_OK : KEEL_ERR_TIMEOUT;
}

static void put_pieces(struct program *p, int segment)
{
    struct region *g = some_region(p, segment, true);
    struct pieces q;
    struct pending *pending[PIECES_MAX];
    size_t first, len = 1 + sched_below(program_random(p), 24);
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

static void get_pieces(struct program *p, int segment)
{
    struct region *g = some_region(p, segment, sched_chance(program_random(p), 0.3));
    struct pieces q;
    size_t first, len = 1 + sched_below(program_random(p), 24);
    if (!g || !some_pieces(p, &q, len, 1, g->len < 4096 ? g->len : 4096, &first))
        return;
    size_t extent = q.stride * (q.n - 1) + len, local = q.shape.local_stride[0];
    uint64_t changes = g->changes;
    uint8_t *base = sim_alloc(extent);
    memcpy(base, g->base + first, extent);
    keel_status status = pieces_run(p, &q, (struct shaped){.kind = OP_GET}, segment, g->rank, g->offset);
    for (size_t i = 0; i < q.n && status == KEEL_OK; i++)
        model_got(p->w, p->r, g, first + i * q.stride, q.bytes + i * local, len, base + i * q.stride, changes);
    free(base);
    free(q.bytes);
}

enum { GATHERED_MAX = 12 };

static bool overlaps(const struct pending *put, const struct region *g, size_t offset, size_t len)
{
    for (const struct pending *o = g->pending; o; o = o->next)
        if (o == put)
            return o->offset < offset + len && offset < o->offset + o->len;
    return false;
}

/* Many puts, and one handle for all of them: if one fails all are in doubt. */
static void put_gathered(struct program *p, int segment)
{
    struct client *c = &p->r->client;
    keel_handle handle = {{0}};
    struct pending *put[GATHERED_MAX];
    uint8_t *bytes[GATHERED_MAX];
    size_t offset, len, n = 0, most = sched_between(program_random(p), 1, GATHERED_MAX);
    int rank = -1;
    if (rma_aggregate(c, &handle) != KEEL_OK)
        world_fail(p->w, "rank %d: a fresh handle cannot gather", p->r->rank);
    for (size_t i = 0; i < most && !p->over; i++) {
        struct region *g = some_region(p, segment, true);
        if (!g)
            return;
        if (n > 0 && g->rank != rank)
            continue;
        rank = g->rank;
        some_range(p, g, &offset, &len);
        wait_for_overlap(p, g, offset, len);
        bool again = false;
        for (size_t k = 0; k < n; k++)
            again = again || overlaps(put[k], g, offset, len);
        if (again || p->over)
            continue;
        bytes[n] = sim_alloc(len);
        fill(p, bytes[n], len);
        put[n] = model_put(p->w, p->r, g, offset, bytes[n], len);
        keel_status status =
            rma_start(c, OP_PUT, p->seg[segment], g->rank, g->offset + offset, bytes[n], NULL, len, &handle);
        if (status == KEEL_OK) {
            n++;
            continue;
        }
        model_status(p->w, p->r, segment, g->rank, status, "a put that is gathered");
        model_put_done(p->w, put[n], status);
        free(bytes[n]);
    }
    if (n == 0)
        return;
    program_begin(p, "keel_wait of a handle that gathers");
    keel_status status = rma_wait(c, &handle);
    program_ended(p, status, true);
    model_status(p->w, p->r, segment, rank, status, "keel_wait of a handle that gathers");
    for (size_t i = 0; i < n; i++) {
        model_put_done(p->w, put[i], status == KEEL_OK ? KEEL_OK : KEEL_ERR_TIMEOUT);
        free(bytes[i]);
    }
}

static void accumulate_pieces(struct program *p, int segment)
{
    struct sched *s = program_random(p);
    int rank = (int)sched_below(s, (uint64_t)p->w->setup.ranks);
    struct sum *sum = p->w->model->sums;
    while (sum->segment != segment || sum->rank != rank || sum->bell)
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

/* One operation on a word: to the first one adds, to the second one all atomics, to the third one puts of the rank
 * whose part it is in; gets, everywhere, strong ones and plain ones; these count as strong where nothing goes wrong. */
static struct history_op some_word_op(struct program *p, int which, int rank)
{
    static const keel_rmw_op some_rmw[] = {KEEL_RMW_ADD,  KEEL_RMW_ADD, KEEL_RMW_COMPARE_SWAP, KEEL_RMW_COMPARE_SWAP,
                                           KEEL_RMW_SWAP, KEEL_RMW_AND, KEEL_RMW_OR,           KEEL_RMW_XOR};
    struct sched *s = program_random(p);
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

/* On a word of 32 bits. */
static keel_status run_half_op(struct program *p, keel_segment *segment, int rank, size_t offset,
                               const struct history_op *op, int64_t *result)
{
    struct client *c = &p->r->client;
    bool cas = op->rmw == (enum arith_rmw)KEEL_RMW_COMPARE_SWAP;
    int32_t a = (int32_t)op->a, b = (int32_t)op->b, got = 0;
    keel_status status;
    if (op->kind == HISTORY_RMW)
        status = rma_rmw(c, segment, rank, offset, KEEL_INT32, (keel_rmw_op)op->rmw, cas ? &b : &a, &a, &got);
    else
        status = (op->kind == HISTORY_PLAIN_GET ? rma_get : rma_get_strong)(c, segment, rank, offset, &got, sizeof got);
    *result = got;
    return status;
}

static keel_status run_word_op(struct program *p, keel_segment *segment, int rank, const struct word *word,
                               const struct history_op *op, int64_t *result)
{
    struct client *c = &p->r->client;
    size_t offset = word->offset;
    bool cas = op->rmw == (enum arith_rmw)KEEL_RMW_COMPARE_SWAP;
    if (word->half)
        return run_half_op(p, segment, rank, offset, op, result);
    if (op->kind == HISTORY_RMW)
        return rma_rmw(c, segment, rank, offset, KEEL_INT64, (keel_rmw_op)op->rmw, cas ? &op->b : &op->a, &op->a,
                       result);
    if (op->kind == HISTORY_PUT)
        return rma_put(c, segment, rank, offset, &op->a, sizeof op->a);
    bool plain = op->kind == HISTORY_PLAIN_GET || (p->w->setup.quiet && sched_chance(program_random(p), 0.5));
    return (plain ? rma_get : rma_get_strong)(c, segment, rank, offset, result, sizeof *result);
}

static void word_op(struct program *p, int segment)
{
    static const char *const call[] = {[HISTORY_RMW] = "keel_rmw",
                                       [HISTORY_PUT] = "keel_put of a word",
                                       [HISTORY_GET] = "a get of a word",
                                       [HISTORY_PLAIN_GET] = "a plain get of a word"};
    struct sched *s = program_random(p);
    struct word *word = p->w->model->words;
    int rank = (int)sched_below(s, (uint64_t)p->w->setup.ranks), which = (int)sched_below(s, WORDS_PER_RANK);
    if (which == 2 && p->thread > 0)
        which = (int)sched_below(s, 2); /* one thread puts there */
    if (which == 2 && sched_chance(s, 0.4))
        rank = p->r->rank;
    for (int seen = 0;; word = word->next)
        if (word->segment == segment && word->rank == rank && seen++ == WORDS_PER_RANK - 1 - which)
            break;
    struct history_op op = some_word_op(p, which, rank);
    size_t at = history_call(&word->history, &op);
    int64_t old = 0;
    program_begin(p, call[op.kind]);
    keel_status status = run_word_op(p, p->seg[segment], rank, word, &op, &old);
    program_ended(p, status, true);
    world_trace(p->w, "rank %d: %s of %zu of rank %d, segment %d: %s", p->r->rank, call[op.kind], word->offset, rank,
                segment, keel_status_name(status));
    model_status(p->w, p->r, segment, rank, status, call[op.kind]);
    if (status == KEEL_OK && !model_is_zombie(p->w, p->r->rank, p->r->incarnation))
        history_return(&word->history, at, old, p->w->sched.now);
    else if (status == KEEL_ERR_NOMEM)
        history_refused(&word->history, at);
}

/* What it guards is as the last holder left it; then it is changed. */
static void change_guarded(struct program *p, struct region *g)
{
    struct client *c = &p->r->client;
    uint64_t changes = g->changes;
    uint8_t *before = sim_alloc(2 * g->len), *bytes = before + g->len;
    memcpy(before, g->base, g->len);
    program_begin(p, "a get under a mutex");
    keel_status status = rma_get(c, p->seg[g->segment], g->rank, g->offset, bytes, g->len);
    program_ended(p, status, true);
    model_status(p->w, p->r, g->segment, g->rank, status, "a get under a mutex");
    if (status == KEEL_OK)
        model_got(p->w, p->r, g, 0, bytes, g->len, before, changes);
    size_t offset = sched_below(program_random(p), g->len), len = sched_between(program_random(p), 1, g->len - offset);
    fill(p, bytes, len);
    struct pending *put = model_put(p->w, p->r, g, offset, bytes, len);
    program_begin(p, "a put under a mutex");
    status = rma_put(c, p->seg[g->segment], g->rank, g->offset + offset, bytes, len);
    program_ended(p, status, true);
    model_status(p->w, p->r, g->segment, g->rank, status, "a put under a mutex");
    model_put_done(p->w, put, status);
    free(before);
}

static void give_back(struct program *p, struct lock *l)
{
    lock_given_back(p->w, p->r, l);
    keel_status status;
    do { /* whom it failed has it still */
        program_begin(p, "keel_mutex_unlock");
        status = mutex_unlock(p->mutexes, l->home, l->number);
        program_ended(p, status, false);
    } while (status == KEEL_ERR_NOMEM && !p->over);
    model_status(p->w, p->r, l->segment, l->home, status, "keel_mutex_unlock");
}

bool program_give_back(struct program *p)
{
    struct program *t = p->r->program;
    while (t && !t->kept)
        t = t->next;
    if (!t || p->over)
        return false;
    struct lock *l = t->kept;
    t->kept = NULL;
    give_back(p, l);
    return true;
}

static void critical(struct program *p)
{
    if ((p->kept || (p->r->program->next && sched_chance(program_random(p), 0.3))) && program_give_back(p))
        return; /* who keeps one waits for no other */
    struct world *w = p->w;
    struct sched *s = program_random(p);
    int home = (int)sched_below(s, sched_chance(s, 0.6) ? 1 : (uint64_t)w->setup.ranks), dead = -1;
    int number = (int)sched_below(s, (uint64_t)w->setup.mutexes);
    struct lock *l = lock_find(w, p->mutexes_at, home, number);
    bool waits = sched_chance(s, 0.8);
    program_begin(p, waits ? "keel_mutex_lock" : "keel_mutex_try");
    keel_status status = mutex_lock(p->mutexes, home, number, waits, &dead);
    program_ended(p, status, false);
    if (!waits && status == KEEL_IN_PROGRESS)
        return;
    model_status(w, p->r, l->segment, home, status, "a mutex");
    if (status != KEEL_OK)
        return;
    lock_taken(w, p->r, l, dead);
    if (sched_chance(s, 0.3))
        process_spend(p->process, sched_below(s, 500 * US));
    if (p->seg[l->guarded->segment])
        change_guarded(p, l->guarded);
    if (p->over)
        return;
    if (p->r->program->next && sched_chance(s, 0.3))
        p->kept = l;
    else
        give_back(p, l);
}

void program_action(struct program *p)
{
    struct sched *s = program_random(p);
    int segment = some_segment(p);
    unsigned kind = (unsigned)sched_below(s, 100);
    if (p->mutexes && sched_chance(s, 0.4)) {
        critical(p);
        return;
    }
    if (p->w->setup.signals && segment >= 0 && sched_chance(s, 0.15)) {
        program_signal(p, segment);
        return;
    }
    if (segment >= 0 && p->twins[segment] && sched_chance(s, p->w->setup.actions < 5 ? 0.8 : 0.3))
        store(p, segment, true);
    else if (segment < 0 || kind < 8)
        process_spend(p->process, sched_below(s, 200 * US));
    else if (kind < 45)
        put(p, segment);
    else if (kind < 48)
        put_gathered(p, segment);
    else if (kind < 55)
        put_pieces(p, segment);
    else if (kind < 60)
        get_pieces(p, segment);
    else if (kind < 70 || p->w->model->planned[segment].of_group)
        get(p, segment);
    else if (kind < 77)
        accumulate(p, segment);
    else if (kind < 80)
        accumulate_pieces(p, segment);
    else if (kind < 92)
        word_op(p, segment);
    else if (kind < 95)
        program_fence(p, (int)sched_below(s, (uint64_t)p->w->setup.ranks));
    else if (p->out && !p->out->implicit)
        program_out_wait(p, p->out);
}
