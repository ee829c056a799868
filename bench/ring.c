/* A displaced ring: each rank puts to the one that stands as far behind it as a node has ranks, so that every put goes
 * to another node, and waits for its fence; iteration by iteration, whoever dies. FT-ARMCI, figure 10. keelrun -n 8
 * --nodes 4 --on-failure degrade bench-ring BYTES ITERATIONS none|shadow. At the end each living rank prints lines
 * "ring RANK ITERATION START-US TIME-US"; bench/ring.py kills a node in the middle. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/rawlib.h"

struct iteration {
    double start, us;
};

/* As many ranks as the first node has. */
static int displacement(void)
{
    int n = 1;
    while (n < keel_size() && keel_rank_node(n) == keel_rank_node(0))
        n++;
    return n < keel_size() ? n : 1;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "Usage: bench-ring BYTES ITERATIONS none|shadow\n");
        return 2;
    }
    size_t bytes = strtoul(argv[1], NULL, 10), n = strtoul(argv[2], NULL, 10);
    CHECK(keel_init());
    char *buffer = calloc(1, bytes + 1);
    struct iteration *times = calloc(n + 1, sizeof *times);
    keel_segment *s;
    CHECK(
        keel_segment_alloc(bytes, strcmp(argv[3], "shadow") == 0 ? KEEL_REDUNDANCY_SHADOW : KEEL_REDUNDANCY_NONE, &s));
    CHECK(buffer && times ? KEEL_OK : KEEL_ERR_NOMEM);
    int to = (keel_rank() + displacement()) % keel_size();
    CHECK(keel_put(s, to, 0, buffer, bytes));
    CHECK(keel_barrier());
    for (size_t i = 0; i < n; i++) {
        times[i].start = raw_now_us();
        CHECK(keel_put_nb(s, to, 0, buffer, bytes, NULL));
        CHECK(keel_fence(to));
        times[i].us = raw_now_us() - times[i].start;
    }
    CHECK(keel_barrier());
    for (size_t i = 0; i < n; i++)
        printf("ring %d %zu %.1f %.2f\n", keel_rank(), i, times[i].start, times[i].us);
    fflush(stdout);
    CHECK(keel_finalize());
    free(times);
    free(buffer);
    return 0;
}
