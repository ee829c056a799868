/* Many at once. Under keelrun, beside what stands in the same run:
 *   keelrun -n 8 --nodes 2 crowd     all ranks add to one counter, unreplicated and shadowed, those of the counter's
 *                                    own node and others, beside
 *                                    as many processes that ask one server by TCP
 *   keelrun -n 2 --nodes 2 crowd     puts of 8 bytes with 64, 90 and 1,024 on their way; accumulates beside puts of the
 *                                    same size
 * Rounds of what is compared take turns; medians are printed, and the median of the ratios. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/rawlib.h"

enum { ROUNDS = 15, MEMORY = 4 << 20, OUTSTANDING_MAX = 1024, CROWD_US = 50000, LOOK_EVERY = 16, WIRE_BYTES = 88 };

static uint8_t *buffer;
static keel_segment *none, *shadow;

/* ---- one counter ---- */

/* Thousands a second by all ranks that take part, from the first of them to the last. */
static double crowd_kops(keel_segment *s, bool takes_part)
{
    double start = raw_now_us(), count = 0, sum[2], mine[2];
    CHECK(keel_barrier());
    while (takes_part && raw_now_us() - start < CROWD_US)
        for (int i = 0; i < LOOK_EVERY; i++, count++)
            CHECK(keel_fetch_add(s, 0, 0, 1, NULL));
    mine[0] = count;
    mine[1] = takes_part ? raw_now_us() - start : 0;
    CHECK(keel_allreduce_sum(mine, sum, 2));
    double parts = takes_part, all;
    CHECK(keel_allreduce_sum(&parts, &all, 1));
    return 1e3 * sum[0] / (sum[1] / all);
}

/* Beside it: as many processes as there are ranks that take part, each with a TCP connection of its own to one server,
 * a message there and one back, as large as the runtime's header. For a shadowed counter the server asks a second
 * one before it answers, once for all that it has found. */
static double raw_kops(int clients, bool shadowed)
{
    double kops = keel_rank() == 0 ? raw_crowd_kops(clients, WIRE_BYTES, CROWD_US, shadowed) : 0;
    CHECK(keel_barrier());
    return kops;
}

static void crowd(const char *name, keel_segment *s, bool takes_part)
{
    double kops[ROUNDS], raw[ROUNDS], ratio[ROUNDS], parts = takes_part, all;
    CHECK(keel_allreduce_sum(&parts, &all, 1));
    for (int i = 0; i < ROUNDS; i++) {
        kops[i] = crowd_kops(s, takes_part);
        raw[i] = raw_kops((int)all, s == shadow);
        ratio[i] = kops[i] / raw[i];
    }
    double median = raw_median(kops, ROUNDS);
    if (keel_rank() == 0)
        printf("%-48s %10.1f kops/s   best %10.1f   raw TCP %8.1f   ratio %8.2f\n", name, median, kops[ROUNDS - 1],
               raw_median(raw, ROUNDS), raw_median(ratio, ROUNDS));
    fflush(stdout);
}

/* ---- many outstanding ---- */

static double outstanding_kops(keel_segment *s, int depth)
{
    static keel_handle handle[OUTSTANDING_MAX];
    enum { COUNT = 4096 };
    double start = raw_now_us();
    for (int i = 0; i < COUNT; i++) {
        if (i >= depth)
            CHECK(keel_wait(&handle[i % depth]));
        CHECK(keel_put_nb(s, 1, 8 * (size_t)(i % depth), buffer, 8, &handle[i % depth]));
    }
    for (int i = 0; i < depth; i++)
        CHECK(keel_wait(&handle[i]));
    return 1e3 * COUNT / (raw_now_us() - start);
}

static void outstanding(const char *name, keel_segment *s)
{
    static const int depth[] = {64, 90, 1024};
    double kops[3][ROUNDS], ratio[2][ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 3; k++)
            kops[k][i] = outstanding_kops(s, depth[k]);
        for (int k = 1; k < 3; k++)
            ratio[k - 1][i] = kops[k][i] / kops[0][i];
    }
    printf("%-28s 64: %8.1f kops/s   90: %8.1f, ratio %5.2f   1024: %8.1f, ratio %5.2f\n", name,
           raw_median(kops[0], ROUNDS), raw_median(kops[1], ROUNDS), raw_median(ratio[0], ROUNDS),
           raw_median(kops[2], ROUNDS), raw_median(ratio[1], ROUNDS));
    fflush(stdout);
}

/* ---- accumulates beside puts ---- */

static double put_us(keel_segment *s, size_t size, int iters)
{
    double start = raw_now_us();
    for (int i = 0; i < iters; i++)
        CHECK(keel_put(s, 1, 0, buffer, size));
    return (raw_now_us() - start) / iters;
}

static double accumulate_us(keel_segment *s, size_t size, int iters)
{
    double start = raw_now_us();
    for (int i = 0; i < iters; i++)
        CHECK(keel_acc_double(s, 1, 0, 0.0, (const double *)(const void *)buffer, size / 8));
    return (raw_now_us() - start) / iters;
}

/* The put is one to an unreplicated part, whatever the accumulate is to. */
static void accumulates(const char *name, keel_segment *s)
{
    static const size_t sizes[] = {8, 4096, 65536, 1 << 20, 4 << 20};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        double put[ROUNDS], acc[ROUNDS], rate[ROUNDS];
        int iters = raw_iters(sizes[k] < 65536 ? 20 : (double)sizes[k] / 4000) / 2 + 1;
        for (int i = 0; i < ROUNDS; i++) {
            put[i] = put_us(none, sizes[k], iters);
            acc[i] = accumulate_us(s, sizes[k], iters);
            rate[i] = put[i] / acc[i];
        }
        printf("%-28s %8zu B %10.2f us   put %10.2f us   rate %5.2f of it\n", name, sizes[k], raw_median(acc, ROUNDS),
               raw_median(put, ROUNDS), raw_median(rate, ROUNDS));
        fflush(stdout);
    }
}

int main(void)
{
    CHECK(keel_init());
    buffer = calloc(1, MEMORY);
    CHECK(keel_segment_alloc(MEMORY, KEEL_REDUNDANCY_NONE, &none));
    CHECK(keel_segment_alloc(MEMORY, KEEL_REDUNDANCY_SHADOW, &shadow));
    if (keel_size() > 2) {
        bool far = keel_rank() >= keel_size() / 2; /* ranks are spread in blocks */
        crowd("one counter, all ranks", none, true);
        crowd("one counter, ranks of the other node", none, far);
        crowd("one counter, shadowed, all ranks", shadow, true);
        crowd("one counter, shadowed, ranks of the other node", shadow, far);
    } else if (keel_rank() == 0 && keel_size() == 2) {
        outstanding("puts of 8 B", none);
        outstanding("puts of 8 B, shadowed", shadow);
        accumulates("accumulate", none);
        accumulates("accumulate, shadowed", shadow);
    }
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    free(buffer);
    return 0;
}
