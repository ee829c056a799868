/* Strided and vector operations: many pieces of one rank's part in one call. Everything that keel/rma.h says of put,
 * get and accumulate holds for them, piece by piece; where pieces follow each other without a gap on both sides they
 * are one.
 *
 * Each has a non-blocking form with a handle, or NULL (see keel_put_nb). Descriptors are read before the call returns;
 * the data belong to Keel until the handle is complete.
 *
 * threads   any.
 * blocks    nb: no. else: as keel_put.
 * errors    those of keel/rma.h.
 *           KEEL_ERR_ARG before anything is done: a piece outside of the part, an extent that overflows, elements that
 *           are cut or
 *           not aligned, pieces that overlap where they are written (of a vector accumulate each counts),
 *           NULL for bytes.  KEEL_ERR_STATE: the handle is in use.  KEEL_ERR_NOMEM: some pieces were done.
 *           Else the first error that a piece met; the others were done. */
#ifndef KEEL_SHAPE_H
#define KEEL_SHAPE_H

#include <stddef.h>

#include <keel/rma.h>
#include <keel/segment.h>
#include <keel/status.h>
#include <keel/type.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KEEL_STRIDE_LEVELS_MAX = 8 };

/* count[0] contiguous bytes, count[1] of these, stride[0] bytes apart, count[2] of those, stride[1] bytes apart, and so
 * on up to count[levels]. Where a level with more than one piece is written to, its stride is at least the extent of
 * what has smaller strides. */
typedef struct keel_strided {
    int levels; /* 0: contiguous; at most KEEL_STRIDE_LEVELS_MAX */
    size_t count[KEEL_STRIDE_LEVELS_MAX + 1];
    size_t global_stride[KEEL_STRIDE_LEVELS_MAX];
    size_t local_stride[KEEL_STRIDE_LEVELS_MAX];
} keel_strided;

KEEL_MUST_CHECK keel_status keel_put_strided(keel_segment *segment, int rank, size_t offset, const void *src,
                                             const keel_strided *shape);
KEEL_MUST_CHECK keel_status keel_put_strided_nb(keel_segment *segment, int rank, size_t offset, const void *src,
                                                const keel_strided *shape, keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_get_strided(keel_segment *segment, int rank, size_t offset, void *dst,
                                             const keel_strided *shape);
KEEL_MUST_CHECK keel_status keel_get_strided_nb(keel_segment *segment, int rank, size_t offset, void *dst,
                                                const keel_strided *shape, keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_acc_strided(keel_segment *segment, int rank, size_t offset, keel_type type,
                                             const void *scale, const void *src, const keel_strided *shape);
KEEL_MUST_CHECK keel_status keel_acc_strided_nb(keel_segment *segment, int rank, size_t offset, keel_type type,
                                                const void *scale, const void *src, const keel_strided *shape,
                                                keel_handle *handle);

/* One piece of a vector: len bytes at offset in the rank's part, and at local. */
typedef struct keel_piece {
    size_t offset;
    void *local; /* read by put and accumulate, written by get */
    size_t len;
} keel_piece;

KEEL_MUST_CHECK keel_status keel_put_vector(keel_segment *segment, int rank, const keel_piece *pieces, size_t n);
KEEL_MUST_CHECK keel_status keel_put_vector_nb(keel_segment *segment, int rank, const keel_piece *pieces, size_t n,
                                               keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_get_vector(keel_segment *segment, int rank, const keel_piece *pieces, size_t n);
KEEL_MUST_CHECK keel_status keel_get_vector_nb(keel_segment *segment, int rank, const keel_piece *pieces, size_t n,
                                               keel_handle *handle);
KEEL_MUST_CHECK keel_status keel_acc_vector(keel_segment *segment, int rank, keel_type type, const void *scale,
                                            const keel_piece *pieces, size_t n);
KEEL_MUST_CHECK keel_status keel_acc_vector_nb(keel_segment *segment, int rank, keel_type type, const void *scale,
                                               const keel_piece *pieces, size_t n, keel_handle *handle);

#ifdef __cplusplus
}
#endif
#endif
