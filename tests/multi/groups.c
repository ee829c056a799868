/* groups [COUNT]: every public call on groups, on any number of ranks, checked element by element, and so many groups
 * made and freed. Exit 0 if all is right. */
#include <keel/keel.h>

#include <complex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

static const keel_combine sum64 = {.type = KEEL_INT64, .op = KEEL_SUM};

/* Lengths around what the streams and the algorithms cut at. */
static const size_t lengths[] = {0, 1, 2, 7, 512, 2048, 2049, 10000, 70000};
enum { LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 70000 };
static int64_t in[LONGEST], out[LONGEST + 1];

static int64_t value(int member, size_t i)
{
    return (int64_t)(member + 1) * 1000003 + (int64_t)i * (member % 3 ? 7 : -5);
}

static void fill(int member, size_t n)
{
    for (size_t i = 0; i < n; i++)
        in[i] = value(member, i);
    memset(out, 0x55, sizeof out);
}

static void expect_sum(const int64_t *got, int from, int to, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int m = from; m < to; m++)
            sum += value(m, at + i);
        EXPECT(got[i] == sum);
    }
}

static void reductions(keel_group *g, size_t n)
{
    int me = keel_group_rank(g), members = keel_group_size(g);
    for (int root = 0; root < members; root += 1 + members / 3) {
        fill(me, n);
        CHECK(keel_group_reduce(g, root, in, out, n, &sum64));
        if (me == root)
            expect_sum(out, 0, members, 0, n);
    }
    fill(me, n);
    CHECK(keel_group_allreduce(g, in, out, n, &sum64));
    expect_sum(out, 0, members, 0, n);
    EXPECT(out[n] == 0x5555555555555555);
    CHECK(keel_group_allreduce(g, in, in, n, &sum64)); /* in place */
    expect_sum(in, 0, members, 0, n);
    fill(me, n);
    CHECK(keel_group_scan(g, in, out, n, &sum64));
    expect_sum(out, 0, me + 1, 0, n);
    fill(me, n);
    CHECK(keel_group_exscan(g, in, out, n, &sum64));
    if (me > 0)
        expect_sum(out, 0, me, 0, n);
    else
        EXPECT(out[0] == 0x5555555555555555);
    size_t *parts = calloc((size_t)members, sizeof *parts), at = 0, left = n;
    for (int m = 0; m < members; m++) {
        parts[m] = m == members - 1 ? left : left / 2;
        left -= parts[m];
        at += m < me ? parts[m] : 0;
    }
    fill(me, n);
    CHECK(keel_group_reduce_scatter(g, in, out, parts, &sum64));
    expect_sum(out, 0, members, at, parts[me]);
    free(parts);
}

static void moves(keel_group *g, size_t n)
{
    int me = keel_group_rank(g), members = keel_group_size(g);
    size_t all = n * (size_t)members;
    int64_t *blocks = malloc(8 * (all + 1)), *got = malloc(8 * (all + 1));
    for (int root = 0; root < members; root += 1 + members / 2) {
        fill(me, n);
        CHECK(keel_group_bcast(g, root, in, 8 * n));
        for (size_t i = 0; i < n; i++)
            EXPECT(in[i] == value(root, i));
        fill(me, n);
        CHECK(keel_group_gather(g, root, in, me == root ? got : NULL, 8 * n));
        for (size_t i = 0; me == root && i < all; i++)
            EXPECT(got[i] == value((int)(i / n), i % n));
        for (size_t i = 0; i < all; i++)
            blocks[i] = value((int)(i / n), i % n + 5);
        CHECK(keel_group_scatter(g, root, me == root ? blocks : NULL, out, 8 * n));
        for (size_t i = 0; i < n; i++)
            EXPECT(out[i] == value(me, i + 5));
    }
    fill(me, n);
    CHECK(keel_group_allgather(g, in, got, 8 * n));
    for (size_t i = 0; i < all; i++)
        EXPECT(got[i] == value((int)(i / n), i % n));
    for (size_t i = 0; i < all; i++)
        blocks[i] = value(me, i);
    CHECK(keel_group_alltoall(g, blocks, got, 8 * n));
    for (size_t i = 0; i < all; i++)
        EXPECT(got[i] == value((int)(i / n), (size_t)me * n + i % n));
    free(blocks);
    free(got);
}

/* Member m's block has m % 3 + m elements: some have none. */
static size_t count_of(int m)
{
    return (size_t)(m % 3 + m);
}

static void varying(keel_group *g)
{
    int me = keel_group_rank(g), members = keel_group_size(g), root = members - 1;
    size_t n = (size_t)members, *lens = calloc(n, sizeof *lens), *at = calloc(n, sizeof *at), total = 0;
    size_t *from = calloc(n, sizeof *from), *from_at = calloc(n, sizeof *from_at);
    for (int m = 0; m < members; m++) {
        lens[m] = 8 * count_of(m);
        at[m] = 8 * total;
        total += count_of(m) + 1; /* with a gap */
    }
    fill(me, count_of(me));
    CHECK(keel_group_allgather_v(g, in, lens[me], out, lens, at));
    for (int m = 0; m < members; m++)
        for (size_t i = 0; i < count_of(m); i++)
            EXPECT(out[at[m] / 8 + i] == value(m, i));
    fill(me, count_of(me));
    CHECK(keel_group_gather_v(g, root, in, lens[me], me == root ? out : NULL, me == root ? lens : NULL,
                              me == root ? at : NULL));
    for (int m = 0; me == root && m < members; m++)
        for (size_t i = 0; i < count_of(m); i++)
            EXPECT(out[at[m] / 8 + i] == value(m, i));
    for (int m = 0; m < members; m++)
        for (size_t i = 0; i < count_of(m); i++)
            in[at[m] / 8 + i] = value(m, i + 9);
    CHECK(keel_group_scatter_v(g, root, in, lens, at, out, lens[me]));
    for (size_t i = 0; i < count_of(me); i++)
        EXPECT(out[i] == value(me, i + 9));
    /* to member m: count_of(me) elements; from member m: count_of(m) */
    for (int m = 0; m < members; m++) {
        from[m] = lens[me];
        from_at[m] = (size_t)m * lens[me];
        for (size_t i = 0; i < count_of(me); i++)
            in[from_at[m] / 8 + i] = value(me, i + (size_t)m);
    }
    CHECK(keel_group_alltoall_v(g, in, from, from_at, out, lens, at));
    for (int m = 0; m < members; m++)
        for (size_t i = 0; i < count_of(m); i++)
            EXPECT(out[at[m] / 8 + i] == value(m, i + (size_t)me));
    free(lens);
    free(at);
    free(from);
    free(from_at);
}

/* right = left * right of 2x2 matrices: does not commute. */
static void multiply(const void *left, void *right, size_t n, void *context)
{
    const int64_t *a = left;
    int64_t *b = right;
    (void)context;
    for (size_t i = 0; i < n; i++, a += 4, b += 4) {
        int64_t c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                        a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

struct located {
    double value;
    int64_t place;
};

static void types_and_operations(keel_group *g)
{
    int me = keel_group_rank(g), members = keel_group_size(g);
    double d = me + 0.5, dp;
    CHECK(keel_group_allreduce(g, &d, &dp, 1, &(keel_combine){.type = KEEL_DOUBLE, .op = KEEL_MAX}));
    EXPECT(dp == members - 0.5);
    float f = (float)me - 3, fp;
    CHECK(keel_group_allreduce(g, &f, &fp, 1, &(keel_combine){.type = KEEL_FLOAT, .op = KEEL_MIN}));
    EXPECT(fp == -3.0f);
    double complex z[2] = {me + I, 1}, zp[2];
    CHECK(keel_group_allreduce(g, z, zp, 2, &(keel_combine){.type = KEEL_COMPLEX_DOUBLE, .op = KEEL_SUM}));
    EXPECT(zp[0] == 0.5 * members * (members - 1) + members * I && zp[1] == members);
    float complex c = I, cp, cw = 1;
    CHECK(keel_group_allreduce(g, &c, &cp, 1, &(keel_combine){.type = KEEL_COMPLEX_FLOAT, .op = KEEL_PROD}));
    for (int m = 0; m < members; m++)
        cw *= I;
    EXPECT(cp == cw);
    uint32_t u = 1u << (me % 32), up;
    CHECK(keel_group_allreduce(g, &u, &up, 1, &(keel_combine){.type = KEEL_UINT32, .op = KEEL_OR}));
    EXPECT(up == (members >= 32 ? ~0u : (1u << members) - 1));
    uint64_t v = ~(uint64_t)me, vp, vw = ~0ull;
    CHECK(keel_group_allreduce(g, &v, &vp, 1, &(keel_combine){.type = KEEL_UINT64, .op = KEEL_AND}));
    for (int m = 0; m < members; m++)
        vw &= ~(uint64_t)m;
    EXPECT(vp == vw);
    unsigned char b[3] = {(unsigned char)me, 255, 1}, bp[3];
    CHECK(keel_group_allreduce(g, b, bp, 3, &(keel_combine){.type = KEEL_BYTE, .op = KEEL_XOR}));
    EXPECT(bp[1] == (members % 2 ? 255 : 0) && bp[2] == members % 2);
    int32_t i = me % 2 ? -me : me, ip;
    CHECK(keel_group_allreduce(g, &i, &ip, 1, &(keel_combine){.type = KEEL_INT32, .op = KEEL_SUM}));
    int32_t iw = 0;
    for (int m = 0; m < members; m++)
        iw += m % 2 ? -m : m;
    EXPECT(ip == iw);
    struct located l = {me % 2, me}, lp;
    CHECK(keel_group_allreduce(g, &l, &lp, 1, &(keel_combine){.type = KEEL_DOUBLE, .op = KEEL_MINLOC}));
    EXPECT(lp.value == 0 && lp.place == 0);
    CHECK(keel_group_allreduce(g, &l, &lp, 1, &(keel_combine){.type = KEEL_DOUBLE, .op = KEEL_MAXLOC}));
    EXPECT(members == 1 ? lp.place == 0 : lp.value == 1 && lp.place == 1);
    int64_t one[4] = {me + 1, 1, 1, 0}, product[4], expected[4] = {1, 0, 0, 1};
    keel_combine user = {.op = KEEL_USER, .function = multiply, .size = sizeof one};
    CHECK(keel_group_allreduce(g, one, product, 1, &user));
    for (int m = members - 1; m >= 0; m--) {
        int64_t matrix[4] = {m + 1, 1, 1, 0};
        multiply(matrix, expected, 1, NULL);
    }
    EXPECT(members > 15 || memcmp(product, expected, sizeof product) == 0);
}

/* Many at once, waited for in another order; the list of members. */
static void requests(keel_group *g)
{
    enum { AT_ONCE = 20 };
    int members = keel_group_size(g), me = keel_group_rank(g);
    static int64_t a[AT_ONCE], b[AT_ONCE];
    keel_request *r[AT_ONCE];
    for (int k = 0; k < AT_ONCE; k++) {
        a[k] = value(me, (size_t)k);
        if (k % 5 == 4)
            CHECK(keel_group_barrier_begin(g, &r[k]));
        else
            CHECK(keel_group_allreduce_begin(g, &a[k], &b[k], 1, &sum64, &r[k]));
    }
    for (int k = AT_ONCE - 1; k >= 0; k--) {
        keel_covered *covered;
        keel_status status;
        if (k % 2)
            status = keel_request_wait(r[k], &covered);
        else
            while ((status = keel_request_test(r[k], &covered)) == KEEL_IN_PROGRESS)
                EXPECT(!covered);
        CHECK(status);
        EXPECT(keel_covered_count(covered) == members && !keel_covered_has(covered, members) &&
               !keel_covered_has(covered, -1));
        for (int m = 0; m < members; m++)
            EXPECT(keel_covered_has(covered, m));
        keel_covered_free(covered);
        if (k % 5 != 4)
            expect_sum(&b[k], 0, members, (size_t)k, 1);
    }
}

static void agreement(keel_group *g)
{
    int members = keel_group_size(g), me = keel_group_rank(g);
    uint64_t v;
    CHECK(keel_group_agree(g, KEEL_GROUP_MAX, (uint64_t)me, &v));
    EXPECT(v == (uint64_t)members - 1);
    CHECK(keel_group_agree(g, KEEL_GROUP_MIN, (uint64_t)me + 7, &v));
    EXPECT(v == 7);
    CHECK(keel_group_agree(g, KEEL_GROUP_OR, 1ull << (me % 64), &v));
    EXPECT(v == (members >= 64 ? ~0ull : (1ull << members) - 1));
    CHECK(keel_group_agree(g, KEEL_GROUP_AND, ~(1ull << (me % 64)), &v));
    EXPECT(v == (members >= 64 ? 0 : ~((1ull << members) - 1)));
}

static void everything(keel_group *g)
{
    for (int k = 0; k < LENGTHS; k++) {
        reductions(g, lengths[k]);
        moves(g, lengths[k] / 4);
    }
    varying(g);
    types_and_operations(g);
    requests(g);
    agreement(g);
    CHECK(keel_group_barrier(g));
    CHECK(keel_group_sync(g));
}

/* Wrong arguments are told to the caller, and nothing is sent: the others' calls go on as if there had been none. */
static void wrong_arguments(keel_group *g)
{
    int64_t x = 0, y;
    int members = keel_group_size(g);
    uint64_t v;
    EXPECT_STATUS(keel_group_bcast(g, members, &x, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_bcast(g, -1, &x, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_bcast(g, 0, NULL, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_bcast(NULL, 0, &x, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_barrier_begin(g, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_barrier(NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_allreduce(g, &x, &y, 1, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_allreduce(g, &x, NULL, 1, &sum64), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_allreduce(g, &x, &y, SIZE_MAX / 8, &sum64), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_allreduce(g, &x, &y, 1, &(keel_combine){.type = KEEL_DOUBLE, .op = KEEL_XOR}),
                  KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_allreduce(g, &x, &y, 1, &(keel_combine){.op = KEEL_USER}), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_allreduce(g, &x, &y, 1, &(keel_combine){.type = (keel_type)99}), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_reduce_scatter(g, &x, &y, NULL, &sum64), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_allgather_v(g, &x, 8, &y, NULL, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_agree(g, KEEL_GROUP_MAX, 1, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_agree(g, (keel_group_op)9, 1, &v), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_request_wait(NULL, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_request_test(NULL, NULL), KEEL_ERR_ARG);
}

static void wrong_groups(keel_group *g)
{
    keel_group *none;
    int members = keel_group_size(g), me = keel_rank(), twice[] = {me, me}, far[] = {me, keel_size()},
        other[] = {(me + 1) % keel_size()};
    EXPECT_STATUS(keel_group_create(twice, 2, 0, &none), KEEL_ERR_ARG);
    EXPECT(!none);
    EXPECT_STATUS(keel_group_create(far, 2, 0, &none), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_create(&me, -1, 0, &none), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_create(&me, 0, 0, &none), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_create(NULL, 1, 0, &none), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_create(&me, 1, 0, NULL), KEEL_ERR_ARG);
    if (keel_size() > 1)
        EXPECT_STATUS(keel_group_create(other, 1, 0, &none), KEEL_ERR_ARG);
    int outside[] = {members};
    EXPECT_STATUS(keel_group_shrink_among(g, outside, 1, &none), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_shrink_among(g, outside, -1, &none), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_split(NULL, 0, 0, &none), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_shrink(NULL, &none), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_revoke(NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_free(keel_group_world()), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_free(keel_group_node()), KEEL_ERR_ARG);
    CHECK(keel_group_free(NULL));
    EXPECT(keel_group_to_world(g, members) == -1 && keel_group_to_world(g, -1) == -1 && keel_group_size(NULL) == 0);
    EXPECT(keel_group_from_world(g, keel_size()) == -1 && !keel_group_alive(g, members));
}

/* What is no handle of a group (any more) is an error in every call, and nothing behind it is looked at. */
static void no_handles(void)
{
    keel_group *freed, *later, *none;
    keel_taskpool *pool;
    uint64_t value;
    CHECK(keel_group_split(keel_group_world(), 0, 0, &freed));
    CHECK(keel_group_free(freed));
    CHECK(keel_group_split(keel_group_world(), 0, 0, &later)); /* in its memory, it may be */
    CHECK(keel_taskpool_create(1, &pool));
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    keel_group *far = (keel_group *)(uintptr_t)0x123456789abcdef0u, *near = (keel_group *)(uintptr_t)1;
    enum { WRONG = 5 };
    keel_group *wrong[WRONG] = {freed, (keel_group *)(void *)pool, (keel_group *)(void *)&value, far, near};
    for (size_t i = 0; i < WRONG; i++) {
        keel_group *g = wrong[i];
        EXPECT_STATUS(keel_group_barrier(g), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_sync(g), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_fence(g), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_agree(g, KEEL_GROUP_MAX, 1, &value), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_split(g, 0, 0, &none), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_shrink(g, &none), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_revoke(g), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_patience(g, true), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_free(g), KEEL_ERR_ARG);
        EXPECT(keel_group_size(g) == 0 && keel_group_rank(g) == -1 && keel_group_stopped(g) == -1);
        EXPECT(keel_group_to_world(g, 0) == -1 && keel_group_from_world(g, 0) == -1 && !keel_group_alive(g, 0));
    }
    EXPECT_STATUS(keel_taskpool_reset((keel_taskpool *)(void *)later), KEEL_ERR_ARG);
    CHECK(keel_group_barrier(later));
    CHECK(keel_group_free(later));
    CHECK(keel_taskpool_free(pool));
}

/* Of a group 64 requests may be under way; the 65th is refused, and nothing of it is sent. */
static void limit(void)
{
    enum { MOST = 64 };
    keel_request *many[MOST], *r;
    keel_group *g;
    CHECK(keel_group_split(keel_group_world(), 0, 0, &g));
    int me = keel_group_rank(g);
    for (int k = 0; k < MOST && me == 0; k++)
        CHECK(keel_group_barrier_begin(g, &many[k]));
    if (me == 0 && keel_group_size(g) > 1)
        EXPECT_STATUS(keel_group_barrier_begin(g, &r), KEEL_ERR_LIMIT);
    CHECK(keel_group_barrier(keel_group_world())); /* the others begin after it only */
    for (int k = 0; k < MOST && me != 0; k++)
        CHECK(keel_group_barrier_begin(g, &many[k]));
    for (int k = 0; k < MOST; k++)
        CHECK(keel_request_wait(many[k], NULL));
    CHECK(keel_group_barrier(g));
    CHECK(keel_group_free(g));
}

/* What does not fit together is told to all. */
static void mismatches(keel_group *g)
{
    int64_t x[4] = {0}, y[64];
    int me = keel_group_rank(g), last = keel_group_size(g) - 1;
    if (last == 0)
        return;
    for (int shape = 0; shape < 2; shape++) { /* the first is another, or the last */
        bool other = me == (shape ? last : 0);
        EXPECT_STATUS(keel_group_allreduce(g, x, y, other ? 2 : 1, &sum64), KEEL_ERR_MISMATCH);
        EXPECT_STATUS(keel_group_bcast(g, other ? last : 0, x, 8), KEEL_ERR_MISMATCH);
        EXPECT_STATUS(keel_group_bcast(g, 0, x, other ? 16 : 8), KEEL_ERR_MISMATCH);
        EXPECT_STATUS(
            keel_group_allreduce(g, x, y, 1, &(keel_combine){.type = other ? KEEL_UINT64 : KEEL_INT64, .op = KEEL_SUM}),
            KEEL_ERR_MISMATCH);
        EXPECT_STATUS(
            keel_group_reduce(g, 0, x, y, 1, &(keel_combine){.type = KEEL_INT64, .op = other ? KEEL_MIN : KEEL_MAX}),
            KEEL_ERR_MISMATCH);
        EXPECT_STATUS(other ? keel_group_barrier(g) : keel_group_scan(g, x, y, 1, &sum64), KEEL_ERR_MISMATCH);
        EXPECT_STATUS(other ? keel_group_barrier(g) : keel_group_gather(g, 0, x, y, 8), KEEL_ERR_MISMATCH);
        EXPECT_STATUS(keel_group_bcast(g, 0, x, other ? 0 : 8), KEEL_ERR_MISMATCH); /* a root that gives nothing */
        uint64_t v;
        EXPECT_STATUS(keel_group_agree(g, other ? KEEL_GROUP_OR : KEEL_GROUP_AND, 1, &v), KEEL_ERR_MISMATCH);
    }
    CHECK(keel_group_barrier(g));
}

/* The first, which is the root, says two lengths of its own block. */
static void own_blocks(keel_group *g)
{
    int me = keel_group_rank(g), members = keel_group_size(g);
    size_t n = (size_t)members, mine = me ? 8 : 4, *lens = calloc(n, sizeof *lens), *at = calloc(n, sizeof *at);
    size_t *less = calloc(n, sizeof *less);
    char block[8] = "|||||||", *all = calloc(n, 8);
    for (int m = 0; m < members; m++) {
        lens[m] = 8;
        less[m] = m == 0 ? mine : 8;
        at[m] = 8 * (size_t)m;
    }
    EXPECT_STATUS(keel_group_gather_v(g, 0, block, mine, all, lens, at), KEEL_ERR_MISMATCH);
    EXPECT_STATUS(keel_group_scatter_v(g, 0, all, lens, at, block, mine), KEEL_ERR_MISMATCH);
    EXPECT(me || block[4] == '|'); /* not written beyond what the caller said */
    EXPECT_STATUS(keel_group_allgather_v(g, block, mine, all, lens, at), KEEL_ERR_MISMATCH);
    if (me == 0)
        EXPECT_STATUS(keel_group_alltoall_v(g, all, less, at, all, lens, at), KEEL_ERR_MISMATCH);
    else
        EXPECT_STATUS(keel_group_alltoall_v(g, all, lens, at, all, lens, at), KEEL_ERR_MISMATCH);
    CHECK(keel_group_barrier(g));
    free(lens);
    free(less);
    free(at);
    free(all);
}

static void translation(keel_group *g, const int *ranks, int n)
{
    EXPECT(keel_group_size(g) == n);
    for (int m = 0; m < n; m++) {
        EXPECT(keel_group_to_world(g, m) == ranks[m] && keel_group_from_world(g, ranks[m]) == m);
        EXPECT(keel_group_alive(g, m));
        if (ranks[m] == keel_rank())
            EXPECT(keel_group_rank(g) == m);
    }
}

/* Every other rank, backwards, by a list; the others do something else meanwhile. */
static void created(void)
{
    int n = 0, *list = calloc((size_t)keel_size() + 1, sizeof *list);
    for (int r = keel_size() - 1 - (keel_size() - 1) % 2; r >= 0; r -= 2)
        list[n++] = r;
    if (keel_rank() % 2 == 0) {
        keel_group *a, *b, *c;
        CHECK(keel_group_create(list, n, 1, &a));
        translation(a, list, n);
        CHECK(keel_group_create(list, n, 2, &b));
        CHECK(keel_group_create(list, n, 1, &c)); /* the same once more: another group */
        everything(b);
        int64_t x = 1, y;
        CHECK(keel_group_allreduce(c, &x, &y, 1, &sum64));
        EXPECT(y == n);
        CHECK(keel_group_free(a));
        EXPECT_STATUS(keel_group_barrier(a), KEEL_ERR_ARG);
        EXPECT_STATUS(keel_group_free(a), KEEL_ERR_ARG);
        EXPECT(keel_group_size(a) == 0 && keel_group_rank(a) == -1);
        CHECK(keel_group_free(b));
        CHECK(keel_group_free(c));
    }
    free(list);
}

static void splits(void)
{
    keel_group *world = keel_group_world(), *g, *none;
    int me = keel_rank(), n = 0, *list = calloc((size_t)keel_size(), sizeof *list);
    CHECK(keel_group_split(world, me % 3 == 2 ? -1 : me % 3, -me, &g));
    EXPECT((me % 3 == 2) == !g);
    if (g) {
        for (int r = keel_size() - 1; r >= 0; r--)
            if (r % 3 == me % 3)
                list[n++] = r;
        translation(g, list, n);
        everything(g);
        CHECK(keel_group_split(g, 0, 0, &none));
        translation(none, list, n); /* equal keys: the parent's order */
        CHECK(keel_group_free(none));
    }
    /* rows of the node and of the world: what is in one and not in the other */
    keel_group *node = keel_group_node();
    EXPECT(keel_group_rank(node) >= 0);
    for (int m = 0; m < keel_group_size(node); m++)
        EXPECT(keel_rank_node(keel_group_to_world(node, m)) == keel_rank_node(me));
    CHECK(keel_group_barrier(node));
    int *ranks = calloc(2 * (size_t)keel_size(), sizeof *ranks);
    CHECK(keel_group_difference(world, node, ranks, &n));
    EXPECT(n == keel_size() - keel_group_size(node));
    for (int i = 0; i < n; i++)
        EXPECT(keel_group_from_world(node, ranks[i]) == -1);
    CHECK(keel_group_union(node, world, ranks, &n));
    EXPECT(n == keel_size() && ranks[0] == keel_group_to_world(node, 0));
    EXPECT_STATUS(keel_group_union(node, NULL, ranks, &n), KEEL_ERR_ARG);
    free(ranks);
    free(list);
    CHECK(keel_group_free(g));
}

/* Whoever is in a call on a revoked group, or comes to one, is let go; shrink and agree still work. */
static void revocation(void)
{
    keel_group *g, *h, *i;
    uint64_t v;
    CHECK(keel_group_split(keel_group_world(), 0, 0, &g));
    int last = keel_group_size(g) - 1, me = keel_group_rank(g);
    if (me == last)
        CHECK(keel_group_revoke(g));
    EXPECT_STATUS(keel_group_barrier(g), KEEL_ERR_REVOKED); /* that the last one never enters */
    EXPECT_STATUS(keel_group_allreduce(g, in, out, 1, &sum64), KEEL_ERR_REVOKED);
    CHECK(keel_group_agree(g, KEEL_GROUP_MIN, (uint64_t)me, &v));
    EXPECT(v == 0);
    CHECK(keel_group_shrink(g, &h));
    EXPECT(keel_group_size(h) == last + 1);
    int *members = calloc((size_t)last + 1, sizeof *members);
    for (int m = 0; m <= last; m++)
        members[m] = last - m;
    CHECK(keel_group_shrink_among(g, members, last + 1, &i));
    EXPECT(keel_group_rank(i) == last - me);
    everything(h);
    CHECK(keel_group_barrier(i));
    free(members);
    CHECK(keel_group_free(h));
    CHECK(keel_group_free(i));
    CHECK(keel_group_free(g));
}

/* Thousands of groups, some of them kept for a while. */
static void many(int groups)
{
    enum { KEPT = 40 };
    keel_group *kept[KEPT] = {NULL};
    int64_t x = 1, y;
    for (int k = 0; k < groups; k++) {
        CHECK(keel_group_free(kept[k % KEPT]));
        CHECK(keel_group_split(keel_group_world(), keel_rank() % (1 + k % 3), k % 2 ? keel_rank() : -keel_rank(),
                               &kept[k % KEPT]));
        if (k % 50 == 0) {
            CHECK(keel_group_allreduce(kept[k % KEPT], &x, &y, 1, &sum64));
            EXPECT(y == keel_group_size(kept[k % KEPT]));
        }
    }
    for (int k = 0; k < KEPT; k++)
        CHECK(keel_group_free(kept[k]));
}

/* The memory of freed groups is used again; handles to them stay what they are: of no group. */
static void stale(void)
{
    enum { TIMES = 20 };
    keel_group *old[TIMES];
    int64_t x = 1, y;
    int *ranks = calloc(2 * (size_t)keel_size(), sizeof *ranks), n;
    for (int k = 0; k < TIMES; k++) {
        CHECK(keel_group_split(keel_group_world(), 0, 0, &old[k]));
        for (int i = 0; i < k; i++) {
            EXPECT(old[i] != old[k] && keel_group_size(old[i]) == 0 && keel_group_rank(old[i]) == -1);
            EXPECT(keel_group_to_world(old[i], 0) == -1 && keel_group_from_world(old[i], 0) == -1);
            EXPECT(!keel_group_alive(old[i], 0));
            EXPECT_STATUS(keel_group_free(old[i]), KEEL_ERR_ARG);
            EXPECT_STATUS(keel_group_barrier(old[i]), KEEL_ERR_ARG);
            EXPECT_STATUS(keel_group_sync(old[i]), KEEL_ERR_ARG);
            EXPECT_STATUS(keel_group_revoke(old[i]), KEEL_ERR_ARG);
            EXPECT_STATUS(keel_group_union(old[i], keel_group_world(), ranks, &n), KEEL_ERR_ARG);
        }
        CHECK(keel_group_allreduce(old[k], &x, &y, 1, &sum64)); /* is as it was, whatever was tried on the others */
        EXPECT(y == keel_group_size(old[k]));
        CHECK(keel_group_free(old[k]));
        CHECK(keel_group_barrier(keel_group_world())); /* all have freed it: its memory may be used again */
    }
    free(ranks);
}

/* A request must be waited for before its group is freed; a task uses no collectives. */
static void wrong_moments(keel_group *world)
{
    keel_group *g, *none;
    keel_request *r;
    keel_taskpool *pool, *no_pool;
    keel_segment *segment, *no_segment;
    keel_mutexes *no_mutexes;
    int64_t task;
    CHECK(keel_segment_alloc(8, KEEL_REDUNDANCY_SHADOW, &segment));
    CHECK(keel_group_split(world, 0, 0, &g));
    CHECK(keel_group_barrier_begin(g, &r));
    EXPECT_STATUS(keel_group_free(g), KEEL_ERR_STATE);
    CHECK(keel_request_wait(r, NULL));
    CHECK(keel_taskpool_create(keel_size(), &pool));
    CHECK(keel_task_next(pool, &task));
    if (task >= 0) {
        int me = keel_rank();
        EXPECT_STATUS(keel_group_barrier(g), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_group_create(&me, 1, 5, &none), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_group_split(g, 0, 0, &none), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_group_free(g), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_barrier(), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_segment_alloc(8, KEEL_REDUNDANCY_SHADOW, &no_segment), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_segment_free(segment), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_mutexes_create(1, &no_mutexes), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_taskpool_create(1, &no_pool), KEEL_ERR_STATE);
        CHECK(keel_task_commit(pool, task));
    }
    while (task >= 0) {
        CHECK(keel_task_next(pool, &task));
        if (task >= 0)
            CHECK(keel_task_commit(pool, task));
    }
    CHECK(keel_taskpool_free(pool));
    CHECK(keel_segment_free(segment));
    CHECK(keel_group_free(g));
}

int main(int argc, char **argv)
{
    EXPECT(!keel_group_world() && !keel_group_node());
    CHECK(keel_init());
    keel_group *world = keel_group_world();
    EXPECT(keel_group_size(world) == keel_size() && keel_group_rank(world) == keel_rank());
    everything(world);
    wrong_arguments(world);
    wrong_groups(world);
    no_handles();
    limit();
    mismatches(world);
    own_blocks(world);
    created();
    splits();
    revocation();
    wrong_moments(world);
    stale();
    many(argc > 1 ? atoi(argv[1]) : 200);
    everything(world);
    CHECK(keel_group_barrier(world));
    CHECK(keel_finalize());
    EXPECT(keel_group_size(world) == 0 && keel_group_rank(world) == -1 && keel_group_to_world(world, 0) == -1);
    EXPECT(keel_group_from_world(world, 0) == -1 && !keel_group_alive(world, 0) && !keel_group_world());
    EXPECT_STATUS(keel_group_barrier(world), KEEL_ERR_STATE);
    return 0;
}
