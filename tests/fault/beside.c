/* Two processes of a node store plainly into small parts that lie in one piece, each into its own, and flush, without a
 * word to each other, while copies are made again: the last rank's node dies at the beginning. What each has flushed
 * is there, here and in the other copy. */
#include <keel/keel.h>

#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { ROUNDS = 1000, WORDS = 8, LARGE = 24 << 20 };

static void store_and_flush(keel_segment *s)
{
    volatile int64_t *mine = keel_address(s, keel_rank());
    for (int64_t round = 1; round <= ROUNDS; round++) {
        mine[round % WORDS] = round;
        CHECK(keel_update_flush(s));
        EXPECT(mine[round % WORDS] == round);
    }
}

int main(void)
{
    keel_segment *large, *small;
    int64_t got[WORDS];
    CHECK(keel_init());
    int me = keel_rank(), n = keel_size();
    CHECK(keel_segment_alloc(LARGE, KEEL_REDUNDANCY_SHADOW, &large));
    CHECK(keel_segment_alloc(sizeof got, KEEL_REDUNDANCY_SHADOW, &small));
    CHECK(keel_segment_track(small));
    for (size_t at = 0; at < LARGE; at += 4096)
        CHECK(keel_put(large, me, at, &me, sizeof me));
    CHECK(keel_barrier());
    if (me == n - 1) {
        kill(getppid(), SIGKILL);
        (void)raise(SIGKILL);
    }
    while (keel_rank_alive(n - 1))
        (void)usleep(1000);
    store_and_flush(small);
    CHECK(keel_barrier());
    for (int r = 0; r < n; r++) {
        if (keel_rank_alive(r)) {
            CHECK(keel_get(small, r, 0, got, sizeof got));
            for (int64_t round = ROUNDS - WORDS + 1; round <= ROUNDS; round++)
                EXPECT(got[round % WORDS] == round);
        }
    }
    return keel_finalize() != KEEL_OK;
}
