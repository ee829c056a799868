/* Strided and vector calls against the same done to a local copy, element by element; handles of every kind. Exit 0 if
 * all is right. Prints the seed that repeats it (KEEL_SEED). */
#include <keel/keel.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/expect.h"

enum { AREA = 96 * 1024, LOCAL = 256 * 1024, ROUNDS = 30 };

static uint64_t random_state;

static size_t below(size_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return n ? (size_t)(random_state % n) : 0;
}

/* What this rank has in its area of the partner's part, and where its data come from. */
static uint8_t want[AREA], local[LOCAL], got[LOCAL];

/* A shape of at most 3 levels that fits both areas; runs of short and long pieces. */
static keel_strided some_shape(size_t *extent)
{
    keel_strided d = {.levels = (int)below(4)};
    size_t global = 8 * (1 + below(below(4) ? 12 : 600)), near = global;
    d.count[0] = global;
    for (int i = 0; i < d.levels; i++) {
        d.count[i + 1] = 1 + below(5);
        d.global_stride[i] = global + 8 * below(4);
        d.local_stride[i] = near + 8 * below(3);
        global += (d.count[i + 1] - 1) * d.global_stride[i];
        near += (d.count[i + 1] - 1) * d.local_stride[i];
    }
    *extent = global;
    return global <= AREA && near <= LOCAL ? d : (keel_strided){.count = {*extent = 8}};
}

enum what { PUT, GET, ACC };

static void one_run(enum what what, size_t offset, size_t at, size_t len)
{
    if (what == PUT)
        memcpy(want + offset, local + at, len);
    if (what == GET)
        EXPECT(memcmp(got + at, want + offset, len) == 0);
    for (size_t i = 0; what == ACC && i < len; i += 8) {
        int64_t sum, by;
        memcpy(&sum, want + offset + i, 8);
        memcpy(&by, local + at + i, 8);
        sum = (int64_t)((uint64_t)sum + 3 * (uint64_t)by);
        memcpy(want + offset + i, &sum, 8);
    }
}

static void all_runs(enum what what, const keel_strided *d, int level, size_t offset, size_t at)
{
    if (level == 0) {
        one_run(what, offset, at, d->count[0]);
        return;
    }
    for (size_t i = 0; i < d->count[level]; i++)
        all_runs(what, d, level - 1, offset + i * d->global_stride[level - 1], at + i * d->local_stride[level - 1]);
}

static const int64_t three = 3;

static void strided(keel_segment *s, int rank, size_t base)
{
    size_t extent;
    keel_strided d = some_shape(&extent);
    size_t offset = 8 * below((AREA - extent) / 8 + 1);
    enum what what = (enum what)below(3);
    keel_handle handle;
    bool blocks = below(2);
    if (what == PUT)
        CHECK(blocks ? keel_put_strided(s, rank, base + offset, local, &d)
                     : keel_put_strided_nb(s, rank, base + offset, local, &d, &handle));
    else if (what == GET)
        CHECK(blocks ? keel_get_strided(s, rank, base + offset, got, &d)
                     : keel_get_strided_nb(s, rank, base + offset, got, &d, &handle));
    else
        CHECK(blocks ? keel_acc_strided(s, rank, base + offset, KEEL_INT64, &three, local, &d)
                     : keel_acc_strided_nb(s, rank, base + offset, KEEL_INT64, &three, local, &d, &handle));
    if (!blocks)
        CHECK(keel_wait(&handle));
    all_runs(what, &d, d.levels, offset, 0);
}

/* Pieces in any order, of any length; of an accumulate also twice the same place. */
static void vector(keel_segment *s, int rank, size_t base)
{
    enum { N = 50 };
    keel_piece piece[N];
    enum what what = (enum what)below(3);
    size_t n = below(N), slot = 1 + below(2) * below(200);
    for (size_t i = 0; i < n; i++) {
        size_t place = (i * 7 + 3) % N;
        piece[i] =
            (keel_piece){base + place * slot * 8, (what == GET ? got : local) + i * slot * 8, 8 * below(slot + 1)};
        if (what == ACC && i % 5 == 4)
            piece[i].offset = piece[0].offset;
    }
    keel_handle handle;
    bool blocks = below(2);
    if (what == PUT)
        CHECK(blocks ? keel_put_vector(s, rank, piece, n) : keel_put_vector_nb(s, rank, piece, n, &handle));
    else if (what == GET)
        CHECK(blocks ? keel_get_vector(s, rank, piece, n) : keel_get_vector_nb(s, rank, piece, n, &handle));
    else
        CHECK(blocks ? keel_acc_vector(s, rank, KEEL_INT64, &three, piece, n)
                     : keel_acc_vector_nb(s, rank, KEEL_INT64, &three, piece, n, &handle));
    if (!blocks)
        CHECK(keel_wait(&handle));
    for (size_t i = 0; i < n; i++)
        one_run(what, piece[i].offset - base, i * slot * 8, piece[i].len);
}

static void test_shapes(keel_redundancy redundancy)
{
    int me = keel_rank(), n = keel_size();
    keel_segment *s;
    CHECK(keel_segment_alloc((size_t)n * AREA, redundancy, &s));
    size_t base = (size_t)me * AREA;
    for (int r = 0; r < n; r++) {
        memset(want, 0, sizeof want);
        for (int k = 0; k < ROUNDS; k++) {
            for (size_t i = 0; i < LOCAL; i += 8) {
                uint64_t x = below(SIZE_MAX);
                memcpy(local + i, &x, 8);
            }
            if (below(2))
                strided(s, r, base);
            else
                vector(s, r, base);
        }
        CHECK(keel_get(s, r, base, got, AREA));
        EXPECT(memcmp(got, want, AREA) == 0);
    }
    CHECK(keel_barrier());
    CHECK(keel_segment_free(s));
}

static void test_handles(keel_redundancy redundancy)
{
    enum { N = 20 };
    int to = (keel_rank() + 1) % keel_size();
    keel_segment *s;
    CHECK(keel_segment_alloc(4096 * N, redundancy, &s));
    for (size_t i = 0; i < sizeof local; i++)
        local[i] = (uint8_t)(i * 7);
    keel_strided rows = {.levels = 1, .count = {8, 100}, .global_stride = {16}, .local_stride = {16}};
    keel_handle all, each[N], used = {{0}};
    CHECK(keel_handle_aggregate(&all));
    CHECK(keel_wait(&all)); /* of nothing */
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < N; i++) {
            CHECK(keel_put_strided_nb(s, to, 4096 * i, local, &rows, &all));
            CHECK(keel_put_nb(s, to, 4096 * i + 8, local + 8, 8, &all));
        }
        CHECK(keel_wait(&all));
    }
    for (size_t i = 0; i < N; i++)
        CHECK(keel_get_strided_nb(s, to, 4096 * i, got + 4096 * i, &rows, &each[i]));
    unsigned seen = 0;
    for (size_t k = 0, which; k < N; k++) {
        CHECK(keel_wait_any(each, N, &which));
        EXPECT(which < N && !(seen >> which & 1));
        seen |= 1u << which;
        for (size_t i = 0; i < 1600; i += 16)
            EXPECT(memcmp(got + 4096 * which + i, local + i, 8) == 0);
    }
    size_t which = 0;
    CHECK(keel_wait_any(each, N, &which));
    EXPECT(which == N);
    for (size_t i = 0; i < N; i++)
        CHECK(keel_put_strided_nb(s, to, 4096 * i, local, &rows, &each[i]));
    CHECK(keel_wait_all(each, N));
    /* implicit ones, and a fence */
    CHECK(keel_put_strided_nb(s, to, 4000, local, &rows, NULL));
    CHECK(keel_fence(to));
    CHECK(keel_get_strided(s, to, 4000, got, &rows));
    EXPECT(memcmp(got + 160, local + 160, 8) == 0);
    /* wrong use */
    EXPECT(keel_wait(&used) == KEEL_ERR_ARG && keel_test(&used) == KEEL_ERR_ARG);
    EXPECT(keel_wait_any(&used, 1, &which) == KEEL_ERR_ARG && keel_wait_any(each, N, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_wait_all(NULL, 1) == KEEL_ERR_ARG && keel_handle_aggregate(NULL) == KEEL_ERR_ARG);
    keel_status second = KEEL_ERR_STATE;
    for (int i = 0; i < 50 && second != KEEL_OK; i++) { /* the first may be complete at once */
        CHECK(keel_put_nb(s, to, 0, local, LOCAL / 8, &each[0]));
        second = keel_put_nb(s, to, 0, local, 8, &each[0]);
        EXPECT(second == KEEL_OK || second == KEEL_ERR_STATE);
        CHECK(keel_wait(&each[0]));
    }
    CHECK(keel_barrier());
    CHECK(keel_segment_free(s));
}

static void test_bad_shapes(void)
{
    keel_segment *s;
    const double one = 1;
    CHECK(keel_segment_alloc(1000, KEEL_REDUNDANCY_SHADOW, &s));
    const keel_strided good = {.levels = 1, .count = {8, 10}, .global_stride = {16}, .local_stride = {8}};
    keel_strided bad[9];
    for (int i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].levels = -1;
    bad[1].levels = KEEL_STRIDE_LEVELS_MAX + 1;
    bad[2].count[1] = 64;                   /* beyond the part */
    bad[3].global_stride[0] = SIZE_MAX / 4; /* overflows */
    bad[4].local_stride[0] = SIZE_MAX / 9;  /* beyond all memory */
    bad[5].count[1] = SIZE_MAX;
    bad[6].global_stride[0] = 4; /* overlap where they are written */
    bad[7].global_stride[0] = 0;
    bad[8].count[0] = SIZE_MAX;
    for (int i = 0; i < 9; i++)
        EXPECT(keel_put_strided(s, 0, 0, local, &bad[i]) == KEEL_ERR_ARG);
    EXPECT(keel_put_strided(s, 0, 0, local, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_put_strided(s, 0, 0, NULL, &good) == KEEL_ERR_ARG);
    EXPECT(keel_put_strided(s, 0, 990, local, &good) == KEEL_ERR_ARG);
    EXPECT(keel_put_strided(s, keel_size(), 0, local, &good) == KEEL_ERR_ARG);
    CHECK(keel_get_strided(s, 0, 0, got, &bad[6])); /* reads of the same bytes are none of it */
    keel_strided over = good;
    over.local_stride[0] = 7;
    EXPECT(keel_get_strided(s, 0, 0, got, &over) == KEEL_ERR_ARG);
    EXPECT(keel_acc_strided(s, 0, 4, KEEL_DOUBLE, &one, local, &good) == KEEL_ERR_ARG);
    EXPECT(keel_acc_strided(s, 0, 0, KEEL_COMPLEX_DOUBLE, NULL, local, &good) == KEEL_ERR_ARG);
    EXPECT(keel_acc_strided(s, 0, 0, KEEL_BYTE, NULL, local, &good) == KEEL_ERR_ARG);
    keel_strided none = good;
    none.count[1] = 0;
    CHECK(keel_put_strided(s, 0, 0, NULL, &none));
    keel_piece piece[2] = {{0, local, 16}, {8, local + 16, 8}};
    EXPECT(keel_put_vector(s, 0, piece, 2) == KEEL_ERR_ARG); /* overlap */
    CHECK(keel_acc_vector(s, 0, KEEL_DOUBLE, NULL, piece, 2));
    piece[1] = (keel_piece){32, local + 8, 8};
    EXPECT(keel_get_vector(s, 0, piece, 2) == KEEL_ERR_ARG);
    piece[1].offset = 996;
    EXPECT(keel_put_vector(s, 0, piece, 2) == KEEL_ERR_ARG);
    EXPECT(keel_acc_vector(s, 0, KEEL_DOUBLE, NULL, piece, 2) == KEEL_ERR_ARG);
    piece[1] = (keel_piece){32, NULL, 8};
    EXPECT(keel_put_vector(s, 0, piece, 2) == KEEL_ERR_ARG);
    EXPECT(keel_put_vector(s, 0, NULL, 1) == KEEL_ERR_ARG);
    CHECK(keel_put_vector(s, 0, NULL, 0));
    CHECK(keel_barrier());
    CHECK(keel_segment_free(s));
}

/* A task's accumulates count once in whatever shape they come. */
static void test_tasks(void)
{
    enum { TASKS = 9 };
    int n = keel_size();
    keel_segment *s;
    keel_taskpool *pool;
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_taskpool_create(TASKS, &pool));
    const keel_strided d = {.levels = 1, .count = {4, 20}, .global_stride = {8}, .local_stride = {4}};
    int32_t ones[20], word[40];
    for (int i = 0; i < 20; i++)
        ones[i] = 1;
    int64_t task;
    CHECK(keel_task_next(pool, &task));
    while (task >= 0) {
        keel_handle handle;
        CHECK(keel_handle_aggregate(&handle));
        keel_piece piece[2] = {{2000, ones, 8}, {2100, ones, 4}};
        for (int r = 0; r < n; r++) {
            CHECK(keel_acc_strided_nb(s, r, 0, KEEL_INT32, NULL, ones, &d, &handle));
            CHECK(keel_acc_vector(s, r, KEEL_INT32, NULL, piece, 2));
            CHECK(keel_acc_nb(s, r, 2200, KEEL_INT32, NULL, ones, 2, task % 2 ? &handle : NULL));
        }
        CHECK(keel_task_commit(pool, task)); /* completes what nobody has waited for */
        EXPECT(keel_test(&handle) == KEEL_OK);
        CHECK(keel_task_next(pool, &task));
    }
    for (int r = 0; r < n; r++) {
        CHECK(keel_get(s, r, 0, word, sizeof word));
        for (int i = 0; i < 40; i++)
            EXPECT(word[i] == (i % 2 ? 0 : TASKS));
        CHECK(keel_get(s, r, 2200, word, 8));
        EXPECT(word[0] == TASKS && word[1] == TASKS);
        CHECK(keel_get(s, r, 2000, word, 104));
        EXPECT(word[0] == TASKS && word[1] == TASKS && word[2] == 0 && word[25] == TASKS);
    }
    CHECK(keel_barrier());
    CHECK(keel_taskpool_free(pool));
    CHECK(keel_segment_free(s));
}

/* Every process sees every part at the same address, can find out which it is, and reaches those of its node by plain
 * loads and stores. */
static void test_addresses(void)
{
    enum { SEGMENTS = 5, BYTES = 10000 };
    int me = keel_rank(), n = keel_size();
    keel_segment *s[SEGMENTS], *found;
    size_t offset;
    for (int i = 0; i < SEGMENTS; i++)
        CHECK(keel_segment_alloc(BYTES * (size_t)i + 8, KEEL_REDUNDANCY_NONE, &s[i]));
    CHECK(keel_segment_free(s[2])); /* its place is used again */
    CHECK(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_NONE, &s[2]));
    for (int i = 0; i < SEGMENTS; i++)
        for (int r = 0; r < n; r++) {
            size_t bytes = keel_segment_bytes_per_rank(s[i]);
            char *here = keel_address(s[i], r), *there = here;
            CHECK(keel_bcast(0, &there, sizeof there));
            EXPECT(here && here == there);
            for (size_t at = 0; at < bytes; at += 1 + bytes / 3) {
                CHECK(keel_locate(r, here + at, &found, &offset));
                EXPECT(found == s[i] && offset == at);
            }
            EXPECT(keel_locate(r, here + bytes, &found, &offset) == KEEL_ERR_ARG && !found);
            EXPECT(keel_locate((r + 1) % n, here, &found, &offset) == (n == 1 ? KEEL_OK : KEEL_ERR_ARG));
        }
    int64_t mine = 1000 + me, theirs;
    memcpy(keel_address(s[1], me), &mine, sizeof mine);
    CHECK(keel_barrier());
    for (int r = 0; r < n; r++) {
        CHECK(keel_get(s[1], r, 0, &theirs, sizeof theirs));
        EXPECT(theirs == 1000 + r);
        if (keel_rank_node(r) == keel_rank_node(me)) {
            memcpy(&theirs, keel_address(s[1], r), sizeof theirs);
            EXPECT(theirs == 1000 + r);
        }
    }
    EXPECT(keel_locate(me, &mine, &found, &offset) == KEEL_ERR_ARG && keel_address(NULL, me) == NULL);
    EXPECT(keel_locate(n, keel_address(s[0], 0), &found, &offset) == KEEL_ERR_ARG && keel_address(s[0], n) == NULL);
    CHECK(keel_barrier());
    void *gone = keel_address(s[3], me);
    for (int i = 0; i < SEGMENTS; i++)
        CHECK(keel_segment_free(s[i]));
    EXPECT(keel_locate(me, gone, &found, &offset) == KEEL_ERR_ARG);
}

int main(void)
{
    CHECK(keel_init());
    const char *text = getenv("KEEL_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    CHECK(keel_bcast(0, &seed, sizeof seed));
    if (keel_rank() == 0)
        printf("KEEL_SEED=%llu\n", (unsigned long long)seed);
    random_state = (seed << 8 | (uint64_t)keel_rank()) * 0x9e3779b97f4a7c15u | 1;
    for (keel_redundancy r = KEEL_REDUNDANCY_NONE; r <= KEEL_REDUNDANCY_TRIPLE; r++) {
        test_shapes(r);
        test_handles(r);
    }
    test_bad_shapes();
    test_addresses();
    test_tasks();
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    return 0;
}
