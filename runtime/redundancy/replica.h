/* Operations on this node's copies. The primary of a slot executes accumulates and atomics and, while the slot's copies
 * are being made equal, puts: it applies them once (dedup), passes the resulting bytes to the shadow in the order applied,
 * and answers the origin when the shadow has them. Direct puts come to both copies from the origin.
 * docs/protocols/replication.md argues the cases. */
#ifndef KEEL_REDUNDANCY_REPLICA_H
#define KEEL_REDUNDANCY_REPLICA_H

#include "runtime/redundancy/agent.h"

/* A request of a rank. */
void replica_request(struct agent *a, struct conn *c, const struct wire *w, const void *body);
/* The stream to `node` was acknowledged: release what waited for it. */
void replica_acked(struct agent *a, int node);
/* A forwarded operation, from the primary. */
void replica_forwarded(struct agent *a, int from, const struct wire *w, const void *body);
/* The connection is gone: nothing refers to it any more. */
void replica_forget(struct agent *a, struct conn *c);

/* No forward to a live node is unacknowledged: nothing of this node's doing is still on its way. A node that is believed
 * dead is not waited for: the view being prepared may be one that was proposed before its death was found, and the next one,
 * which declares it, cannot be proposed before this one is decided. What waits for its acknowledgement goes on waiting, so no
 * operation completes that it may not have. */
bool replica_drained(const struct agent *a);
void replica_freeze(struct agent *a);
/* A view was committed: answers that waited for the dead go out, stashed requests are executed. */
void replica_thaw(struct agent *a);
/* Try stashed requests again; those that still cannot be executed are stashed again. */
void replica_unstash(struct agent *a);

void replica_reply(struct conn *c, const struct wire *request, int status, int64_t value, const void *body,
                   uint32_t len);
/* Send this node's bytes of the patch to `node` as type (WIRE_PATCH, WIRE_SNAP_BLOCK); stream position of the last piece. */
uint64_t replica_send_bytes(struct agent *a, int node, uint8_t type, const struct patch *patch);
#endif
