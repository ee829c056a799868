/* Every public call on any number of ranks, checked element by element. Exit 0 if all is right. */
#include <keel/keel.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

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
        memset(got, 0xff, sizeof got);
        CHECK(keel_get_strong(s, r, 3, (char *)got + 3, 8 * share * (size_t)n - 3));
        for (size_t i = 1; i < share * (size_t)n; i++)
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
        CHECK((k % 2 ? keel_get_nb : keel_get_strong_nb)(s, me, 8 * (size_t)k, &got[k], 8, &handle[k]));
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

/* One element of a type; integers that every type holds exactly. */
static void element(keel_type type, void *at, int re, int im)
{
    int32_t narrow = re;
    int64_t wide = re;
    float single[2] = {(float)re, (float)im};
    double real[2] = {re, im};
    const void *from = type == KEEL_INT32 || type == KEEL_UINT32          ? (void *)&narrow
                       : type == KEEL_INT64 || type == KEEL_UINT64        ? (void *)&wide
                       : type == KEEL_FLOAT || type == KEEL_COMPLEX_FLOAT ? (void *)single
                                                                          : (void *)real;
    memcpy(at, from, keel_type_size(type));
}

/* Everybody adds (2 + i)(i + 3i) to every element of every part, blocking or not; each type has its place. */
static void test_accumulate_of_type(keel_segment *s, keel_type type)
{
    enum { N = 1500 };
    static uint8_t add[16 * N], got[16 * N];
    uint8_t scale[16], want[16];
    int n = keel_size();
    size_t size = keel_type_size(type), at = 16 * N * (size_t)type;
    bool is_complex = type == KEEL_COMPLEX_FLOAT || type == KEEL_COMPLEX_DOUBLE;
    element(type, scale, 2, 1);
    for (int i = 0; i < N; i++)
        element(type, add + (size_t)i * size, i, 3);
    keel_handle handle[3];
    for (int r = 0; r < n; r++) {
        CHECK(keel_acc(s, r, at, type, scale, add, N));
        CHECK(keel_acc(s, r, at, type, NULL, add, N));
        for (int k = 0; k < 3; k++)
            CHECK(keel_acc_nb(s, r, at, type, scale, add, N, k ? &handle[k] : NULL));
        CHECK(keel_wait(&handle[1]));
        CHECK(keel_wait(&handle[2]));
    }
    CHECK(keel_barrier()); /* with a fence before: the implicit ones */
    for (int r = 0; r < n; r++) {
        CHECK(keel_get(s, r, at, got, N * size));
        for (int i = 0; i < N; i++) {
            int re = is_complex ? 4 * (2 * i - 3) + i : 9 * i, im = 4 * (i + 6) + 3;
            element(type, want, n * re, n * im);
            EXPECT(memcmp(got + (size_t)i * size, want, size) == 0);
        }
    }
}

static void test_accumulate_of_every_type(keel_redundancy redundancy)
{
    keel_segment *s;
    CHECK(keel_segment_alloc(16 * 1500 * (KEEL_COMPLEX_DOUBLE + 1), redundancy, &s));
    for (keel_type type = KEEL_INT32; type <= KEEL_COMPLEX_DOUBLE; type++)
        test_accumulate_of_type(s, type);
    CHECK(keel_segment_free(s));
}

/* Words of both widths: sums of everybody, bits that everybody sets or turns, a token that is swapped through. */
static void test_rmw(keel_redundancy redundancy, keel_type type)
{
    enum { ROUNDS = 50 };
    int n = keel_size(), me = keel_rank();
    size_t size = keel_type_size(type);
    bool wide = size == 8;
    keel_segment *s;
    CHECK(keel_segment_alloc(64, redundancy, &s));
    int64_t a = 0, old = 0;
    for (int k = 0; k < ROUNDS; k++) {
        element(type, &a, -3, 0);
        CHECK(keel_rmw(s, k % n, size, type, KEEL_RMW_ADD, &a, NULL, &old));
        EXPECT((wide ? old : (int32_t)old) % 3 == 0 && (wide ? old : (int32_t)old) <= 0);
    }
    element(type, &a, 1 << (me % 30), 0);
    CHECK(keel_rmw(s, 0, 2 * size, type, KEEL_RMW_OR, &a, NULL, NULL));
    CHECK(keel_rmw(s, 0, 3 * size, type, KEEL_RMW_XOR, &a, NULL, &old));
    EXPECT(((wide ? old : (int32_t)old) & 1 << (me % 30)) == 0);
    element(type, &a, me + 1, 0);
    CHECK(keel_rmw(s, n - 1, 4 * size, type, KEEL_RMW_SWAP, &a, NULL, &old));
    int64_t sums[2] = {wide ? old : (int32_t)old, 0}, zero = 0, seen = 0;
    CHECK(keel_rmw(s, n - 1, 5 * size, type, KEEL_RMW_COMPARE_SWAP, &a, &zero, &seen)); /* one of all is first */
    CHECK(keel_barrier());
    int64_t last = 0, first = 0, total = 0;
    CHECK(keel_get(s, n - 1, 4 * size, &last, size));
    CHECK(keel_get(s, n - 1, 5 * size, &first, size));
    EXPECT(first >= 1 && first <= n && (seen == 0) == (first == me + 1));
    double mine = (double)sums[0], all;
    CHECK(keel_allreduce_sum(&mine, &all, 1)); /* who came before each, and the last: everybody once */
    EXPECT((int64_t)all + last == (int64_t)n * (n + 1) / 2);
    for (int r = 0; r < n; r++) {
        int64_t word = 0;
        CHECK(keel_get(s, r, size, &word, size));
        total += wide ? word : (int32_t)word;
    }
    EXPECT(total == -3 * ROUNDS * n);
    int64_t bits = 0, turned = 0, mask;
    CHECK(keel_get(s, 0, 2 * size, &bits, size));
    CHECK(keel_get(s, 0, 3 * size, &turned, size));
    EXPECT(bits == (1 << n) - 1 && turned == bits);
    CHECK(keel_barrier());
    element(type, &mask, ~(1 << me), 0);
    CHECK(keel_rmw(s, 0, 2 * size, type, KEEL_RMW_AND, &mask, NULL, NULL));
    CHECK(keel_barrier());
    CHECK(keel_get(s, 0, 2 * size, &bits, size));
    EXPECT(bits == 0);
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
    CHECK(keel_segment_alloc(2 * TASKS * 8, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_taskpool_create(TASKS, &pool));
    for (int round = 1; round <= 3; round++) {
        int64_t task;
        CHECK(keel_task_next(pool, &task));
        while (task >= 0) {
            double one = 1;
            const int32_t pair[2] = {1, -1};
            keel_handle handle;
            for (int r = 0; r < n; r++) {
                CHECK(keel_acc_double(s, r, 8 * (size_t)task, 1.0, &one, 1));
                CHECK(keel_acc_nb(s, r, 8 * (size_t)(TASKS + task), KEEL_INT32, NULL, pair, 2, &handle));
                CHECK(keel_wait(&handle));
            }
            CHECK(keel_task_commit(pool, task));
            CHECK(keel_task_next(pool, &task));
        }
        double got[TASKS];
        for (int r = 0; r < n; r++) {
            CHECK(keel_get(s, r, 0, got, sizeof got));
            for (int i = 0; i < TASKS; i++)
                EXPECT(got[i] == round);
            int32_t pairs[2 * TASKS];
            CHECK(keel_get(s, r, sizeof got, pairs, sizeof pairs));
            for (int i = 0; i < 2 * TASKS; i++)
                EXPECT(pairs[i] == (i % 2 ? -round : round));
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
    EXPECT(keel_get_strong(s, 0, 60, &word, 8) == KEEL_ERR_ARG);
    EXPECT(keel_get_strong_nb(s, 0, 60, &word, 8, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_fetch_add(s, 0, 4, 1, &word) == KEEL_ERR_ARG);
    EXPECT(keel_acc(s, 0, 0, KEEL_BYTE, NULL, &word, 8) == KEEL_ERR_ARG);
    EXPECT(keel_acc(s, 0, 0, (keel_type)99, NULL, &word, 1) == KEEL_ERR_ARG);
    EXPECT(keel_acc(s, 0, 4, KEEL_DOUBLE, NULL, &word, 1) == KEEL_ERR_ARG);
    EXPECT(keel_acc(s, 0, 0, KEEL_DOUBLE, NULL, &word, SIZE_MAX / 4) == KEEL_ERR_ARG);
    EXPECT(keel_acc_nb(s, 0, 60, KEEL_COMPLEX_FLOAT, NULL, &word, 1, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_rmw(s, 0, 2, KEEL_INT32, KEEL_RMW_ADD, &word, NULL, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_rmw(s, 0, 0, KEEL_DOUBLE, KEEL_RMW_ADD, &word, NULL, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_rmw(s, 0, 0, KEEL_INT64, (keel_rmw_op)6, &word, NULL, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_rmw(s, 0, 0, KEEL_INT64, KEEL_RMW_COMPARE_SWAP, &word, NULL, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_rmw(s, 0, 0, KEEL_INT64, KEEL_RMW_ADD, NULL, NULL, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_type_size(KEEL_COMPLEX_DOUBLE) == 16 && keel_type_size((keel_type)99) == 0);
    EXPECT(keel_bcast(-1, &word, 8) == KEEL_ERR_ARG);
    EXPECT(keel_init() == KEEL_ERR_STATE);
    CHECK(keel_put(s, 0, 64, &word, 0));
    CHECK(keel_segment_free(s));
    if (keel_size() > 1)
        EXPECT(keel_segment_alloc(8 + (size_t)keel_rank(), KEEL_REDUNDANCY_NONE, &s) == KEEL_ERR_MISMATCH);
    /* More than an address space holds: the same error for all, and nothing is left of it. */
    keel_segment *huge = NULL;
    if (keel_size() > 1)
        EXPECT(keel_segment_alloc((size_t)1 << 46, KEEL_REDUNDANCY_SHADOW, &huge) == KEEL_ERR_NOMEM && !huge);
    CHECK(keel_segment_alloc(0, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_free(s));
}

int main(void)
{
    CHECK(keel_init());
    EXPECT(!keel_survives());
    keel_survive();
    EXPECT(keel_survives());
    test_put_get(KEEL_REDUNDANCY_NONE, 1);
    test_put_get(KEEL_REDUNDANCY_SHADOW, 3);
    test_put_get(KEEL_REDUNDANCY_TRIPLE, 5);
    test_accumulate(KEEL_REDUNDANCY_NONE);
    test_accumulate(KEEL_REDUNDANCY_SHADOW);
    test_accumulate(KEEL_REDUNDANCY_TRIPLE);
    for (keel_redundancy r = KEEL_REDUNDANCY_NONE; r <= KEEL_REDUNDANCY_TRIPLE; r++) {
        test_accumulate_of_every_type(r);
        test_rmw(r, KEEL_INT32);
        test_rmw(r, KEEL_UINT64);
    }
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
