/* moved STEPS [barriers]: each rank counts to STEPS in its part of a segment with shadows, a step every ten
 * milliseconds, and goes on from there where another process was the rank before; with barriers, all meet after each
 * step. In the end all parts say so, and nobody has failed. */
#include <keel/keel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { STEP_US = 10000 };

int main(int argc, char **argv)
{
    const int64_t steps = argc > 1 ? atoi(argv[1]) : 100;
    const bool meets = argc > 2;
    uint64_t met = 0;
    keel_segment *s;
    keel_failure failure[8];
    size_t failures = 0;
    int64_t at = 0;
    CHECK(keel_init());
    const int me = keel_rank();
    CHECK(keel_segment_alloc(sizeof at, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_get(s, me, 0, &at, sizeof at));
    printf("rank %d begins at %lld on node %s\n", me, (long long)at, getenv("KEEL_NODE"));
    fflush(stdout);
    EXPECT((at > 0) == keel_restarted());
    CHECK(keel_resume(&met));
    if (meets)
        at = (int64_t)met;
    while (at < steps) {
        usleep(STEP_US);
        at++;
        CHECK(keel_put(s, me, 0, &at, sizeof at));
        if (meets)
            CHECK(keel_barrier());
    }
    CHECK(keel_barrier());
    for (int r = 0; r < keel_size(); r++) {
        CHECK(keel_get(s, r, 0, &at, sizeof at));
        EXPECT(at == steps);
    }
    CHECK(keel_failures(0, failure, 8, &failures, NULL));
    printf("rank %d ends on node %s: %zu failures\n", me, getenv("KEEL_NODE"), failures);
    CHECK(keel_barrier());
    return keel_finalize() != KEEL_OK;
}
