/* Strided and vector calls as operations: the runs one by one, or those that are small many in a message (packed.h).
 * Each run, or message, is an operation of its own, so that what op.c guarantees of one (whole words, exactly once,
 * repeated after a death) holds for each; all count in one handle. */
#include "runtime/client/op/handle.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/packed.h"
#include "runtime/client/op/rma_int.h"
#include "runtime/client/op/shaped_int.h"
#include "runtime/client/op/task.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"
#include "runtime/wire/arith.h"

enum {
    OPS_MAX = 256,             /* of a client, beyond which a call waits before it starts another run */
    NOTED_REACH_MAX = 1 << 20, /* bytes that a repair may have to bring for the pieces of one message */
};

static bool has_room(void *arg)
{
    return ((const struct client *)arg)->ops.living < OPS_MAX;
}

/* Bytes of the longest pieces that go together; 0: none do. */
static size_t packs(const struct shaped_call *q)
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
static struct packing pack_ahead(const struct shaped_call *q, struct shaped_source source, size_t run_max)
{
    bool noted = q->kind == OP_PUT && q->s->redundancy != KEEL_REDUNDANCY_NONE;
    struct packing p = {.run_max = run_max, .reach_max = noted ? NOTED_REACH_MAX : UINT32_MAX};
    for (keel_piece run; source_next(&source, &run) && packing_add(&p, &run);)
        ;
    return p;
}

static void acc_scale(struct op *op, const struct shaped_call *q)
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
static struct op *pack_init(const struct shaped_call *q, struct shaped_source *source, const struct packing *p)
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

static keel_status pack_in_task(const struct shaped_call *q, struct shaped_source *source, const struct packing *p)
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
static keel_status runs_in_task(const struct shaped_call *q, struct shaped_source *source)
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
static struct op *run_init(const struct shaped_call *q, const struct shaped_source *source, const keel_piece *run)
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
static bool is_one_step(struct shaped_source source, const struct packing *p)
{
    keel_piece run;
    for (size_t i = 0; i < (p->runs ? p->runs : 1); i++)
        if (!source_next(&source, &run))
            return false;
    return !source_next(&source, &run);
}

static keel_status step_ahead(const struct shaped_call *q, struct shaped_source *source, const struct packing *p)
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
static keel_status no_more(struct client *c, const struct shaped_call *q, keel_handle *handle, bool started)
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
static keel_status runs_start(const struct shaped_call *q, struct shaped_source *source, keel_handle *handle)
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

keel_status shaped_operate(const struct shaped_call *q, struct shaped_source *source, keel_handle *handle)
{
    struct client *c = q->c;
    keel_status status;
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
    keel_status waited = q->blocks ? rma_wait(c, handle) : KEEL_OK;
    if (q->blocks)
        rma_near_update(c, q->s, q->rank);
    return status != KEEL_OK ? status : waited;
}
