/* Segments: pieces of global memory in which each rank has a part. The parts live in the agents' memory, so a rank that
 * dies loses no data.
 *  threads   any, but one at a time of those that allocate, attach, free or locate.
 *  blocks    no, but for those that allocate or free, and keel_address, which say so. */
#ifndef KEEL_SEGMENT_H
#define KEEL_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include <keel/group.h>
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
 * memory    a node's ranks' parts, and as much for each copy that it holds of another node's. It is taken page by page
 *           as it is written to. A copy that is larger
 *           than the machine's memory and swap is KEEL_ERR_NOMEM at once, with a line that says how much there is,
 *           unless vm.overcommit_memory is 1; several
 *           that are too much together are not found out before they are written to, and the kernel ends the agent
 *           then: its node dies.
 * blocks    until all have called it. A node that does not answer and is not declared dead is waited for, longer than
 *           KEEL_TIMEOUT_MS.
 * errors    the same on all ranks, and then nothing is left of it: KEEL_ERR_MISMATCH if arguments differ, or others
 *           make another call (for good, if that is one of keel/collective.h); KEEL_ERR_NOMEM or
 *           KEEL_ERR_LIMIT if one of them cannot have its part, or a node its copies; what keel_fence_all would have
 *           told one of them. KEEL_ERR_STATE, of frees, too: inside a task.
 *           A rank alone may be told KEEL_ERR_TIMEOUT: a process has been stopped (SIGSTOP) for KEEL_TIMEOUT_MS. Then
 *           the same call is made again, and goes on; until it has
 *           ended other allocations, also one with other arguments, and frees, and keel_barrier, keel_bcast and
 *           keel_allreduce_sum, are KEEL_ERR_STATE. Freeing, mutexes and task pools do the same. */
KEEL_MUST_CHECK keel_status keel_segment_alloc(size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out);
/* The same with parts of different sizes.
 * blocks    as keel_segment_alloc.
 * errors    as keel_segment_alloc.
 * bytes     [keel_size()] of each rank's part, the same on all ranks; the caller's, read before the call returns. A
 *           restarted rank passes
 *           what the others passed. A node's memory holds its ranks' parts and, untouched, room for as many bytes as
 *           the fullest node's. */
KEEL_MUST_CHECK keel_status keel_segment_alloc_parts(const size_t *bytes, keel_redundancy redundancy,
                                                     keel_segment **out);
/* Collective over the group, of whose members those that live call; nobody else is needed, or learns of it. Parts are
 * addressed by ranks as everywhere; those of ranks that are no members have no bytes.
 * bytes     [keel_group_size(group)] of each member's part, the same on all members; also read before the call returns.
 * *out      as above; the group must not be freed before it. keel_segment_free is then collective over the group, too.
 * A process that takes the
 *           place of a member is none, and does not get the segment.
 * blocks    until all members that live have called it.
 * errors    as keel_segment_alloc; KEEL_ERR_ARG, KEEL_ERR_STATE: of the group (keel/group.h).
 *           KEEL_ERR_LIMIT after 2^31 of them in a job. After KEEL_ERR_TIMEOUT, of a free of
 *           it, too, the same call goes on, and until it has ended other allocations and frees of the group,
 *           keel_group_agree, keel_group_shrink and keel_group_free are
 *           KEEL_ERR_STATE, also one with other sizes. */
KEEL_MUST_CHECK keel_status keel_segment_alloc_group(keel_group *group, const size_t *bytes, keel_redundancy redundancy,
                                                     keel_segment **out);
/* How a process that is no member reaches one part of a group's segment. keel_segment_describe fills *out with the
 * rank's part; any message carries it to processes of the job. keel_segment_attach makes a segment of that one part
 * (those of other ranks have no bytes), in which put, get, accumulate and all else of keel/rma.h, shape.h and signal.h
 * do what they do for a member. Its address (keel_address) is the process's own and not the members'. Both are local:
 * nobody else is needed, also not later: what dies is survived as by the members. keel_segment_free of it is local,
 * too, and frees nothing of theirs; it completes the caller's implicit operations before. It should come before the
 * members free theirs: operations that an agent carries out are KEEL_ERR_ARG afterwards, those within a node reach
 * memory that is nobody's.
 * threads   one thread at a time, as for keel_locate.
 * errors    KEEL_ERR_ARG: the segment is one of all ranks, no such rank, or no description; KEEL_ERR_NOMEM;
 *           KEEL_ERR_STATE. */
typedef struct keel_segment_part {
    uint64_t opaque[8];
} keel_segment_part;
KEEL_MUST_CHECK keel_status keel_segment_describe(const keel_segment *segment, int rank, keel_segment_part *out);
KEEL_MUST_CHECK keel_status keel_segment_attach(const keel_segment_part *part, keel_segment **out);
/* Collective over those who allocated it. NULL is allowed (on all ranks). The segment is freed also where the call
 * tells what keel_fence_all would have told. Operations of the caller that are under way to it, with handles, too, are
 * completed first; their handles are to be waited for as ever.
 * blocks    until all who allocated it, and live, have called it; one that was attached: as keel_fence_all.
 * Afterwards, until many others have been freed after it, calls on it are KEEL_ERR_ARG and its parts have no bytes.
 * errors    KEEL_ERR_ARG: it was freed before; of a group, that the group was freed. KEEL_ERR_TIMEOUT: as above; it is
 *           not freed yet. KEEL_ERR_MISMATCH: others
 *           make another call; it is not freed. Of a group also KEEL_ERR_NOMEM, KEEL_ERR_LIMIT: of the group
 *           (keel/group.h); it is not freed, and the call can
 *           be made again. */
keel_status keel_segment_free(keel_segment *segment);

size_t keel_segment_bytes_per_rank(const keel_segment *segment);  /* of the largest part */
size_t keel_segment_bytes(const keel_segment *segment, int rank); /* of the rank's part; 0 for wrong arguments */
keel_redundancy keel_segment_redundancy(const keel_segment *segment);
/* The nodes that hold copies of the rank's part in this view, the one that gets are served from first; *n: how many, 0:
 * the data are lost.
 * Changes with the view.   errors  KEEL_ERR_ARG, KEEL_ERR_STATE; KEEL_ERR_AGENT_GONE while a view is being made. */
enum { KEEL_COPIES_MAX = 3 };
KEEL_MUST_CHECK keel_status keel_segment_copies(const keel_segment *segment, int rank, int nodes[KEEL_COPIES_MAX],
                                                int *n);

/* Memory of the process's own for the local ends of transfers: zeroed, at a multiple of 4096. NULL: there is none. The
 * calls above take any other memory, too; this one is never under write protection (keel_segment_track), and large
 * pieces ask for large pages.
 * threads   any; also before keel_init and after keel_finalize. */
void *keel_local_alloc(size_t bytes);
void keel_local_free(void *memory); /* NULL is allowed */

/* Where the rank's part lies: at the same address in every process. Where a copy of the part is on
 * the caller's node the memory is there, and plain loads and stores work; elsewhere the address is kept free, and
 * touching it is a segmentation fault. A process that had the part here when its slot went to another node
 * (keel/move.h) reads zeros there, and what it stores is lost. Plain stores reach the copy on this node only: they are
 * right where it is the only one (KEEL_REDUNDANCY_NONE). Where the data are lost (no node has a copy any more) that
 * holds everywhere, also in the process that takes the place of the part's rank on another node; keel_get says
 * KEEL_ERR_DATA_LOST there. NULL for wrong arguments, if there is no memory or no descriptor to map what is here
 * (another call may find some), or if the system did not give the process its address range and the part is not here.
 * threads   any.  blocks  at the first call for a part, until the node's agent has answered; and, where the node's copy
 *           is being made
 *           again after a death (a process that takes a dead one's place on another node finds it so), until that is
 *           whole; with KEEL_REDUNDANCY_NONE, of the caller's own part where the process has moved before other ranks
 *           of its old node (keel/move.h), until they have left that, too. */
void *keel_address(keel_segment *segment, int rank);
/* The segment in whose part of the rank the address lies, and how far: what keel_address gave, plus *offset. In time
 * that grows with the logarithm of the number of segments. Not while another thread allocates or frees one.
 * errors    KEEL_ERR_ARG: in no part of that rank; memory of mutexes and task pools is none. KEEL_ERR_STATE. */
KEEL_MUST_CHECK keel_status keel_locate(int rank, const void *address, keel_segment **segment, size_t *offset);

#ifdef __cplusplus
}
#endif
#endif
