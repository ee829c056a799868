/* What all live ranks do together. */
#ifndef KEEL_CLIENT_GROUP_COLLECTIVE_H
#define KEEL_CLIENT_GROUP_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

#include "collectives/engine.h"

struct client;

/* Of allocations and frees: what all live ranks say of it, combined; those that joined after it are told the same.
 * KEEL_ERR_TIMEOUT: a process is stopped; the same call goes on with it, and nothing else does. KEEL_ERR_MISMATCH: they
 * do not say it of the same. *open: nothing has been decided: it is to be gone on with, or this process has lost the
 * job or leaves it. */
keel_status collective_decide(struct client *c, const struct engine_call *call, uint64_t *value, bool *open);
/* Ranks were found in an allocation or a free where others were in a collective of all live ranks: all of these are
 * KEEL_ERR_MISMATCH from then on. */
bool collective_disagrees(const struct client *c);
/* What was decided is done, and known to all agents. */
void collective_decided(struct client *c);
/* A collective of all live ranks, with a fence before. */
keel_status collective_run(struct client *c, const struct engine_call *call);
/* The same of ENGINE_DECIDE: *value is what all have said, combined. */
keel_status collective_agree(struct client *c, const struct engine_call *call, uint64_t *value);
keel_status collective_barrier(struct client *c);
keel_status collective_barrier_begin(struct client *c);
/* KEEL_IN_PROGRESS: not complete. *epoch (or NULL): 0 but for KEEL_OK. */
keel_status collective_barrier_test(struct client *c, uint64_t *epoch);
keel_status collective_barrier_end(struct client *c, uint64_t *epoch);
/* This process takes part in what all live ranks do, and is not in the middle of such a call. */
bool collective_may_begin(const struct client *c);
keel_status collective_bcast(struct client *c, int root, void *buffer, size_t len);
keel_status collective_allreduce_sum(struct client *c, const double *in, double *out, size_t n);
#endif
