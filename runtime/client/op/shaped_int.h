/* Between shaped.c and shaped_ops.c: a strided or vector call, and the pieces that it says. */
#ifndef KEEL_CLIENT_OP_SHAPED_INT_H
#define KEEL_CLIENT_OP_SHAPED_INT_H

#include "runtime/client/client.h"
#include "runtime/client/op/plan.h"
#include "runtime/wire/shape.h"

/* One call. */
struct shaped_call {
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
static inline bool is_step(const struct shaped_call *q)
{
    return q->kind == OP_ACC && q->c->task_run.open;
}

/* A vector's pieces, or what a shape says from here on. */
struct shaped_source {
    const keel_piece *piece;
    size_t pieces;
    bool apart; /* pieces stay what they are, also where they follow each other without a gap */
    struct shape_walk walk;
    uint64_t run;
    uint64_t offset; /* of the first byte */
    char *local;
    uint64_t taken; /* bytes that source_next has given */
};

static inline bool piece_next(struct shaped_source *s, keel_piece *run)
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

static inline bool row_next(struct shaped_source *s, keel_piece *run)
{
    uint64_t place[SHAPE_SIDES];
    if (!shape_walk_next(&s->walk, place))
        return false;
    *run = (keel_piece){.offset = (size_t)(s->offset + place[SHAPE_GLOBAL]),
                        .local = s->local + place[SHAPE_LOCAL],
                        .len = (size_t)s->run};
    return true;
}

static inline bool source_next(struct shaped_source *s, keel_piece *run)
{
    bool any = s->piece ? piece_next(s, run) : row_next(s, run);
    s->taken += any ? run->len : 0;
    return any;
}

/* The pieces as operations. handle: what they count in; NULL: implicit. returns when all have begun, and of a call that
 * blocks when all are complete. */
keel_status shaped_operate(const struct shaped_call *q, struct shaped_source *source, keel_handle *handle);
#endif
