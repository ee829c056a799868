/* Several threads of one rank at once: keelrun -n 2 --nodes 2 threads. Rank 0 has 1, 2 and 4 threads that put, get and
 * count, each one operation after the other, in a part of the other node; the numbers of threads take turns, medians
 * are printed. Beside them as many processes as threads that ask one server by TCP (rawlib.h). */
#include <keel/keel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/check.h"
#include "bench/rawlib.h"

enum { ROUNDS = 11, THREADS_MAX = 4, TURN_US = 40000, BULK = 64 * 1024, WIRE_BYTES = 88 };

enum what { PUT, GET, FETCH_ADD, PUT_BULK, GET_BULK };
static const char *const names[] = {"put 8 B", "get 8 B", "fetch-add", "put 64 KiB", "get 64 KiB"};

struct thread {
    pthread_t id;
    keel_segment *segment;
    enum what what;
    int me;
    double count, us;
    uint8_t *bytes;
};

static void one(const struct thread *t)
{
    size_t at = (size_t)t->me * BULK;
    switch (t->what) {
    case PUT:
        CHECK(keel_put(t->segment, 1, at, t->bytes, 8));
        break;
    case GET:
        CHECK(keel_get(t->segment, 1, at, t->bytes, 8));
        break;
    case FETCH_ADD:
        CHECK(keel_fetch_add(t->segment, 1, at, 1, NULL));
        break;
    case PUT_BULK:
        CHECK(keel_put(t->segment, 1, at, t->bytes, BULK));
        break;
    default:
        CHECK(keel_get(t->segment, 1, at, t->bytes, BULK));
        break;
    }
}

static void *work(void *arg)
{
    struct thread *t = arg;
    double start = raw_now_us();
    for (t->count = 0; raw_now_us() - start < TURN_US; t->count++)
        one(t);
    t->us = raw_now_us() - start;
    return NULL;
}

/* Thousands a second, of all together. */
static double kops(struct thread *threads, int n, keel_segment *s, enum what what)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        threads[i].segment = s;
        threads[i].what = what;
        threads[i].me = i;
        if (pthread_create(&threads[i].id, NULL, work, &threads[i]) != 0)
            exit(2);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i].id, NULL);
        sum += 1e3 * threads[i].count / threads[i].us;
    }
    return sum;
}

static void compare(struct thread *threads, keel_segment *s, enum what what)
{
    static const int numbers[] = {1, 2, 4};
    double all[3][ROUNDS], ratio[3][ROUNDS], raw[3][ROUNDS];
    for (int r = 0; r < ROUNDS; r++)
        for (int k = 0; k < 3; k++) {
            all[k][r] = kops(threads, numbers[k], s, what);
            ratio[k][r] = all[k][r] / all[0][r];
            raw[k][r] = what < PUT_BULK ? raw_crowd_kops(numbers[k], WIRE_BYTES, TURN_US, false) : 0;
        }
    printf("%-12s", names[what]);
    for (int k = 0; k < 3; k++) {
        printf("   %d: %8.1f kops/s", numbers[k], raw_median(all[k], ROUNDS));
        if (k)
            printf(" (%.2f)", raw_median(ratio[k], ROUNDS));
        if (what < PUT_BULK)
            printf(", raw %6.1f", raw_median(raw[k], ROUNDS));
    }
    printf("\n");
    fflush(stdout);
}

int main(void)
{
    struct thread threads[THREADS_MAX] = {0};
    keel_segment *s;
    CHECK(keel_init());
    CHECK(keel_segment_alloc((size_t)THREADS_MAX * BULK, KEEL_REDUNDANCY_NONE, &s));
    for (int i = 0; i < THREADS_MAX; i++)
        threads[i].bytes = calloc(1, BULK);
    for (int what = PUT; keel_rank() == 0 && what <= GET_BULK; what++)
        compare(threads, s, (enum what)what);
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    for (int i = 0; i < THREADS_MAX; i++)
        free(threads[i].bytes);
    return 0;
}
