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
 *           KEEL_ERR_LIMIT if one of them cannot have its part. */
KEEL_MUST_CHECK keel_status keel_segment_alloc(size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out);
/* Collective. NULL is allowed (on all ranks). */
keel_status keel_segment_free(keel_segment *segment);
size_t keel_segment_bytes_per_rank(const keel_segment *segment);

#ifdef __cplusplus
}
#endif
#endif
