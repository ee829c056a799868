/* Looking into the copies. */
#ifndef KEEL_TESTS_SIM_DATA_CHECK_H
#define KEEL_TESTS_SIM_DATA_CHECK_H

#include "tests/sim/data/model.h"

/* A live node's copy of the slot's part of a planned segment, or NULL. */
const uint8_t *check_copy(const struct world *w, int node, int segment, int slot, size_t *bytes);
#endif
