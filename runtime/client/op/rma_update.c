/* Accumulates and atomic operations. */
#include "runtime/client/op/rma_int.h"

#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/op/handle.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/op/packed.h"
#include "runtime/client/op/task.h"
#include "runtime/client/threads.h"
#include "runtime/wire/arith.h"

static_assert((int)KEEL_RMW_ADD == (int)ARITH_ADD && (int)KEEL_RMW_XOR == (int)ARITH_XOR &&
                  (int)KEEL_RMW_COMPARE_SWAP == (int)ARITH_CAS,
              "the public operations are those of the messages");

/* n elements of a type at an offset that suits it. */
static bool bad_elements(const struct client *c, const keel_segment *s, int rank, size_t offset, keel_type type,
                         const void *src, size_t n)
{
    return !arith_can_add(type) || n > SIZE_MAX / arith_size(type) ||
           near_bad_range(c, s, rank, offset, n * arith_size(type)) || offset % arith_align(type) || (!src && n);
}

void rma_acc_init(struct client *c, struct op *op, keel_segment *s, int rank, size_t offset, keel_type type,
                  const void *scale, const void *src, size_t n)
{
    int64_t by[2] = {0, 0};
    memcpy(by, scale ? scale : arith_one(type), arith_size(type));
    op_init(c, op, OP_ACC, s, rank, offset, n * arith_size(type));
    op->src = src;
    op->what = type;
    op->a = by[0];
    op->b = by[1];
}

keel_status rma_acc(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                    const void *src, size_t n)
{
    if (bad_elements(c, s, rank, offset, type, src, n))
        return rma_bad_call(c);
    struct op op;
    keel_status status = KEEL_OK;
    if (c->task_run.open) {
        client_lock(c);
        status = task_turn(c, s, rank);
        pthread_mutex_unlock(&c->lock);
    }
    if (status != KEEL_OK)
        return status;
    rma_acc_init(c, &op, s, rank, offset, type, scale, src, n);
    if (c->task_run.open)
        task_mark(&c->task_run, &op.of_task);
    status = op_run(&op);
    FAULT_POINT("acc.done");
    rma_near_update(c, s, rank);
    return status;
}

/* By the processor's atomics: unreplicated, on this node, and its agent adds so, too. */
static bool acc_near(struct client *c, keel_segment *s, int rank)
{
    const struct near *n = &s->near[rank];
    if (!near_valid(n, &n->add_tag))
        rma_near_update(c, s, rank); /* the answer to an earlier one may have said so */
    return near_valid(n, &n->add_tag);
}

keel_status rma_use_at_once(struct client *c, keel_handle *handle)
{
    if (!handle)
        return KEEL_OK;
    handle_tell_watcher(handle);
    if (handle_rests(handle)) {
        handle_begin_done(handle);
        return KEEL_OK;
    }
    client_lock(c);
    keel_status status = handle_use(c, handle);
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status rma_acc_nb(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                       const void *src, size_t n, keel_handle *handle)
{
    if (bad_elements(c, s, rank, offset, type, src, n))
        return rma_bad_call(c);
    struct op *op = NULL;
    if (!c->task_run.open && acc_near(c, s, rank)) {
        keel_status status = rma_use_at_once(c, handle);
        if (status == KEEL_OK) {
            arith_add(type, near_base(&s->near[rank]) + offset, src, n, scale ? scale : arith_one(type), true);
            near_counts(c, COUNTER_accumulates_here, 1, n * arith_size(type));
        }
        return status;
    }
    client_lock(c);
    keel_status status = c->task_run.open ? task_turn(c, s, rank) : KEEL_OK;
    if (status == KEEL_OK)
        status = rma_op_for(c, handle, &op);
    if (op) {
        rma_acc_init(c, op, s, rank, offset, type, scale, src, n);
        op->of_task.step_ahead = c->task_run.open;
        if (c->task_run.open)
            task_mark(&c->task_run, &op->of_task);
        rma_op_start(op, handle);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

static int64_t word_load(const void *from, size_t bytes)
{
    int32_t narrow;
    int64_t wide;
    memcpy(bytes == 4 ? (void *)&narrow : (void *)&wide, from, bytes);
    return bytes == 4 ? narrow : wide;
}

static void word_store(void *to, int64_t value, size_t bytes)
{
    int32_t narrow = (int32_t)value;
    memcpy(to, bytes == 4 ? (const void *)&narrow : (const void *)&value, bytes);
}

/* Of the word; 0: there is no such atomic. */
static size_t rmw_bytes(keel_type type, keel_rmw_op op, const void *operand, const void *expected)
{
    bool is = type >= KEEL_INT32 && type <= KEEL_UINT64 && (unsigned)op < ARITH_RMW_OPS && operand;
    return is && (op != KEEL_RMW_COMPARE_SWAP || expected) ? arith_size(type) : 0;
}

static void rmw_operands(keel_rmw_op op, size_t bytes, const void *operand, const void *expected, int64_t *a,
                         int64_t *b)
{
    bool compares = op == KEEL_RMW_COMPARE_SWAP;
    *a = word_load(compares ? expected : operand, bytes);
    *b = compares ? word_load(operand, bytes) : 0;
}

static keel_status rmw(struct client *c, bool unordered, keel_segment *s, int rank, size_t offset, keel_type type,
                       keel_rmw_op op, const void *operand, const void *expected, void *old)
{
    size_t bytes = rmw_bytes(type, op, operand, expected);
    if (!bytes || near_bad_range(c, s, rank, offset, bytes) || offset % bytes)
        return rma_bad_call(c);
    const struct near *n = &s->near[rank];
    if (near_valid(n, unordered ? &n->signal_tag
                                : &n->add_tag)) { /* unreplicated, on this node: it dies with the node, once or never */
        int64_t a, b;
        rmw_operands(op, bytes, operand, expected, &a, &b);
        int64_t before = arith_rmw((enum arith_rmw)op, bytes, near_base(n) + offset, a, b);
        near_counts(c, COUNTER_atomics_here, 1, 0);
        if (old)
            word_store(old, before, bytes);
        return KEEL_OK;
    }
    struct op run;
    op_init(c, &run, OP_RMW, s, rank, offset, bytes);
    run.what = (uint32_t)op;
    run.unordered = unordered;
    run.word = (uint8_t)bytes;
    rmw_operands(op, bytes, operand, expected, &run.a, &run.b);
    keel_status status = op_run(&run);
    if (old)
        word_store(old, run.result, bytes);
    rma_near_update(c, s, rank);
    return status;
}

keel_status rma_rmw(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, keel_rmw_op op,
                    const void *operand, const void *expected, void *old)
{
    return rmw(c, false, s, rank, offset, type, op, operand, expected, old);
}

keel_status rma_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add)
{
    return rmw(c, true, s, rank, offset, KEEL_INT64, KEEL_RMW_ADD, &add, NULL, NULL);
}

uint64_t rma_draw_name(struct client *c)
{
    client_lock(c);
    uint64_t name = lanes_draw_apart(&c->ops.lanes);
    pthread_mutex_unlock(&c->lock);
    return name;
}

/* Of one message, and where it may be. pack: what it has if it is packed. */
static bool bad_named(const struct client *c, const keel_segment *s, int rank, size_t offset,
                      const struct rma_named *how, struct pack *pack)
{
    bool adds = how->kind == OP_ACC;
    size_t reach = adds ? how->len : how->word, unit = adds ? arith_align(how->what) : how->word;
    if (how->packed && !pack_open(pack, how->src, how->len, true))
        return true;
    reach = how->packed ? pack_reach(pack) : reach;
    return near_bad_range(c, s, rank, offset, reach) || offset % unit || (!how->packed && reach > RMA_NAMED_MAX);
}

/* The operation counts so many pieces. What has a name is sent for a rank in one set or another, and does not fail. */
static struct packed *counts_pieces(struct client *c, const struct pack *pack)
{
    struct wait wait = {.call = WAIT_ACC, .whom = waits_for_memory, .keeps = true};
    struct packed *p;
    client_lock(c);
    while (!(p = packed_take(&c->ops.packed))) {
        uint64_t now = c->env.now(c->env.user);
        waits_last(c, &wait, now, now);
        pthread_mutex_unlock(&c->lock);
        c->env.sleep(c->env.user, 1);
        client_lock(c);
    }
    waits_over(c, &wait);
    p->runs = pack->runs;
    p->bytes = pack->bytes;
    c->ops.packed.bytes += pack->bytes;
    pthread_mutex_unlock(&c->lock);
    return p;
}

static void give_back(struct client *c, struct packed *p)
{
    client_lock(c);
    packed_give(&c->ops.packed, p);
    pthread_mutex_unlock(&c->lock);
}

keel_status rma_run_named(struct client *c, keel_segment *s, int rank, size_t offset, const struct rma_named *how,
                          int64_t *found)
{
    struct pack pack;
    struct op run;
    if (bad_named(c, s, rank, offset, how, &pack))
        return rma_bad_call(c);
    op_init(c, &run, how->kind, s, rank, offset, how->kind == OP_ACC ? how->len : how->word);
    run.packed = how->packed ? counts_pieces(c, &pack) : NULL;
    run.what = how->what;
    run.unordered = how->unordered;
    run.word = how->word;
    run.src = how->src;
    run.a = how->a;
    run.b = how->b;
    run.named = true;
    run.name = (struct lane_op){.lane = 0, .number = how->name};
    keel_status status = op_run(&run);
    if (run.packed)
        give_back(c, run.packed);
    if (found)
        *found = run.result;
    return status;
}

bool rma_name_rmw(keel_type type, keel_rmw_op op, const void *operand, const void *expected, struct rma_named *out)
{
    size_t bytes = rmw_bytes(type, op, operand, expected);
    if (!bytes)
        return false;
    *out = (struct rma_named){.kind = OP_RMW, .what = (uint32_t)op, .word = (uint8_t)bytes};
    rmw_operands(op, bytes, operand, expected, &out->a, &out->b);
    return true;
}

void rma_store_found(const struct rma_named *how, int64_t found, void *old)
{
    if (old)
        word_store(old, found, how->word);
}

keel_status rma_fetch_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add, int64_t *old)
{
    return rma_rmw(c, s, rank, offset, KEEL_INT64, KEEL_RMW_ADD, &add, NULL, old);
}

keel_status rma_compare_swap(struct client *c, keel_segment *s, int rank, size_t offset, int64_t expected,
                             int64_t desired, int64_t *old)
{
    return rma_rmw(c, s, rank, offset, KEEL_INT64, KEEL_RMW_COMPARE_SWAP, &desired, &expected, old);
}
