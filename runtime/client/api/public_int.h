/* What the public calls have in common. */
#ifndef KEEL_CLIENT_API_PUBLIC_INT_H
#define KEEL_CLIENT_API_PUBLIC_INT_H

#include <stdbool.h>

#include <keel/keel.h>

#include "collectives/engine.h"

/* What is wrong with a call on nothing that exists, or with wrong arguments: at the wrong moment, the moment is. */
keel_status public_wrong(void);

/* The groups that are there without being made get their handles: at the start. False: out of memory. */
bool public_groups_begin(void);
/* From now on these are the ones that the program gets: of a set of replicas. */
void public_groups_are(keel_group *of_all, keel_group *on_node);
/* The group of a handle. NULL: no group, or one that was freed. */
keel_group *public_group_of(const keel_group *handle);
/* There is one, and it was not freed. */
bool public_group_is(const keel_group *g);
bool public_group_root_is_me(const keel_group *g, int root);

/* A call on a group. request NULL: to the end. blocks: the lists that the call points to, taken over; or NULL. */
keel_status public_request_start(keel_group *g, const struct engine_call *call, size_t *blocks, keel_request **request);
/* The same of a call without lists, and of what may be no group. */
keel_status public_request_begin(keel_group *g, const struct engine_call *call, keel_request **request);
#endif
