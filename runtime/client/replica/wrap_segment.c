/* Segments: those of all ranks are those of the set's group, whose members are the set's ranks in their order. */
#include <stdlib.h>

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/digest.h"

#define BELOW replica.below

/* A new segment gets its number. */
static void counts(keel_segment *segment)
{
    if (replica.segments + 1 >= replica.segments_max) {
        uint64_t wider = replica.segments_max ? 2 * replica.segments_max : 64;
        // NOLINTNEXTLINE(bugprone-sizeof-expression) an array of pointers
        keel_segment **memory = realloc(replica.segment, wider * sizeof *memory);
        if (!memory)
            return; /* it has no number: operations on it are told without, and not written over */
        replica.segment = memory;
        replica.segments_max = wider;
    }
    segment->number = ++replica.segments;
    replica.segment[segment->number] = segment;
}

keel_segment *replica_segment(uint64_t number)
{
    return number > 0 && number <= replica.segments ? replica.segment[number] : NULL;
}

keel_status replica_owns(keel_segment *segment)
{
    counts(segment);
    segment->of_all = true;
    return segment->number ? replica_describes(segment, segment->number) : KEEL_OK;
}

void replica_disowns(uint64_t number)
{
    replica_detaches(number);
    replica.segment[number] = NULL;
}

/* A set that loses a node's ranks ends, so its other copies of what these had are of no use to it. What is no
 * redundancy stays what it is, and is refused. */
static keel_redundancy copies_of(keel_redundancy asked)
{
    bool is_one = asked == KEEL_REDUNDANCY_SHADOW || asked == KEEL_REDUNDANCY_TRIPLE;
    return is_one && replica.copies == SHARE_ONE ? KEEL_REDUNDANCY_NONE : asked;
}

static keel_status allocate(keel_group *group, const size_t *bytes, int n, keel_redundancy redundancy,
                            enum replica_call call, keel_segment **out)
{
    replica_did_bytes(call, -1, NULL, (uint64_t)redundancy, bytes, bytes ? (size_t)n * sizeof *bytes : 0);
    keel_status status = replica_meet(call);
    if (group != replica.group)
        replica_binds(); /* its members free it, and do not wait for who acts for one of them */
    if (status == KEEL_OK)
        status = replica_after(BELOW->segment_alloc_group(group, bytes, copies_of(redundancy), out));
    if (status != KEEL_OK || !out)
        return status;
    counts(*out);
    replica_makes(call, digest(bytes, (size_t)n * sizeof *bytes, (*out)->number));
    (*out)->of_all = group == replica.group;
    return (*out)->number ? replica_describes(*out, (*out)->number) : KEEL_OK;
}

keel_status replica_segment_alloc(size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out)
{
    if (replica_is_apart())
        return KEEL_ERR_STATE;
    size_t *bytes = malloc((size_t)replica.size * sizeof *bytes);
    if (!bytes)
        return KEEL_ERR_NOMEM;
    for (int r = 0; r < replica.size; r++)
        bytes[r] = bytes_per_rank;
    keel_status status = allocate(replica.group, bytes, replica.size, redundancy, CALL_segment_alloc, out);
    free(bytes);
    return status;
}

keel_status replica_segment_alloc_parts(const size_t *bytes, keel_redundancy redundancy, keel_segment **out)
{
    return replica_is_apart() ? KEEL_ERR_STATE
                              : allocate(replica.group, bytes, replica.size, redundancy, CALL_segment_alloc_parts, out);
}

keel_status replica_segment_alloc_group(keel_group *group, const size_t *bytes, keel_redundancy redundancy,
                                        keel_segment **out)
{
    return replica_is_in_task()
               ? KEEL_ERR_STATE
               : allocate(group, bytes, BELOW->group_size(group), redundancy, CALL_segment_alloc_group, out);
}

keel_status replica_segment_free(keel_segment *segment)
{
    uint64_t number = segment ? segment->number : 0;
    keel_status status = replica_is_in_task() ? KEEL_ERR_STATE : replica_fence_all();
    if (status == KEEL_OK)
        status = replica_after(BELOW->segment_free(segment));
    if (status == KEEL_OK && number) {
        replica_makes(CALL_segment_free, number);
        replica_disowns(number);
    }
    return status;
}

/* What describes a part names native ranks, which each set has others of. */
keel_status replica_segment_describe(const keel_segment *segment, int rank, keel_segment_part *out)
{
    (void)segment, (void)rank, (void)out;
    return replica_refuses(CALL_segment_describe);
}

keel_status replica_segment_attach(const keel_segment_part *part, keel_segment **out)
{
    (void)part;
    if (out)
        *out = NULL;
    return replica_refuses(CALL_segment_attach);
}

size_t replica_segment_bytes(const keel_segment *segment, int rank)
{
    return BELOW->segment_bytes(segment, replica_native_of(rank));
}

/* Copies lie wherever there is room, on nodes of other sets as well. */
keel_status replica_segment_copies(const keel_segment *segment, int rank, int nodes[KEEL_COPIES_MAX], int *n)
{
    (void)segment, (void)rank, (void)nodes, (void)n;
    return replica_refuses(CALL_segment_copies);
}

void *replica_address(keel_segment *segment, int rank)
{
    return BELOW->address(segment, replica_native_of(rank));
}

keel_status replica_locate(int rank, const void *address, keel_segment **segment, size_t *offset)
{
    return BELOW->locate(replica_native_of(rank), address, segment, offset);
}
