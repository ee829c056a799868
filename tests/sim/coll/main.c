/* Simulation of collectives. Exit 0 if every property held (world.h).
 *   coll --sweep single|pairs|freeze|loss|slow|leave|parting|revoking|ahead|outcast [--members N] [--stride K]   every
 *   fault at every step of every algorithm
 *   coll --sweep board|board-pairs|board-freeze|board-ahead                          the same for members that share
 *   memory
 *   coll --chaos COUNT [--seed S]                                      random everything
 *   coll --scale MEMBERS                                               steps and messages of groups up to this size
 *                                                                      (scale.c)
 * KEEL_SEED in the environment replaces --seed. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/coll/scale.h"
#include "tests/sim/coll/world.h"

#define MOVE(m, a) .kind = ENGINE_MOVE, .move = SCHEDULE_##m, .algorithm = SCHEDULE_##a + 1, .count = 9

/* Every algorithm, and what changes its way: two levels, blocks of different lengths, operations that keep their
 * order. */
static const struct variant {
    const char *name;
    struct coll_spec spec;
    int per_node; /* members of a node, 0: nodes do not count */
} variants[] = {
    {"barrier", {.kind = ENGINE_BARRIER}, 0},
    {"barrier over the tree", {.kind = ENGINE_BARRIER, .shape = MEET_TREE}, 0},
    {"shrink", {.kind = ENGINE_SHRINK}, 0},
    {"discovery over the tree", {.kind = ENGINE_SHRINK, .shape = MEET_TREE}, 0},
    {"agree and", {.kind = ENGINE_AGREE, .agree = ENGINE_AND}, 0},
    {"agree min over the tree", {.kind = ENGINE_AGREE, .agree = ENGINE_MIN, .shape = MEET_TREE}, 0},
    {"bcast binomial", {MOVE(BCAST, BINOMIAL)}, 0},
    {"bcast scatter-ring", {MOVE(BCAST, SCATTER_RING), .async = true}, 0},
    {"bcast pipeline",
     {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .algorithm = SCHEDULE_PIPELINE + 1, .count = 10000},
     0},
    {"bcast two-level", {MOVE(BCAST, TWO_LEVEL)}, 2},
    {"reduce binomial", {MOVE(REDUCE, BINOMIAL), .user_op = true}, 0},
    {"reduce ring", {MOVE(REDUCE, RING)}, 0},
    {"reduce two-level", {MOVE(REDUCE, TWO_LEVEL), .async = true}, 2},
    {"allreduce doubling", {MOVE(ALLREDUCE, DOUBLING), .user_op = true}, 0},
    {"allreduce doubling in place", {MOVE(ALLREDUCE, DOUBLING), .in_place = true, .async = true}, 0},
    {"allreduce rabenseifner", {MOVE(ALLREDUCE, RABENSEIFNER), .user_op = true}, 0},
    {"allreduce rabenseifner, max", {MOVE(ALLREDUCE, RABENSEIFNER), .op = ELEMENT_MAX, .async = true}, 0},
    {"allreduce ring", {MOVE(ALLREDUCE, RING), .in_place = true}, 0},
    {"allreduce doubling, early", {MOVE(ALLREDUCE, DOUBLING), .early = true}, 0},
    {"allgather bruck, early in place", {MOVE(ALLGATHER, BRUCK), .early = true, .in_place = true}, 0},
    {"bcast binomial, early", {MOVE(BCAST, BINOMIAL), .early = true}, 0},
    {"allreduce two-level, early", {MOVE(ALLREDUCE, TWO_LEVEL), .early = true}, 2},
    {"allreduce two-level", {MOVE(ALLREDUCE, TWO_LEVEL)}, 3},
    {"reduce-scatter doubling", {MOVE(REDUCE_SCATTER, DOUBLING), .varying = true}, 0},
    {"reduce-scatter ring", {MOVE(REDUCE_SCATTER, RING), .varying = true, .async = true}, 0},
    {"scan", {MOVE(SCAN, DOUBLING), .user_op = true, .in_place = true}, 0},
    {"scan, sum", {MOVE(SCAN, DOUBLING)}, 0},
    {"exscan", {MOVE(EXSCAN, DOUBLING), .user_op = true}, 0},
    {"gather binomial", {MOVE(GATHER, BINOMIAL)}, 0},
    {"gather linear", {MOVE(GATHER, LINEAR), .varying = true}, 0},
    {"scatter binomial", {MOVE(SCATTER, BINOMIAL), .async = true}, 0},
    {"scatter linear", {MOVE(SCATTER, LINEAR), .varying = true}, 0},
    {"allgather bruck", {MOVE(ALLGATHER, BRUCK)}, 0},
    {"allgather ring", {MOVE(ALLGATHER, RING), .varying = true, .async = true}, 0},
    {"alltoall bruck", {MOVE(ALLTOALL, BRUCK), .in_place = true}, 0},
    {"alltoall pairwise", {MOVE(ALLTOALL, PAIRWISE), .varying = true}, 0},
    {"alltoall pairwise, early in place",
     {MOVE(ALLTOALL, PAIRWISE), .early = true, .in_place = true, .async = true},
     0},
    {"alltoall bruck, early", {MOVE(ALLTOALL, BRUCK), .early = true}, 0},
    {"exscan in place", {MOVE(EXSCAN, DOUBLING), .in_place = true}, 0},
    {"allreduce of nothing", {.kind = ENGINE_MOVE, .move = SCHEDULE_ALLREDUCE, .early = true}, 0},
    {"exscan of nothing", {.kind = ENGINE_MOVE, .move = SCHEDULE_EXSCAN}, 0},
    {"allgather of nothing", {.kind = ENGINE_MOVE, .move = SCHEDULE_ALLGATHER}, 0},
    {"alltoall of nothing", {.kind = ENGINE_MOVE, .move = SCHEDULE_ALLTOALL, .early = true}, 0},
};
/* Chance draws from the first ones: a seed stays the same world. */
enum { VARIANTS = sizeof variants / sizeof variants[0], VARIANTS_DRAWN = VARIANTS - 7, MEMBERS_MAX = 64 };

/* Over a board: what takes one turn, and what takes several, in place and not. */
#define TOGETHER(m, elements) .kind = ENGINE_MOVE, .move = SCHEDULE_##m, .count = elements
static const struct variant boarded[] = {
    {"barrier, board", {.kind = ENGINE_BARRIER}, 0},
    {"shrink, board", {.kind = ENGINE_SHRINK}, 0},
    {"agree and, board", {.kind = ENGINE_AGREE, .agree = ENGINE_AND}, 0},
    {"agree max, board", {.kind = ENGINE_AGREE, .agree = ENGINE_MAX}, 0},
    {"bcast, board", {TOGETHER(BCAST, 9)}, 0},
    {"bcast, board, three turns", {TOGETHER(BCAST, 10000)}, 0},
    {"reduce, board", {TOGETHER(REDUCE, 9), .user_op = true}, 0},
    {"reduce, board, in place", {TOGETHER(REDUCE, 5000), .in_place = true}, 0},
    {"allreduce, board", {TOGETHER(ALLREDUCE, 9), .user_op = true}, 0},
    {"allreduce, board, in place", {TOGETHER(ALLREDUCE, 20), .in_place = true}, 0},
    {"allreduce, board, three turns in place", {TOGETHER(ALLREDUCE, 9000), .in_place = true}, 0},
    {"gather, board", {TOGETHER(GATHER, 9)}, 0},
    {"scatter, board", {TOGETHER(SCATTER, 2000)}, 0},
    {"allgather, board", {TOGETHER(ALLGATHER, 9)}, 0},
    {"allgather, board, three turns in place", {TOGETHER(ALLGATHER, 9000), .in_place = true}, 0},
    {"alltoall, board", {TOGETHER(ALLTOALL, 9), .in_place = true}, 0},
    {"alltoall, board, several turns in place", {TOGETHER(ALLTOALL, 4000), .in_place = true}, 0},
    {"allreduce, board, early", {TOGETHER(ALLREDUCE, 9), .early = true}, 0},
    {"allreduce, board, early in place", {TOGETHER(ALLREDUCE, 1500), .early = true, .in_place = true}, 0},
    {"allgather, board, early in place", {TOGETHER(ALLGATHER, 9), .early = true, .in_place = true}, 0},
};
/* Chance draws from the first ones: a seed stays the same world. Calls that may return early are among `variants`. */
enum { BOARDED = sizeof boarded / sizeof boarded[0], DRAWN = BOARDED - 3 };

static int nodes[MEMBERS_MAX];
static uint64_t runs, over_board, left_board, placed, kept, arrived, left_group;

/* The variant's call, then a barrier: so some leave while others are behind. */
static struct coll_params world_of(const struct variant *v, int n, uint64_t seed)
{
    struct coll_params p = {.n = n,
                            .seed = seed,
                            .delay_ns = 1000,
                            .jitter_ns = 700,
                            .detect_ns = 4000,
                            .spread_ns = 9000,
                            .skew_ns = 2000};
    p.what = v->name;
    p.calls = 2;
    p.call[0] = v->spec;
    p.call[0].root = n > 2 ? 1 : 0;
    p.call[1].kind = ENGINE_BARRIER;
    for (int i = 0; i < n && v->per_node; i++)
        nodes[i] = i / v->per_node;
    p.node = v->per_node ? nodes : NULL;
    return p;
}

static uint64_t run(const struct coll_params *p)
{
    struct coll_stats stats = {0};
    coll_world_run(p, &stats);
    runs++;
    placed += stats.placed;
    kept += stats.kept;
    arrived += stats.arrived;
    left_group += stats.left_group;
    over_board += stats.boarded;
    left_board += stats.left;
    return stats.events;
}

/* ------------------------------------------------------------------------------------------------ sweeps */

static uint64_t stride = 1;

static void single(struct coll_params *p)
{
    uint64_t events = run(p);
    p->faults = 1;
    for (uint64_t t = 0; t < events; t += stride)
        for (int member = 0; member < p->n; member++)
            for (int letters = 0; letters < 2; letters++) {
                p->fault[0] = (struct coll_fault){COLL_DIES, member, t, letters, 0};
                run(p);
            }
}

static void alone(struct coll_params *p, int kind)
{
    uint64_t events = run(p);
    p->faults = 1;
    for (uint64_t t = 0; t < events; t += stride)
        for (int member = 0; member < p->n; member++) {
            p->fault[0] = (struct coll_fault){.member = member, .after = t, .duration = t % 3 * 8000};
            p->fault[0].kind = kind;
            run(p);
        }
}

/* The same where who is through leaves, and with nothing after the call. */
static void leaving(struct coll_params *p)
{
    p->leave = true;
    p->calls = 1;
    single(p);
    p->calls = 2;
    p->call[1] = p->call[0];
    p->faults = 0;
    single(p);
    p->faults = 0;
    alone(p, COLL_LOSES);
}

/* Whoever leaves without waiting for what it has begun; the others leave when they are through. */
static void parting(struct coll_params *p)
{
    p->leave = true;
    p->jitter_ns = 20000;
    p->detect_ns = 0;
    p->calls = 1;
    alone(p, COLL_PARTS);
}

/* Whoever revokes, at any time; all leave when they are through, with nothing after the call and with one more. That
 * somebody has left is often known before what it has sent is here. */
static void revoking(struct coll_params *p)
{
    p->leave = true;
    p->jitter_ns = 20000;
    p->detect_ns = 0;
    p->calls = 1;
    alone(p, COLL_REVOKES);
    p->calls = 2;
    p->call[1] = p->call[0];
    p->faults = 0;
    alone(p, COLL_REVOKES);
}

/* Three calls, begun before those before are complete: whoever dies, and on boards that all gave up or not. */
static void ahead(struct coll_params *p, bool boarded_call)
{
    p->ahead = true;
    p->board = boarded_call;
    p->calls = 4;
    p->call[2] = p->call[0];
    p->call[3] = p->call[1];
    single(p);
    p->faults = 0;
    alone(p, COLL_LOSES);
}

/* Then also with nothing after the call: who is through with it does not look at what comes. */
static void losses(struct coll_params *p)
{
    alone(p, COLL_LOSES);
    p->calls = 1;
    p->faults = 0;
    if (p->call[0].async)
        alone(p, COLL_LOSES);
}

/* Acknowledgements come late, or not at all where who should give them is through, and nothing is copied: that all have
 * finished must do, also in a later attempt, which a broken connection or the death of any but the root makes
 * necessary. */
static void slow(struct coll_params *p)
{
    if (p->call[0].kind != ENGINE_MOVE ||
        p->call[0].early) /* of what may return early there is little, which is copied */
        return;
    p->calls = 1;
    p->call[0].async = p->no_keep = true;
    p->ack_ns = 20000;
    alone(p, COLL_LOSES);
    p->faults = 0;
    uint64_t events = run(p), pair = 0;
    p->faults = 2;
    for (uint64_t t = 0; t < events; t++)
        for (uint64_t u = t; u < events + 20; u++)
            for (int a = 0; a < p->n; a++)
                for (int b = 0; b < p->n; b++) {
                    if (a == p->call[0].root || a == b || pair++ % (7 * stride))
                        continue;
                    p->fault[0] = (struct coll_fault){COLL_DIES, a, t, pair & 1, 0};
                    p->fault[1] = (struct coll_fault){.kind = COLL_LOSES, .member = b, .after = u};
                    run(p);
                }
}

static void two(struct coll_params *p, int second)
{
    uint64_t events = run(p), pair = 0;
    p->faults = 2;
    for (uint64_t t = 0; t < events; t++)
        for (uint64_t u = second == COLL_DIES ? t : 0; u < events + (second == COLL_DIES ? 20 : 0); u++)
            for (int a = 0; a < p->n; a++)
                for (int b = 0; b < p->n; b++) {
                    if (a == b || pair++ % stride)
                        continue;
                    p->fault[0] = (struct coll_fault){COLL_DIES, a, t, pair & 1, 0};
                    p->fault[1] =
                        (struct coll_fault){.kind = COLL_DIES, .member = b, .after = u, .with_letters = pair & 2};
                    if (second != COLL_DIES)
                        p->fault[1] = (struct coll_fault){COLL_FREEZES, b, u, false, pair % 3 ? 30000 : 200000000};
                    run(p);
                }
}

/* Who comes late is not waited for on the board; but members that all live and come together now and then meet
 * there. */
static void meets_there(struct coll_params p)
{
    uint64_t before = over_board;
    p.calls = 1;
    for (uint64_t seed = 0; seed < 200 && over_board == before; seed++) {
        p.seed = seed;
        run(&p);
    }
    if (over_board == before) {
        fprintf(stderr, "%s of %d members: never over the board\n", p.what, p.n);
        exit(1);
    }
}

static void sweep_boards(const char *kind, int from, int to)
{
    for (int n = from; n <= to; n++)
        for (int v = 0; v < BOARDED; v++) {
            struct coll_params p = world_of(&boarded[v], n, (uint64_t)n * 100 + (uint64_t)v);
            p.board = true;
            meets_there(p);
            if (!strcmp(kind, "board"))
                single(&p);
            else if (!strcmp(kind, "board-ahead"))
                ahead(&p, true);
            else
                two(&p, !strcmp(kind, "board-pairs") ? COLL_DIES : COLL_FREEZES);
        }
    printf("%s, %d to %d members: %llu runs, %llu calls over the board, %llu left\n", kind, from, to,
           (unsigned long long)runs, (unsigned long long)over_board, (unsigned long long)left_board);
}

static void sweep(const char *kind, int from, int to)
{
    if (!strncmp(kind, "board", 5)) {
        sweep_boards(kind, from, to);
        return;
    }
    for (int n = from; n <= to; n++)
        for (int v = 0; v < VARIANTS; v++) {
            struct coll_params p = world_of(&variants[v], n, (uint64_t)n * 100 + (uint64_t)v);
            if (!strcmp(kind, "single"))
                single(&p);
            else if (!strcmp(kind, "leave"))
                leaving(&p);
            else if (!strcmp(kind, "loss"))
                losses(&p);
            else if (!strcmp(kind, "ahead"))
                ahead(&p, false);
            else if (!strcmp(kind, "slow"))
                slow(&p);
            else if (!strcmp(kind, "parting"))
                parting(&p);
            else if (!strcmp(kind, "revoking"))
                revoking(&p);
            else if (!strcmp(kind, "outcast"))
                alone(&p, COLL_OUTCAST);
            else
                two(&p, !strcmp(kind, "pairs") ? COLL_DIES : COLL_FREEZES);
        }
    printf("%s, %d to %d members: %llu runs, %llu pieces placed, %llu sends kept, %llu calls arrived, %llu left\n",
           kind, from, to, (unsigned long long)runs, (unsigned long long)placed, (unsigned long long)kept,
           (unsigned long long)arrived, (unsigned long long)left_group);
}

/* ------------------------------------------------------------------------------------------------ chaos */

static void chaos(uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed * 7919);
    int n = 1 + (int)rng_below(&r, rng_below(&r, 4) ? 12 : MEMBERS_MAX);
    struct coll_params p = {.n = n, .seed = seed, .what = "chaos"};
    p.delay_ns = 1000;
    p.jitter_ns = rng_below(&r, 20000);
    p.detect_ns = rng_below(&r, 100000);
    p.spread_ns = rng_below(&r, 200000);
    p.skew_ns = rng_below(&r, 100000);
    for (int i = 0; i < n; i++)
        nodes[i] = (int)rng_below(&r, 4);
    p.node = rng_below(&r, 2) ? nodes : NULL;
    p.calls = 1 + (int)rng_below(&r, COLL_CALLS_MAX);
    for (int c = 0; c < p.calls; c++) {
        p.call[c] = variants[rng_below(&r, VARIANTS_DRAWN)].spec;
        p.call[c].root = (int)rng_below(&r, (uint64_t)n);
        p.call[c].count = rng_below(&r, 8) ? p.call[c].count : (int)rng_below(&r, 40);
        p.call[c].algorithm = rng_below(&r, 2) ? p.call[c].algorithm : 0;
        p.call[c].early |= seed % 4 == 2 && p.call[c].move == SCHEDULE_ALLTOALL && !p.call[c].varying;
    }
    bool together = n > 1 && n <= BOARD_MEMBERS_MAX && rng_below(&r, 3) == 0;
    for (int c = 0; together && c < p.calls; c++)
        if (rng_below(&r, 4)) {
            p.call[c] = boarded[rng_below(&r, DRAWN)].spec;
            p.call[c].root = (int)rng_below(&r, (uint64_t)n);
        }
    p.board = together;
    p.leave = rng_below(&r, 2);
    p.start_dead = (int)rng_below(&r, (uint64_t)n);
    p.start_dead = rng_below(&r, 2) ? 0 : p.start_dead;
    p.faults = (int)rng_below(&r, COLL_FAULTS_MAX);
    for (int f = 0; f < p.faults; f++) {
        p.fault[f].kind = rng_below(&r, 5) ? (int)rng_below(&r, 4) : COLL_REVOKES;
        if (together && p.fault[f].kind == COLL_OUTCAST) /* of a node all are, or nobody is */
            p.fault[f].kind = COLL_FREEZES;
        p.fault[f].member = (int)rng_below(&r, (uint64_t)n);
        p.fault[f].after = rng_below(&r, (uint64_t)n * 40);
        p.fault[f].with_letters = rng_below(&r, 2);
        p.fault[f].duration = rng_below(&r, rng_below(&r, 2) ? 100000 : 3000000000);
    }
    p.ahead = seed % 4 == 1;
    if (p.leave && p.faults && !rng_below(&r, 3))
        p.fault[0].kind = COLL_PARTS;
    run(&p);
}

/* ------------------------------------------------------------------------------------------------ options */

static struct options {
    const char *sweep;
    int from, to;
    uint64_t chaos, seed;
    int scale;
} opt = {NULL, 2, 8, 0, 1, 0};

static bool is_sweep(const char *name)
{
    static const char *const names[] = {"single",      "pairs",        "freeze",      "loss",    "leave",
                                        "parting",     "revoking",     "ahead",       "outcast", "board",
                                        "board-pairs", "board-freeze", "board-ahead", "slow"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case 's':
        if (!is_sweep(arg))
            argp_failure(state, 2, 0, "no such sweep: %s", arg);
        opt.sweep = arg;
        break;
    case 'f':
        opt.from = atoi(arg);
        break;
    case 't':
        opt.to = atoi(arg);
        if (opt.to < 1 || opt.to > MEMBERS_MAX)
            argp_failure(state, 2, 0, "--to must be from 1 to %d", MEMBERS_MAX);
        break;
    case 'k':
        stride = strtoull(arg, NULL, 0);
        if (!stride)
            argp_failure(state, 2, 0, "--stride must be at least 1");
        break;
    case 'c':
        opt.chaos = strtoull(arg, NULL, 0);
        break;
    case 'S':
        opt.seed = strtoull(arg, NULL, 0);
        break;
    case 'x':
        opt.scale = atoi(arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"sweep", 's', "KIND", 0,
         "single, pairs, freeze, loss, slow, leave, parting, revoking, ahead, outcast, board, board-pairs, "
         "board-freeze or "
         "board-ahead",
         0},
        {"from", 'f', "N", 0, "sweep groups from this size (2)", 0},
        {"to", 't', "N", 0, "to this (8)", 0},
        {"stride", 'k', "K", 0, "take every K-th fault only (1)", 0},
        {"chaos", 'c', "COUNT", 0, "so many random runs", 0},
        {"seed", 'S', "S", 0, "of the first of them (1)", 0},
        {"scale", 'x', "MEMBERS", 0, "print steps and messages of groups up to this size", 0},
        {0},
    };
    static const struct argp argp = {options, parse, NULL, "Simulation of collectives", NULL, NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    const char *seed = getenv("KEEL_SEED");
    if (seed)
        opt.seed = strtoull(seed, NULL, 0);
    if (opt.sweep)
        sweep(opt.sweep, opt.from, opt.to);
    for (uint64_t i = 0; i < opt.chaos; i++)
        chaos(opt.seed + i);
    if (opt.chaos)
        printf("chaos: %llu runs from seed %llu\n", (unsigned long long)opt.chaos, (unsigned long long)opt.seed);
    if (opt.scale)
        coll_scale(opt.scale);
    return 0;
}
