/* Accumulates and atomics of the library as the wrapper sees it where partners do the part of the dead (acting_once.c).
 * What cannot be goes to the library, which refuses it; so does what has no bytes. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/op/packed.h"
#include "runtime/client/op/plan.h"
#include "runtime/client/replica/acting_int.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/shape.h"

static const struct api_calls *below;

void acting_adds_begin(const struct api_calls *library)
{
    below = library;
}

/* ---- accumulates ---- */

static struct rma_named named(keel_type type, const void *scale)
{
    int64_t by[2] = {0, 0};
    if (arith_can_add(type))
        memcpy(by, scale ? scale : arith_one(type), arith_size(type));
    return (struct rma_named){.kind = OP_ACC, .what = type, .a = by[0], .b = by[1]};
}

keel_status act_acc(keel_segment *segment, int native, size_t offset, keel_type type, const void *scale,
                    const void *src, size_t n)
{
    const struct rma_named how = named(type, scale);
    acting_binds_segment(segment);
    bool can = arith_can_add(type) && n <= SIZE_MAX / arith_size(type) && offset % arith_align(type) == 0 &&
               acting_may(segment, native, offset, src, n * arith_size(type));
    return can ? replica_accumulates(segment->number, acting_rank_of(native), offset, &how, src, n * arith_size(type))
               : below->acc(segment, native, offset, type, scale, src, n);
}

keel_status act_acc_double(keel_segment *segment, int native, size_t offset, double scale, const double *src, size_t n)
{
    return act_acc(segment, native, offset, KEEL_DOUBLE, &scale, src, n);
}

/* Runs of a call: those that are small go many in a message, which has one name. */
struct runs {
    const keel_segment *segment;
    int rank;
    struct rma_named how;
    struct packing fits;
    keel_piece piece[PACK_RUNS_MAX]; /* [fits.runs] */
};

static keel_status runs_packed(struct runs *r)
{
    size_t n = r->fits.runs, len = pack_head(n) + r->fits.bytes;
    struct rma_named how = r->how;
    struct pack_writer w;
    uint8_t *body = malloc(len);
    if (!body)
        return KEEL_ERR_NOMEM;
    pack_begin(&w, body, n);
    for (size_t i = 0; i < n; i++)
        pack_add(&w, r->piece[i].offset - r->fits.first, r->piece[i].local, r->piece[i].len);
    how.packed = true;
    keel_status status =
        replica_accumulates(r->segment->number, r->rank, r->fits.first, &how, body, pack_end(&w, true));
    free(body);
    return status;
}

static keel_status runs_go(struct runs *r)
{
    const keel_piece *one = &r->piece[0];
    keel_status status = KEEL_OK;
    if (r->fits.runs == 1)
        status = replica_accumulates(r->segment->number, r->rank, one->offset, &r->how, one->local, one->len);
    else if (r->fits.runs)
        status = runs_packed(r);
    r->fits = (struct packing){.run_max = PLAN_PACKED_MAX, .reach_max = UINT32_MAX};
    return status;
}

static keel_status runs_add(struct runs *r, keel_piece run)
{
    keel_status status = KEEL_OK;
    if (!run.len)
        return KEEL_OK;
    if (!packing_add(&r->fits, &run)) {
        status = runs_go(r);
        if (!packing_add(&r->fits, &run))
            return status == KEEL_OK
                       ? replica_accumulates(r->segment->number, r->rank, run.offset, &r->how, run.local, run.len)
                       : status;
    }
    r->piece[r->fits.runs - 1] = run;
    return status;
}

/* NULL: no memory. */
static struct runs *runs_new(const keel_segment *segment, int native, keel_type type, const void *scale)
{
    struct runs *r = malloc(sizeof *r);
    if (!r)
        return NULL;
    r->segment = segment;
    r->rank = acting_rank_of(native);
    r->how = named(type, scale);
    r->fits = (struct packing){.run_max = PLAN_PACKED_MAX, .reach_max = UINT32_MAX};
    return r;
}

static keel_status runs_end(struct runs *r, keel_status status)
{
    if (status == KEEL_OK)
        status = runs_go(r);
    free(r);
    return status;
}

static bool are_elements(keel_type type, const keel_piece *pieces, size_t n)
{
    bool are = arith_can_add(type);
    for (size_t i = 0; are && i < n; i++)
        are = pieces[i].len % arith_size(type) == 0 && pieces[i].offset % arith_align(type) == 0;
    return are;
}

static bool is_of_a_rank(const keel_segment *segment, int native)
{
    return segment && segment->number && acting_rank_of(native) >= 0;
}

keel_status act_acc_vector(keel_segment *segment, int native, keel_type type, const void *scale,
                           const keel_piece *pieces, size_t n)
{
    keel_status status = KEEL_OK;
    acting_binds_segment(segment);
    if (!is_of_a_rank(segment, native) || !replica_may_read_pieces(segment, acting_rank_of(native), pieces, n) ||
        !are_elements(type, pieces, n))
        return below->acc_vector(segment, native, type, scale, pieces, n);
    struct runs *r = runs_new(segment, native, type, scale);
    for (size_t i = 0; r && i < n && status == KEEL_OK; i++)
        status = runs_add(r, pieces[i]);
    return r ? runs_end(r, status) : KEEL_ERR_NOMEM;
}

/* Levels without gaps are joined, so that there are few runs. */
static bool are_runs(const keel_segment *segment, int native, size_t offset, keel_type type, const void *src,
                     const keel_strided *how, struct shape *shape)
{
    if (!is_of_a_rank(segment, native) || !arith_can_add(type) ||
        !replica_may_read_shape(segment, acting_rank_of(native), offset, src, how, shape))
        return false;
    shape_merge(shape);
    return shape->run % arith_size(type) == 0 && offset % arith_align(type) == 0 &&
           shape_is_aligned(shape, SHAPE_GLOBAL, arith_align(type));
}

keel_status act_acc_strided(keel_segment *segment, int native, size_t offset, keel_type type, const void *scale,
                            const void *src, const keel_strided *how)
{
    struct shape shape;
    struct shape_walk walk;
    uint64_t place[SHAPE_SIDES];
    keel_status status = KEEL_OK;
    acting_binds_segment(segment);
    if (!are_runs(segment, native, offset, type, src, how, &shape))
        return below->acc_strided(segment, native, offset, type, scale, src, how);
    struct runs *r = runs_new(segment, native, type, scale);
    shape_walk_init(&walk, &shape);
    while (r && status == KEEL_OK && shape_walk_next(&walk, place))
        status = runs_add(r, (keel_piece){.offset = offset + place[SHAPE_GLOBAL],
                                          .local = (uint8_t *)(uintptr_t)src + place[SHAPE_LOCAL],
                                          .len = shape.run});
    return r ? runs_end(r, status) : KEEL_ERR_NOMEM;
}

ACTING_BEGUN(acc,
             (keel_segment * segment, int native, size_t offset, keel_type type, const void *scale, const void *src,
              size_t n, keel_handle *handle),
             (segment, native, offset, type, scale, src, n))
ACTING_BEGUN(acc_vector,
             (keel_segment * segment, int native, keel_type type, const void *scale, const keel_piece *pieces, size_t n,
              keel_handle *handle),
             (segment, native, type, scale, pieces, n))
ACTING_BEGUN(acc_strided,
             (keel_segment * segment, int native, size_t offset, keel_type type, const void *scale, const void *src,
              const keel_strided *how, keel_handle *handle),
             (segment, native, offset, type, scale, src, how))

/* ---- atomics ---- */

keel_status act_rmw(keel_segment *segment, int native, size_t offset, keel_type type, keel_rmw_op op,
                    const void *operand, const void *expected, void *old)
{
    struct rma_named how;
    int64_t found = 0;
    acting_binds_segment(segment);
    if (!rma_name_rmw(type, op, operand, expected, &how) || offset % how.word ||
        !acting_may(segment, native, offset, operand, how.word))
        return below->rmw(segment, native, offset, type, op, operand, expected, old);
    keel_status status = replica_exchanges(segment->number, acting_rank_of(native), offset, &how, &found);
    rma_store_found(&how, found, old);
    return status;
}

keel_status act_fetch_add(keel_segment *segment, int native, size_t offset, int64_t add, int64_t *old)
{
    return act_rmw(segment, native, offset, KEEL_INT64, KEEL_RMW_ADD, &add, NULL, old);
}

keel_status act_compare_swap(keel_segment *segment, int native, size_t offset, int64_t expected, int64_t desired,
                             int64_t *old)
{
    return act_rmw(segment, native, offset, KEEL_INT64, KEEL_RMW_COMPARE_SWAP, &desired, &expected, old);
}
