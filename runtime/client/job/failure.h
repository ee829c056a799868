/* What <keel/failure.h> promises, on an instance; arguments but for the instance are checked. */
#ifndef KEEL_CLIENT_JOB_FAILURE_H
#define KEEL_CLIENT_JOB_FAILURE_H

#include <keel/failure.h>

#include "runtime/client/client.h"

keel_status failure_list(const struct client *c, uint64_t since, keel_failure *out, size_t max, size_t *count,
                         uint64_t *epoch);
keel_status failure_links(const struct client *c, keel_link *out, size_t max, size_t *count);
keel_status failure_node_status(struct client *c, int node, int timeout_ms, keel_verdict *verdict);
keel_status failure_rank_status(struct client *c, int rank, int timeout_ms, keel_verdict *verdict);
const char *failure_verdict_name(keel_verdict verdict);
#endif
