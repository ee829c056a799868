/* mutex: keel/mutex.h sentence by sentence. Exit 0 if all is right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/expect.h"

enum { PER_RANK = 3, TURNS = 40, THREADS = 3 };

static keel_segment *memory; /* of each rank: a counter of each mutex, and one of the order */

static void add_one(int rank, int number)
{
    int64_t value;
    CHECK(keel_get(memory, rank, 8 * (size_t)number, &value, sizeof value));
    value++;
    CHECK(keel_put(memory, rank, 8 * (size_t)number, &value, sizeof value));
}

/* Nobody is let in beside another, and each sees what the one before has put. */
static void exclusion(keel_mutexes *m)
{
    int dead;
    for (int i = 0; i < TURNS; i++)
        for (int number = 0; number < 2; number++) {
            int home = (i + keel_rank()) % keel_size();
            CHECK(keel_mutex_lock(m, home, number, &dead));
            EXPECT(dead == -1);
            add_one(home, number);
            CHECK(keel_mutex_unlock(m, home, number));
        }
    CHECK(keel_barrier());
    int64_t sum = 0, one;
    for (int r = 0; r < keel_size(); r++)
        for (size_t number = 0; number < 2; number++) {
            CHECK(keel_get(memory, r, 8 * number, &one, sizeof one));
            sum += one;
        }
    EXPECT(sum == 2L * TURNS * keel_size());
    CHECK(keel_barrier());
}

/* Who waits is served in the order of ranks after the one that unlocks; between two turns of one rank each other
 * that waits has one. */
static void order(keel_mutexes *m)
{
    int n = keel_size(), me = keel_rank();
    int64_t waiting = 0, turn;
    if (me == 0)
        CHECK(keel_mutex_lock(m, 0, 2, NULL));
    CHECK(keel_barrier());
    if (me == 0) {
        while (waiting < n - 1) /* each says so before it calls; then all get their chance to arrive */
            CHECK(keel_get(memory, 0, 24, &waiting, sizeof waiting));
        int64_t arrived = 0;
        keel_verdict verdict;
        for (int i = 0; i < 200 && arrived < n; i++, arrived++)
            CHECK(keel_node_status(0, 10, &verdict));
        CHECK(keel_mutex_unlock(m, 0, 2));
    } else {
        CHECK(keel_fetch_add(memory, 0, 24, 1, NULL));
    }
    enum { ROUNDS = 6 };
    int64_t last = -1;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(keel_mutex_lock(m, 0, 2, NULL));
        CHECK(keel_get(memory, 0, 32, &turn, sizeof turn));
        turn++;
        CHECK(keel_put(memory, 0, 32, &turn, sizeof turn));
        last = turn;
        CHECK(keel_mutex_unlock(m, 0, 2));
    }
    (void)last;
    CHECK(keel_barrier());
    CHECK(keel_get(memory, 0, 32, &turn, sizeof turn));
    EXPECT(turn == (int64_t)ROUNDS * n);
    CHECK(keel_barrier());
}

static keel_mutexes *shared;
static atomic_int inside;

static void *thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        CHECK(keel_mutex_lock(shared, 0, 1, NULL));
        EXPECT(atomic_fetch_add(&inside, 1) == 0);
        add_one(0, 5);
        EXPECT(atomic_fetch_sub(&inside, 1) == 1);
        CHECK(keel_mutex_unlock(shared, 0, 1));
    }
    return NULL;
}

static void threads(keel_mutexes *m)
{
    pthread_t t[THREADS];
    int64_t sum;
    shared = m;
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&t[i], NULL, thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    CHECK(keel_barrier());
    CHECK(keel_get(memory, 0, 40, &sum, sizeof sum));
    EXPECT(sum == (int64_t)TURNS * THREADS * keel_size());
    CHECK(keel_barrier());
}

static void *unlocks(void *arg)
{
    CHECK(keel_mutex_unlock(arg, 0, 0));
    return NULL;
}

/* Trying does not wait; another thread may unlock; what is not held cannot be unlocked. */
static void trying(keel_mutexes *m)
{
    int dead = 7, me = keel_rank();
    pthread_t t;
    if (me == 0) {
        CHECK(keel_mutex_try(m, 0, 0, &dead));
        EXPECT(dead == -1);
        EXPECT(keel_mutex_try(m, 0, 0, &dead) == KEEL_IN_PROGRESS);
        EXPECT(keel_mutexes_free(m) == KEEL_ERR_STATE);
    }
    CHECK(keel_barrier());
    if (me != 0) {
        EXPECT(keel_mutex_try(m, 0, 0, &dead) == KEEL_IN_PROGRESS && dead == -1);
        EXPECT(keel_mutex_unlock(m, 0, 0) == KEEL_ERR_STATE);
    }
    CHECK(keel_barrier());
    if (me == 0) {
        EXPECT(pthread_create(&t, NULL, unlocks, m) == 0);
        pthread_join(t, NULL);
        EXPECT(keel_mutex_unlock(m, 0, 0) == KEEL_ERR_STATE);
    }
    CHECK(keel_barrier());
    if (me == keel_size() - 1) {
        CHECK(keel_mutex_try(m, 0, 0, NULL));
        CHECK(keel_mutex_unlock(m, 0, 0));
    }
    CHECK(keel_barrier());
}

static void wrong_arguments(keel_mutexes *m)
{
    keel_mutexes *none = m;
    int dead;
    EXPECT(keel_mutex_lock(NULL, 0, 0, &dead) == KEEL_ERR_ARG && keel_mutex_unlock(NULL, 0, 0) == KEEL_ERR_ARG);
    EXPECT(keel_mutex_lock(m, -1, 0, &dead) == KEEL_ERR_ARG &&
           keel_mutex_lock(m, keel_size(), 0, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_mutex_lock(m, 0, -1, &dead) == KEEL_ERR_ARG && keel_mutex_try(m, 0, PER_RANK, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_mutex_unlock(m, 0, PER_RANK) == KEEL_ERR_ARG && keel_mutex_unlock(m, 0, 0) == KEEL_ERR_STATE);
    EXPECT(keel_mutexes_create(keel_rank() == 0 ? -1 : 2, &none) ==
           (keel_size() == 1 ? KEEL_ERR_ARG : KEEL_ERR_MISMATCH));
    EXPECT(none == NULL);
    EXPECT(keel_mutexes_create(-1, &none) == KEEL_ERR_ARG);
    EXPECT(keel_mutexes_create(1 + keel_rank(), &none) == (keel_size() == 1 ? KEEL_OK : KEEL_ERR_MISMATCH));
    CHECK(keel_mutexes_free(none));
    CHECK(keel_mutexes_create(0, &none));
    EXPECT(keel_mutex_lock(none, 0, 0, &dead) == KEEL_ERR_ARG);
    CHECK(keel_mutexes_free(none));
}

int main(void)
{
    keel_mutexes *m;
    EXPECT(keel_mutexes_create(1, &m) == KEEL_ERR_STATE && m == NULL);
    CHECK(keel_init());
    CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &memory));
    CHECK(keel_mutexes_create(PER_RANK, &m));
    wrong_arguments(m);
    exclusion(m);
    order(m);
    threads(m);
    trying(m);
    CHECK(keel_mutexes_free(m));
    CHECK(keel_segment_free(memory));
    CHECK(keel_finalize());
    return 0;
}
