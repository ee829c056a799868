/* What ranks send to ranks of this node (runtime/client/stream/courier.h). Who has sent something may make no further
 * call for as long as it likes, so a message whose receiver is still to come, or does not know of the sender yet, waits
 * here: nobody would send it again. */
#ifndef KEEL_AGENT_PARCELS_H
#define KEEL_AGENT_PARCELS_H

#include "runtime/agent/agent.h"

void parcels_take(struct agent *a, struct conn *from, const struct wire *w);
/* A process runs its rank from now on, or a view was committed: who has waited for that gets what there is for it. */
void parcels_look(struct agent *a);
#endif
