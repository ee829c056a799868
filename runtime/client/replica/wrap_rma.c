/* Puts, gets, accumulates, fences, handles. Gets send nothing and are not compared. What cannot be
 * written over is compared before it is sent where there is a majority (replica_meet_before). */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/digest.h"
#include "runtime/wire/shape.h"

#define BELOW replica.below

/* ---- the bytes of shapes ---- */

static uint64_t hash_strided(const uint8_t *at, const keel_strided *how, const struct shape *shape, uint64_t *bytes)
{
    struct shape_walk walk;
    uint64_t place[SHAPE_SIDES], hash = replica_hash_of_shape(how);
    shape_walk_init(&walk, shape);
    for (*bytes = 0; shape_walk_next(&walk, place); *bytes += shape->run)
        hash = digest(at + place[SHAPE_LOCAL], shape->run, hash);
    return hash;
}

static size_t shape_bytes(const void *at, const keel_strided *how)
{
    struct shape shape;
    bool has = at && how && shape_init(&shape, how->levels, how->count, how->global_stride, how->local_stride);
    return has ? shape.run * shape_runs(&shape) : 0;
}

static size_t pieces_bytes(const keel_piece *pieces, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; pieces && i < n; i++)
        bytes += pieces[i].len;
    return bytes;
}

/* From the first byte at the target to behind the last. */
static uint64_t strided_reach(const keel_strided *how)
{
    struct shape shape;
    return how && shape_init(&shape, how->levels, how->count, how->global_stride, how->local_stride)
               ? shape.extent[SHAPE_GLOBAL]
               : 0;
}

static uint64_t numbers(const void *scale, keel_type type)
{
    return scale && arith_size(type) ? digest(scale, arith_size(type), 1 + (uint64_t)type) : (uint64_t)type;
}

/* with: what else says what is done with the bytes. */
static void added_strided(enum replica_call call, int rank, keel_segment *segment, size_t offset, const void *src,
                          const keel_strided *how, uint64_t with)
{
    struct shape shape;
    uint64_t bytes = 0;
    if (replica.check == CHECK_NONE)
        return;
    if (replica_may_read_shape(segment, rank, offset, src, how, &shape))
        with ^= hash_strided(src, how, &shape, &bytes);
    replica_did(call, rank, segment, offset, bytes, with);
}

static void added_vector(enum replica_call call, int rank, keel_segment *segment, const keel_piece *pieces, size_t n,
                         uint64_t with)
{
    uint64_t hash = with, bytes = 0;
    if (replica.check == CHECK_NONE)
        return;
    bool may = replica_may_read_pieces(segment, rank, pieces, n);
    for (size_t i = 0; may && i < n; i++) {
        const uint64_t where[] = {pieces[i].offset, pieces[i].len};
        hash = digest(where, sizeof where, hash);
        hash = digest(pieces[i].local, pieces[i].len, hash);
        bytes += pieces[i].len;
    }
    replica_did(call, rank, segment, may ? pieces[0].offset : 0, bytes, hash);
}

static keel_status did_strided(enum replica_call call, int rank, keel_segment *segment, size_t offset, const void *src,
                               const keel_strided *shape)
{
    if (replica_inspects())
        return replica_did_shape(call, rank, segment, offset, src, shape);
    added_strided(call, rank, segment, offset, src, shape, 0);
    return KEEL_OK;
}

static keel_status did_vector(enum replica_call call, int rank, keel_segment *segment, const keel_piece *pieces,
                              size_t n)
{
    if (replica_inspects())
        return replica_did_pieces(call, rank, segment, pieces, n);
    added_vector(call, rank, segment, pieces, n, 0);
    return KEEL_OK;
}

/* What has been told of bytes that do not lie together: three replicas compare them before they go. */
static keel_status shape_may_go(enum replica_call call)
{
    return replica.sets == REPLICAS_MAX ? replica_meet(call) : KEEL_OK;
}

/* ---- puts and gets ---- */

/* bytes: that are put; told: what is remembered of it; may_go: where it cannot be written over. */
#define PUTS(call, bytes, told, may_go, below)                                                                         \
    size_t len_put = replica.partners ? (bytes) : 0;                                                                   \
    keel_status status = replica_room(call);                                                                           \
    status = status == KEEL_OK ? replica_before(call, PARTNER_PUT, rank, len_put) : status;                            \
    status = status == KEEL_OK ? (told) : status;                                                                      \
    status = status == KEEL_OK ? (may_go) : status;                                                                    \
    replica_used(PARTNER_PUT, rank, len_put);                                                                          \
    return replica_went(status == KEEL_OK ? (below) : status)

keel_status replica_put(keel_segment *segment, int rank, size_t offset, const void *src, size_t len)
{
    PUTS(CALL_put, len, replica_did_put(CALL_put, rank, segment, offset, src, len), KEEL_OK,
         BELOW->put(segment, replica_native_of(rank), offset, src, len));
}

keel_status replica_put_nb(keel_segment *segment, int rank, size_t offset, const void *src, size_t len,
                           keel_handle *handle)
{
    PUTS(CALL_put_nb, len, replica_did_put(CALL_put_nb, rank, segment, offset, src, len), KEEL_OK,
         BELOW->put_nb(segment, replica_native_of(rank), offset, src, len, handle));
}

keel_status replica_put_strided(keel_segment *segment, int rank, size_t offset, const void *src,
                                const keel_strided *shape)
{
    PUTS(CALL_put_strided, shape_bytes(src, shape), did_strided(CALL_put_strided, rank, segment, offset, src, shape),
         shape_may_go(CALL_put_strided), BELOW->put_strided(segment, replica_native_of(rank), offset, src, shape));
}

keel_status replica_put_strided_nb(keel_segment *segment, int rank, size_t offset, const void *src,
                                   const keel_strided *shape, keel_handle *handle)
{
    PUTS(CALL_put_strided_nb, shape_bytes(src, shape),
         did_strided(CALL_put_strided_nb, rank, segment, offset, src, shape), shape_may_go(CALL_put_strided_nb),
         BELOW->put_strided_nb(segment, replica_native_of(rank), offset, src, shape, handle));
}

keel_status replica_put_vector(keel_segment *segment, int rank, const keel_piece *pieces, size_t n)
{
    PUTS(CALL_put_vector, pieces_bytes(pieces, n), did_vector(CALL_put_vector, rank, segment, pieces, n),
         shape_may_go(CALL_put_vector), BELOW->put_vector(segment, replica_native_of(rank), pieces, n));
}

keel_status replica_put_vector_nb(keel_segment *segment, int rank, const keel_piece *pieces, size_t n,
                                  keel_handle *handle)
{
    PUTS(CALL_put_vector_nb, pieces_bytes(pieces, n), did_vector(CALL_put_vector_nb, rank, segment, pieces, n),
         shape_may_go(CALL_put_vector_nb), BELOW->put_vector_nb(segment, replica_native_of(rank), pieces, n, handle));
}

#define GET(name, parameters, arguments)                                                                               \
    keel_status replica_##name parameters                                                                              \
    {                                                                                                                  \
        keel_status status = replica_before(CALL_##name, PARTNER_GET, rank, 0);                                        \
        replica_used(PARTNER_GET, rank, 0);                                                                            \
        rank = replica_native_of(rank);                                                                                \
        return status == KEEL_OK ? replica_after(BELOW->name arguments) : status;                                      \
    }
GET(get, (keel_segment * segment, int rank, size_t offset, void *dst, size_t len), (segment, rank, offset, dst, len))
GET(get_strong, (keel_segment * segment, int rank, size_t offset, void *dst, size_t len),
    (segment, rank, offset, dst, len))
GET(get_nb, (keel_segment * segment, int rank, size_t offset, void *dst, size_t len, keel_handle *handle),
    (segment, rank, offset, dst, len, handle))
GET(get_strong_nb, (keel_segment * segment, int rank, size_t offset, void *dst, size_t len, keel_handle *handle),
    (segment, rank, offset, dst, len, handle))
GET(get_strided, (keel_segment * segment, int rank, size_t offset, void *dst, const keel_strided *shape),
    (segment, rank, offset, dst, shape))
GET(get_strided_nb,
    (keel_segment * segment, int rank, size_t offset, void *dst, const keel_strided *shape, keel_handle *handle),
    (segment, rank, offset, dst, shape, handle))
GET(get_vector, (keel_segment * segment, int rank, const keel_piece *pieces, size_t n), (segment, rank, pieces, n))
GET(get_vector_nb, (keel_segment * segment, int rank, const keel_piece *pieces, size_t n, keel_handle *handle),
    (segment, rank, pieces, n, handle))

/* ---- accumulates ---- */

/* Scale and type are an operation of their own, before that of the elements. */
static keel_status acc_may_go(enum replica_call call, keel_segment *segment, int rank, size_t offset, keel_type type,
                              const void *scale, const void **src, size_t n)
{
    size_t size = arith_size(type);
    if (replica.check == CHECK_NONE)
        return KEEL_OK;
    bool may = replica_may_read_elements(segment, rank, offset, type, n);
    size_t len = may ? n * size : 0;
    keel_status met = replica_before_once(call, PARTNER_ADD, rank, len);
    replica_did(call, rank, segment, offset, 0, numbers(scale, type));
    if (!may)
        return KEEL_OK; /* it is refused */
    keel_status status = replica_meet_before(call, rank, segment, offset, src, len);
    replica_used(PARTNER_ADD, rank, len);
    replica_changes(rank, segment, offset, len);
    return met == KEEL_OK ? status : met;
}

keel_status replica_acc(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                        const void *src, size_t n)
{
    keel_status status = acc_may_go(CALL_acc, segment, rank, offset, type, scale, &src, n);
    return status != KEEL_OK ? status
                             : replica_after(BELOW->acc(segment, replica_native_of(rank), offset, type, scale, src, n));
}

/* The majority's elements stay only until the next call, so they get memory of their own. It is not given back: a wait
 * for them would change the names of later operations (op/lane.h) against those of the other sets, and a wrong bit is
 * rare. */
struct kept {
    struct kept *next;
    max_align_t bytes[];
};

static struct kept *all_kept;

static const void *kept(const void *bytes, size_t len)
{
    struct kept *k = malloc(sizeof *k + len);
    if (!k)
        return NULL;
    k->next = all_kept;
    all_kept = k;
    return memcpy(k->bytes, bytes, len);
}

keel_status replica_acc_nb(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                           const void *src, size_t n, keel_handle *handle)
{
    const void *mine = src;
    keel_status status = acc_may_go(CALL_acc_nb, segment, rank, offset, type, scale, &src, n);
    if (status == KEEL_OK && src != mine && !(src = kept(src, n * arith_size(type))))
        status = KEEL_ERR_NOMEM;
    return status != KEEL_OK
               ? status
               : replica_after(BELOW->acc_nb(segment, replica_native_of(rank), offset, type, scale, src, n, handle));
}

keel_status replica_acc_double(keel_segment *segment, int rank, size_t offset, double scale, const double *src,
                               size_t n)
{
    return replica_acc(segment, rank, offset, KEEL_DOUBLE, &scale, src, n);
}

/* Of an accumulate that does not lie together: it is told, and may go. */
static keel_status before_strided(enum replica_call call, int rank, keel_segment *segment, size_t offset,
                                  keel_type type, const void *scale, const void *src, const keel_strided *shape)
{
    size_t added = replica.partners ? shape_bytes(src, shape) : 0;
    keel_status met = replica_before_once(call, PARTNER_ADD, rank, added);
    added_strided(call, rank, segment, offset, src, shape, numbers(scale, type));
    keel_status status = shape_may_go(call);
    replica_used(PARTNER_ADD, rank, added);
    replica_changes(rank, segment, offset, strided_reach(shape));
    return met == KEEL_OK ? status : met;
}

keel_status replica_acc_strided(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                                const void *src, const keel_strided *shape)
{
    keel_status status = before_strided(CALL_acc_strided, rank, segment, offset, type, scale, src, shape);
    return status != KEEL_OK
               ? status
               : replica_after(BELOW->acc_strided(segment, replica_native_of(rank), offset, type, scale, src, shape));
}

keel_status replica_acc_strided_nb(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                                   const void *src, const keel_strided *shape, keel_handle *handle)
{
    keel_status status = before_strided(CALL_acc_strided_nb, rank, segment, offset, type, scale, src, shape);
    return status != KEEL_OK ? status
                             : replica_after(BELOW->acc_strided_nb(segment, replica_native_of(rank), offset, type,
                                                                   scale, src, shape, handle));
}

static void changes_pieces(int rank, const keel_segment *segment, const keel_piece *pieces, size_t n)
{
    bool may = replica_may_read_pieces(segment, rank, pieces, n);
    for (size_t i = 0; may && i < n; i++)
        replica_changes(rank, segment, pieces[i].offset, pieces[i].len);
}

static keel_status before_vector(enum replica_call call, int rank, keel_segment *segment, keel_type type,
                                 const void *scale, const keel_piece *pieces, size_t n)
{
    size_t added = replica.partners ? pieces_bytes(pieces, n) : 0;
    keel_status met = replica_before_once(call, PARTNER_ADD, rank, added);
    added_vector(call, rank, segment, pieces, n, numbers(scale, type));
    keel_status status = shape_may_go(call);
    replica_used(PARTNER_ADD, rank, added);
    changes_pieces(rank, segment, pieces, n);
    return met == KEEL_OK ? status : met;
}

keel_status replica_acc_vector(keel_segment *segment, int rank, keel_type type, const void *scale,
                               const keel_piece *pieces, size_t n)
{
    keel_status status = before_vector(CALL_acc_vector, rank, segment, type, scale, pieces, n);
    return status != KEEL_OK
               ? status
               : replica_after(BELOW->acc_vector(segment, replica_native_of(rank), type, scale, pieces, n));
}

keel_status replica_acc_vector_nb(keel_segment *segment, int rank, keel_type type, const void *scale,
                                  const keel_piece *pieces, size_t n, keel_handle *handle)
{
    keel_status status = before_vector(CALL_acc_vector_nb, rank, segment, type, scale, pieces, n);
    return status != KEEL_OK
               ? status
               : replica_after(BELOW->acc_vector_nb(segment, replica_native_of(rank), type, scale, pieces, n, handle));
}

/* ---- fences ---- */

static keel_status fenced(keel_status status, enum replica_call call)
{
    keel_status met = replica_meet(call);
    return status != KEEL_OK ? replica_after(status) : met;
}

keel_status replica_fence(int rank)
{
    return fenced(rank < 0 ? BELOW->fence(rank) : BELOW->fence(replica_native_of(rank)), CALL_fence);
}

keel_status replica_fence_all(void)
{
    return fenced(BELOW->fence_all(), CALL_fence_all);
}

keel_status replica_group_fence(const keel_group *group)
{
    return fenced(BELOW->group_fence(group), CALL_group_fence);
}

/* ---- handles: whether one is complete is the moment's ---- */

keel_status replica_wait(keel_handle *handle)
{
    return replica_after(BELOW->wait(handle));
}

keel_status replica_wait_all(keel_handle *handles, size_t n)
{
    return replica_after(BELOW->wait_all(handles, n));
}

keel_status replica_test(keel_handle *handle)
{
    struct replica_answer a;
    if (replica_decides(&a)) {
        keel_status status = replica_after(BELOW->test(handle));
        a = replica_tell((struct replica_answer){{status}});
    } else if (a.value[0] == KEEL_OK) {
        return replica_after(BELOW->wait(handle));
    }
    return (keel_status)a.value[0];
}

keel_status replica_wait_any(keel_handle *handles, size_t n, size_t *which)
{
    struct replica_answer a;
    size_t found_at = SIZE_MAX;
    if (replica_decides(&a)) {
        keel_status status = replica_after(BELOW->wait_any(handles, n, which ? &found_at : NULL));
        a = replica_tell((struct replica_answer){{status, (int64_t)found_at}});
    } else if (a.value[0] == KEEL_OK && handles && (uint64_t)a.value[1] < n) {
        keel_status status = replica_after(BELOW->wait(&handles[a.value[1]]));
        if (status != KEEL_OK)
            return status;
    }
    if (which)
        *which = (size_t)a.value[1];
    return (keel_status)a.value[0];
}
