/* heir US: rank 1 dies so many microseconds after it has begun to put into rank 0's part, on one node: amid a large
 * put. When all have met behind that, rank 0 stores into all of its part and flushes: that is what is there from
 * then on, here and in the other copies. */
#include <keel/keel.h>

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>

#include "../lib/expect.h"

enum { WORDS = 75000, OWNER = 0, WRITER = 1, OF_WRITER = 5, OF_OWNER = 7 };

static void store(keel_segment *s)
{
    volatile int64_t *mine = keel_address(s, OWNER);
    for (int i = 0; i < WORDS; i++)
        mine[i] = OF_OWNER;
    CHECK(keel_update_flush(s));
}

int main(int argc, char **argv)
{
    const struct itimerval end = {.it_value.tv_usec = argc > 1 ? atoi(argv[1]) : 500};
    keel_segment *s;
    int64_t *word = malloc(WORDS * sizeof *word);
    CHECK(keel_init());
    const int me = keel_rank();
    CHECK(keel_segment_alloc(WORDS * sizeof *word, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_track(s));
    CHECK(keel_barrier());
    if (me == OWNER)
        store(s);
    CHECK(keel_barrier());
    for (int i = 0; i < WORDS; i++)
        word[i] = OF_WRITER;
    if (me == WRITER)
        CHECK(keel_put(s, OWNER, 0, word, sizeof *word)); /* it is connected */
    CHECK(keel_barrier());
    if (me == WRITER)
        EXPECT(setitimer(ITIMER_REAL, &end, NULL) == 0); /* SIGALRM kills it */
    while (me == WRITER)
        CHECK(keel_put(s, OWNER, 0, word, WORDS * sizeof *word));
    while (keel_rank_alive(WRITER))
        sched_yield();
    CHECK(keel_barrier());
    if (me == OWNER)
        store(s);
    CHECK(keel_barrier());
    CHECK(keel_get(s, OWNER, 0, word, WORDS * sizeof *word));
    for (int i = 0; i < WORDS; i++)
        EXPECT(word[i] == OF_OWNER);
    CHECK(keel_barrier());
    free(word);
    return keel_finalize() != KEEL_OK;
}
