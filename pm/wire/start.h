/* How a node's agent is started, the same from keelrun and from an agent. */
#ifndef KEEL_PM_START_H
#define KEEL_PM_START_H

#include "pm/wire/hydra.h"
#include "pm/wire/ticket.h"

struct start_plan {
    const char *launcher; /* Hydra's name for it; "": its choice */
    const char *program;  /* in the place of that launcher's; "": that */
    enum order_way way;
    const char *host;        /* as the launcher knows it */
    const char *keel_launch; /* path, here and there; keeld lies beside it */
    struct summons summons;
};

/* env: of the launcher and the agent. mpiexec.hydra gets what it needs of it. */
void start_run(struct hydra *h, const struct start_plan *plan, char *const *env, const struct rlimit *descriptors);
#endif
