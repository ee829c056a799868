/* What a node's death costs those who work on: under keelrun with three nodes and a rank on each (bench/rebuild.py
 * starts it). Rank 0 measures keel_put's rate between the nodes, of one MiB again and again and of as many bytes as the
 * node has, into memory that was never touched and into the same once more, and the time of an 8-byte get; then the
 * last node dies, and while the copies that it held are filled elsewhere rank 0 goes on getting. It prints both
 * distributions, and how long it took from the first view without the node to the last view that was changed by a
 * filled copy; then the same gets beside two processes that send as many bytes to each other by plain sockets. */
#include <keel/keel.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/rawlib.h"

enum { PUT_BYTES = 1 << 20, PUTS = 200, GETS_BEFORE = 50000, GETS_MAX = 8 << 20, QUIET_US = 8000000 };

static double *us;

static double get_us(keel_segment *s)
{
    int64_t word;
    double start = raw_now_us();
    CHECK(keel_get(s, 1, 0, &word, sizeof word));
    return raw_now_us() - start;
}

/* Each put to other bytes of the segment: as a copy that is filled, the target and what it is filled from are in no
 * cache. */
static void sweep(keel_segment *s, const uint8_t *from, size_t mib, const char *what)
{
    double start = raw_now_us();
    for (size_t at = 0; at < mib << 20; at += PUT_BYTES)
        CHECK(keel_put(s, 1, at, from + at, PUT_BYTES));
    printf("put 1 MiB, %s %.3f GB/s\n", what, (double)(mib << 20) / (raw_now_us() - start) / 1e3);
}

static void print_gets(const char *when, int n)
{
    double half = raw_median(us, n);
    printf("get 8 B %-10s %8d gets   50%% %8.2f us   99%% %8.2f us   99.9%% %8.2f us   longest %10.2f us\n", when, n,
           half, us[(size_t)n * 99 / 100], us[(size_t)n * 999 / 1000], us[n - 1]);
}

/* From the death to the last change of the view, if none follows for a while. */
static void measure_during(keel_segment *s, uint64_t before)
{
    while (keel_view_epoch() == before)
        (void)get_us(s);
    double start = raw_now_us(), changed = start;
    uint64_t epoch = keel_view_epoch();
    int n = 0, of_rebuild = 0;
    while (raw_now_us() - changed < QUIET_US && n < GETS_MAX) {
        us[n++] = get_us(s);
        if (keel_view_epoch() == epoch)
            continue;
        epoch = keel_view_epoch();
        changed = raw_now_us();
        of_rebuild = n;
    }
    if (of_rebuild)
        print_gets("meanwhile", of_rebuild);
    printf("restored in %.1f ms\n", (changed - start) / 1e3);
}

/* The same gets while two processes send as many bytes to each other by plain sockets: what is possible on this
 * machine. */
static void measure_raw(keel_segment *s, size_t bytes)
{
    struct raw_fill *fill = raw_fill_start(bytes);
    CHECK(fill ? KEEL_OK : KEEL_ERR_SYSTEM);
    int n = 0;
    while (raw_fill_runs(fill) && n < GETS_MAX)
        us[n++] = get_us(s);
    print_gets("raw", n);
    printf("raw streams %.3f GB/s\n", raw_fill_end(fill));
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 512;
    CHECK(keel_init());
    us = malloc(GETS_MAX * sizeof *us);
    uint8_t *buffer = calloc(1, PUT_BYTES);
    keel_segment *data, *none, *wide;
    CHECK(keel_segment_alloc(mib << 20, KEEL_REDUNDANCY_SHADOW, &data));
    CHECK(keel_segment_alloc(PUT_BYTES, KEEL_REDUNDANCY_NONE, &none));
    CHECK(keel_segment_alloc(mib << 20, KEEL_REDUNDANCY_NONE, &wide));
    for (size_t at = 0; at < mib << 20; at += PUT_BYTES) {
        memset(buffer, (int)(at / PUT_BYTES + 1), PUT_BYTES);
        CHECK(keel_put(data, keel_rank(), at, buffer, PUT_BYTES));
    }
    CHECK(keel_barrier());
    uint64_t epoch = keel_view_epoch();
    if (keel_rank() == 0) {
        double start = raw_now_us();
        for (int i = 0; i < PUTS; i++)
            CHECK(keel_put(none, 1, 0, buffer, PUT_BYTES));
        printf("put 1 MiB %.3f GB/s\n", (double)PUTS * PUT_BYTES / (raw_now_us() - start) / 1e3);
        uint8_t *from = malloc(mib << 20);
        CHECK(from ? KEEL_OK : KEEL_ERR_NOMEM);
        memset(from, 1, mib << 20);
        sweep(wide, from, mib, "each to new memory");
        sweep(wide, from, mib, "each to other memory");
        free(from);
        for (int i = 0; i < GETS_BEFORE; i++)
            us[i] = get_us(data);
        print_gets("before", GETS_BEFORE);
        fflush(stdout);
    }
    CHECK(keel_barrier());
    double one = 1;
    if (keel_rank() == keel_size() - 1)
        CHECK(keel_acc_double(data, 0, 0, 1, &one, 1)); /* acc.done: its node dies here */
    if (keel_rank() == 0) {
        measure_during(data, epoch);
        measure_raw(data, mib << 20);
    }
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    free(us);
    free(buffer);
    return 0;
}
