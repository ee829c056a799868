/* What keel/mutex.h promises, on an instance. */
#ifndef KEEL_CLIENT_OP_MUTEX_H
#define KEEL_CLIENT_OP_MUTEX_H

#include <keel/mutex.h>

#include "runtime/client/client.h"

keel_status mutexes_create(struct client *c, keel_status able, int per_rank, keel_mutexes **out);
/* *gone: they are not there any more. */
keel_status mutexes_free(struct client *c, keel_mutexes *m, bool *gone);
/* waits false: KEEL_IN_PROGRESS if somebody else has it. *dead_owner (or NULL): -1, or the rank that died while it
 * held it. */
keel_status mutex_lock(keel_mutexes *m, int home, int number, bool waits, int *dead_owner);
keel_status mutex_unlock(keel_mutexes *m, int home, int number);
#endif
