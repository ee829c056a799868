/* signal: keel/signal.h sentence by sentence. Two ranks or more; the last one leaves early. Exit 0 if all is right. */
#include <keel/keel.h>

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/expect.h"

enum { WORDS = 8, BYTES = 40000, DATA = 64, ROUNDS = 40 };

static int64_t bytes[BYTES / 8], seen[BYTES / 8];

/* Data go round the ring; who has been told finds all of them. The word counts rounds. */
static void ring(keel_segment *s)
{
    int me = keel_rank(), next = (me + 1) % keel_size(), before = (me + keel_size() - 1) % keel_size();
    int64_t got;
    for (int64_t round = 1; round <= ROUNDS; round++) {
        for (size_t i = 0; i < BYTES / 8; i++)
            bytes[i] = round * 1000 + me;
        CHECK(keel_put_signal(s, next, DATA, bytes, sizeof bytes, 0, 1));
        CHECK(keel_wait_until(s, 0, KEEL_GE, round, before, &got));
        EXPECT(got == round); /* the one before waits for us below */
        CHECK(keel_get(s, me, DATA, seen, sizeof seen));
        for (size_t i = 0; i < BYTES / 8; i++)
            EXPECT(seen[i] == round * 1000 + before);
        CHECK(keel_signal(s, before, 8, 1));
        CHECK(keel_wait_until(s, 8, KEEL_EQ, round, next, NULL));
    }
}

static void comparisons(keel_segment *s)
{
    int64_t got, five = 5;
    int me = keel_rank();
    CHECK(keel_put(s, me, 16, &five, sizeof five));
    CHECK(keel_wait_until(s, 16, KEEL_EQ, 5, KEEL_ANY_RANK, &got));
    EXPECT(got == 5);
    CHECK(keel_wait_until(s, 16, KEEL_NE, 4, KEEL_ANY_RANK, NULL));
    CHECK(keel_wait_until(s, 16, KEEL_LT, 6, KEEL_ANY_RANK, NULL));
    CHECK(keel_wait_until(s, 16, KEEL_LE, 5, KEEL_ANY_RANK, NULL));
    CHECK(keel_wait_until(s, 16, KEEL_GT, 4, KEEL_ANY_RANK, NULL));
    CHECK(keel_wait_until(s, 16, KEEL_GE, 5, KEEL_ANY_RANK, NULL));
    CHECK(keel_signal(s, me, 16, -7)); /* to oneself, and downwards */
    CHECK(keel_wait_until(s, 16, KEEL_EQ, -2, me, NULL));
}

static void wrong_arguments(keel_segment *s)
{
    int64_t x = 0;
    size_t end = keel_segment_bytes_per_rank(s);
    EXPECT(keel_signal(NULL, 0, 0, 1) == KEEL_ERR_ARG);
    EXPECT(keel_signal(s, keel_size(), 0, 1) == KEEL_ERR_ARG);
    EXPECT(keel_signal(s, 0, 4, 1) == KEEL_ERR_ARG);
    EXPECT(keel_signal(s, 0, end, 1) == KEEL_ERR_ARG);
    EXPECT(keel_put_signal(s, 0, 24, &x, sizeof x, 4, 1) == KEEL_ERR_ARG);
    EXPECT(keel_put_signal(s, 0, end, &x, sizeof x, 32, 1) == KEEL_ERR_ARG); /* and nothing is added to that word: */
    CHECK(keel_get(s, 0, 32, &x, sizeof x));
    EXPECT(x == 0);
    EXPECT(keel_wait_until(NULL, 0, KEEL_EQ, 0, 0, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_wait_until(s, 4, KEEL_EQ, 0, 0, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_wait_until(s, end, KEEL_EQ, 0, 0, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_wait_until(s, 0, (keel_compare)9, 0, 0, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_wait_until(s, 0, KEEL_EQ, 0, keel_size(), NULL) == KEEL_ERR_ARG);
    EXPECT(keel_wait_until(s, 0, KEEL_EQ, 0, -2, NULL) == KEEL_ERR_ARG);
}

/* Another thread of this rank signals. */
static void *signal_myself(void *segment)
{
    CHECK(keel_signal(segment, keel_rank(), 40, 3));
    return NULL;
}

static void threads(keel_segment *s)
{
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, signal_myself, s) == 0);
    CHECK(keel_wait_until(s, 40, KEEL_EQ, 3, KEEL_ANY_RANK, NULL));
    pthread_join(thread, NULL);
}

/* The last rank signals and leaves: what it has added counts, what it has not is not waited for. */
static void departure(keel_segment *s)
{
    int64_t got = 0;
    int last = keel_size() - 1;
    if (keel_rank() == last) {
        for (int r = 0; r < last; r++)
            CHECK(keel_signal(s, r, 48, 2));
        return;
    }
    EXPECT(keel_wait_until(s, 48, KEEL_GE, 3, last, &got) == KEEL_ERR_RANK_DEAD);
    EXPECT(got == 2);
    CHECK(keel_wait_until(s, 48, KEEL_EQ, 2, last, NULL));
    if (keel_size() == 2)
        EXPECT(keel_wait_until(s, 48, KEEL_GE, 3, KEEL_ANY_RANK, NULL) == KEEL_ERR_RANK_DEAD);
}

/* Signals to who does not look take no memory, and nobody has to take them one by one afterwards; the last one
 * counts. */
static void flood(keel_segment *s)
{
    enum { GROWTH_MAX = 256 * 1024 };
    int me = keel_rank(), last = keel_size() - 1;
    bool near = keel_group_size(keel_group_node()) == keel_size();
    const int64_t signals = near ? 100000 : 1000;
    CHECK(keel_barrier());
    if (me == last) { /* looks, and takes none of them where that is a load */
        int64_t got = 0;
        while (got < signals)
            CHECK(keel_get(s, me, 56, &got, sizeof got));
    } else if (me == 0) {
        size_t before = mallinfo2().uordblks;
        for (int64_t i = 0; i < signals; i++)
            CHECK(keel_signal(s, last, 56, 1));
        EXPECT(mallinfo2().uordblks < before + GROWTH_MAX);
    }
    CHECK(keel_barrier());
}

int main(void)
{
    keel_segment *s[2];
    EXPECT(keel_wait_until(NULL, 0, KEEL_EQ, 0, 0, NULL) == KEEL_ERR_STATE);
    CHECK(keel_init());
    CHECK(keel_segment_alloc(DATA + BYTES, KEEL_REDUNDANCY_NONE, &s[0]));
    CHECK(keel_segment_alloc(DATA + BYTES, KEEL_REDUNDANCY_SHADOW, &s[1]));
    for (int i = 0; i < 2; i++) {
        ring(s[i]);
        comparisons(s[i]);
        CHECK(keel_barrier());
        wrong_arguments(s[i]);
        threads(s[i]);
        CHECK(keel_barrier());
    }
    flood(s[0]);
    departure(s[1]);
    CHECK(keel_finalize());
    EXPECT(keel_signal(s[0], 0, 0, 1) == KEEL_ERR_STATE || keel_signal(s[0], 0, 0, 1) == KEEL_ERR_ARG);
    return 0;
}
