/* Schedules of the data-moving collectives: for one place of m, a straight list of steps - send, receive, copy, combine
 * - that together with the other places' lists gives the result. Pure: who executes them (collectives/engine.h, tests)
 * owns memory and messages.
 *
 * A message is named by (sender, receiver, tag); a schedule uses each name once. Sends do not wait, receives do; a
 * schedule that is executed step by step at every place ends, whatever the speed of anybody.
 * Order: for operations that do not commute (ordered) operands stay in the order of places; otherwise the order depends
 * on places, nodes, length and algorithm alone. So a sum has the same bits each time.
 *
 * Regions are bytes of one of three buffers: IN, the caller's contribution, never written; OUT, the result; TMP, tmp
 * bytes of scratch memory. */
#ifndef KEEL_COLLECTIVES_SCHEDULE_H
#define KEEL_COLLECTIVES_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum schedule_kind {
    SCHEDULE_BCAST,          /* OUT at root -> OUT everywhere */
    SCHEDULE_REDUCE,         /* IN everywhere -> OUT at root (others' OUT is scratch memory of len bytes) */
    SCHEDULE_ALLREDUCE,      /* IN -> OUT */
    SCHEDULE_REDUCE_SCATTER, /* IN, in[] blocks -> OUT, the own block */
    SCHEDULE_SCAN,           /* IN -> OUT, the operands up to the own one */
    SCHEDULE_EXSCAN,         /* IN -> OUT, those before the own one; the first place's OUT is not written */
    SCHEDULE_GATHER,         /* IN, mine bytes -> OUT at root, out[] blocks */
    SCHEDULE_SCATTER,        /* IN at root, in[] blocks -> OUT, mine bytes */
    SCHEDULE_ALLGATHER,      /* IN, mine bytes -> OUT, out[] blocks */
    SCHEDULE_ALLTOALL,       /* IN, in[] blocks by receiver -> OUT, out[] blocks by sender */
    SCHEDULE_KINDS,
};

enum schedule_algorithm {
    SCHEDULE_BINOMIAL,
    SCHEDULE_LINEAR,
    SCHEDULE_DOUBLING, /* recursive doubling */
    SCHEDULE_RABENSEIFNER,
    SCHEDULE_RING,
    SCHEDULE_SCATTER_RING, /* broadcast: binomial scatter, then ring */
    SCHEDULE_PIPELINE,
    SCHEDULE_BRUCK,
    SCHEDULE_PAIRWISE,
    SCHEDULE_TWO_LEVEL, /* within nodes, then between them */
    SCHEDULE_ALGORITHMS,
};

enum schedule_buffer { SCHEDULE_IN, SCHEDULE_OUT, SCHEDULE_TMP };
enum schedule_op { SCHEDULE_SEND, SCHEDULE_RECV, SCHEDULE_COPY, SCHEDULE_COMBINE };

struct schedule_region {
    enum schedule_buffer buffer;
    size_t at;
};

struct schedule_step {
    enum schedule_op op;
    int peer;                    /* place: SEND, RECV */
    uint32_t tag;                /* SEND, RECV */
    struct schedule_region to;   /* SEND: from here; RECV, COPY, COMBINE: into here */
    struct schedule_region from; /* COPY; COMBINE: the other operand */
    bool from_is_left;           /* COMBINE */
    size_t len;
};

struct schedule {
    struct schedule_step *step;
    size_t n, cap;
    size_t tmp;
    bool failed; /* out of memory */
};

struct schedule_block {
    size_t at, len;
};

struct schedule_shape {
    enum schedule_kind kind;
    int places, me, root; /* root: BCAST, REDUCE, GATHER, SCATTER */
    size_t len;           /* bytes of the whole vector: BCAST to EXSCAN */
    size_t unit;          /* vectors and blocks of reductions are cut at multiples of so many bytes only; at least 1 */
    size_t mine;          /* GATHER, SCATTER, ALLGATHER: bytes of the own block */
    bool uniform;         /* all blocks are equally long: mine, or in[].len of ALLTOALL */
    bool ordered;         /* the operation does not commute */
    const struct schedule_block *in, *out; /* [places], where the kind says so */
    const int *node;                       /* [places] of TWO_LEVEL and the choice of it, else may be NULL */
};

/* Can this algorithm do that shape? */
bool schedule_fits(enum schedule_algorithm a, const struct schedule_shape *shape);
/* The algorithm to use: the one table of sizes is behind this. */
enum schedule_algorithm schedule_choose(const struct schedule_shape *shape);
/* Build the steps of place shape->me. False if out of memory (nothing is left to free). */
bool schedule_build(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
/* The same in the memory of what was built before. */
bool schedule_rebuild(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape);
bool schedule_overlap(const struct schedule_region *a, const struct schedule_region *b, size_t a_len, size_t b_len);
void schedule_fini(struct schedule *s);
const char *schedule_kind_name(enum schedule_kind kind);
const char *schedule_algorithm_name(enum schedule_algorithm a);
#endif
