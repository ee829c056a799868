/* Between the rooms of segments:
 *   segment.c        what one is made of, and where its parts lie
 *   segment_alloc.c  allocations and frees of all live ranks
 *   segment_count.c  when these count, as the agents know
 *   segment_group.c  those of groups
 *   segment_part.c   a part of one of a group, for others
 *   segment_map.c    the mappings of this node's copies
 *   segment_at.c     addresses, and the nodes that have copies */
#ifndef KEEL_CLIENT_SEGMENT_SEGMENT_INT_H
#define KEEL_CLIENT_SEGMENT_SEGMENT_INT_H

#include "runtime/client/client.h"
#include "runtime/client/segment/segment.h"

enum { MEMORY_AGAIN_MS = 1 };

/* segment.c. Made, laid out, and in its place of the address range. NULL: out of memory. */
struct keel_segment *segment_place(struct client *c, uint32_t index, const struct segment_want *want);

/* segment_count.c. The end of a segment is told to the agent, of the call that was decided: nobody waits for it here,
 * as nothing can be done with the segment any more. */
void segment_tell_end(struct client *c, uint32_t seg, keel_status agreed);
/* All agents have the segment that was agreed on, most often since the ranks met. r: what the agent was asked for
 * it. */
keel_status segment_await_made(const struct client *c, const struct control *r);
#endif
