/* Which algorithm for which size and group: the only place where lengths are compared.
 *
 * The limits for up to MANY places are measured on Keel's own transport (bench/algorithms/; docs/collectives.md,
 * "choice of algorithms", has the numbers and what they do not say). Those for more, and for more than 4 MiB, follow
 * from a message costing a + len / b with a = 6.5 us and b = 1.8 GB/s (loopback TCP), so that a * b = 12 KiB is
 * worth one message more. */
#include "collectives/schedule.h"

#define KIB 1024u
#define MIB (1024u * KIB)
#define ANY SIZE_MAX

enum { MANY = 16 };

/* LEVELS: some node has several places, and there are several nodes. */
enum where { ANYWHERE, LEVELS };

/* The first line that fits is taken: kind, at most so many bytes, at least so many places. Bytes are those of the whole
 * vector, or of one block where the kind has blocks. */
static const struct rule {
    enum schedule_kind kind;
    size_t bytes;
    int places;
    enum where where;
    enum schedule_algorithm algorithm;
} rules[] = {
    {SCHEDULE_BCAST, 128 * KIB, MANY, LEVELS, SCHEDULE_TWO_LEVEL},
    {SCHEDULE_BCAST, 8 * KIB, 1, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_BCAST, 128 * KIB, 3, LEVELS, SCHEDULE_TWO_LEVEL},
    {SCHEDULE_BCAST, ANY, 3, LEVELS, SCHEDULE_PIPELINE},
    {SCHEDULE_BCAST, 32 * KIB, MANY, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_BCAST, ANY, 64, ANYWHERE, SCHEDULE_SCATTER_RING},
    {SCHEDULE_BCAST, 512 * KIB, MANY, ANYWHERE, SCHEDULE_SCATTER_RING},
    {SCHEDULE_BCAST, ANY, MANY, ANYWHERE, SCHEDULE_PIPELINE},
    {SCHEDULE_BCAST, 4 * MIB, 1, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_BCAST, ANY, 3, ANYWHERE, SCHEDULE_PIPELINE},
    {SCHEDULE_REDUCE, 4 * MIB, 3, LEVELS, SCHEDULE_TWO_LEVEL},
    {SCHEDULE_REDUCE, 64 * KIB, MANY, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_REDUCE, ANY, MANY, ANYWHERE, SCHEDULE_RING},
    {SCHEDULE_REDUCE, 4 * MIB, 1, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_REDUCE, ANY, 4, ANYWHERE, SCHEDULE_RING},
    {SCHEDULE_ALLREDUCE, 16 * KIB, MANY, LEVELS, SCHEDULE_TWO_LEVEL},
    {SCHEDULE_ALLREDUCE, 2 * KIB, 1, ANYWHERE, SCHEDULE_DOUBLING},
    {SCHEDULE_ALLREDUCE, 16 * KIB, 3, LEVELS, SCHEDULE_TWO_LEVEL},
    {SCHEDULE_ALLREDUCE, 16 * KIB, 1, ANYWHERE, SCHEDULE_DOUBLING},
    {SCHEDULE_ALLREDUCE, 512 * KIB, 3, ANYWHERE, SCHEDULE_RABENSEIFNER},
    {SCHEDULE_ALLREDUCE, ANY, 64, ANYWHERE, SCHEDULE_RABENSEIFNER},
    {SCHEDULE_ALLREDUCE, ANY, 3, ANYWHERE, SCHEDULE_RING},
    {SCHEDULE_ALLREDUCE, ANY, 1, ANYWHERE, SCHEDULE_RABENSEIFNER},
    {SCHEDULE_REDUCE_SCATTER, 8 * KIB, 3, ANYWHERE, SCHEDULE_DOUBLING},
    {SCHEDULE_REDUCE_SCATTER, ANY, 1, ANYWHERE, SCHEDULE_RING},
    {SCHEDULE_SCAN, ANY, 1, ANYWHERE, SCHEDULE_DOUBLING},
    {SCHEDULE_EXSCAN, ANY, 1, ANYWHERE, SCHEDULE_DOUBLING},
    {SCHEDULE_GATHER, 16 * KIB, MANY, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_SCATTER, 16 * KIB, MANY, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_ALLGATHER, 16 * KIB, 1, ANYWHERE, SCHEDULE_BRUCK},
    {SCHEDULE_ALLGATHER, ANY, 1, ANYWHERE, SCHEDULE_RING},
    {SCHEDULE_ALLTOALL, 2 * KIB, 8, ANYWHERE, SCHEDULE_BRUCK},
    {SCHEDULE_ALLTOALL, ANY, 1, ANYWHERE, SCHEDULE_PAIRWISE},
    /* what remains: operations that do not commute, blocks of different lengths */
    {SCHEDULE_BCAST, ANY, 1, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_REDUCE, ANY, 1, ANYWHERE, SCHEDULE_BINOMIAL},
    {SCHEDULE_ALLREDUCE, ANY, 1, ANYWHERE, SCHEDULE_DOUBLING},
    {SCHEDULE_REDUCE_SCATTER, ANY, 1, ANYWHERE, SCHEDULE_DOUBLING},
    {SCHEDULE_GATHER, ANY, 1, ANYWHERE, SCHEDULE_LINEAR},
    {SCHEDULE_SCATTER, ANY, 1, ANYWHERE, SCHEDULE_LINEAR},
};

#define A(x) (1u << SCHEDULE_##x)
static const unsigned known[SCHEDULE_KINDS] = {
    [SCHEDULE_BCAST] = A(BINOMIAL) | A(SCATTER_RING) | A(PIPELINE) | A(TWO_LEVEL),
    [SCHEDULE_REDUCE] = A(BINOMIAL) | A(RING) | A(TWO_LEVEL),
    [SCHEDULE_ALLREDUCE] = A(DOUBLING) | A(RABENSEIFNER) | A(RING) | A(TWO_LEVEL),
    [SCHEDULE_REDUCE_SCATTER] = A(DOUBLING) | A(RING),
    [SCHEDULE_SCAN] = A(DOUBLING),
    [SCHEDULE_EXSCAN] = A(DOUBLING),
    [SCHEDULE_GATHER] = A(BINOMIAL) | A(LINEAR),
    [SCHEDULE_SCATTER] = A(BINOMIAL) | A(LINEAR),
    [SCHEDULE_ALLGATHER] = A(BRUCK) | A(RING),
    [SCHEDULE_ALLTOALL] = A(BRUCK) | A(PAIRWISE),
};
#undef A

/* Two levels pay where some node has several places and there are several nodes. */
static bool has_levels(const struct schedule_shape *shape)
{
    bool several = false, together = false;
    for (int i = 1; shape->node && i < shape->places; i++) {
        several |= shape->node[i] != shape->node[0];
        together |= shape->node[i] == shape->node[i - 1];
    }
    return several && together;
}

bool schedule_fits(enum schedule_algorithm a, const struct schedule_shape *shape)
{
    if ((unsigned)shape->kind >= SCHEDULE_KINDS || !(known[shape->kind] >> a & 1))
        return false;
    bool reduces = shape->kind >= SCHEDULE_REDUCE && shape->kind <= SCHEDULE_EXSCAN;
    if (a == SCHEDULE_TWO_LEVEL)
        return has_levels(shape) && !(reduces && shape->ordered);
    if (a == SCHEDULE_RING && reduces)
        return !shape->ordered;
    if (a == SCHEDULE_BRUCK ||
        (a == SCHEDULE_BINOMIAL && (shape->kind == SCHEDULE_GATHER || shape->kind == SCHEDULE_SCATTER)))
        return shape->uniform;
    return true;
}

static size_t bytes_of(const struct schedule_shape *shape)
{
    if (shape->kind == SCHEDULE_ALLTOALL)
        return shape->uniform ? shape->in[0].len : ANY;
    return shape->kind >= SCHEDULE_GATHER ? shape->mine : shape->len;
}

enum schedule_algorithm schedule_choose(const struct schedule_shape *shape)
{
    bool levels = has_levels(shape);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *r = &rules[i];
        if (r->kind == shape->kind && bytes_of(shape) <= r->bytes && shape->places >= r->places &&
            (levels || r->where != LEVELS) && schedule_fits(r->algorithm, shape))
            return r->algorithm;
    }
    return SCHEDULE_LINEAR; /* not reached: the last lines fit everything */
}

const char *schedule_kind_name(enum schedule_kind kind)
{
    static const char *const names[SCHEDULE_KINDS] = {"bcast",  "reduce", "allreduce", "reduce-scatter", "scan",
                                                      "exscan", "gather", "scatter",   "allgather",      "alltoall"};
    return names[kind];
}

const char *schedule_algorithm_name(enum schedule_algorithm a)
{
    static const char *const names[SCHEDULE_ALGORITHMS] = {"binomial", "linear",       "doubling", "rabenseifner",
                                                           "ring",     "scatter-ring", "pipeline", "bruck",
                                                           "pairwise", "two-level"};
    return names[a];
}
