/* Every call of the ARMCI library on any number of processes, checked element by element. Exit 0 if all is right. */
#include <armci.h>
#include <stdbool.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ALL_CALLS
#define ALL_CALLS 1 /* 0: those that Debian's ARMCI-MPI has, too */
#endif

#define EXPECT_WHO me
#include "../lib/expect.h"

static int me, n;

enum { WORDS = 4000 };

static void *address(void *base, size_t offset)
{
    return (char *)base + offset;
}

/* Everybody writes words of its own into everybody's part, and reads them back from there. */
static void test_contiguous(void)
{
    void *base[64];
    long mine[50], got[50];
    armci_hdl_t handle, all;
    EXPECT(ARMCI_Malloc(base, WORDS * sizeof(long)) == 0);
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < 50; i++)
            mine[i] = 1000 * me + i + p;
        size_t at = (size_t)me * 50 * sizeof(long);
        EXPECT(ARMCI_Put(mine, address(base[p], at), 10 * sizeof(long), p) == 0);
        ARMCI_INIT_HANDLE(&handle);
        EXPECT(ARMCI_NbPut(mine + 10, address(base[p], at + 80), 10 * sizeof(long), p, &handle) == 0);
        EXPECT(ARMCI_Wait(&handle) == 0);
        EXPECT(ARMCI_NbPut(mine + 20, address(base[p], at + 160), 10 * sizeof(long), p, NULL) == 0);
        ARMCI_INIT_HANDLE(&all);
        ARMCI_SET_AGGREGATE_HANDLE(&all);
        for (int i = 30; i < 50; i++)
            EXPECT(ARMCI_NbPut(mine + i, address(base[p], at + 8 * (size_t)i), sizeof(long), p, &all) == 0);
        EXPECT(ARMCI_Wait(&all) == 0);
        ARMCI_UNSET_AGGREGATE_HANDLE(&all);
        EXPECT(all.aggregate == 0);
        EXPECT(ARMCI_WaitProc(p) == 0);
        ARMCI_Fence(p);
    }
    ARMCI_Barrier();
    for (int p = 0; p < n; p++)
        for (int q = 0; q < n; q++) {
            ARMCI_INIT_HANDLE(&handle);
            size_t at = (size_t)q * 50 * sizeof(long);
            EXPECT(ARMCI_Get(address(base[p], at), got, 25 * sizeof(long), p) == 0);
            EXPECT(ARMCI_NbGet(address(base[p], at + 200), got + 25, 25 * sizeof(long), p, &handle) == 0);
            while (ARMCI_Test(&handle)) /* 0: complete */
                ;
            EXPECT(ARMCI_Test(&handle) == 0);
            for (int i = 0; i < 50; i++)
                EXPECT(got[i] == 1000 * q + i + p);
        }
    ARMCI_Barrier();
    int flag = 0, from = (me + n - 1) % n, to = (me + 1) % n;
    EXPECT(ARMCI_Put_flag(mine, base[to], 8, address(base[to], 8L * WORDS - 8), 7, to) == 0);
    while (flag != 7)
        flag = ARMCI_GetValueInt(address(base[me], 8L * WORDS - 8), me);
    EXPECT(ARMCI_GetValueLong(base[me], me) == 1000 * from + n - 1);
    ARMCI_Copy(mine, got, 16);
    EXPECT(got[1] == mine[1]);
    ARMCI_Barrier();
    EXPECT(ARMCI_Free(base[me]) == 0);
}

/* A handle is a value: its copy is waited for as well. One that nobody waits for, at a place that is used again or not,
 * is no error, and costs those after it nothing: what is complete gives its place back. */
static void test_handles(void)
{
    enum { ROUNDS = 50, FORGOTTEN = 3000 };
    static long out[WORDS], in[WORDS];
    static armci_hdl_t forgotten[FORGOTTEN];
    void *base[64];
    armci_hdl_t handle, copy;
    int to = (me + 1) % n;
    EXPECT(ARMCI_Malloc(base, sizeof out) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORDS; i++)
            out[i] = 1000L * round + i + me;
        EXPECT(ARMCI_Put(out, base[to], sizeof out, to) == 0);
        ARMCI_INIT_HANDLE(&handle);
        EXPECT(ARMCI_NbGet(base[to], in, sizeof in, to, &handle) == 0);
        copy = handle;
        EXPECT(ARMCI_Wait(&copy) == 0 && memcmp(in, out, sizeof in) == 0);
        EXPECT(ARMCI_Wait(&handle) == 0 && ARMCI_Test(&handle) == 0);
        copy = handle;
        EXPECT(ARMCI_NbGet(base[to], in, 8, to, &copy) == 0 && ARMCI_Wait(&copy) == 0);
    }
    for (long i = 0; i < FORGOTTEN; i++) {
        ARMCI_INIT_HANDLE(&handle);
        ARMCI_INIT_HANDLE(&forgotten[i]);
        out[i] = -i;
        EXPECT(ARMCI_NbPut(&out[i], address(base[to], 8 * (size_t)i), 8, to, &forgotten[i]) == 0);
        EXPECT(ARMCI_NbPut(&out[i], address(base[to], 8 * (size_t)i), 8, to, &handle) == 0);
        if (i % 100 == 99)
            ARMCI_AllFence();
    }
    EXPECT(ARMCI_WaitAll() == 0 && ARMCI_Wait(&forgotten[FORGOTTEN - 1]) == 0 && ARMCI_Wait(&forgotten[0]) == 0);
    EXPECT(ARMCI_Get(base[to], in, 8 * FORGOTTEN, to) == 0 && memcmp(in, out, 8 * FORGOTTEN) == 0);
    ARMCI_Barrier();
    EXPECT(ARMCI_Free(base[me]) == 0);
}

static void test_values(void)
{
    void *base[64];
    armci_hdl_t h;
    EXPECT(ARMCI_Malloc(base, 64) == 0);
    int to = (me + 1) % n;
    ARMCI_INIT_HANDLE(&h);
    EXPECT(ARMCI_PutValueInt(-5, base[to], to) == 0 && ARMCI_PutValueLong(1L << 40, address(base[to], 8), to) == 0);
    EXPECT(ARMCI_PutValueFloat(1.5F, address(base[to], 16), to) == 0);
    EXPECT(ARMCI_NbPutValueDouble(2.25, address(base[to], 24), to, &h) == 0 && ARMCI_Wait(&h) == 0);
    EXPECT(ARMCI_NbPutValueInt(9, address(base[to], 32), to, &h) == 0 && ARMCI_Wait(&h) == 0);
    EXPECT(ARMCI_NbPutValueLong(10, address(base[to], 40), to, &h) == 0 && ARMCI_Wait(&h) == 0);
    EXPECT(ARMCI_NbPutValueFloat(11, address(base[to], 48), to, &h) == 0 && ARMCI_Wait(&h) == 0);
    EXPECT(ARMCI_PutValueDouble(12, address(base[to], 56), to) == 0);
    ARMCI_Barrier();
    for (int p = 0; p < n; p++) {
        EXPECT(ARMCI_GetValueInt(base[p], p) == -5 && ARMCI_GetValueLong(address(base[p], 8), p) == 1L << 40);
        EXPECT(ARMCI_GetValueFloat(address(base[p], 16), p) == 1.5F);
        EXPECT(ARMCI_GetValueDouble(address(base[p], 24), p) == 2.25);
        EXPECT(ARMCI_GetValueInt(address(base[p], 32), p) == 9 && ARMCI_GetValueLong(address(base[p], 40), p) == 10);
        EXPECT(ARMCI_GetValueFloat(address(base[p], 48), p) == 11);
        EXPECT(ARMCI_GetValueDouble(address(base[p], 56), p) == 12);
    }
    ARMCI_Barrier();
    EXPECT(ARMCI_Free(base[me]) == 0);
}

/* A patch of a matrix of doubles, of which each process has some rows. */
static double element(int i, int j)
{
    return 100.0 * i + j;
}

static void test_strided(void)
{
    enum { COLS = 40, ROWS = 30 };
    void *base[64];
    double local[ROWS][COLS], packed[10 * 7], back[ROWS][COLS];
    EXPECT(ARMCI_Malloc(base, sizeof local) == 0);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            local[i][j] = element(i, j);
    int stride[] = {COLS * sizeof(double)}, small[] = {7 * sizeof(double)}, count[] = {7 * sizeof(double), 10};
    int to = (me + 1) % n, from = (me + n - 1) % n;
    armci_hdl_t h;
    ARMCI_INIT_HANDLE(&h);
    EXPECT(ARMCI_PutS(&local[3][5], stride, address(base[to], (3 * COLS + 5) * 8L), stride, count, 1, to) == 0);
    EXPECT(ARMCI_NbPutS(&local[15][20], stride, address(base[to], (15 * COLS + 20) * 8L), stride, count, 1, to, &h) ==
           0);
    EXPECT(ARMCI_Wait(&h) == 0);
    int flag_count[] = {8, 1};
    double seven = 7;
    EXPECT(ARMCI_PutS_flag(&seven, stride, address(base[to], (28 * COLS) * 8L), stride, flag_count, 1,
                           address(base[to], (29 * COLS) * 8L), 1, to) == 0);
    ARMCI_Barrier();
    EXPECT(ARMCI_GetValueDouble(address(base[me], (28 * COLS) * 8L), me) == 7);
    EXPECT(ARMCI_GetValueInt(address(base[me], (29 * COLS) * 8L), me) == 1);
    EXPECT(ARMCI_GetS(address(base[to], (3 * COLS + 5) * 8L), stride, packed, small, count, 1, to) == 0);
    for (int i = 0; i < 70; i++)
        EXPECT(packed[i] == element(3 + i / 7, 5 + i % 7));
    memset(packed, 0, sizeof packed);
    EXPECT(ARMCI_NbGetS(address(base[from], (15 * COLS + 20) * 8L), stride, packed, small, count, 1, from, NULL) == 0);
    EXPECT(ARMCI_WaitAll() == 0);
    for (int i = 0; i < 70; i++)
        EXPECT(packed[i] == element(15 + i / 7, 20 + i % 7));
    ARMCI_Barrier();
    double half = 0.5;
    for (int p = 0; p < n; p++) {
        EXPECT(ARMCI_AccS(ARMCI_ACC_DBL, &half, &local[3][5], stride, address(base[p], (3 * COLS + 5) * 8L), stride,
                          count, 1, p) == 0);
        EXPECT(ARMCI_NbAccS(ARMCI_ACC_DBL, &half, &local[3][5], stride, address(base[p], (3 * COLS + 5) * 8L), stride,
                            count, 1, p, &h) == 0);
        EXPECT(ARMCI_Wait(&h) == 0);
    }
    ARMCI_Barrier();
    EXPECT(ARMCI_Get(base[to], back, sizeof back, to) == 0);
    for (int i = 0; i < 70; i++)
        EXPECT(back[3 + i / 7][5 + i % 7] == (n + 1) * (element(3 + i / 7, 5 + i % 7)));
    char buffer[sizeof packed];
    armci_write_strided(&local[3][5], 1, stride, count, buffer);
    memset(back, 0, sizeof back);
    armci_read_strided(&back[3][5], 1, stride, count, buffer);
    EXPECT(back[12][11] == local[12][11] && back[12][12] == 0);
    /* memory that is no segment's, of this process */
    memset(back, 0, sizeof back);
    EXPECT(ARMCI_PutS(&local[3][5], stride, &back[3][5], stride, count, 1, me) == 0 && back[12][11] == local[12][11]);
    ARMCI_Barrier();
    EXPECT(ARMCI_Free(base[me]) == 0);
}

static void test_vector(void)
{
    enum { PIECES = 30 };
    void *base[64], *mine[PIECES], *theirs[PIECES];
    double value[PIECES], got[PIECES], one = 1;
    EXPECT(ARMCI_Malloc(base, (armci_size_t)(PIECES * 3 * sizeof(double))) == 0);
    int to = (me + 1) % n;
    armci_giov_t v = {.src_ptr_array = mine, .dst_ptr_array = theirs, .bytes = 8, .ptr_array_len = PIECES};
    for (int i = 0; i < PIECES; i++) {
        value[i] = i + 0.5;
        mine[i] = &value[i];
        theirs[i] = address(base[to], 24L * ((i * 7) % PIECES));
    }
    EXPECT(ARMCI_PutV(&v, 1, to) == 0);
    armci_hdl_t h;
    ARMCI_INIT_HANDLE(&h);
    EXPECT(ARMCI_NbPutV(&v, 1, to, &h) == 0 && ARMCI_Wait(&h) == 0);
    ARMCI_Barrier();
    EXPECT(ARMCI_AccV(ARMCI_ACC_DBL, &one, &v, 1, to) == 0 && ARMCI_NbAccV(ARMCI_ACC_DBL, &one, &v, 1, to, &h) == 0);
    EXPECT(ARMCI_Wait(&h) == 0);
    armci_giov_t g[2] = {
        {.src_ptr_array = theirs, .dst_ptr_array = mine, .bytes = 8, .ptr_array_len = 10},
        {.src_ptr_array = theirs + 10, .dst_ptr_array = mine + 10, .bytes = 8, .ptr_array_len = PIECES - 10}};
    ARMCI_Barrier();
    for (int i = 0; i < PIECES; i++)
        mine[i] = &got[i];
    EXPECT(ARMCI_GetV(g, 2, to) == 0);
    for (int i = 0; i < PIECES; i++)
        EXPECT(got[i] == 3 * (i + 0.5));
    memset(got, 0, sizeof got);
    EXPECT(ARMCI_NbGetV(g, 2, to, &h) == 0 && ARMCI_Wait(&h) == 0);
    for (int i = 0; i < PIECES; i++)
        EXPECT(got[i] == 3 * (i + 0.5));
    /* pieces that overlap: the last one stays */
    theirs[0] = theirs[1] = base[to];
    mine[0] = &value[0];
    mine[1] = &value[1];
    v.ptr_array_len = 2;
    EXPECT(ARMCI_PutV(&v, 1, to) == 0 && ARMCI_GetValueDouble(base[to], to) == 1.5);
    static double many[PIECES], last[3];
    for (int i = 0; i < PIECES; i++) { /* in turn to three places, in no order */
        many[i] = 100 * me + i;
        mine[i] = &many[i];
        theirs[i] = address(base[to], 8 * (size_t)(2 - i % 3));
        last[2 - i % 3] = many[i];
    }
    v.ptr_array_len = PIECES;
    EXPECT(ARMCI_PutV(&v, 1, to) == 0);
    for (int i = 0; i < 3; i++)
        EXPECT(ARMCI_GetValueDouble(address(base[to], 8 * (size_t)i), to) == last[i]);
    long words[2] = {-1, 0}, seen[2]; /* half over each other */
    mine[0] = &words[0];
    mine[1] = &words[1];
    theirs[0] = base[to];
    theirs[1] = address(base[to], 4);
    v.ptr_array_len = 2;
    EXPECT(ARMCI_PutV(&v, 1, to) == 0 && ARMCI_Get(base[to], seen, 16, to) == 0 && seen[0] == 0xffffffff);
    ARMCI_Barrier();
    EXPECT(ARMCI_Free(base[me]) == 0);
}

/* Pieces of one call that overlap are put one after the other, whatever vectors they are of: also in each copy, and to
 * a target on this node, whose agent stores what comes in messages. */
static void test_vectors_that_overlap(void)
{
    enum { LONGS = 12, TIMES = 300 };
    static long src[2][LONGS];
    void *base[64];
    long got[LONGS + 4];
    EXPECT(ARMCI_Malloc(base, 256) == 0);
    int to = (me + 1) % n;
    for (int near = 0; near < 2; near++, to = me) {
        for (int i = 0; i < TIMES; i++) {
            void *from[2][2] = {{&src[0][0], &src[0][4]}, {&src[1][0]}};
            void *at[2][2] = {{address(base[to], 8), address(base[to], 72)}, {address(base[to], 24)}};
            armci_giov_t v[2] = {{.src_ptr_array = from[0], .dst_ptr_array = at[0], .ptr_array_len = 2, .bytes = 32},
                                 {.src_ptr_array = from[1], .dst_ptr_array = at[1], .ptr_array_len = 1, .bytes = 16}};
            armci_hdl_t h;
            ARMCI_INIT_HANDLE(&h);
            for (int k = 0; k < LONGS; k++) {
                src[0][k] = 1000 * i + k;
                src[1][k] = 1000 * i + 100 + k;
            }
            EXPECT(ARMCI_NbPutV(v, 2, to, &h) == 0 && ARMCI_Wait(&h) == 0);
            ARMCI_Fence(to);
            EXPECT(ARMCI_Get(base[to], got, sizeof got, to) == 0);
            const long wanted[] = {src[0][0], src[0][1], src[1][0], src[1][1]};
            EXPECT(memcmp(got + 1, wanted, sizeof wanted) == 0);
            EXPECT(got[9] == src[0][4] && got[10] == src[0][5]);
        }
        ARMCI_Barrier(); /* others put here, too */
    }
    EXPECT(ARMCI_Free(base[me]) == 0);
}

static void test_accumulate_types(void)
{
    void *base[64];
    EXPECT(ARMCI_Malloc(base, 96) == 0);
    int i = 3, i2 = 2;
    long l = 5, l2 = 2;
    float f = 1.5F, f2 = 2, c[2] = {1, 2}, c2[2] = {0, 1};
    double d = 2.5, d2 = 2, z[2] = {3, 4}, z2[2] = {0, 1};
    armci_hdl_t h;
    ARMCI_INIT_HANDLE(&h);
    EXPECT(ARMCI_Acc(ARMCI_ACC_INT, &i2, &i, base[0], sizeof i, 0) == 0);
    EXPECT(ARMCI_Acc(ARMCI_ACC_LNG, &l2, &l, address(base[0], 8), sizeof l, 0) == 0);
    EXPECT(ARMCI_Acc(ARMCI_ACC_FLT, &f2, &f, address(base[0], 16), sizeof f, 0) == 0);
    EXPECT(ARMCI_Acc(ARMCI_ACC_DBL, &d2, &d, address(base[0], 24), sizeof d, 0) == 0);
    EXPECT(ARMCI_Acc(ARMCI_ACC_CPL, c2, c, address(base[0], 32), sizeof c, 0) == 0);
    EXPECT(ARMCI_NbAcc(ARMCI_ACC_DCP, z2, z, address(base[0], 48), sizeof z, 0, &h) == 0 && ARMCI_Wait(&h) == 0);
    ARMCI_Barrier();
    EXPECT(ARMCI_GetValueInt(base[0], 0) == 6 * n && ARMCI_GetValueLong(address(base[0], 8), 0) == 10 * n);
    EXPECT(ARMCI_GetValueFloat(address(base[0], 16), 0) == 3.0F * (float)n);
    EXPECT(ARMCI_GetValueDouble(address(base[0], 24), 0) == 5 * n);
    EXPECT(ARMCI_GetValueFloat(address(base[0], 32), 0) == -2.0F * (float)n);
    EXPECT(ARMCI_GetValueFloat(address(base[0], 36), 0) == 1.0F * (float)n);
    EXPECT(ARMCI_GetValueDouble(address(base[0], 48), 0) == -4 * n);
    EXPECT(ARMCI_GetValueDouble(address(base[0], 56), 0) == 3 * n);
    ARMCI_Barrier();
    EXPECT(ARMCI_Free(base[me]) == 0);
}

/* Parts of different sizes, also none; counters; a protected sum. */
static void test_rmw_and_mutexes(void)
{
    enum { ROUNDS = 30 };
    void *base[64];
    EXPECT(ARMCI_Malloc(base, 0) == 0 && !base[0] && ARMCI_Free(NULL) == 0); /* nobody has any */
    EXPECT(ARMCI_Malloc(base, me == n - 1 ? 32 : 0) == 0);
    EXPECT(base[n - 1] && (n == 1 || !base[0]));
    int got_int, sum = 0;
    long got_long;
    for (int k = 0; k < ROUNDS; k++) {
        EXPECT(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &got_int, base[n - 1], 1, n - 1) == 0 && got_int < ROUNDS * n);
        sum += got_int;
        EXPECT(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &got_long, address(base[n - 1], 8), 2, n - 1) == 0);
        EXPECT(got_long % 2 == 0);
    }
    armci_msg_igop(&sum, 1, "+");
    EXPECT(sum == ROUNDS * n * (ROUNDS * n - 1) / 2);
    EXPECT(ARMCI_GetValueLong(address(base[n - 1], 8), n - 1) == 2 * ROUNDS * n);
    armci_msg_barrier();
    int swapped = 1 + me;
    EXPECT(ARMCI_Rmw(ARMCI_SWAP, &swapped, base[n - 1], 0, n - 1) == 0);
    long wide = 1 + me;
    EXPECT(ARMCI_Rmw(ARMCI_SWAP_LONG, &wide, address(base[n - 1], 8), 0, n - 1) == 0);
    EXPECT(swapped == ROUNDS * n || (swapped >= 1 && swapped <= n));
    EXPECT(wide == 2 * ROUNDS * n || (wide >= 1 && wide <= n));
    EXPECT(ARMCI_Create_mutexes(me + 1) == 0);
    for (int k = 0; k < ROUNDS; k++) {
        ARMCI_Lock(0, k % n);
        if (k % n == 0) {
            double x = ARMCI_GetValueDouble(address(base[n - 1], 16), n - 1);
            ARMCI_PutValueDouble(x + 1, address(base[n - 1], 16), n - 1);
        }
        ARMCI_Unlock(0, k % n);
    }
    ARMCI_Barrier();
    const int locked = n * ((ROUNDS + n - 1) / n);
    EXPECT(ARMCI_GetValueDouble(address(base[n - 1], 16), n - 1) == locked);
    ARMCI_Barrier();
    EXPECT(ARMCI_Destroy_mutexes() == 0);
    EXPECT(ARMCI_Free(base[me]) == 0);
}

static void test_collectives(void)
{
    int i[3] = {me, -me, 1};
    long l = me + 1;
    long long ll = me;
    float f = (float)me;
    double d[2] = {me % 2 ? -(double)me : me, -(1.0 + me)};
    armci_msg_igop(i, 3, "max");
    armci_msg_lgop(&l, 1, "*");
    armci_msg_llgop(&ll, 1, "min");
    armci_msg_fgop(&f, 1, "+");
    EXPECT(i[0] == n - 1 && i[1] == 0 && i[2] == 1 && ll == 0 && f == (float)n * (float)(n - 1) / 2);
    long product = 1;
    for (int k = 1; k <= n; k++)
        product *= k;
    EXPECT(l == product);
    armci_msg_dgop(d, 2, "absmax");
    EXPECT(d[0] == n - 1 && d[1] == n);
    i[0] = me != 1; /* what comes from Fortran has no end */
    armci_msg_gop_scope(SCOPE_ALL, i, 1, "&&xyz", ARMCI_INT);
    EXPECT(i[0] == (n == 1));
    i[0] = me == n - 1 ? 6 : 0;
    armci_msg_igop(i, 1, "||");
    EXPECT(i[0] == 1);
    i[0] = 1 << me;
    armci_msg_igop(i, 1, "or");
    EXPECT(i[0] == (1 << n) - 1);
    i[0] = 3 + 4 * me;
    armci_msg_igop(i, 1, "&");
    EXPECT(n < 2 || i[0] == 3);
    d[0] = me ? -me : n;
    armci_msg_gop_scope(SCOPE_ALL, d, 1, "absmin", ARMCI_DOUBLE);
    EXPECT(d[0] == 1);
    int root = n - 1, text[4] = {me, me, me, me};
    armci_msg_bcast(text, sizeof text, root);
    EXPECT(text[3] == root);
    text[0] = me;
    armci_msg_brdcst(text, sizeof text, 0);
    EXPECT(text[0] == 0);
    struct {
        double value;
        int who;
    } pick = {.value = (me * 3) % n, .who = me};
    armci_msg_sel_scope(SCOPE_ALL, &pick, sizeof pick, "max", ARMCI_DOUBLE, me != 0 || n == 1);
    EXPECT(n == 1 || (pick.who != 0 && pick.value == (pick.who * 3) % n));
    int first = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, armci_domain_my_id(ARMCI_DOMAIN_SMP), 0), node[1] = {1};
    armci_msg_gop_scope(SCOPE_NODE, node, 1, "+", ARMCI_INT);
    EXPECT(node[0] == armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1));
    node[0] = me;
    armci_msg_bcast_scope(SCOPE_NODE, node, sizeof node, first);
    EXPECT(node[0] == first);
    if (me == first) {
        node[0] = 1;
        armci_msg_gop_scope(SCOPE_MASTERS, node, 1, "+", ARMCI_INT);
        EXPECT(node[0] == armci_domain_count(ARMCI_DOMAIN_SMP));
    }
    long long sum = me;
    armci_msg_reduce(&sum, 1, "+", ARMCI_LONG_LONG);
    EXPECT(sum == n * (n - 1) / 2); /* everybody's */
    node[0] = me;
    armci_msg_reduce_scope(SCOPE_NODE, node, 1, "min", ARMCI_INT);
    EXPECT(node[0] == first);
    int top, up, left, right;
    armci_msg_bintree(SCOPE_ALL, &top, &up, &left, &right);
    EXPECT(top == 0 && up == (me ? (me - 1) / 2 : -1) && left == (2 * me + 1 < n ? 2 * me + 1 : -1));
}

static void test_messages(void)
{
    enum { LONG = 20000 };
    static char out[LONG], in[LONG];
    int length = 0;
    for (int i = 0; i < LONG; i++)
        out[i] = (char)(i * 3 + me);
    for (int k = 1; k < n; k++) { /* pairs in an order in which nobody waits for ever */
        int to = (me + k) % n, from = (me + n - k) % n;
        for (int turn = 0; turn < 2; turn++) {
            if ((me < to) == (turn == 0))
                armci_msg_snd(k, out, k % 2 ? LONG : 0, to);
            if ((from < me) == (turn == 0)) {
                armci_msg_rcv(k, in, sizeof in, &length, from);
                EXPECT(length == (k % 2 ? LONG : 0));
                for (int i = 0; i < length; i++)
                    EXPECT(in[i] == (char)(i * 3 + from));
            }
        }
    }
}

/* Long ones of several processes at once stay whole; and empty ones. */
static void test_messages_from_anybody(void)
{
    enum { LONG = 150000 };
    static char out[LONG], in[LONG];
    static int lengths[2] = {LONG, 0};
    for (int i = 0; i < LONG; i++)
        out[i] = (char)(i * 5 + me);
    for (int k = 0; k < 2; k++) {
        int length = -1, senders = 0;
        if (me)
            armci_msg_snd(7, out, lengths[k], 0);
        for (int i = 1; !me && i < n; i++) {
            int from = armci_msg_rcvany(7, in, LONG, i % 2 ? &length : NULL);
            EXPECT(from > 0 && from < n && (senders & 1 << from) == 0 && (i % 2 == 0 || length == lengths[k]));
            senders |= 1 << from;
            for (int j = 0; j < lengths[k]; j++)
                EXPECT(in[j] == (char)(j * 5 + from));
        }
        armci_msg_barrier();
    }
}

static void test_nodes(void)
{
    char word[8] = "";
    int first = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, armci_domain_my_id(ARMCI_DOMAIN_SMP), 0);
    int here = armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1), one = 1;
    long all[2] = {1, me}, long_one = 2;
    long long longer = 3;
    float half = 0.5F;
    double quarter = 0.25;
    if (me == first)
        snprintf(word, sizeof word, "%d", first);
    armci_msg_clus_brdcst(word, sizeof word);
    EXPECT(atoi(word) == first);
    armci_msg_clus_igop(&one, 1, "+");
    armci_msg_clus_lgop(&long_one, 1, "+");
    armci_msg_clus_llgop(&longer, 1, "+");
    armci_msg_clus_fgop(&half, 1, "+");
    armci_msg_clus_dgop(&quarter, 1, "+");
    EXPECT(one == here && long_one == 2L * here && longer == 3LL * here && half == 0.5F * (float)here &&
           quarter == 0.25 * here);
    armci_msg_clus_lgop(all, 2, "min");
    EXPECT(all[0] == 1 && all[1] == first);
}

static void test_groups_and_domains(void)
{
    ARMCI_Group world, half, now;
    ARMCI_Group_get_world(&world);
    EXPECT(world.size == n && world.rank == me && ARMCI_Absolute_id(&world, n - 1) == n - 1);
    int list[64], size = 0, rank, sum = 1;
    for (int p = n - 1; p >= 0; p -= 2)
        list[size++] = p;
    bool member = (n - 1 - me) % 2 == 0;
    if (member) {
        ARMCI_Group_create(size, list, &half);
        EXPECT(ARMCI_Group_rank(&half, &rank) == 0 && list[rank] == me && ARMCI_Absolute_id(&half, 0) == n - 1);
        ARMCI_Group_size(&half, &sum);
        EXPECT(sum == size);
        sum = 1;
        armci_msg_group_igop(&sum, 1, "+", &half);
        EXPECT(sum == size);
        double value = me;
        armci_msg_group_bcast_scope(SCOPE_ALL, &value, sizeof value, list[size - 1],
                                    &half); /* a process of the world */
        EXPECT(value == list[size - 1]);
        armci_msg_group_barrier(&half);
        ARMCI_Group_set_default(&half);
        ARMCI_Group_get_default(&now);
        EXPECT(now.size == size);
        ARMCI_Group_set_default(&world);
        ARMCI_Group_free(&half);
    }
    EXPECT(armci_msg_me() == me && armci_msg_nproc() == n && armci_timer() > 0);
    int all = 0, nodes = armci_domain_count(ARMCI_DOMAIN_SMP);
    for (int d = 0; d < nodes; d++)
        for (int k = 0; k < armci_domain_nprocs(ARMCI_DOMAIN_SMP, d); k++, all++)
            EXPECT(armci_domain_id(ARMCI_DOMAIN_SMP, armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, d, k)) == d);
    EXPECT(all == n && ARMCI_Same_node(me) && armci_domain_same_id(ARMCI_DOMAIN_SMP, me));
    EXPECT(armci_domain_id(ARMCI_DOMAIN_SMP, n) == -1);
    /* what is of this node can be touched */
    void *base[64];
    EXPECT(ARMCI_Uses_shm() == 1 && ARMCI_Malloc_group(base, 8, &world) == 0);
    *(long *)base[me] = 5 + me;
    armci_msg_barrier();
    for (int p = 0; p < n; p++)
        EXPECT(!ARMCI_Same_node(p) || *(long *)base[p] == 5 + p);
    armci_msg_barrier();
    EXPECT(ARMCI_Free_group(base[me], &world) == 0);
    void *own = ARMCI_Malloc_local(100);
    EXPECT(own && ARMCI_Free_local(own) == 0);
}

/* Each member tells the others, and the members of its group, an address. */
static void test_exchange(ARMCI_Group *half, const int *list, int size)
{
    void *places[64] = {NULL}, *of_half[64] = {NULL};
    places[me] = &places[me];
    of_half[half->rank] = places[me];
    armci_exchange_address(places, n);
    armci_exchange_address_grp(of_half, size, half);
    EXPECT(places[me] == (void *)&places[me] && places[0]);
    for (int m = 0; m < size; m++)
        EXPECT(of_half[m] == places[list[m]]);
}

/* Memory of groups: each half of the processes its own, at the same time, with parts that differ; only members free
 * it. */
static void test_memory_of_groups(void)
{
    enum { ROUNDS = 3 };
    ARMCI_Group half;
    int list[64], size = 0, member = me % 2;
    do {
        list[size++] = member;
        member += 2;
    } while (member < n);
    ARMCI_Group_create(size, list, &half);
    for (int round = 0; round < ROUNDS; round++) {
        void *first[64], *second[64], *all[64];
        int next = (half.rank + 1) % size, to = list[next];
        EXPECT(ARMCI_Malloc_group(first, half.rank == 1 ? 0 : 8000 * (half.rank + 1), &half) == 0);
        EXPECT(ARMCI_Malloc_group(second, 16, &half) == 0 && ARMCI_Malloc(all, 16) == 0);
        EXPECT(size < 2 || !first[1]);
        if (first[next]) {
            double value = me + 0.5, scale = 2;
            long counter = 0;
            EXPECT(ARMCI_Put(&value, address(first[next], 7992), 8, to) == 0);
            EXPECT(ARMCI_Acc(ARMCI_ACC_DBL, &scale, &value, address(first[next], 7992), 8, to) == 0);
            EXPECT(ARMCI_GetValueDouble(address(first[next], 7992), to) == 3 * (me + 0.5));
            EXPECT(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &counter, first[next], 3, to) == 0 && counter == 0);
        }
        EXPECT(ARMCI_PutValueLong(10 + me, second[next], to) == 0 &&
               ARMCI_PutValueLong(20 + me, all[(me + 1) % n], (me + 1) % n) == 0);
        armci_msg_group_barrier(&half);
        int before = list[(half.rank + size - 1) % size];
        EXPECT(ARMCI_GetValueLong(second[half.rank], me) == 10 + before && *(long *)second[half.rank] == 10 + before);
        ((long *)second[half.rank])[1] = 5 + me; /* a plain store, which the group's barrier brings to the copies */
        armci_msg_group_barrier(&half);
        EXPECT(ARMCI_GetValueLong(address(second[next], 8), to) == 5 + to);
        ARMCI_Barrier();
        EXPECT(*(long *)all[me] == 20 + (me + n - 1) % n);
        EXPECT(ARMCI_Free_group(second[half.rank], &half) == 0 && ARMCI_Free_group(first[half.rank], &half) == 0);
        EXPECT(ARMCI_Free(all[me]) == 0);
    }
    if (ALL_CALLS)
        test_exchange(&half, list, size);
    long value = 40 + me, found = -1;
    void *base[64];
    EXPECT(ARMCI_Malloc_group(base, 8 * size, &half) == 0);
    for (int m = 0; m < size; m++)
        EXPECT(ARMCI_NbPut(&value, address(base[m], 8 * half.rank), 8, list[m], NULL) == 0);
    if (ALL_CALLS)
        ARMCI_GroupFence(&half); /* by others, too, as a get tells */
    else
        ARMCI_AllFence();
    EXPECT(ARMCI_Get(address(base[size - 1], 8 * half.rank), &found, 8, list[size - 1]) == 0 && found == value);
    armci_msg_group_barrier(&half);
    EXPECT(ARMCI_Free_group(base[half.rank], &half) == 0);
    ARMCI_Group_free(&half);
}

/* What one process makes by itself, others use; in any order, while all have memory of their own. */
static void test_memory_of_one(void)
{
    enum { MEMGET_WORDS = 600 };
    armci_meminfo_t own, other;
    int to = (me + 1) % n, from = (me + n - 1) % n;
    ARMCI_Memget(8 * MEMGET_WORDS, &own, 0);
    EXPECT(own.cpid == me && own.size == 8 * MEMGET_WORDS && own.armci_addr && ARMCI_Memat(&own, 0) == own.armci_addr);
    long *mine = ARMCI_Memat(&own, 0), value = 1000 + me, got = -1;
    EXPECT(mine[0] == 0 && mine[MEMGET_WORDS - 1] == 0);
    other = own;
    if (n > 1) {
        armci_msg_snd(11, &own, sizeof own, from);
        armci_msg_rcv(11, &other, sizeof other, NULL, to);
    }
    char *theirs = ARMCI_Memat(&other, 0);
    EXPECT(theirs && (n == 1 || (char *)ARMCI_Memat(&other, 16) == theirs + 16));
    EXPECT(ARMCI_Put(&value, theirs + 8, 8, to) == 0);
    EXPECT(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &got, theirs, 3, to) == 0 && got == 0);
    EXPECT(ARMCI_GetValueLong(theirs + 8, to) == value);
    ARMCI_Barrier();
    EXPECT(mine[0] == 3 && mine[1] == 1000 + from);
    mine[2] = 5 + me; /* plain stores, of the maker and of who shares its node */
    if (ARMCI_Same_node(to))
        ((long *)(void *)theirs)[3] = 7 + me;
    ARMCI_Barrier();
    EXPECT(ARMCI_GetValueLong(theirs + 16, to) == 5 + to);
    EXPECT(!ARMCI_Same_node(from) || mine[3] == 7 + from);
    ARMCI_Memdt(&other, 0);
    if (n > 1) {
        EXPECT(ARMCI_GetValueLong(theirs + 8, to) == value); /* attached twice */
        ARMCI_Memdt(&other, 16);
    }
    ARMCI_Barrier();
    ARMCI_Memctl(&own);
    EXPECT(!own.armci_addr && !own.addr);
    if (to != me)
        ARMCI_Memctl(&other);
}

/* Nobody but the members of a group has memory: all meet all the same. */
static void test_memory_of_some(void)
{
    ARMCI_Group some;
    void *base[64];
    int list[2] = {0, n / 2}, members = n > 1 ? 2 : 1;
    bool member = me == 0 || me == n / 2;
    ARMCI_Group_create(members, list, &some);
    if (member) {
        EXPECT(ARMCI_Malloc_group(base, 16, &some) == 0);
        *(long *)base[some.rank] = me;
    }
    ARMCI_Barrier();
    int sum = 1;
    armci_msg_igop(&sum, 1, "+");
    EXPECT(sum == n);
    ARMCI_Barrier();
    if (member)
        EXPECT(ARMCI_Free_group(base[some.rank], &some) == 0);
    ARMCI_Group_free(&some);
}

/* Round a ring: who is notified sees what was put before, also without waiting for the put. */
static void test_notifications(void)
{
    enum { ROUNDS = 20 };
    void *base[64];
    int to = (me + 1) % n, from = (me + n - 1) % n, waited = 0;
    EXPECT(ARMCI_Malloc(base, 8 * ROUNDS) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        long value = 1000 * me + i;
        EXPECT(ARMCI_NbPut(&value, address(base[to], 8 * i), 8, to, NULL) == 0);
        EXPECT(armci_notify(to) == i + 1);
        EXPECT(armci_notify_wait(from, i % 2 ? &waited : NULL) >= i + 1 && (i % 2 == 0 || waited == i + 1));
        EXPECT(((long *)base[me])[i] == 1000 * from + i);
    }
    ARMCI_Barrier();
    EXPECT(ARMCI_Free(base[me]) == 0);
}

/* Longer than one message of Keel's; in any order of tags; to oneself. */
static void test_long_messages(void)
{
    enum { LONG = 300000 };
    static char out[LONG], in[LONG];
    int to = (me + 1) % n, from = (me + n - 1) % n, length = 0;
    for (int i = 0; i < LONG; i++)
        out[i] = (char)(i / 7 + me);
    armci_msg_snd(5, out, LONG, to);
    armci_msg_snd(6, out, 65536, to);
    armci_msg_snd(7, out, 0, to);
    armci_msg_rcv(7, in, 0, NULL, from);
    armci_msg_rcv(6, in, LONG, &length, from);
    EXPECT(length == 65536);
    armci_msg_rcv(5, in, LONG, &length, from);
    EXPECT(length == LONG);
    for (int i = 0; i < LONG; i++)
        EXPECT(in[i] == (char)(i / 7 + from));
    armci_msg_barrier();
}

int main(int argc, char **argv)
{
    EXPECT(!ARMCI_Initialized());
    EXPECT(ARMCI_Init_args(&argc, &argv) == 0 && ARMCI_Initialized() && ARMCI_Init() == 0);
    me = armci_msg_me();
    n = armci_msg_nproc();
    test_memory_of_some(); /* before there is any of all */
    test_contiguous();
    test_handles();
    test_values();
    test_strided();
    test_vector();
    test_vectors_that_overlap();
    test_accumulate_types();
    test_rmw_and_mutexes();
    test_collectives();
    test_messages();
    test_messages_from_anybody();
    test_groups_and_domains();
    test_memory_of_groups();
    if (ALL_CALLS) {
        test_nodes();
        test_memory_of_one();
        test_notifications();
    }
    test_long_messages();
    if (me == 0)
        printf("armci: all right on %d processes\n", n);
    EXPECT(ARMCI_Finalize() == 0 && !ARMCI_Initialized());
    return 0;
}
