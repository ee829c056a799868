/* The public strided and vector calls, and those on handles, on the process's instance. */
#include "runtime/client/api/calls.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/shaped.h"
#include "runtime/client/segment/track.h"

static const struct shaped put_blocking = {.kind = OP_PUT, .blocks = true};
static const struct shaped get_blocking = {.kind = OP_GET, .blocks = true};

/* What a get will write to; wrong descriptors are refused later. */
static void touch_shape(const void *dst, const keel_strided *shape)
{
    size_t extent = shape && shape->levels >= 0 && shape->levels <= KEEL_STRIDE_LEVELS_MAX ? shape->count[0] : 0;
    for (int i = 0; extent && i < shape->levels; i++) {
        size_t more;
        if (shape->count[i + 1] == 0 ||
            __builtin_mul_overflow(shape->count[i + 1] - 1, shape->local_stride[i], &more) ||
            __builtin_add_overflow(extent, more, &extent))
            return;
    }
    if (extent <= UINTPTR_MAX - (uintptr_t)dst)
        track_touch(dst, extent);
}

static void touch_pieces(const keel_piece *pieces, size_t n)
{
    for (size_t i = 0; pieces && i < n; i++)
        if (pieces[i].len <= UINTPTR_MAX - (uintptr_t)pieces[i].local)
            track_touch(pieces[i].local, pieces[i].len);
}

keel_status call_put_strided(keel_segment *segment, int rank, size_t offset, const void *src, const keel_strided *shape)
{
    return shaped_strided(&process_client, &put_blocking, segment, rank, offset, src, shape);
}

keel_status call_put_strided_nb(keel_segment *segment, int rank, size_t offset, const void *src,
                                const keel_strided *shape, keel_handle *handle)
{
    const struct shaped how = {.kind = OP_PUT, .handle = handle};
    return shaped_strided(&process_client, &how, segment, rank, offset, src, shape);
}

keel_status call_get_strided(keel_segment *segment, int rank, size_t offset, void *dst, const keel_strided *shape)
{
    touch_shape(dst, shape);
    return shaped_strided(&process_client, &get_blocking, segment, rank, offset, dst, shape);
}

keel_status call_get_strided_nb(keel_segment *segment, int rank, size_t offset, void *dst, const keel_strided *shape,
                                keel_handle *handle)
{
    const struct shaped how = {.kind = OP_GET, .handle = handle};
    touch_shape(dst, shape);
    return shaped_strided(&process_client, &how, segment, rank, offset, dst, shape);
}

keel_status call_acc_strided(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                             const void *src, const keel_strided *shape)
{
    const struct shaped how = {.kind = OP_ACC, .type = type, .scale = scale, .blocks = true};
    return shaped_strided(&process_client, &how, segment, rank, offset, src, shape);
}

keel_status call_acc_strided_nb(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                                const void *src, const keel_strided *shape, keel_handle *handle)
{
    const struct shaped how = {.kind = OP_ACC, .type = type, .scale = scale, .handle = handle};
    return shaped_strided(&process_client, &how, segment, rank, offset, src, shape);
}

keel_status call_put_vector(keel_segment *segment, int rank, const keel_piece *pieces, size_t n)
{
    return shaped_vector(&process_client, &put_blocking, segment, rank, pieces, n);
}

keel_status call_put_vector_nb(keel_segment *segment, int rank, const keel_piece *pieces, size_t n, keel_handle *handle)
{
    const struct shaped how = {.kind = OP_PUT, .handle = handle};
    return shaped_vector(&process_client, &how, segment, rank, pieces, n);
}

keel_status call_get_vector(keel_segment *segment, int rank, const keel_piece *pieces, size_t n)
{
    touch_pieces(pieces, n);
    return shaped_vector(&process_client, &get_blocking, segment, rank, pieces, n);
}

keel_status call_get_vector_nb(keel_segment *segment, int rank, const keel_piece *pieces, size_t n, keel_handle *handle)
{
    const struct shaped how = {.kind = OP_GET, .handle = handle};
    touch_pieces(pieces, n);
    return shaped_vector(&process_client, &how, segment, rank, pieces, n);
}

keel_status call_acc_vector(keel_segment *segment, int rank, keel_type type, const void *scale,
                            const keel_piece *pieces, size_t n)
{
    const struct shaped how = {.kind = OP_ACC, .type = type, .scale = scale, .blocks = true};
    return shaped_vector(&process_client, &how, segment, rank, pieces, n);
}

keel_status call_acc_vector_nb(keel_segment *segment, int rank, keel_type type, const void *scale,
                               const keel_piece *pieces, size_t n, keel_handle *handle)
{
    const struct shaped how = {.kind = OP_ACC, .type = type, .scale = scale, .handle = handle};
    return shaped_vector(&process_client, &how, segment, rank, pieces, n);
}

keel_status call_handle_aggregate(keel_handle *handle)
{
    return rma_aggregate(&process_client, handle);
}

keel_status call_wait_all(keel_handle *handles, size_t n)
{
    return rma_wait_all(&process_client, handles, n);
}

keel_status call_wait_any(keel_handle *handles, size_t n, size_t *which)
{
    return rma_wait_any(&process_client, handles, n, which);
}
