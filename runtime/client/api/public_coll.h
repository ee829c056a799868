/* From a public collective's arguments to an engine's call (public_coll.c, public_coll_lists.c). */
#ifndef KEEL_CLIENT_API_PUBLIC_COLL_H
#define KEEL_CLIENT_API_PUBLIC_COLL_H

#include <stdbool.h>
#include <stddef.h>

#include <keel/collective.h>

#include "collectives/engine.h"

/* A call that moves bytes. Buffers of no bytes may be NULL; members that have nothing to give or to get pass
 * anything. */
struct engine_call public_coll_moves(enum schedule_kind kind, int root, const void *in, void *out, size_t len);
/* Fills in what a reduction does; false: there is no such thing. */
bool public_coll_combine(struct engine_call *call, const keel_combine *how, size_t n);
#endif
