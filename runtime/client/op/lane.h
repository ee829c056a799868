/* The lanes of a rank: an operation that must count once is (rank, incarnation, lane, number) to agents
 * (agent/dedup.h). In a lane at most one operation is under way, and numbers only grow, so the last one of each
 * decides every retry. Pure.
 *
 * Who waits for each operation before the next gets lane 0, and numbers in the order of calls. With several under
 * way the lowest free lane depends on which answers have come (docs/adr/0167-handles-and-the-table-of-calls.md). */
#ifndef KEEL_CLIENT_OP_LANE_H
#define KEEL_CLIENT_OP_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/limits.h"

struct lane {
    uint64_t number; /* of its last operation */
    bool busy;
};

/* Zeroed at first. */
struct lanes {
    struct lane lane[LANES_MAX];
};

/* The lowest lane that is free, and the number of its next operation; -1: all are busy. */
int lanes_take(struct lanes *l, uint64_t *number);
/* The operation of this lane has its answer, or is given up and never sent again. */
void lanes_give_back(struct lanes *l, int lane);
#endif
