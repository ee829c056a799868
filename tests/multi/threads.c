/* threads: what keel/rma.h promises threads, while they all wait at once. Any number of ranks. Exit 0 if all is
 * right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { THREADS = 4, ROUNDS = 150, WORDS = 600, SUMS = 64, MINE = WORDS * 8, BYTES = SUMS + THREADS * MINE };

struct thread {
    pthread_t id;
    keel_segment *segment;
    int me;
    int64_t out[WORDS], in[WORDS];
};

static int next_rank(void)
{
    return (keel_rank() + 1) % keel_size();
}

/* Each has words of its own in the next rank's part, and all add to the same two. */
static void *work(void *arg)
{
    struct thread *t = arg;
    size_t at = SUMS + (size_t)t->me * MINE;
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = round % 8 ? 1 : WORDS;
        keel_handle handle;
        int64_t one = 1;
        for (size_t i = 0; i < n; i++)
            t->out[i] = round * 1000 + t->me;
        if (round % 2) {
            CHECK(keel_put(t->segment, next_rank(), at, t->out, n * 8));
        } else {
            CHECK(keel_put_nb(t->segment, next_rank(), at, t->out, n * 8, &handle));
            CHECK(keel_wait(&handle));
        }
        CHECK(keel_fetch_add(t->segment, next_rank(), 0, 1, NULL));
        CHECK(keel_acc(t->segment, next_rank(), 8, KEEL_INT64, NULL, &one, 1));
        CHECK(keel_get(t->segment, next_rank(), at, t->in, n * 8));
        EXPECT(memcmp(t->in, t->out, n * 8) == 0);
    }
    return NULL;
}

/* It has waited all the time, for the last of what the rank before does. */
static void *wait_for_all(void *arg)
{
    int64_t got, all = (int64_t)THREADS * ROUNDS;
    CHECK(keel_wait_until(arg, 16, KEEL_EQ, 1, (keel_rank() + keel_size() - 1) % keel_size(), NULL));
    CHECK(keel_get(arg, keel_rank(), 0, &got, sizeof got));
    EXPECT(got == all);
    CHECK(keel_get(arg, keel_rank(), 8, &got, sizeof got));
    EXPECT(got == all);
    return NULL;
}

static void together(keel_redundancy redundancy)
{
    static struct thread thread[THREADS];
    keel_segment *s;
    pthread_t waiter;
    CHECK(keel_segment_alloc(BYTES, redundancy, &s));
    CHECK(keel_barrier());
    EXPECT(pthread_create(&waiter, NULL, wait_for_all, s) == 0);
    for (int i = 0; i < THREADS; i++) {
        thread[i].segment = s;
        thread[i].me = i;
        EXPECT(pthread_create(&thread[i].id, NULL, work, &thread[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(thread[i].id, NULL) == 0);
    CHECK(keel_signal(s, next_rank(), 16, 1));
    EXPECT(pthread_join(waiter, NULL) == 0);
    CHECK(keel_segment_free(s));
}

int main(void)
{
    CHECK(keel_init());
    together(KEEL_REDUNDANCY_NONE);
    together(KEEL_REDUNDANCY_SHADOW);
    CHECK(keel_finalize());
    return 0;
}
