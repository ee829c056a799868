/* The algorithms of collectives/schedule_choose.c against each other on the transport that carries them: under keelrun,
 * any ranks and nodes. Each algorithm that fits is forced in turn, round by round, the first one of a round another
 * each time; never over a board. Rank 0 prints, for each kind and length, the median of each algorithm's times in
 * microseconds, the median of the rounds' ratios to the one that the table takes, and which that is. A time is that of
 * a call and a barrier after it. Lengths are as in the table: of the vector, or of a block.
 *
 *   bench-algorithms ROUNDS [KIND ...] */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/rawlib.h"
#include "runtime/client/client.h"
#include "runtime/client/job/process.h"

enum { ROUNDS_MAX = 99, TOTAL_MAX = 16 << 20, AT_LEAST_US = 1500, CALLS_MAX = 40 };

struct bench {
    keel_group *world;
    int rank, size, rounds;
    uint8_t *in, *out;
    struct schedule_block *blocks;
    size_t *at, *lens; /* of reduce-scatter */
};

/* As the public calls make them, but for the algorithm. */
static struct engine_call call_of(const struct bench *b, enum schedule_kind kind, size_t len, int algorithm)
{
    struct engine_call call = {.kind = ENGINE_MOVE,
                               .move = kind,
                               .in = b->in,
                               .out = b->out,
                               .len = len,
                               .element = {.type = ELEMENT_DOUBLE, .op = ELEMENT_SUM},
                               .early = kind == SCHEDULE_ALLREDUCE || kind >= SCHEDULE_ALLGATHER,
                               .algorithm = algorithm};
    if (kind < SCHEDULE_REDUCE || kind > SCHEDULE_EXSCAN)
        call.element = (struct element){0};
    if (kind == SCHEDULE_REDUCE_SCATTER)
        call.in_blocks = (struct engine_blocks){b->at, b->lens};
    return call;
}

static void cut(struct bench *b, enum schedule_kind kind, size_t len)
{
    size_t n = (size_t)b->size, doubles = len / sizeof(double), at = 0;
    for (size_t m = 0; m < n; m++) {
        size_t mine = kind == SCHEDULE_REDUCE_SCATTER ? (doubles / n + (m < doubles % n)) * sizeof(double) : len;
        b->at[m] = at;
        b->lens[m] = mine;
        b->blocks[m] = (struct schedule_block){at, mine};
        at += mine;
    }
}

static struct schedule_shape shape_of(const struct bench *b, enum schedule_kind kind, size_t len)
{
    return (struct schedule_shape){.kind = kind,
                                   .places = b->size,
                                   .me = b->rank,
                                   .len = len,
                                   .unit = sizeof(double),
                                   .mine = len,
                                   .uniform = true,
                                   .in = b->blocks,
                                   .out = b->blocks,
                                   .node = b->world->node};
}

static double time_of(const struct bench *b, const struct engine_call *call, int calls)
{
    CHECK(keel_group_barrier(b->world));
    double start = raw_now_us();
    for (int i = 0; i < calls; i++) {
        CHECK(coll_run(b->world, call, NULL));
        CHECK(keel_group_barrier(b->world));
    }
    return (raw_now_us() - start) / calls;
}

/* So many that they take long enough to be measured; the same on all ranks. */
static int calls_for(const struct bench *b, const struct engine_call *call)
{
    int64_t calls = 1;
    double us = time_of(b, call, 2);
    calls = us * CALLS_MAX < AT_LEAST_US ? CALLS_MAX : us < AT_LEAST_US ? (int64_t)(AT_LEAST_US / us) + 1 : 1;
    CHECK(keel_group_bcast(b->world, 0, &calls, sizeof calls));
    return (int)calls;
}

static double us[SCHEDULE_ALGORITHMS][ROUNDS_MAX];

static void print_row(const struct bench *b, enum schedule_kind kind, size_t len, enum schedule_algorithm chosen,
                      const enum schedule_algorithm *fits, int n)
{
    double ratio[ROUNDS_MAX], times[ROUNDS_MAX];
    printf("%s %zu %s", schedule_kind_name(kind), len, schedule_algorithm_name(chosen));
    for (int i = 0; i < n; i++) {
        for (int round = 0; round < b->rounds; round++) {
            times[round] = us[fits[i]][round];
            ratio[round] = times[round] / us[chosen][round];
        }
        printf("  %s %.1f %.2f", schedule_algorithm_name(fits[i]), raw_median(times, b->rounds),
               raw_median(ratio, b->rounds));
    }
    printf("\n");
    fflush(stdout);
}

static void measure(struct bench *b, enum schedule_kind kind, size_t len)
{
    enum schedule_algorithm fits[SCHEDULE_ALGORITHMS];
    int n = 0;
    cut(b, kind, len);
    struct schedule_shape shape = shape_of(b, kind, len);
    enum schedule_algorithm chosen = schedule_choose(&shape);
    for (int a = 0; a < SCHEDULE_ALGORITHMS; a++)
        if (schedule_fits((enum schedule_algorithm)a, &shape))
            fits[n++] = (enum schedule_algorithm)a;
    if (n < 2)
        return;
    struct engine_call call = call_of(b, kind, len, (int)chosen + 1);
    int calls = calls_for(b, &call);
    for (int round = 0; round < b->rounds; round++)
        for (int i = 0; i < n; i++) {
            enum schedule_algorithm a = fits[(i + round) % n];
            call = call_of(b, kind, len, (int)a + 1);
            us[a][round] = time_of(b, &call, calls);
        }
    if (b->rank)
        return;
    print_row(b, kind, len, chosen, fits, n);
}

static int kind_of(const char *name)
{
    for (int k = 0; k < SCHEDULE_KINDS; k++)
        if (!strcmp(name, schedule_kind_name((enum schedule_kind)k)))
            return k;
    fprintf(stderr, "no such collective: %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    static const size_t lens[] = {8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
    struct bench b = {.rounds = argc > 1 ? atoi(argv[1]) : 0};
    if (b.rounds < 1 || b.rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench-algorithms ROUNDS [KIND ...]\n");
        return 2;
    }
    CHECK(keel_init());
    b.world = process_client.coll.world;
    b.rank = keel_rank();
    b.size = keel_size();
    b.in = calloc(1, TOTAL_MAX);
    b.out = calloc(1, TOTAL_MAX);
    b.blocks = calloc((size_t)b.size, sizeof *b.blocks);
    b.at = calloc((size_t)b.size, sizeof *b.at);
    b.lens = calloc((size_t)b.size, sizeof *b.lens);
    if (!b.in || !b.out || !b.blocks || !b.at || !b.lens)
        exit(1);
    for (int k = 0; k < SCHEDULE_KINDS; k++) {
        bool wanted = argc == 2;
        size_t blocks = k >= SCHEDULE_GATHER ? (size_t)b.size : 1;
        for (int i = 2; i < argc; i++)
            wanted |= kind_of(argv[i]) == k;
        for (size_t i = 0; wanted && i < sizeof lens / sizeof lens[0] && lens[i] * blocks <= TOTAL_MAX; i++)
            measure(&b, (enum schedule_kind)k, lens[i]);
    }
    CHECK(keel_finalize());
    free(b.lens);
    free(b.at);
    free(b.blocks);
    free(b.out);
    free(b.in);
    return 0;
}
