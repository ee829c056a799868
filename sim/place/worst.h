/* The worst case over every sequence of failures, by search.
 *
 * All ordered sequences of 1..failures distinct nodes are followed, and where several free nodes are equally near, 0D
 * takes each of them: the worst case over failures and over ties. Which nodes may die is the draw of sample.h: those
 * that held a slot at launch, those that hold one at that moment (a spare that took over may die, too), or any.
 * Sequences that a method cannot handle end there.
 *
 * The full search follows each one. The pruned search leaves out maps reached before by another order of failures (kept
 * as hashes of 128 bits). For 0D on a grid it leaves out much more; see worst_zero.h. */
#ifndef KEEL_SIM_PLACE_WORST_H
#define KEEL_SIM_PLACE_WORST_H
#include <stdatomic.h>

#include "sim/place/sample.h"

enum { WORST_MAX = 16, WORST_FREE_MAX = 4096 };

struct worst_result {
    int32_t collisions[WORST_MAX + 1];       /* by number of failures; -1 when no sequence gets that far */
    int32_t nodes[WORST_MAX + 1][WORST_MAX]; /* a sequence that gives it */
    int64_t maps;                            /* maps looked at; with several threads not always the same */
    int64_t cannot;                          /* sequences that ended early; likewise */
    double sequences;                        /* ordered sequences of failures that there are, without ties */
    bool interrupted;
    bool full; /* not all maps met could be kept, so some were followed again */
};

struct worst_config {
    struct setup setup; /* checked; not one of Keel's own methods */
    int32_t failures;   /* 1..WORST_MAX */
    enum draw draw;
    bool full;           /* leave nothing out */
    const int32_t *dead; /* nodes dead at launch */
    int32_t ndead;
    int threads;       /* 0: one */
    size_t memory;     /* bytes it may take; 0: 2 GiB */
    const char *state; /* file that an interrupted run leaves and resume reads; NULL for none */
    bool resume;
    bool progress;     /* a line on stderr when that is a terminal */
    const char *label; /* in front of it */
    const atomic_bool *stop;
};

/* Collisions and sequences do not depend on threads, memory and interruptions. Of the memory it may take, what the maps
 * met do not find room in is followed again.
 * returns   NULL, or what went wrong (constant text). May run several times at a time. */
const char *worst_run(const struct worst_config *c, struct worst_result *r);
/* The worst case that hill climbing and the paper's shapes find: a lower bound, for grids too large to search. */
const char *worst_climb(const struct worst_config *c, struct worst_result *r);
#endif
