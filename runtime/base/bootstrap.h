/* What a process that keelrun did not start and the agent that it starts say to each other (docs/protocols/launch.md,
 * "Without keelrun"). Both are of one machine and one version: structs, a packet each. */
#ifndef KEEL_BASE_BOOTSTRAP_H
#define KEEL_BASE_BOOTSTRAP_H

#include <stdint.h>

#include "runtime/base/address_range.h"
#include "runtime/base/rails.h"

enum {
    BOOTSTRAP_LISTENER = 3, /* descriptors that the agent is started with: where the node's ranks come, */
    BOOTSTRAP_CHANNEL = 4,  /* and the one that started it */
    BOOTSTRAP_TEXT = 1400,  /* as long as four rails make it */
};
#define BOOTSTRAP_OPTION "--join"

/* The first packet to the agent. Numbers of type int32_t follow: the node of each rank, and the nodes' domains,
 * [levels][nodes] (struct copy_rule). */
struct bootstrap_job {
    char version[16];
    uint64_t job;
    uint8_t secret[32];
    int32_t node, nodes, ranks;
    int32_t degrade; /* the user said KEEL_ON_FAILURE=degrade */
    int32_t copies_at, levels, hosts_told;
    char host[64]; /* numeric address of this node */
    struct address_range range;
    struct rail_list rails;
    char program[256];
};

/* The agent's only packet; back come those of all nodes, in their order, and with the last one the job starts. Until
 * then the end of the channel is that of the agent. */
struct bootstrap_ready {
    int32_t failed;            /* text says why */
    char text[BOOTSTRAP_TEXT]; /* else it is for the other agents */
};

/* A rank's packet, with a descriptor: the agent's end of a stream pair which it holds as long as it lives, so that the
 * kernel ends a rank whose agent has died. A rank writes its exit code there as an int32_t, the last one counts. */
struct bootstrap_rank {
    int32_t rank;
};
#endif
