/* moved STEPS [barriers|tracks|moves|stores|addresses|returns|fails [LATE_MS]]: each rank counts to STEPS in its part
 * of a segment with shadows, a step every ten milliseconds, and goes on from there where another process was the rank
 * before. With a word all meet after each step; with one of the last five the program chooses how it moves: by
 * keel_move, or by returning from main, with an exit code of 0 or 3. With "tracks" and "stores" it counts by plain
 * stores. With "addresses" it has a segment without further copies, too, and asks for its own part's address. Odd ranks
 * take their time to move with this and "stores". In the end all parts say so, and nobody has failed. */
#include <keel/keel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { STEP_US = 10000 };
static int late_ms = 300;

static bool is_one_of(const char *how, const char *a, const char *b)
{
    return strcmp(how, a) == 0 || strcmp(how, b) == 0;
}

/* True: the process is to return from main. */
static bool moves(const char *how)
{
    if (!keel_move_pending())
        return false;
    printf("rank %d moves\n", keel_rank());
    if (is_one_of(how, "stores", "addresses") && keel_rank() % 2)
        usleep((useconds_t)late_ms * 1000);
    if (strcmp(how, "moves") == 0 || is_one_of(how, "stores", "addresses")) {
        EXPECT(keel_move() == KEEL_ERR_STATE); /* not to move any more; else it does not come back */
        return false;
    }
    return true;
}

static void count(keel_segment *s, bool stores, int64_t at)
{
    if (!stores) {
        CHECK(keel_put(s, keel_rank(), 0, &at, sizeof at));
        return;
    }
    *(volatile int64_t *)keel_address(s, keel_rank()) = at;
    CHECK(keel_update_flush(s));
}

/* What has no further copies is with the rank where it goes, but not where its node died. */
static void look_at_what_is_alone(void)
{
    keel_segment *alone;
    int64_t there = 0;
    const int me = keel_rank();
    CHECK(keel_segment_alloc(sizeof there, KEEL_REDUNDANCY_NONE, &alone));
    if (!keel_restarted()) {
        *(volatile int64_t *)keel_address(alone, me) = me + 1;
        return;
    }
    keel_status got = keel_get(alone, me, 0, &there, sizeof there);
    EXPECT(got == KEEL_OK || got == KEEL_ERR_DATA_LOST);
    const int64_t *mine = keel_address(alone, me);
    EXPECT(mine);
    EXPECT(got != KEEL_OK || (there == me + 1 && *mine == me + 1));
    printf("rank %d finds %s\n", me, got == KEEL_OK ? "its part" : "nothing");
}

int main(int argc, char **argv)
{
    const int64_t steps = argc > 1 ? atoi(argv[1]) : 100;
    const bool meets = argc > 2, tracks = meets && strcmp(argv[2], "tracks") == 0;
    const bool chooses = meets && !tracks && strcmp(argv[2], "barriers") != 0;
    const bool stores = tracks || (meets && strcmp(argv[2], "stores") == 0);
    uint64_t met = 0;
    late_ms = argc > 3 ? atoi(argv[3]) : late_ms;
    keel_segment *s;
    keel_failure failure[8];
    size_t failures = 0;
    int64_t at = 0;
    CHECK(keel_init());
    const int me = keel_rank();
    CHECK(keel_segment_alloc(sizeof at, KEEL_REDUNDANCY_SHADOW, &s));
    if (stores)
        CHECK(keel_segment_track(s));
    const bool alone = meets && strcmp(argv[2], "addresses") == 0;
    if (alone)
        look_at_what_is_alone();
    CHECK(keel_get(s, me, 0, &at, sizeof at));
    printf("rank %d begins at %lld on node %s\n", me, (long long)at, getenv("KEEL_NODE"));
    fflush(stdout);
    EXPECT(stores || alone ? at == 0 || keel_restarted()
                           : (at > 0) == keel_restarted()); /* a first store dies with its node */
    if (chooses) {
        EXPECT(keel_move_mode((keel_moving)7) == KEEL_ERR_ARG);
        CHECK(keel_move_mode(KEEL_MOVE_ASK));
    }
    CHECK(keel_resume(&met));
    if (meets)
        at = (int64_t)met;
    while (at < steps) {
        usleep(STEP_US);
        at++;
        count(s, stores, at);
        if (meets)
            CHECK(keel_barrier());
        if (chooses && moves(argv[2])) {
            CHECK(keel_finalize());
            return strcmp(argv[2], "fails") == 0 ? 3 : 0;
        }
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
