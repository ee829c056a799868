/* Waits for what nothing wakes this process for: it looks again and again. */
#ifndef KEEL_CLIENT_REPLICA_NAP_H
#define KEEL_CLIENT_REPLICA_NAP_H

#include <stdbool.h>

#include <keel/status.h>

#include "runtime/client/waits.h"

/* Before it looks again; messages come meanwhile. A wait that lasts is said: whom, arg and call (if it is none: a
 * comparison of replicas) are the caller's, who ends it with waits_over. One may be inside of another. Does not return
 * where the own set is retired. */
void nap(struct wait *w);
/* For the process of a native rank (arg: an int), and for the agent of the own node. */
void nap_for_process(const struct client *c, const void *native, struct wait_said *out);
void nap_for_own_agent(const struct client *c, const void *arg, struct wait_said *out);
/* What was tried has come to nothing as this process had no memory: once more, after a nap. False: it has come to
 * something, and the wait is over. */
bool nap_for_memory(keel_status status, struct wait *w);

#endif
