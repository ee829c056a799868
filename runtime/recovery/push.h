/* Making the copies of a slot equal again (guarantees G2, G7), driven by the slot's primary while the application runs.
 *
 *   SLOT_SYNC     a writer died. The primary's bytes of every patch in doubt go to the shadow; where the primary's own copy may
 *                 be torn, the shadow's bytes come first.
 *   SLOT_REBUILD  the shadow is new. What is remembered of operations, then all bytes go to it, in the same stream as
 *                 the operations that the primary executes meanwhile.
 *
 * Both begin when the view that made them is settled: then every rank writes through the primary. Both end with
 * VIEW_RESTORED, submitted when the shadow has acknowledged the last byte. */
#ifndef KEEL_RECOVERY_PUSH_H
#define KEEL_RECOVERY_PUSH_H

#include "runtime/redundancy/agent.h"

/* A view was committed: stop pushes that are of no use any more, note which slots wait for good bytes. */
void push_view_committed(struct agent *a);
/* Start what the settled view allows. */
void push_view_settled(struct agent *a);
/* Go on with pushes; true if something was done. */
bool push_step(struct agent *a);
/* Messages of the other side: WIRE_SNAP_*, WIRE_DOUBT, WIRE_FETCH, WIRE_PATCH. */
void push_receive(struct agent *a, int from, const struct wire *w, const void *body);
/* Free what is remembered. */
void push_close(struct agent *a);
/* Remember a patch of a dead writer. */
void push_add_doubt(struct agent *a, int rank, uint32_t incarnation, const struct patch *patch);
/* This node's copies of a segment for the slots it holds in the current view. */
keel_status push_make_copies(struct agent *a, uint32_t seg);
/* Tell `node` that the segment exists (or was freed); stream position. */
uint64_t push_send_segment(struct agent *a, int node, uint32_t seg);
#endif
