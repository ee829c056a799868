/* Which bytes a call would send. What the library refuses is not read: lengths and shapes may be anything then. Of a
 * shape only those numbers count that its levels have, as the others may be what lay on the stack; of a pair of value
 * and place not what is between a value of 4 bytes and the place. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/client.h"
#include "runtime/client/op/near.h"
#include "runtime/client/replica/replica.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/digest.h"
#include "runtime/wire/shape.h"

bool replica_may_read(const keel_segment *segment, int rank, size_t offset, size_t len)
{
    return !near_outside(replica.client, segment, replica_native_of(rank), offset, len);
}

bool replica_may_read_elements(const keel_segment *segment, int rank, size_t offset, keel_type type, size_t n)
{
    return arith_can_add(type) && n <= SIZE_MAX / arith_size(type) &&
           replica_may_read(segment, rank, offset, n * arith_size(type));
}

bool replica_may_read_pieces(const keel_segment *segment, int rank, const keel_piece *pieces, size_t n)
{
    bool may = pieces && n > 0;
    for (size_t i = 0; may && i < n; i++)
        may = (pieces[i].local || !pieces[i].len) && replica_may_read(segment, rank, pieces[i].offset, pieces[i].len);
    return may;
}

/* The library looks whether they are apart with levels joined or not. */
static bool is_apart(const struct shape *shape)
{
    struct shape joined = *shape;
    shape_merge(&joined);
    return shape_is_apart(shape, SHAPE_GLOBAL) || shape_is_apart(&joined, SHAPE_GLOBAL);
}

bool replica_may_read_shape(const keel_segment *segment, int rank, size_t offset, const void *src,
                            const keel_strided *how, struct shape *shape)
{
    return src && how && shape_init(shape, how->levels, how->count, how->global_stride, how->local_stride) &&
           replica_may_read(segment, rank, offset, shape->extent[SHAPE_GLOBAL]) && is_apart(shape);
}

uint64_t replica_hash_of_shape(const keel_strided *how)
{
    size_t levels = (size_t)how->levels;
    uint64_t hash = digest(how->count, (levels + 1) * sizeof *how->count, levels);
    return digest(how->global_stride, levels * sizeof *how->global_stride, hash);
}

enum { PAIR_BYTES = 16, VALUE_BYTES = 8 };

bool replica_has_gaps(const keel_combine *how)
{
    return how && (how->op == KEEL_MINLOC || how->op == KEEL_MAXLOC) && arith_size(how->type) < VALUE_BYTES;
}

const void *replica_without_gaps(const void *in, size_t bytes, const keel_combine *how)
{
    static uint8_t *instead;
    uint8_t *memory = in && bytes && replica_has_gaps(how) ? realloc(instead, bytes) : NULL;
    if (!memory)
        return in;
    instead = memcpy(memory, in, bytes);
    size_t size = arith_size(how->type);
    for (size_t at = 0; at < bytes; at += PAIR_BYTES)
        memset(instead + at + size, 0, VALUE_BYTES - size);
    return instead;
}
