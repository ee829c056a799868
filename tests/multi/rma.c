/* Every public call on any number of ranks, checked element by element. Exit 0 if all is right. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(expression)                                                                                              \
    do {                                                                                                               \
        keel_status status_ = (expression);                                                                            \
        if (status_ != KEEL_OK)                                                                                        \
            fail(__LINE__, #expression, keel_status_name(status_));                                                    \
    } while (0)
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail(__LINE__, #condition, "false");                                                                       \
    } while (0)

static _Noreturn void fail(int line, const char *what, const char *how)
{
    fprintf(stderr, "rank %d line %d: %s: %s\n", keel_rank(), line, what, how);
    exit(1);
}

enum { WORDS = 1 << 17 };

static int64_t value(int rank, size_t i, int salt)
{
    return (int64_t)rank << 40 | (int64_t)salt << 32 | (int64_t)i;
}

/* Everybody writes its share of every rank's part in many sizes, then everybody reads all. */
static void test_put_get(keel_redundancy redundancy, int salt)
{
    int me = keel_rank(), n = keel_size();
    keel_segment *s;
    CHECK(keel_segment_alloc(WORDS * 8, redundancy, &s));
    static int64_t mine[WORDS], got[WORDS];
    size_t share = WORDS / (size_t)n;
    for (int r = 0; r < n; r++) {
        for (size_t i = 0; i < share; i++)
            mine[i] = value(r, (size_t)me * share + i, salt);
        size_t at = 0;
        for (size_t len = 1; at < share; len = len * 3 + 1) {
            size_t k = len < share - at ? len : share - at;
            CHECK(keel_put(s, r, 8 * ((size_t)me * share + at), mine + at, 8 * k));
            at += k;
        }
    }
    CHECK(keel_barrier());
    for (int r = 0; r < n; r++) {
        memset(got, 0xff, sizeof got);
        CHECK(keel_get(s, r, 0, got, 8 * share * (size_t)n));
        for (size_t i = 0; i < share * (size_t)n; i++)
            EXPECT(got[i] == value(r, i, salt));
    }
    CHECK(keel_barrier());
    /* Non-blocking: explicit handles and implicit ones. */
    keel_handle handle[64];
    for (int k = 0; k < 64; k++) {
        mine[k] = value(me, (size_t)k, salt + 1);
        CHECK(keel_put_nb(s, (me + 1) % n, 8 * (size_t)k, &mine[k], 8, k % 2 ? &handle[k] : NULL));
    }
    for (int k = 1; k < 64; k += 2)
        CHECK(keel_wait(&handle[k]));
    CHECK(keel_fence((me + 1) % n));
    CHECK(keel_barrier());
    for (int k = 0; k < 64; k++)
        CHECK(keel_get_nb(s, me, 8 * (size_t)k, &got[k], 8, &handle[k]));
    for (int k = 0; k < 64; k++) {
        keel_status status;
        while ((status = keel_test(&handle[k])) == KEEL_IN_PROGRESS)
            ;
        CHECK(status);
        EXPECT(got[k] == value((me + n - 1) % n, (size_t)k, salt + 1));
    }
    CHECK(keel_segment_free(s));
}

static void test_accumulate(keel_redundancy redundancy)
{
    enum { N = 5000, ROUNDS = 7 };
    int me = keel_rank(), n = keel_size();
    keel_segment *s;
    CHECK(keel_segment_alloc(N * 8, redundancy, &s));
    static double add[N], got[N];
    for (int i = 0; i < N; i++)
        add[i] = i + me;
    for (int k = 0; k < ROUNDS; k++)
        for (int r = 0; r < n; r++)
            CHECK(keel_acc_double(s, r, 0, 2.0, add, N));
    CHECK(keel_barrier());
    for (int r = 0; r < n; r++) {
        CHECK(keel_get(s, r, 0, got, sizeof got));
        for (int i = 0; i < N; i++)
            EXPECT(got[i] == 2.0 * ROUNDS * ((double)n * i + n * (n - 1) * 0.5));
    }
    CHECK(keel_segment_free(s));
}

static void test_atomics(keel_redundancy redundancy)
{
    enum { ROUNDS = 200 };
    int n = keel_size();
    int64_t old, now, sum = 0;
    keel_segment *s;
    CHECK(keel_segment_alloc(64, redundancy, &s));
    for (int k = 0; k < ROUNDS; k++) {
        CHECK(keel_fetch_add(s, k % n, 8, 3, &old));
        EXPECT(old % 3 == 0);
    }
    /* a lock by compare-and-swap around an unprotected counter */
    for (int k = 0; k < 20; k++) {
        do
            CHECK(keel_compare_swap(s, n - 1, 16, 0, keel_rank() + 1, &old));
        while (old != 0);
        CHECK(keel_get(s, 0, 24, &now, 8));
        now++;
        CHECK(keel_put(s, 0, 24, &now, 8));
        CHECK(keel_compare_swap(s, n - 1, 16, keel_rank() + 1, 0, &old));
        EXPECT(old == keel_rank() + 1);
    }
    CHECK(keel_barrier());
    for (int r = 0; r < n; r++) {
        CHECK(keel_get(s, r, 8, &now, 8));
        sum += now;
    }
    EXPECT(sum == 3 * ROUNDS * n);
    CHECK(keel_get(s, 0, 24, &now, 8));
    EXPECT(now == 20 * n);
    CHECK(keel_segment_free(s));
}

static void test_collectives(void)
{
    int me = keel_rank(), n = keel_size();
    uint64_t count = keel_collective_count();
    static double buffer[8192];
    for (int root = 0; root < n; root++) {
        for (int i = 0; i < 8192; i++)
            buffer[i] = me == root ? root + i * 0.5 : -1;
        CHECK(keel_bcast(root, buffer, root % 2 ? sizeof buffer : 24));
        for (int i = 0; i < (root % 2 ? 8192 : 3); i++)
            EXPECT(buffer[i] == root + i * 0.5);
    }
    for (int i = 0; i < 1000; i++)
        buffer[i] = me + i;
    CHECK(keel_allreduce_sum(buffer, buffer, 1000));
    for (int i = 0; i < 1000; i++)
        EXPECT(buffer[i] == (double)n * i + n * (n - 1) * 0.5);
    EXPECT(keel_collective_count() == count + (uint64_t)n + 1);
}

static void test_tasks(void)
{
    enum { TASKS = 57 };
    int n = keel_size();
    keel_segment *s;
    keel_taskpool *pool;
    CHECK(keel_segment_alloc(TASKS * 8, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_taskpool_create(TASKS, &pool));
    for (int round = 1; round <= 3; round++) {
        int64_t task;
        CHECK(keel_task_next(pool, &task));
        while (task >= 0) {
            double one = 1;
            for (int r = 0; r < n; r++)
                CHECK(keel_acc_double(s, r, 8 * (size_t)task, 1.0, &one, 1));
            CHECK(keel_task_commit(pool, task));
            CHECK(keel_task_next(pool, &task));
        }
        double got[TASKS];
        for (int r = 0; r < n; r++) {
            CHECK(keel_get(s, r, 0, got, sizeof got));
            for (int i = 0; i < TASKS; i++)
                EXPECT(got[i] == round);
        }
        CHECK(keel_taskpool_reset(pool));
    }
    CHECK(keel_taskpool_free(pool));
    CHECK(keel_segment_free(s));
}

static void test_bad_arguments(void)
{
    keel_segment *s;
    int64_t word = 0;
    EXPECT(keel_segment_alloc(8, (keel_redundancy)7, &s) == KEEL_ERR_ARG);
    CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_NONE, &s));
    EXPECT(keel_put(s, keel_size(), 0, &word, 8) == KEEL_ERR_ARG);
    EXPECT(keel_put(s, 0, 60, &word, 8) == KEEL_ERR_ARG);
    EXPECT(keel_get(s, -1, 0, &word, 8) == KEEL_ERR_ARG);
    EXPECT(keel_get(s, 0, SIZE_MAX, &word, 8) == KEEL_ERR_ARG);
    EXPECT(keel_fetch_add(s, 0, 4, 1, &word) == KEEL_ERR_ARG);
    EXPECT(keel_bcast(-1, &word, 8) == KEEL_ERR_ARG);
    EXPECT(keel_init() == KEEL_ERR_STATE);
    CHECK(keel_put(s, 0, 64, &word, 0));
    CHECK(keel_segment_free(s));
    if (keel_size() > 1)
        EXPECT(keel_segment_alloc(8 + (size_t)keel_rank(), KEEL_REDUNDANCY_NONE, &s) == KEEL_ERR_MISMATCH);
    CHECK(keel_segment_alloc(0, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_free(s));
}

int main(void)
{
    CHECK(keel_init());
    test_put_get(KEEL_REDUNDANCY_NONE, 1);
    test_put_get(KEEL_REDUNDANCY_SHADOW, 3);
    test_put_get(KEEL_REDUNDANCY_TRIPLE, 5);
    test_accumulate(KEEL_REDUNDANCY_NONE);
    test_accumulate(KEEL_REDUNDANCY_SHADOW);
    test_accumulate(KEEL_REDUNDANCY_TRIPLE);
    test_atomics(KEEL_REDUNDANCY_NONE);
    test_atomics(KEEL_REDUNDANCY_SHADOW);
    test_atomics(KEEL_REDUNDANCY_TRIPLE);
    test_collectives();
    test_tasks();
    test_bad_arguments();
    CHECK(keel_barrier());
    if (keel_rank() == 0)
        printf("rma: all right on %d ranks\n", keel_size());
    CHECK(keel_finalize());
    return 0;
}
