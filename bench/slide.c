/* What a slide costs those who work on: under keelrun on a row of nodes with a rank on each and a spare at the end
 * (bench/slide.py starts it). Each rank has so many MiB in a segment with shadows. Rank 0 puts eight bytes to the
 * last rank again and again, before and after the node of one rank has died; all meet every few puts, so that ranks
 * can move. It prints how long the puts took before, and from the death until so many ranks are on other nodes. A
 * process that begins in the middle goes on with the others.
 * bench-slide MIB KILLER RANKS: KILLER is a command that kills a node, by which RANKS ranks come to other nodes. */
#include <keel/keel.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/rawlib.h"

enum { PUTS_MAX = 4 << 20, PUTS_BEFORE = 20000, PUTS_BETWEEN = 50, PIECE = 1 << 20, RANKS_MAX = 64 };
enum { MOVED_S = 600 }; /* 1 GiB at 320 Mbit/s takes less than a minute */

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

/* How many ranks are on another node than at the start. */
static int moved_ranks(const int *at_start)
{
    int n = 0;
    for (int r = 0; r < keel_size(); r++)
        n += keel_rank_node(r) >= 0 && keel_rank_node(r) != at_start[r];
    return n;
}

static void watch(keel_segment *s, double *us, const char *killer, int ranks)
{
    int n = 0, at_start[RANKS_MAX] = {0};
    for (int r = 0; r < keel_size(); r++)
        at_start[r] = keel_rank_node(r);
    while (n < PUTS_BEFORE) {
        put_some(s, us, &n);
        (void)meet(s);
    }
    print_puts("before", us, n);
    CHECK(system(killer) == 0 ? KEEL_OK : KEEL_ERR_SYSTEM);
    double start = raw_now_us();
    for (n = 0; moved_ranks(at_start) < ranks;) {
        put_some(s, us, &n);
        (void)meet(s);
        if (raw_now_us() - start > MOVED_S * 1e6) {
            char late[80];
            snprintf(late, sizeof late, "after %d s %d of %d ranks have moved", MOVED_S, moved_ranks(at_start), ranks);
            keel_abort(1, late);
        }
    }
    if (n)
        print_puts("meanwhile", us, n);
    printf("slid in %.1f ms\n", (raw_now_us() - start) / 1e3);
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    CHECK(keel_init());
    CHECK(argc == 4 && keel_size() <= RANKS_MAX ? KEEL_OK : KEEL_ERR_ARG);
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
        watch(data, us, argv[2], (int)strtol(argv[3], NULL, 10));
        CHECK(keel_put(data, 0, 0, &(struct word){1}, sizeof(struct word)));
        free(us);
    }
    while (meet(data))
        ;
    CHECK(keel_finalize());
    return 0;
}
