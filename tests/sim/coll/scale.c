/* Time is counted in steps: a message takes one, work takes none. So a barrier of 1,024 takes 10.
 *
 * `probing` is computed, not simulated: the steps of the tree gather and broadcast where a dead member is found out by
 * asking, and its successors are asked one after the other (Liveness-discovery, algorithm 1 with its duties
 * reassigned), each question to a dead member taking one step. */
#include "tests/sim/coll/scale.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/bitset.h"
#include "tests/sim/coll/world.h"

enum { STEP_NS = 1000, MANY = 4096, VERY_MANY = 16384 };

/* Large groups vary little from seed to seed. */
static int seeds_for(int n)
{
    return n > MANY ? 1 : 3;
}

static const struct {
    const char *name;
    struct coll_spec spec;
    double messages; /* per live member at most, as a multiple of log2 n; 0: two */
} operations[] = {
    {"barrier", {.kind = ENGINE_BARRIER}, 1},
    {"discovery tree", {.kind = ENGINE_SHRINK, .shape = MEET_TREE}, 0},
    {"discovery cube", {.kind = ENGINE_SHRINK}, 1},
    {"agree tree", {.kind = ENGINE_AGREE, .shape = MEET_TREE}, 0},
    {"agree cube", {.kind = ENGINE_AGREE}, 2},
    {"allreduce", {.kind = ENGINE_MOVE, .move = SCHEDULE_ALLREDUCE, .count = 1}, 2.2}, /* of 8 bytes, like the others */
    {"allreduce early", {.kind = ENGINE_MOVE, .move = SCHEDULE_ALLREDUCE, .count = 1, .early = true}, 1.1},
    {"bcast", {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .count = 1}, 1.5},
    {"bcast early", {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .count = 1, .early = true}, 1.5},
};

static int log2_up(int n)
{
    int k = 0;
    while (1 << k < n)
        k++;
    return k;
}

/* ------------------------------------------------------------------------------------------------ the paper's rule */

/* The first live member of [from, to), and how many dead ones were asked before it. -1: none. */
static int ask(const uint64_t *live, int from, int to, int *asked)
{
    for (*asked = 0; from < to; from++, ++*asked)
        if (bitset_has(live, from))
            return from;
    return -1;
}

/* When the speaker of the block has gathered it, or is told: the same steps back. */
static int probing(const uint64_t *live, int n, int first, int level)
{
    if (!level || first >= n)
        return 0;
    int half = first + (1 << (level - 1)), end = first + (1 << level), asked_low, asked_high;
    int low = probing(live, n, first, level - 1), high = probing(live, n, half, level - 1);
    int lower = ask(live, first, half < n ? half : n, &asked_low), upper = -1;
    if (half < n)
        upper = ask(live, half, end < n ? end : n, &asked_high);
    if (lower < 0) /* the upper half's speaker asks every one of the lower before it takes over */
        return upper < 0 ? 0 : high + asked_low;
    if (upper < 0)
        return low + (half < n ? asked_high : 0);
    int arrives = high + asked_low + 1; /* it, too, asks for whom to send to */
    low += asked_high;
    return arrives > low ? arrives : low;
}

static void print_probing(int n, int percent)
{
    double sum = 0;
    uint64_t seeds = (uint64_t)seeds_for(n);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct rng r;
        uint64_t *live = calloc(BITSET_WORDS(n), sizeof *live);
        rng_seed(&r, seed);
        for (int i = 0; live && i < n; i++)
            if ((int)rng_below(&r, 100) >= percent)
                bitset_add(live, i);
        sum += live ? 2.0 * probing(live, n, 0, log2_up(n)) : 0;
        free(live);
    }
    printf("probing,%d,%d,0,%d,%.1f,,,\n", n, percent, log2_up(n), sum / (double)seeds);
}

/* ------------------------------------------------------------------------------------------------ runs */

static void breach(const char *what, int n, double value, double limit)
{
    fprintf(stderr, "%s, %d members: %.2f, at most %.2f were promised\n", what, n, value, limit);
    exit(1);
}

/* percent: dead before, and known; deaths: while it runs. */
static void measure(size_t op, int n, int percent, int deaths)
{
    double steps = 0, messages = 0, most = 0, longest = 0, seeds = seeds_for(n);
    int live = n - (int)((int64_t)n * percent / 100);
    for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++) {
        struct coll_params p = {.n = n,
                                .seed = seed,
                                .delay_ns = STEP_NS,
                                .detect_ns = STEP_NS,
                                .spread_ns = 4 * STEP_NS,
                                .start_dead = n - live,
                                .calls = 1,
                                .call = {operations[op].spec},
                                .faults = deaths,
                                .what = operations[op].name};
        struct rng r;
        rng_seed(&r, seed);
        for (int i = 0; i < deaths; i++) {
            p.fault[i].member = (int)rng_below(&r, (uint64_t)n);
            p.fault[i].after = (uint64_t)live + rng_below(&r, (uint64_t)live * 4);
        }
        if (percent && operations[op].spec.move == SCHEDULE_BCAST)
            p.call[0].root = -1; /* the first that lives */
        struct coll_stats s = {0};
        coll_world_run(&p, &s);
        steps += (double)s.end_ns / STEP_NS / seeds;
        messages += (double)s.messages / live / seeds;
        most = (double)s.most_messages > most ? (double)s.most_messages : most;
        longest = (double)s.longest > longest ? (double)s.longest : longest;
    }
    printf("%s,%d,%d,%d,%d,%.1f,%.2f,%.0f,%.0f\n", operations[op].name, n, percent, deaths, log2_up(live), steps,
           messages, most, longest);
    double limit = operations[op].messages                    ? operations[op].messages * log2_up(live)
                   : operations[op].spec.kind == ENGINE_AGREE ? 4
                                                              : 2;
    if (!deaths && messages > limit)
        breach(operations[op].name, n, messages, limit);
    if (longest > 104)
        breach("message", n, longest, 104);
}

void coll_scale(int most)
{
    static const int percents[] = {0, 10, 25, 50};
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("operation,members,dead percent,deaths meanwhile,log2 of live,steps,messages per live member,"
           "most messages of one,longest message\n");
    for (int n = 16; n <= most; n *= 4) {
        int fewer = n <= VERY_MANY ? 1 : 2;
        for (size_t op = 0; op < sizeof operations / sizeof operations[0]; op++) {
            if (n > MANY && operations[op].spec.kind == ENGINE_MOVE)
                continue;
            for (int k = 0; k < 4; k += fewer)
                measure(op, n, percents[k], 0);
            if (n <= VERY_MANY)
                measure(op, n, 0, 1);
            if (n <= MANY)
                measure(op, n, 0, COLL_FAULTS_MAX);
        }
    }
    for (int n = 16; n <= most; n *= 4)
        for (int k = 0; k < 4; k++)
            print_probing(n, percents[k]);
}
