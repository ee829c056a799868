/* rounding: accumulates and reductions have the same bits wherever they are done, whatever each rank has told its
 * processor: within a node, by an agent, on one copy or on several. Exit 0 if all is right. */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { WORDS = 4, TIMES = 3 };

static const double by[WORDS] = {1e-16, -1e-16, 1e-300, 1.0 / 3};
static const double scale = 1e-8;

/* In the order of ranks none differs: all add the same. */
static void add_as_usual(double *sums, int times)
{
    volatile double sum, product;
    for (int t = 0; t < times; t++)
        for (int w = 0; w < WORDS; w++) {
            product = scale * by[w];
            sum = sums[w] + product;
            sums[w] = sum;
        }
}

static bool same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

static void be_unusual(int rank)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    EXPECT(fesetround(modes[rank % 4]) == 0);
#if defined(__x86_64__)
    if (rank % 2)
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* as programs built with -ffast-math do */
#endif
}

static void accumulate(keel_redundancy redundancy, const double *first, const double *wanted)
{
    keel_segment *s;
    double got[WORDS];
    CHECK(keel_segment_alloc(WORDS * sizeof(double), redundancy, &s));
    CHECK(keel_put(s, keel_rank(), 0, first, WORDS * sizeof *first));
    CHECK(keel_barrier());
    for (int t = 0; t < TIMES; t++)
        for (int r = 0; r < keel_size(); r++)
            CHECK(keel_acc(s, r, 0, KEEL_DOUBLE, &scale, by, WORDS));
    CHECK(keel_barrier());
    for (int r = 0; r < keel_size(); r++) {
        CHECK(keel_get(s, r, 0, got, sizeof got));
        EXPECT(same_bits(got, wanted, sizeof got));
    }
    CHECK(keel_barrier());
    CHECK(keel_segment_free(s));
}

static void reduce(void)
{
    static const keel_combine sum = {.type = KEEL_DOUBLE, .op = KEEL_SUM};
    double mine[WORDS], got[WORDS], *all = calloc((size_t)keel_size() * WORDS, sizeof *all);
    EXPECT(all);
    for (int w = 0; w < WORDS; w++)
        mine[w] = (w % 2 ? -1.0 : 1.0) / (3 + keel_rank() + w);
    CHECK(keel_group_allreduce(keel_group_world(), mine, got, WORDS, &sum));
    CHECK(keel_group_allgather(keel_group_world(), got, all, sizeof got));
    for (int r = 0; r < keel_size(); r++)
        EXPECT(same_bits(all + r * WORDS, got, sizeof got));
    free(all);
}

int main(void)
{
    double first[WORDS] = {1, -1, 3e-308, 1e-17}, wanted[WORDS];
    CHECK(keel_init());
    memcpy(wanted, first, sizeof wanted);
    add_as_usual(wanted, TIMES * keel_size());
    be_unusual(keel_rank());
    int mode = fegetround();
    accumulate(KEEL_REDUNDANCY_NONE, first, wanted);
    accumulate(KEEL_REDUNDANCY_SHADOW, first, wanted);
    accumulate(KEEL_REDUNDANCY_TRIPLE, first, wanted);
    reduce();
    EXPECT(fegetround() == mode); /* and the program keeps what it asked for */
    CHECK(keel_finalize());
    return 0;
}
