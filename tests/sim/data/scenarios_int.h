/* What the files of scenarios share: each function makes of a random system one of its scenario (scenarios.c). */
#ifndef KEEL_TESTS_SIM_DATA_SCENARIOS_INT_H
#define KEEL_TESTS_SIM_DATA_SCENARIOS_INT_H

#include "tests/sim/data/scenarios.h"

/* Somebody at a step of the data half, whichever, dies, freezes or is late. */
void scenario_some_aims(struct setup *s, struct rng *rng, int n);
/* Writers die where a put is in one copy and not in the other. */
void scenario_writer_aims(struct setup *s, struct rng *rng, int n);

/* scenarios_deaths.c */
void scenario_random_mix(struct setup *s, struct rng *rng);
void scenario_healthy(struct setup *s, struct rng *rng);
void scenario_rank_kills(struct setup *s, struct rng *rng);
void scenario_node_kills(struct setup *s, struct rng *rng);
void scenario_freezes(struct setup *s, struct rng *rng);
void scenario_cuts(struct setup *s, struct rng *rng);
void scenario_large_puts(struct setup *s, struct rng *rng);
void scenario_three_copies(struct setup *s, struct rng *rng);
void scenario_rebuilds(struct setup *s, struct rng *rng);
void scenario_storm(struct setup *s, struct rng *rng);
void scenario_joins(struct setup *s, struct rng *rng);

/* scenarios_calls.c */
void scenario_mutexes(struct setup *s, struct rng *rng);
void scenario_meetings(struct setup *s, struct rng *rng);
void scenario_parts(struct setup *s, struct rng *rng);
void scenario_threads(struct setup *s, struct rng *rng);
void scenario_stores(struct setup *s, struct rng *rng);
void scenario_scrubs(struct setup *s, struct rng *rng);
void scenario_flips(struct setup *s, struct rng *rng);
void scenario_heirs(struct setup *s, struct rng *rng);
void scenario_signals(struct setup *s, struct rng *rng);
void scenario_asleep(struct setup *s, struct rng *rng);
void scenario_keeps(struct setup *s, struct rng *rng);

/* scenarios_moves.c */
void scenario_moves(struct setup *s, struct rng *rng);
void scenario_slides(struct setup *s, struct rng *rng);
void scenario_together(struct setup *s, struct rng *rng);
void scenario_refusals(struct setup *s, struct rng *rng);
void scenario_weighings(struct setup *s, struct rng *rng);
void scenario_grids(struct setup *s, struct rng *rng);

/* scenarios_replicas.c */
void scenario_replicas(struct setup *s, struct rng *rng);
void scenario_checks(struct setup *s, struct rng *rng);
void scenario_partners(struct setup *s, struct rng *rng);
void scenario_wrong_bits(struct setup *s, struct rng *rng);

/* scenarios_memory.c */
void scenario_no_memory(struct setup *s, struct rng *rng);
void scenario_scant(struct setup *s, struct rng *rng);
void scenario_scarce(struct setup *s, struct rng *rng);
void scenario_each_of_a_rank(struct setup *s, struct rng *rng);
void scenario_each_of_an_agent(struct setup *s, struct rng *rng);
#endif
