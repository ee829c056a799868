/* Strided and vector calls on an instance: validated as a whole, then the runs one by one, or those that are small many
 * in a message (packed.h). Each run, or message, is an operation of its own, so that what op.c guarantees of one (whole
 * words, exactly once, repeated after a death) holds for each; all count in one handle. */
#include <stdlib.h>

#include "runtime/base/fault.h"
#include "runtime/base/words.h"
#include "runtime/client/op/handle.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/packed.h"
#include "runtime/client/op/rma_int.h"
#include "runtime/client/op/shaped.h"
#include "runtime/client/op/task.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/shape.h"

static_assert((int)KEEL_STRIDE_LEVELS_MAX == (int)SHAPE_LEVELS_MAX, "descriptors have as many levels");

enum {
    OPS_MAX = 256,             /* of a client, beyond which a call waits before it starts another run */
    NOTED_REACH_MAX = 1 << 20, /* bytes that a repair may have to bring for the pieces of one message */
};

/* One call. */
struct call {
    struct client *c;
    enum op_kind kind;
    keel_segment *s;
    int rank;
    keel_type type;
    const void *scale;
    keel_handle *handle; /* NULL: implicit, or it blocks */
    bool blocks;
};

/* An accumulate of a task: into which steps it is cut is the same wherever its local side lies, for another process
 * that runs the task has it elsewhere. */
static bool is_step(const struct call *q)
{
    return q->kind == OP_ACC && q->c->task_run.open;
}

/* A vector's pieces, or what a shape says from here on. */
struct source {
    const keel_piece *piece;
    size_t pieces;
    bool apart; /* pieces stay what they are, also where they follow each other without a gap */
    struct shape_walk walk;
    uint64_t run;
    uint64_t offset; /* of the first byte */
    char *local;
    uint64_t taken; /* bytes that source_next has given */
};

static bool piece_next(struct source *s, keel_piece *run)
{
    while (s->pieces && s->piece->len == 0) {
        s->piece++;
        s->pieces--;
    }
    if (s->pieces == 0)
        return false;
    *run = *s->piece++;
    s->pieces--;
    while (!s->apart && s->pieces && s->piece->offset == run->offset + run->len &&
           s->piece->local == (char *)run->local + run->len) {
        run->len += s->piece++->len;
        s->pieces--;
    }
    return true;
}

static bool row_next(struct source *s, keel_piece *run)
{
    uint64_t place[SHAPE_SIDES];
    if (!shape_walk_next(&s->walk, place))
        return false;
    *run = (keel_piece){.offset = (size_t)(s->offset + place[SHAPE_GLOBAL]),
                        .local = s->local + place[SHAPE_LOCAL],
                        .len = (size_t)s->run};
    return true;
}

static bool source_next(struct source *s, keel_piece *run)
{
    bool any = s->piece ? piece_next(s, run) : row_next(s, run);
    s->taken += any ? run->len : 0;
    return any;
}

/* ---- by plain loads and stores ---- */

/* A length that the compiler knows: each piece is a few loads and stores in place of a call. */
#define ROW_OF(LEN)                                                                                                    \
    case LEN:                                                                                                          \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            memcpy(to + i * to_stride, from + i * from_stride, LEN);                                                   \
        return

static void copy_row(enum op_kind kind, uint8_t *to, uint64_t to_stride, const uint8_t *from, uint64_t from_stride,
                     uint64_t n, size_t len)
{
    switch (len) {
        ROW_OF(8); /* one store: 8-byte elements are never torn */
        ROW_OF(16);
        ROW_OF(32);
        ROW_OF(64);
        ROW_OF(128);
    default:
        for (uint64_t i = 0; i < n; i++)
            if (kind == OP_PUT)
                words_store(to + i * to_stride, from + i * from_stride, len);
            else
                words_load(to + i * to_stride, from + i * from_stride, len);
    }
}

static void piece_near(const struct call *q, uint8_t *base, const keel_piece *run)
{
    if (q->kind == OP_PUT)
        words_store(base + run->offset, run->local, run->len);
    else if (q->kind == OP_GET)
        words_load(run->local, base + run->offset, run->len);
    else
        arith_add(q->type, base + run->offset, run->local, run->len / arith_size(q->type), q->scale, true);
}

/* Returns how many pieces there were. */
static uint64_t rows_near(const struct call *q, uint8_t *base, struct source *source)
{
    uint64_t place[SHAPE_SIDES], stride[SHAPE_SIDES], n, runs = 0;
    while ((n = shape_walk_row(&source->walk, place, stride)) > 0) {
        uint8_t *there = base + source->offset + place[SHAPE_GLOBAL];
        uint8_t *here = (uint8_t *)source->local + place[SHAPE_LOCAL];
        if (q->kind == OP_PUT)
            copy_row(q->kind, there, stride[SHAPE_GLOBAL], here, stride[SHAPE_LOCAL], n, source->run);
        else
            copy_row(q->kind, here, stride[SHAPE_LOCAL], there, stride[SHAPE_GLOBAL], n, source->run);
        runs += n;
    }
    return runs;
}

static bool runs_near(const struct call *q, struct source source)
{
    static const enum counter of[] = {
        [OP_PUT] = COUNTER_puts_here, [OP_GET] = COUNTER_gets_here, [OP_ACC] = COUNTER_accumulates_here};
    const struct near *n = &q->s->near[q->rank];
    const uint64_t *wanted = q->kind == OP_GET ? &n->get_tag : q->kind == OP_PUT ? &n->put_tag : &n->add_tag;
    if (!near_valid(n, wanted) || is_step(q))
        return false;
    uint8_t *base = near_base(n);
    uint64_t runs = 0, bytes = 0;
    if (q->kind != OP_ACC && !source.piece) {
        runs = rows_near(q, base, &source);
        bytes = runs * source.run;
    } else {
        for (keel_piece run; source_next(&source, &run); runs++, bytes += run.len)
            piece_near(q, base, &run);
    }
    if (q->kind != OP_ACC && !near_valid(n, wanted)) /* all again: nobody knows yet which took effect */
        return false;
    near_counts(q->c, of[q->kind], runs, bytes);
    return true;
}

/* ---- as operations ---- */

static bool has_room(void *arg)
{
    return ((const struct client *)arg)->ops.living < OPS_MAX;
}

/* Bytes of the longest pieces that go together; 0: none do. */
static size_t packs(const struct call *q)
{
    const struct client *c = q->c;
    struct route route;
    int slot = (int)page_rank(c->page, q->rank)->slot;
    if (q->kind == OP_ACC)
        return PLAN_PACKED_MAX;
    return page_route_read(c->page, copyset_of(slot, q->s->redundancy), &route) ? plan_packs(q->kind, &route, c->node)
                                                                                : 0;
}

/* What goes into one message of what comes next; less than two pieces: none do. */
static struct packing pack_ahead(const struct call *q, struct source source, size_t run_max)
{
    bool noted = q->kind == OP_PUT && q->s->redundancy != KEEL_REDUNDANCY_NONE;
    struct packing p = {.run_max = run_max, .reach_max = noted ? NOTED_REACH_MAX : UINT32_MAX};
    for (keel_piece run; source_next(&source, &run) && packing_add(&p, &run);)
        ;
    return p;
}

static void acc_scale(struct op *op, const struct call *q)
{
    int64_t by[2] = {0, 0};
    memcpy(by, q->scale, arith_size(q->type));
    op->what = q->type;
    op->a = by[0];
    op->b = by[1];
}

/* A wrong bit on purpose: is it in the call's bytes [from, to), which the operation sends behind `head` others? */
static void take_flying(struct op *op, uint64_t from, uint64_t to, uint64_t head)
{
    struct flying *f = &op->client->flying;
    if (__builtin_expect(f->len == 0, 1) || !f->shaped || f->bit / 8 < from || f->bit / 8 >= to)
        return;
    op->flying = 1 + f->bit + 8 * (head - from);
    f->len = 0;
}

/* NULL: out of memory. */
static struct op *pack_init(const struct call *q, struct source *source, const struct packing *p)
{
    struct client *c = q->c;
    struct op *op = op_alloc(c);
    struct packed *packed = op ? packed_take(&c->ops.packed) : NULL;
    if (!packed) {
        if (op) {
            op_init(c, op, q->kind, NULL, q->rank, 0, 0);
            op_free(op);
        }
        return NULL;
    }
    packed_init(c, op, packed, p, q->kind, q->s, q->rank);
    if (q->kind == OP_ACC)
        acc_scale(op, q);
    struct pack_writer w;
    uint64_t from = source->taken;
    pack_begin(&w, packed->body, p->runs);
    for (keel_piece run; packed->runs < p->runs && source_next(source, &run);)
        packed_add(packed, &w, q->kind, &run);
    (void)pack_end(&w, q->kind != OP_GET);
    take_flying(op, from, source->taken, pack_head(p->runs));
    return op;
}

static keel_status pack_in_task(const struct call *q, struct source *source, const struct packing *p)
{
    struct client *c = q->c;
    keel_handle handle = {{0}};
    client_lock(c);
    keel_status status = task_turn(c, q->s, q->rank);
    if (status == KEEL_OK)
        status = handle_use(c, &handle);
    struct op *op = status == KEEL_OK ? pack_init(q, source, p) : NULL;
    if (op) {
        task_mark(&c->task_run, &op->of_task);
        rma_op_start(op, &handle);
    } else if (status == KEEL_OK) {
        status = KEEL_ERR_NOMEM;
    }
    pthread_mutex_unlock(&c->lock);
    return status == KEEL_OK ? rma_wait(c, &handle) : status;
}

/* The accumulates of a task come one after the other, so that whoever runs it again makes them in the same order. */
static keel_status runs_in_task(const struct call *q, struct source *source)
{
    for (bool any = false;; any = true) {
        struct packing p = pack_ahead(q, *source, PLAN_PACKED_MAX);
        keel_status status;
        keel_piece run;
        if (p.runs > 1)
            status = pack_in_task(q, source, &p);
        else if (source_next(source, &run))
            status =
                rma_acc(q->c, q->s, q->rank, run.offset, q->type, q->scale, run.local, run.len / arith_size(q->type));
        else
            return KEEL_OK;
        if (status != KEEL_OK) { /* nothing more of the task, if some of it was done */
            q->c->task_run.broken = q->c->task_run.broken || any;
            return status;
        }
    }
}

/* The piece that source_next has given last. */
static struct op *run_init(const struct call *q, const struct source *source, const keel_piece *run)
{
    struct client *c = q->c;
    struct op *op = op_alloc(c);
    if (op && q->kind == OP_ACC) {
        rma_acc_init(c, op, q->s, q->rank, run->offset, q->type, q->scale, run->local, run->len / arith_size(q->type));
    } else if (op) {
        op_init(c, op, q->kind, q->s, q->rank, run->offset, run->len);
        op->src = run->local;
        op->dst = run->local;
    }
    if (op)
        take_flying(op, source->taken - run->len, source->taken, 0);
    return op;
}

/* All of it is one step: nobody needs to wait for it before the next to the same copyset. */
static bool is_one_step(struct source source, const struct packing *p)
{
    keel_piece run;
    for (size_t i = 0; i < (p->runs ? p->runs : 1); i++)
        if (!source_next(&source, &run))
            return false;
    return !source_next(&source, &run);
}

static keel_status step_ahead(const struct call *q, struct source *source, const struct packing *p)
{
    struct client *c = q->c;
    keel_piece run;
    if (p->runs < 2 && !source_next(source, &run))
        return c->task_run.broken ? KEEL_ERR_STATE : KEEL_OK;
    client_lock(c);
    keel_status status = task_turn(c, q->s, q->rank);
    struct op *op = status != KEEL_OK ? NULL : p->runs < 2 ? run_init(q, source, &run) : pack_init(q, source, p);
    if (op) {
        op->of_task.step_ahead = true;
        task_mark(&c->task_run, &op->of_task);
        rma_op_start(op, q->handle);
    }
    pthread_mutex_unlock(&c->lock);
    return status == KEEL_OK && !op ? KEEL_ERR_NOMEM : status;
}

/* Out of memory. What has been started uses the caller's memory: that it has failed is told when it is waited for. */
static keel_status no_more(struct client *c, const struct call *q, keel_handle *handle, bool started)
{
    if (!started)
        return KEEL_ERR_NOMEM;
    if (handle)
        handle_note(handle, KEEL_ERR_NOMEM);
    else
        errors_keep(&c->ops.errors, q->rank, KEEL_ERR_NOMEM);
    return KEEL_OK;
}

/* Lock held. */
static keel_status runs_start(const struct call *q, struct source *source, keel_handle *handle)
{
    struct client *c = q->c;
    bool started = false;
    size_t run_max = packs(q);
    for (;;) {
        struct packing p = {0};
        keel_piece run;
        if (run_max)
            p = pack_ahead(q, *source, run_max);
        if (p.runs < 2 && !source_next(source, &run))
            return KEEL_OK;
        struct wait wait = {.call = q->kind == OP_PUT   ? WAIT_PUT
                                    : q->kind == OP_GET ? WAIT_GET
                                                        : WAIT_ACC,
                            .whom = waits_for_any_op};
        client_wait(c, p.runs < 2 ? has_room : packed_has_room, p.runs < 2 ? (void *)c : &c->ops.packed, &wait);
        struct op *op = p.runs < 2 ? run_init(q, source, &run) : pack_init(q, source, &p);
        if (!op)
            return no_more(c, q, handle, started);
        started = true;
        rma_op_start(op, handle);
    }
}

static keel_status call_run(const struct call *q, struct source *source)
{
    struct client *c = q->c;
    keel_handle own = {{0}}, *handle = q->blocks ? &own : q->handle;
    client_lock(c);
    keel_status status = handle ? handle_use(c, handle) : KEEL_OK;
    pthread_mutex_unlock(&c->lock);
    if (status != KEEL_OK || runs_near(q, *source))
        return status;
    if (is_step(q)) {
        struct packing p = pack_ahead(q, *source, PLAN_PACKED_MAX);
        if (!q->blocks && is_one_step(*source, &p))
            return step_ahead(q, source, &p);
        status = runs_in_task(q, source);
        if (handle)
            handle_note(handle, status);
        return q->blocks || !handle ? status : KEEL_OK;
    }
    client_lock(c);
    status = runs_start(q, source, handle);
    pthread_mutex_unlock(&c->lock);
    keel_status waited = q->blocks ? rma_wait(c, &own) : KEEL_OK;
    if (q->blocks)
        rma_near_update(c, q->s, q->rank);
    return status != KEEL_OK ? status : waited;
}

/* ---- what can be wrong ---- */

static bool bad_type(const struct call *q)
{
    return q->kind == OP_ACC && !arith_can_add(q->type);
}

static keel_status strided(const struct call *q, size_t offset, const void *local, const keel_strided *d)
{
    struct shape shape;
    if (bad_type(q) || !d || !shape_init(&shape, d->levels, d->count, d->global_stride, d->local_stride))
        return rma_bad_call(q->c);
    if (!is_step(q) || shape.run % arith_size(q->type)) /* an element may be in several pieces, if they have no gaps */
        shape_join(&shape);
    if (near_bad_range(q->c, q->s, q->rank, offset, (size_t)shape.extent[SHAPE_GLOBAL]) || (!local && shape.run) ||
        (uintptr_t)local > UINTPTR_MAX - shape.extent[SHAPE_LOCAL] ||
        !shape_is_apart(&shape, q->kind == OP_GET ? SHAPE_LOCAL : SHAPE_GLOBAL))
        return rma_bad_call(q->c);
    if (q->kind == OP_ACC && (shape.run % arith_size(q->type) || offset % arith_align(q->type) ||
                              !shape_is_aligned(&shape, SHAPE_GLOBAL, arith_align(q->type))))
        return rma_bad_call(q->c);
    struct source source = {.run = shape.run, .offset = offset, .local = (char *)(uintptr_t)local};
    shape_walk_init(&source.walk, &shape);
    return call_run(q, &source);
}

static bool bad_piece(const struct call *q, const keel_piece *p)
{
    if (near_bad_range(q->c, q->s, q->rank, p->offset, p->len) || (!p->local && p->len) ||
        (uintptr_t)p->local > UINTPTR_MAX - p->len)
        return true;
    return q->kind == OP_ACC && (p->len % arith_size(q->type) || p->offset % arith_align(q->type));
}

/* What the pieces write, each once. */
static keel_status pieces_are_apart(const struct call *q, const keel_piece *piece, size_t n)
{
    if (q->kind == OP_ACC || n < 2)
        return KEEL_OK;
    struct shape_span *span = n <= SIZE_MAX / sizeof *span ? malloc(n * sizeof *span) : NULL;
    if (!span)
        return KEEL_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        span[i] = (struct shape_span){q->kind == OP_PUT ? piece[i].offset : (uintptr_t)piece[i].local, piece[i].len};
    bool apart = shape_spans_are_apart(span, n);
    free(span);
    return apart ? KEEL_OK : KEEL_ERR_ARG;
}

static keel_status vector(const struct call *q, const keel_piece *piece, size_t n)
{
    if (bad_type(q) || (!piece && n) || near_bad_range(q->c, q->s, q->rank, 0, 0))
        return rma_bad_call(q->c);
    for (size_t i = 0; i < n; i++)
        if (bad_piece(q, &piece[i]))
            return KEEL_ERR_ARG;
    keel_status status = pieces_are_apart(q, piece, n);
    if (status != KEEL_OK)
        return status;
    struct source source = {.piece = piece, .pieces = n, .apart = is_step(q)};
    static const keel_piece none;
    if (n == 0)
        source.piece = &none;
    return call_run(q, &source);
}

static struct call call_of(struct client *c, const struct shaped *how, keel_segment *s, int rank)
{
    return (struct call){.c = c,
                         .kind = how->kind,
                         .s = s,
                         .rank = rank,
                         .type = how->type,
                         .scale = how->scale ? how->scale : arith_one(how->type),
                         .handle = how->handle,
                         .blocks = how->blocks};
}

keel_status shaped_strided(struct client *c, const struct shaped *how, keel_segment *s, int rank, size_t offset,
                           const void *local, const keel_strided *shape)
{
    struct call q = call_of(c, how, s, rank);
    return strided(&q, offset, local, shape);
}

keel_status shaped_vector(struct client *c, const struct shaped *how, keel_segment *s, int rank,
                          const keel_piece *pieces, size_t n)
{
    struct call q = call_of(c, how, s, rank);
    return vector(&q, pieces, n);
}
