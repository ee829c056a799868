/* What a slide costs those who work on: under keelrun on a row of nodes with a rank on each and a spare at the end
 * (bench/slide.py starts it). Each rank has so many MiB in a segment with shadows. Rank 0 puts eight bytes to the
 * last rank again and again, before and after the node of one rank has died; all meet every few puts, so that ranks
 * can move. It prints how long the puts took before, and from the death to the last change of the view. A process
 * that begins in the middle goes on with the others. */
#include <keel/keel.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/rawlib.h"

enum { PUTS_MAX = 4 << 20, PUTS_BEFORE = 20000, PUTS_BETWEEN = 50, QUIET_US = 4000000, PIECE = 1 << 20 };

struct word {
    int64_t until; /* so many meetings, 0: not known yet */
};

static void put_some(keel_segment *s, double *us, int *n)
{
    for (int i = 0; i < PUTS_BETWEEN && *n < PUTS_MAX; i++) {
        int64_t value = i;
        double start = raw_now_us();
        CHECK(keel_put(s, keel_size() - 1, 8, &value, sizeof value));
        us[(*n)++] = raw_now_us() - start;
    }
}

static void print_puts(const char *when, double *us, int n)
{
    double half = raw_median(us, n);
    printf("put 8 B %-9s %8d puts   50%% %8.2f us   99%% %8.2f us   longest %10.2f us\n", when, n, half,
           us[(size_t)n * 99 / 100], us[n - 1]);
}

/* False: all may end. */
static bool meet(keel_segment *s)
{
    struct word w;
    CHECK(keel_get(s, 0, 0, &w, sizeof w));
    CHECK(keel_barrier());
    return !w.until;
}

static void watch(keel_segment *s, double *us, const char *killer)
{
    int n = 0, of_slide = 0;
    while (n < PUTS_BEFORE) {
        put_some(s, us, &n);
        (void)meet(s);
    }
    print_puts("before", us, n);
    uint64_t epoch = keel_view_epoch();
    CHECK(system(killer) == 0 ? KEEL_OK : KEEL_ERR_SYSTEM);
    while (keel_view_epoch() == epoch)
        (void)meet(s);
    double start = raw_now_us(), changed = start;
    for (n = 0; raw_now_us() - changed < QUIET_US && n < PUTS_MAX;) {
        put_some(s, us, &n);
        (void)meet(s);
        if (keel_view_epoch() == epoch)
            continue;
        epoch = keel_view_epoch();
        changed = raw_now_us();
        of_slide = n;
    }
    if (of_slide)
        print_puts("meanwhile", us, of_slide);
    printf("slid in %.1f ms\n", (changed - start) / 1e3);
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    CHECK(keel_init());
    keel_segment *data;
    CHECK(keel_segment_alloc(mib << 20, KEEL_REDUNDANCY_SHADOW, &data));
    if (!keel_restarted()) {
        uint8_t *buffer = malloc(PIECE);
        CHECK(buffer ? KEEL_OK : KEEL_ERR_NOMEM);
        memset(buffer, keel_rank() + 1, PIECE);
        memset(buffer, 0, 16);
        for (size_t at = 0; at < mib << 20; at += PIECE)
            CHECK(keel_put(data, keel_rank(), at, buffer, PIECE));
        free(buffer);
        CHECK(keel_barrier());
    }
    CHECK(keel_resume(NULL));
    if (keel_rank() == 0) {
        double *us = malloc(PUTS_MAX * sizeof *us);
        CHECK(us ? KEEL_OK : KEEL_ERR_NOMEM);
        watch(data, us, argc > 2 ? argv[2] : "true");
        CHECK(keel_put(data, 0, 0, &(struct word){1}, sizeof(struct word)));
        free(us);
    }
    while (meet(data))
        ;
    CHECK(keel_finalize());
    return 0;
}
