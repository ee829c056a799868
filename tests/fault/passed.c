/* passed: each rank puts a number into its right neighbour's memory and signals, round after round, and waits for that
 * of its left one. Usage: passed ROUNDS NAP_US [ROUND], in which each sends its right neighbour a message, too.
 * Rank 0 says "passed: right" if each got what its neighbour sent. */
#include <keel/keel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { PLACES = 2 }; /* who has been told of a round has read the one before */

static int64_t number(int rank, int64_t round)
{
    return rank * INT64_C(1000003) + round * round;
}

static void message(int to, int from)
{
    int64_t mine = number(keel_rank(), 0), got = 0;
    CHECK(keel_message_send(to, 1, &mine, sizeof mine));
    CHECK(keel_message_receive(from, 1, &got, sizeof got, NULL, NULL));
    EXPECT(got == number(from, 0));
}

int main(int argc, char **argv)
{
    int64_t rounds = argc > 1 ? atoll(argv[1]) : 1000;
    useconds_t nap_us = argc > 2 ? (useconds_t)atoi(argv[2]) : 0;
    int64_t sends = argc > 3 ? atoll(argv[3]) : 0;
    keel_segment *s;
    CHECK(keel_init());
    int me = keel_rank(), n = keel_size(), left = (me + n - 1) % n, right = (me + 1) % n;
    size_t word = PLACES * sizeof(int64_t);
    CHECK(keel_segment_alloc(word + 2 * sizeof(int64_t), KEEL_REDUNDANCY_NONE, &s));
    const int64_t *place = keel_address(s, me);
    EXPECT(place);
    CHECK(keel_barrier());
    CHECK(keel_event("begun", 0, NULL));
    for (int64_t r = 1; r <= rounds; r++) {
        int64_t mine = number(me, r);
        CHECK(keel_put(s, right, (size_t)(r % PLACES) * sizeof mine, &mine, sizeof mine));
        CHECK(keel_signal(s, right, word, 1));
        CHECK(keel_wait_until(s, word, KEEL_GE, r, left, NULL));
        EXPECT(place[r % PLACES] == number(left, r));
        CHECK(keel_signal(s, left, word + sizeof mine, 1)); /* it is read */
        CHECK(keel_wait_until(s, word + sizeof mine, KEEL_GE, r, right, NULL));
        if (r == sends)
            message(right, left);
        usleep(nap_us);
    }
    CHECK(keel_barrier());
    if (me == 0)
        printf("passed: right\n");
    CHECK(keel_segment_free(s));
    CHECK(keel_finalize());
    return 0;
}
