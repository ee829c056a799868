/* What a source sees of the traffic of a grid: who sends to whom, from its own messages and from what others say.
 *
 *     its own last messages   --> its flow: to one endpoint, to many, or neither
 *     flows of others heard   --> kept, one per endpoint, the latest DEMAND_FLOWS of them
 *     what most of them share --> the pattern: everybody to many (spread), or one map of coordinates
 *
 * A map turns each endpoint's coordinates into those of its partner: exchanged or not, each turned round or not, and
 * shifted (mirror, complement, transpose, rotation, shift). So a few flows heard of tell where everybody sends, where
 * the traffic is regular; where it is not, there is no pattern. Sources that hear of the same traffic see the same
 * pattern. Pure; grids of one or two dimensions. Memory: DEMAND_FLOWS flows. */
#ifndef KEEL_TOPO_DEMAND_H
#define KEEL_TOPO_DEMAND_H
#include "runtime/topo/grid.h"

#include <stdint.h>

enum { DEMAND_FLOWS = 64, DEMAND_OWN = 16, DEMAND_SPREAD = -1, DEMAND_NOBODY = -2 };

/* Where an endpoint sends: to one other, or DEMAND_SPREAD: to many. */
struct demand_flow {
    int32_t from, to;
};

struct demand {
    struct demand_flow flow[DEMAND_FLOWS];
    int32_t own[DEMAND_OWN]; /* destinations of the last messages, a ring */
    uint32_t sent;           /* messages */
    int used, turn, told;    /* flows known; where a new one goes; where demand_recall goes on */
    bool changed;            /* since the pattern was last looked for */
    uint32_t pattern;
};

/* A pattern is a number, so that it can be compared and hashed; these two, and demand_map's. */
enum { DEMAND_UNKNOWN = 0, DEMAND_UNIFORM = 1 };

/* The source self sends a message. */
void demand_sent(struct demand *d, int32_t self, int32_t dest);
/* Somebody says where an endpoint sends. returns whether that was new. */
bool demand_told(struct demand *d, const struct demand_flow *flow);
/* Up to max flows to pass on: its own first, then others in turn. returns how many. */
int demand_recall(struct demand *d, int32_t self, int max, struct demand_flow *flow);
/* The pattern as it is seen now: DEMAND_UNKNOWN, DEMAND_UNIFORM, or one for demand_partner. */
uint32_t demand_pattern(struct demand *d, const struct grid *g);
/* Where an endpoint sends to by a pattern that is a map, or DEMAND_NOBODY. */
int32_t demand_partner(uint32_t pattern, const struct grid *g, int32_t endpoint);
#endif
