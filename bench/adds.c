/* Accumulates one after the other: each rank adds to the next one, and rank 0 prints the microseconds of one, begun and
 * completed (blocking), and of a batch that is begun and then fenced. Under keelrun, with and without --on-death
 * partner, by adds.py. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/check.h"

enum { ELEMENTS_MAX = 65536, BATCH = 32 };

static double bytes[ELEMENTS_MAX];

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double blocking(keel_segment *s, int to, size_t n, int count)
{
    double begun = seconds();
    for (int i = 0; i < count; i++)
        CHECK(keel_acc_double(s, to, 0, 1, bytes, n));
    return (seconds() - begun) / count;
}

static double batches(keel_segment *s, int to, size_t n, int count)
{
    double begun = seconds();
    for (int i = 0; i < count; i++) {
        CHECK(keel_acc_nb(s, to, 0, KEEL_DOUBLE, NULL, bytes, n, NULL));
        if (i % BATCH == BATCH - 1)
            CHECK(keel_fence_all());
    }
    CHECK(keel_fence_all());
    return (seconds() - begun) / count;
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 512, 16384};
    int count = argc > 1 ? atoi(argv[1]) : 400;
    keel_segment *s;
    CHECK(keel_init());
    int to = (keel_rank() + 1) % keel_size();
    CHECK(keel_segment_alloc(sizeof bytes, KEEL_REDUNDANCY_NONE, &s));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(keel_barrier());
        double one = blocking(s, to, sizes[i], count);
        CHECK(keel_barrier());
        double of_batch = batches(s, to, sizes[i], count);
        if (keel_rank() == 0)
            printf("%zu %.1f %.1f\n", 8 * sizes[i], 1e6 * one, 1e6 * of_batch);
    }
    CHECK(keel_segment_free(s));
    CHECK(keel_finalize());
    return 0;
}
