/* Segments: symmetric pieces of global memory. Each rank has a part of the same size; the parts live in the agents'
 * memory, so a rank that dies loses no data. */
#ifndef KEEL_SEGMENT_H
#define KEEL_SEGMENT_H

#include <stddef.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_segment keel_segment;

typedef enum keel_redundancy {
    KEEL_REDUNDANCY_NONE = 0,   /* one copy: a dead node's parts are lost */
    KEEL_REDUNDANCY_SHADOW = 1, /* two copies on different nodes: survives any one node at a time */
    KEEL_REDUNDANCY_TRIPLE =
        2 /* three copies: survives any two nodes at a time. With fewer nodes, as many as there are */
} keel_redundancy;

/* Collective over all live ranks: allocate a segment with bytes_per_rank bytes (0 is allowed) for every rank, zeroed.
 * All ranks must pass the same arguments. A restarted rank gets the job's existing segments in the order of allocation.
 * *out      owned by Keel until keel_segment_free.
 * errors    the same on all ranks, and then nothing is left of it: KEEL_ERR_MISMATCH if arguments differ; KEEL_ERR_NOMEM or
 *           KEEL_ERR_LIMIT if one of them cannot have its part; what keel_fence_all would have told one of them. */
KEEL_MUST_CHECK keel_status keel_segment_alloc(size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out);
/* Collective. NULL is allowed (on all ranks). The segment is freed also where the call tells what keel_fence_all would have told. */
keel_status keel_segment_free(keel_segment *segment);
size_t keel_segment_bytes_per_rank(const keel_segment *segment);

/* Where the rank's part lies: at the same address in every process. Where a copy of the part is on
 * the caller's node the memory is there, and plain loads and stores work; elsewhere the address is kept free, and
 * touching it is a segmentation fault. Plain stores reach the copy on this node only: they are right where it is the only
 * one (KEEL_REDUNDANCY_NONE). NULL for wrong arguments, or if the system did not give the process its address range and the part
 * is not here.
 * threads   any.  blocks  at the first call for a part, until the node's agent has answered. */
void *keel_address(keel_segment *segment, int rank);
/* The segment in whose part of the rank the address lies, and how far: what keel_address gave, plus *offset. In time that grows
 * with the logarithm of the number of segments. Not while another thread allocates or frees one.
 * errors    KEEL_ERR_ARG: in no part of that rank. */
KEEL_MUST_CHECK keel_status keel_locate(int rank, const void *address, keel_segment **segment, size_t *offset);

#ifdef __cplusplus
}
#endif
#endif
