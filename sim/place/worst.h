/* The worst case over every sequence of failures, by search.
 *
 * All ordered sequences of 1..failures distinct nodes are followed, and where several free nodes are equally near, 0D
 * takes each of them: the worst case over failures and over ties. Which nodes may die is the draw of sample.h: those
 * that held a rank at launch, those that hold one at that moment (a spare that took over may die, too), or any.
 * Sequences that a method cannot handle end there.
 *
 * The full search follows each one. The pruned search leaves out maps reached before by another order of failures (kept
 * as hashes of 128 bits). For 0D on a grid it leaves out much more; see worst_zero.h. */
#ifndef KEEL_SIM_PLACE_WORST_H
#define KEEL_SIM_PLACE_WORST_H
#include <stdatomic.h>

#include "sim/place/sample.h"

enum { WORST_MAX = 16 };

struct worst_result {
    int32_t collisions[WORST_MAX + 1];       /* by number of failures; -1 when no sequence gets that far */
    int32_t nodes[WORST_MAX + 1][WORST_MAX]; /* a sequence that gives it */
    int64_t maps;                            /* maps looked at */
    int64_t cannot;                          /* sequences that ended early */
    double sequences;                        /* ordered sequences of failures that there are, without ties */
    bool interrupted;
};

struct worst_config {
    struct setup setup; /* checked; not one of Keel's own methods */
    int32_t failures;   /* 1..WORST_MAX */
    enum draw draw;
    bool full;           /* leave nothing out */
    const int32_t *dead; /* nodes dead at launch */
    int32_t ndead;
    const atomic_bool *stop;
};

/* returns   NULL, or what went wrong (constant text). May run in several threads at a time. Memory: what has been met
 * takes 2 GiB at most. */
const char *worst_run(const struct worst_config *c, struct worst_result *r);
/* The worst case that hill climbing and the paper's shapes find: a lower bound, for grids too large to search. */
const char *worst_climb(const struct worst_config *c, struct worst_result *r);
#endif
