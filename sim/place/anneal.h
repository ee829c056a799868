/* The best map for a set of dead nodes, by simulated annealing: what an online method is measured against.
 *
 * It looks for a map in which no link carries more than a target, then for one with a target lower by one, and so on.
 * The energy of a map is what its links carry above the target, squared, and, lightly, all hops. Slots on links above
 * the target move to other nodes, or change places; a change that raises the energy is taken with the probability
 * exp(-change / temperature), and the temperature falls and is raised again, cycle after cycle. A run is a function of
 * its start, its seed and the number of steps; interrupted and resumed it ends with the same map. */
#ifndef KEEL_SIM_PLACE_ANNEAL_H
#define KEEL_SIM_PLACE_ANNEAL_H
#include <stdatomic.h>

#include "runtime/base/rng.h"
#include "sim/place/setup.h"

enum { ANNEAL_BURST = 64, ANNEAL_POOL = 512 };

struct anneal {
    struct job *job; /* the map at the start and who is dead; its load is worked on */
    struct rng rng;
    int64_t step, steps, cycle; /* done, asked for, at the begin of this cycle */
    int32_t target;             /* looked for now */
    int32_t found;              /* messages on the most used link of the best map */
    int32_t bound;              /* no map has fewer */
    int32_t *best;              /* [slots] that map */
    int32_t *slot_at;           /* [nodes] who stands where */
    int32_t *live;              /* nodes that are not dead */
    int32_t nlive;
    int32_t pool[ANNEAL_POOL]; /* slots on links above the target, as often as their messages */
    int32_t npool;
};

/* The job has had its failures; its pattern has one phase. returns   NULL, or what is wrong (constant text). */
const char *anneal_open(struct anneal *a, struct job *j, uint64_t seed, int64_t steps);
void anneal_close(struct anneal *a);
/* A burst of steps. returns   is there more to do? */
bool anneal_burst(struct anneal *a);

/* Is there a map with fewer messages on its most used link than the best one? Every map is looked at, so this is for
 * grids of some twenty nodes. A better one becomes the best, and so on, until there is none: then bound = found.
 * *stop ends it early. To be called last. returns   NULL, or what is wrong (constant text). */
const char *anneal_prove(struct anneal *a, const atomic_bool *stop);

/* Text that a later run goes on from; name says whose it is. */
const char *anneal_save(const struct anneal *a, const char *path, const char *name);
const char *anneal_load(struct anneal *a, const char *path, const char *name);
#endif
