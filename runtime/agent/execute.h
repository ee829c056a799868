/* Operations on this node's copies. The primary of a copyset executes accumulates and atomics and, while the copies are
 * being made equal, puts: it applies them once (dedup), passes the resulting bytes to the other copies in the order
 * applied, and answers the origin when all have them. Direct puts come to every copy from the origin.
 * docs/protocols/replication.md argues the cases. */
#ifndef KEEL_AGENT_EXECUTE_H
#define KEEL_AGENT_EXECUTE_H

#include "runtime/agent/agent.h"

/* A request of a rank. */
void execute_request(struct agent *a, struct conn *c, const struct wire *w, const void *body);
/* The stream to `node` was acknowledged: release what waited for it. */
void execute_acked(struct agent *a, int node);
/* A forwarded operation, from the primary. */
void execute_forwarded(struct agent *a, int from, const struct wire *w, const void *body);
/* The connection is gone: nothing refers to it any more. */
void execute_forget(struct agent *a, struct conn *c);

/* No forward to a live node is unacknowledged: nothing of this node's doing is still on its way. A node that is
 * believed dead is not waited for: the view being prepared may be one that was proposed before its death was found, and
 * the next one, which declares it, cannot be proposed before this one is decided. What waits for its acknowledgement
 * goes on waiting, so no operation completes that it may not have; and it does not become a primary meanwhile, for a
 * primary that hands over has executed nothing since it asked for that (repair.h). */
bool execute_drained(const struct agent *a);
void execute_freeze(struct agent *a);
/* A view was committed: answers that waited for the dead go out, stashed requests are executed. */
void execute_thaw(struct agent *a);
/* Before it is shown, and before execute_thaw: forwards whose chain broke go out again. */
void execute_view_committed(struct agent *a, const struct view_copyset *before);
/* Try stashed requests again; those that still cannot be executed are stashed again. */
void execute_unstash(struct agent *a);
/* Free what waits. */
void execute_fini(struct agent *a);

/* Of what has its turn in an order (ordering.h): execute it, without an answer; and answer it, when it was. */
void execute_in_turn(struct agent *a, const struct wire *w, const void *body);
void execute_answer(struct agent *a, struct conn *c, const struct wire *w, const void *body);

/* Answer the request of that seq. */
void execute_reply(struct conn *c, uint64_t seq, int status, int64_t value, const void *body, uint32_t len);
#endif
