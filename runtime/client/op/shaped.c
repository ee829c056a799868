/* Strided and vector calls on an instance: validated as a whole, then by plain loads and stores where the caller may
 * (here), else as operations (shaped_ops.c). */
#include <stdlib.h>

#include "runtime/base/words.h"
#include "runtime/client/op/handle.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/rma_int.h"
#include "runtime/client/op/shaped.h"
#include "runtime/client/op/shaped_int.h"
#include "runtime/client/threads.h"
#include "runtime/wire/arith.h"

static_assert((int)KEEL_STRIDE_LEVELS_MAX == (int)SHAPE_LEVELS_MAX, "descriptors have as many levels");

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

static void piece_near(const struct shaped_call *q, uint8_t *base, const keel_piece *run)
{
    if (q->kind == OP_PUT)
        words_store(base + run->offset, run->local, run->len);
    else if (q->kind == OP_GET)
        words_load(run->local, base + run->offset, run->len);
    else
        arith_add(q->type, base + run->offset, run->local, run->len / arith_size(q->type), q->scale, true);
}

/* Returns how many pieces there were. */
static uint64_t rows_near(const struct shaped_call *q, uint8_t *base, struct shaped_source *source)
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

static bool runs_near(const struct shaped_call *q, struct shaped_source source)
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

static keel_status call_run(const struct shaped_call *q, struct shaped_source *source)
{
    struct client *c = q->c;
    keel_handle own = {{0}}, *handle = q->blocks ? &own : q->handle;
    client_lock(c);
    keel_status status = handle ? handle_use(c, handle) : KEEL_OK;
    pthread_mutex_unlock(&c->lock);
    if (status != KEEL_OK || runs_near(q, *source))
        return status;
    return shaped_operate(q, source, handle);
}

/* ---- what can be wrong ---- */

static bool bad_type(const struct shaped_call *q)
{
    return q->kind == OP_ACC && !arith_can_add(q->type);
}

static keel_status strided(const struct shaped_call *q, size_t offset, const void *local, const keel_strided *d)
{
    struct shape shape;
    if (bad_type(q) || !d || !shape_init(&shape, d->levels, d->count, d->global_stride, d->local_stride))
        return rma_bad_call(q->c);
    if (!is_step(q) || shape.run % arith_size(q->type)) /* an element may be in several pieces, if they have no gaps */
        shape_merge(&shape);
    if (near_bad_range(q->c, q->s, q->rank, offset, (size_t)shape.extent[SHAPE_GLOBAL]) || (!local && shape.run) ||
        (uintptr_t)local > UINTPTR_MAX - shape.extent[SHAPE_LOCAL] ||
        !shape_is_apart(&shape, q->kind == OP_GET ? SHAPE_LOCAL : SHAPE_GLOBAL))
        return rma_bad_call(q->c);
    if (q->kind == OP_ACC && (shape.run % arith_size(q->type) || offset % arith_align(q->type) ||
                              !shape_is_aligned(&shape, SHAPE_GLOBAL, arith_align(q->type))))
        return rma_bad_call(q->c);
    struct shaped_source source = {.run = shape.run, .offset = offset, .local = (char *)(uintptr_t)local};
    shape_walk_init(&source.walk, &shape);
    return call_run(q, &source);
}

static bool bad_piece(const struct shaped_call *q, const keel_piece *p)
{
    if (near_bad_range(q->c, q->s, q->rank, p->offset, p->len) || (!p->local && p->len) ||
        (uintptr_t)p->local > UINTPTR_MAX - p->len)
        return true;
    return q->kind == OP_ACC && (p->len % arith_size(q->type) || p->offset % arith_align(q->type));
}

/* What the pieces write, each once. */
static keel_status pieces_are_apart(const struct shaped_call *q, const keel_piece *piece, size_t n)
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

static keel_status vector(const struct shaped_call *q, const keel_piece *piece, size_t n)
{
    if (bad_type(q) || (!piece && n) || near_bad_range(q->c, q->s, q->rank, 0, 0))
        return rma_bad_call(q->c);
    for (size_t i = 0; i < n; i++)
        if (bad_piece(q, &piece[i]))
            return KEEL_ERR_ARG;
    keel_status status = pieces_are_apart(q, piece, n);
    if (status != KEEL_OK)
        return status;
    struct shaped_source source = {.piece = piece, .pieces = n, .apart = is_step(q)};
    static const keel_piece none;
    if (n == 0)
        source.piece = &none;
    return call_run(q, &source);
}

static struct shaped_call call_of(struct client *c, const struct shaped *how, keel_segment *s, int rank)
{
    return (struct shaped_call){.c = c,
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
    struct shaped_call q = call_of(c, how, s, rank);
    return strided(&q, offset, local, shape);
}

keel_status shaped_vector(struct client *c, const struct shaped *how, keel_segment *s, int rank,
                          const keel_piece *pieces, size_t n)
{
    struct shaped_call q = call_of(c, how, s, rank);
    return vector(&q, pieces, n);
}
