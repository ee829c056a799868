/* How a node's agent is started, the same from keelrun and from an agent. */
#ifndef KEEL_PM_START_H
#define KEEL_PM_START_H

#include "pm/wire/hydra.h"
#include "pm/wire/ticket.h"

#include <jansson.h>

/* How nodes of the job are started: what agents have to know for one that comes later. */
enum start_bed { START_NONE, START_LOOPBACK, START_NETNS };
struct start_way {
    bool known; /* false: keelrun has not started this job */
    enum start_bed bed;
    char *launcher, *program; /* of struct start_plan */
    enum order_way way;
};

json_t *start_way_encode(const struct start_way *w);
/* False: that is none. Else the caller calls start_way_free. */
bool start_way_decode(struct start_way *w, const json_t *m);
void start_way_free(struct start_way *w);

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
