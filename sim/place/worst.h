/* The worst case over every sequence of failures, by search.
 *
 * All ordered sequences of 1..failures distinct nodes that hold a rank at launch are followed, and where several free
 * nodes are equally near, 0D takes each of them: the worst case over failures and over ties. Sequences that a method
 * cannot handle end there.
 *
 * The full search follows each one. The pruned search leaves out maps reached before by another order of failures (kept
 * as hashes of 128 bits). For 0D on a grid it leaves out much more; see worst_zero.h. */
#ifndef KEEL_SIM_PLACE_WORST_H
#define KEEL_SIM_PLACE_WORST_H
#include <stdatomic.h>

#include "sim/place/setup.h"

enum { WORST_MAX = 16 };

struct worst_result {
    int32_t collisions[WORST_MAX + 1];       /* by number of failures; -1 when no sequence gets that far */
    int32_t nodes[WORST_MAX + 1][WORST_MAX]; /* a sequence that gives it */
    int64_t maps;                            /* maps looked at */
    int64_t cannot;                          /* sequences that ended early */
    double sequences;                        /* ordered sequences of failures that there are, without ties */
    bool interrupted;
};

/* failures 1..WORST_MAX. The setup was checked; its method is not "balance".
 * returns   NULL, or what went wrong (constant text). */
const char *worst_run(const struct setup *s, int32_t failures, bool full, const atomic_bool *stop,
                      struct worst_result *r);

/* The worst case that hill climbing and the paper's shapes find: a lower bound, for grids too large to search. */
const char *worst_climb(const struct setup *s, int32_t failures, const atomic_bool *stop, struct worst_result *r);
#endif
