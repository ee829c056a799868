/* What ranks send each other at each step of the program, for who decides on which node a rank goes on: with
 * `keelrun --grid` and `--substitution auto` the job weighs the time that moving ranks takes, once, against the time
 * that messages which meet on a link take, at every step (docs/placement.md). It is advice: nothing else depends on it.
 * A job that declares nothing is judged by the bytes that its puts, gets and accumulates move between nodes. */
#ifndef KEEL_PATTERN_H
#define KEEL_PATTERN_H

#include <stdint.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum keel_pattern_kind {
    KEEL_PATTERN_NONE, /* nothing is declared any more: what is counted counts */
    KEEL_PATTERN_5P,   /* the neighbours in two dimensions of a grid of ranks (keel_grid_make): left, right, up, down */
    KEEL_PATTERN_7P,   /* in three */
    KEEL_PATTERN_9P,   /* all around, diagonals too, in two dimensions */
    KEEL_PATTERN_27P,  /* in three */
    KEEL_PATTERN_RING, /* the next rank, and the last one to the first */
    KEEL_PATTERN_ALL   /* all others */
} keel_pattern_kind;

/* From now on the rank sends bytes to each of these at each step, until it declares something else. Local: all ranks
 * declare the same, each for itself, and again after a restart or a move (a new process has declared nothing). Steps
 * are not told: how many there are in a second follows from the bytes that are counted, and is taken for one where the
 * program sends by other means. Where the nodes' grid has another number of dimensions than the pattern, that of its
 * own number is meant. Two stores.
 * threads   any; of two at once either counts.
 * blocks    no.
 * errors    KEEL_ERR_ARG: no such kind. KEEL_ERR_STATE: before keel_init. */
KEEL_MUST_CHECK keel_status keel_pattern(keel_pattern_kind kind, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
