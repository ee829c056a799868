/* fed BYTES STEPS: the first process of rank 0 reads BYTES of its standard input, or all where there is less, and each
 * later one all of it; each says how much it was, and a sum in which the order counts. Then all ranks count to STEPS, a
 * step every ten milliseconds, and meet after each. The others have nothing to read. */
#include <keel/keel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { STEP_US = 10000 };

static void read_input(size_t most)
{
    static unsigned char buffer[4096];
    uint64_t sum = 0;
    size_t all = 0;
    ssize_t n;
    while (all < most &&
           (n = read(STDIN_FILENO, buffer, most - all < sizeof buffer ? most - all : sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            sum = sum * 31 + buffer[i];
        all += (size_t)n;
    }
    printf("%s process read %zu bytes, %016llx\n", keel_restarted() ? "another" : "the first", all,
           (unsigned long long)sum);
    fflush(stdout);
    CHECK(keel_event(keel_restarted() ? "read again" : "read", (int64_t)all, NULL));
}

int main(int argc, char **argv)
{
    const int64_t steps = argc > 2 ? atoi(argv[2]) : 100;
    keel_segment *s;
    uint64_t met;
    char byte;
    CHECK(keel_init());
    CHECK(keel_segment_alloc(sizeof met, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_resume(&met));
    if (keel_rank() == 0)
        read_input(keel_restarted() || argc < 2 ? SIZE_MAX : strtoull(argv[1], NULL, 10));
    else
        EXPECT(read(STDIN_FILENO, &byte, 1) == 0);
    for (int64_t at = (int64_t)met; at < steps; at++) {
        usleep(STEP_US);
        CHECK(keel_barrier());
    }
    CHECK(keel_finalize());
    return 0;
}
