/* Between host.c and guest.c: what they say to each other, and what a guest takes over beside the parts of its rank. */
#ifndef KEEL_CLIENT_REPLICA_TAKEOVER_H
#define KEEL_CLIENT_REPLICA_TAKEOVER_H

#include <stdint.h>

#include "runtime/base/life.h"
#include "runtime/base/world_hooks.h"
#include "runtime/client/replica/check.h"
#include "runtime/client/replica/renew.h"
#include "runtime/wire/limits.h"

/* REPLICA_WAITS: of a guest. */
struct guest_waits {
    uint64_t attempt, structure;
};

/* REPLICA_TOLD, and behind it `parts` of REPLICA_TOLD_PART, a keel_segment_part each: of the segments that there are,
 * in the order of their numbers, and of that of kept memory. */
struct host_told {
    uint64_t attempt, version, parts;
    uint64_t exchanges, answers, collectives, told_why;
    struct check_sum sum;
    uint64_t output[2]; /* bytes of standard output and error so far */
    uint64_t lanes[LANES_MAX];
    struct world_place world;
};

/* What the view says of the set, by this rank's replica there. */
struct renew_set takeover_set(int set);
/* The rank's process there, which has that incarnation; and as the view has it. */
struct life takeover_life(int set, uint32_t incarnation);
struct life takeover_life_now(int set);
/* Those of this process, which stand where takeover_told's parts do; NULL behind the last: from 0. */
struct keel_segment *takeover_segment(uint64_t i);
/* All that the program has written is with the agent. begins: what it writes from here on begins at these places. */
void takeover_output(uint64_t at[2], int begins);
/* Until the agent has taken it. */
void takeover_needs(uint32_t type, int64_t a, int64_t b);

#endif
