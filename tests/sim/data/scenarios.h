/* What runs there are. */
#ifndef KEEL_TESTS_SIM_DATA_SCENARIOS_H
#define KEEL_TESTS_SIM_DATA_SCENARIOS_H

#include "tests/sim/data/world.h"

struct scenario {
    const char *name, *about;
    void (*change)(struct setup *s, struct rng *rng); /* a random system is made first */
};

extern const struct scenario scenario[];
extern const int scenarios;

void scenario_setup(const struct scenario *sc, uint64_t seed, struct setup *out);
#endif
