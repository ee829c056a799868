/* Communication patterns: who sends to whom, in phases.
 *
 * A phase is a set of messages that are in the network at the same time, one per (sender, receiver) pair. The stencils
 * have one phase. Recursive doubling (barrier, allreduce) has one per step: slots beyond the largest power of two first
 * send to a partner inside it, and get the result in a last phase. A ring allreduce repeats one phase, so one is kept.
 */
#ifndef KEEL_TOPO_PATTERN_H
#define KEEL_TOPO_PATTERN_H
#include "runtime/topo/grid.h"

enum pattern_kind {
    PATTERN_5P,   /* 2D: left, right, up, down */
    PATTERN_9P,   /* 2D: and the diagonals */
    PATTERN_7P,   /* 3D: both neighbours in each dimension */
    PATTERN_27P,  /* 3D: all 26 around */
    PATTERN_STAR, /* any dimension: both neighbours in each; 5P and 7P are this in 2D and 3D */
    PATTERN_BARRIER,
    PATTERN_ALLREDUCE,
    PATTERN_RING,
    PATTERN_KINDS
};

struct pattern_peer {
    int32_t slot;
    int32_t phase;
};

struct pattern {
    enum pattern_kind kind;
    int32_t slots, phases;
    int32_t *out_at, *in_at;       /* [slots + 1] */
    struct pattern_peer *out, *in; /* messages of slot r: out[out_at[r] .. out_at[r+1]-1] sent, in[...] received */
};

/* "5p", "9p", "7p", "27p", "star", "barrier", "allreduce", "ring"; PATTERN_KINDS for anything else. */
enum pattern_kind pattern_kind_parse(const char *text);
const char *pattern_kind_name(enum pattern_kind kind);
/* Number of dimensions a pattern needs, 0 for any. */
int pattern_kind_dims(enum pattern_kind kind);

/* The pattern over a grid of slots; stencils do not wrap around (non-periodic boundaries).
 * returns   false when out of memory or the pattern does not fit the number of dimensions. */
bool pattern_init(struct pattern *p, enum pattern_kind kind, const struct grid *slots);
/* The same for many millions of slots: also returns false soon after *stop was set. */
bool pattern_init_until(struct pattern *p, enum pattern_kind kind, const struct grid *slots, const atomic_bool *stop);
void pattern_fini(struct pattern *p);
#endif
