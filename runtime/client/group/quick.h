/* Calls between ranks of a node that need no messages. Lock held. */
#ifndef KEEL_CLIENT_GROUP_QUICK_H
#define KEEL_CLIENT_GROUP_QUICK_H

#include <stdbool.h>

#include "collectives/engine.h"

struct keel_group;

/* The call over a board, before coll_begin. False: *call is to be begun; engine_left_free when it is over. */
bool quick_call(struct keel_group *g, struct engine_call *call, struct engine_result *result);
void quick_view(struct keel_group *g); /* another view: who lives may use the board, or not */
void quick_forget(struct keel_group *g);
#endif
