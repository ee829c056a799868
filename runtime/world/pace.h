/* When replicas agree on their clock: at each reading, as long as readings are far apart; rarer where they come one
 * after the other. Only what is the same in all replicas counts, so all come to the same. Pure. */
#ifndef KEEL_WORLD_PACE_H
#define KEEL_WORLD_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { PACE_STRIDE_MAX = 128, PACE_CLOSE_NS = 200000 };

struct pace {
    uint32_t stride, left; /* readings from one agreement to the next, and until then; 0: the next one */
    uint64_t last_ns;      /* what was agreed */
};

/* Is this reading one to agree on? */
bool pace_is_due(struct pace *p);
void pace_agreed(struct pace *p, uint64_t now_ns);
/* Something has happened at which replicas wait for each other: time may have passed. */
void pace_begin(struct pace *p);
#endif
