/* update REDUNDANCY: plain stores into replicated memory (keel/update.h). Between its phases rank 0 waits for a line, and everything
 * rests.
 *   1  each rank has stored all of its part, once watched and once told; all copies have it
 *   2  the same after some more stores, between what others put and added there
 *   3  stores that no other copy has
 *   4  the test has killed a node: what was brought to the copies is there, and the stores of phase 3 are there or not */
#include <keel/keel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

enum {
    WORDS = 40003,
    STEP = 7,
    OTHERS = 3
}; /* parts do not begin at pages; who stores: i % STEP == 0, who puts: == OTHERS */
static int me, n;
static keel_segment *seen, *told;

static int64_t value(int rank, int i, int round)
{
    return (int64_t)round << 48 | (int64_t)rank << 32 | i;
}

static void rest(int phase)
{
    char line[8];
    CHECK(keel_barrier());
    if (me == 0) {
        printf("phase %d\n", phase);
        fflush(stdout);
        EXPECT(fgets(line, sizeof line, stdin));
    }
    CHECK(keel_barrier());
}

static void bring(void)
{
    CHECK(keel_fence_all());
    CHECK(keel_barrier());
    CHECK(keel_update_flush(NULL));
    CHECK(keel_barrier());
}

static void store_all(void)
{
    int64_t *mine = keel_address(seen, me), *at;
    for (int i = 0; i < WORDS; i++)
        mine[i] = value(me, i, 1);
    void *place;
    CHECK(keel_update_begin(told, 0, sizeof(int64_t) * WORDS, &place));
    at = place;
    for (int i = 0; i < WORDS; i++)
        at[i] = value(me, i, 1);
    CHECK(keel_update_end(told, 0, sizeof(int64_t) * WORDS));
    EXPECT(((int64_t *)keel_address(told, me))[WORDS - 1] == value(me, WORDS - 1, 1));
}

/* Others put and add to my part while I store into other words of it. */
static void store_among_others(void)
{
    int next = (me + 1) % n;
    int64_t *mine = keel_address(seen, me);
    for (int i = 0; i < WORDS; i++) {
        int64_t v = value(next, i, 2), one = 1;
        if (i % STEP == 0)
            mine[i] = value(me, i, 2);
        else if (i % OTHERS == 3 && i % 5 == 0)
            CHECK(keel_put_nb(seen, next, 8 * (size_t)i, &v, 8, NULL));
        else if (i % OTHERS == 3)
            CHECK(keel_acc(seen, next, 8 * (size_t)i, KEEL_INT64, NULL, &one, 1));
        if (i % OTHERS == 100)
            CHECK(keel_fence_all());
    }
}

static int64_t expected(int rank, int i)
{
    if (i % STEP == 0 || (i % OTHERS == 3 && i % 5 == 0))
        return value(rank, i, 2);
    return value(rank, i, 1) + (i % OTHERS == 3);
}

/* The number of words with the stores of phase 3; every other one is as it was brought. */
static int look(int rank)
{
    static int64_t got[WORDS];
    int late = 0;
    CHECK(keel_get(seen, rank, 0, got, sizeof got));
    for (int i = 0; i < WORDS; i++) {
        late += got[i] == value(rank, i, 3);
        EXPECT(got[i] == expected(rank, i) || (i % STEP == 1 && got[i] == value(rank, i, 3)));
    }
    CHECK(keel_get(told, rank, 0, got, sizeof got));
    for (int i = 0; i < WORDS; i++)
        EXPECT(got[i] == value(rank, i, 1));
    return late;
}

static void wrong_arguments(void)
{
    EXPECT(keel_update_begin(told, 8 * WORDS, 1, NULL) == KEEL_ERR_ARG &&
           keel_update_begin(NULL, 0, 0, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_update_end(told, 1, SIZE_MAX) == KEEL_ERR_ARG && keel_segment_track(NULL) == KEEL_ERR_ARG);
    keel_segment *single;
    void *at;
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_NONE, &single));
    CHECK(keel_segment_track(single));
    CHECK(keel_update_begin(single, 8, 8, &at));
    EXPECT(at == (char *)keel_address(single, me) + 8);
    memset(at, 1, 8);
    CHECK(keel_update_end(single, 8, 8));
    CHECK(keel_update_flush(single));
    CHECK(keel_segment_free(single));
}

/* A get is a store, too, where the system itself does it. */
static void get_into_watched(keel_redundancy copies)
{
    keel_segment *s;
    int next = (me + 1) % n;
    CHECK(keel_segment_alloc(3 * sizeof(int64_t) * WORDS, copies, &s));
    CHECK(keel_segment_track(s));
    int64_t *mine = keel_address(s, me);
    keel_strided shape = {.levels = 1, .count = {8, WORDS}, .global_stride = {8}, .local_stride = {16}};
    CHECK(keel_get(told, next, 0, mine, sizeof(int64_t) * WORDS));
    CHECK(keel_get_strided(told, next, 0, mine + WORDS, &shape));
    for (int i = 0; i < WORDS; i++)
        EXPECT(mine[i] == value(next, i, 1) && mine[WORDS + 2 * i] == value(next, i, 1));
    bring();
    CHECK(keel_segment_free(s));
}

int main(int argc, char **argv)
{
    EXPECT(keel_segment_track(NULL) == KEEL_ERR_STATE && keel_update_flush(NULL) == KEEL_ERR_STATE);
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    EXPECT(argc == 2);
    keel_redundancy copies = strcmp(argv[1], "triple") == 0 ? KEEL_REDUNDANCY_TRIPLE : KEEL_REDUNDANCY_SHADOW;
    CHECK(keel_segment_alloc(sizeof(int64_t) * WORDS, copies, &seen));
    CHECK(keel_segment_alloc(sizeof(int64_t) * WORDS, copies, &told));
    void *before = keel_address(seen, me);
    CHECK(keel_segment_track(seen));
    CHECK(keel_segment_track(seen));
    EXPECT(keel_address(seen, me) == before);
    wrong_arguments();
    store_all();
    bring();
    get_into_watched(copies);
    rest(1);
    store_among_others();
    bring();
    rest(2);
    int64_t *mine = keel_address(seen, me);
    for (int i = 1; i < WORDS; i += STEP)
        mine[i] = value(me, i, 3);
    rest(3);
    for (int r = me; r < n; r += n) {
        int late = look(r);
        EXPECT(late == (WORDS + STEP - 2) / STEP); /* its own node's copy has them */
    }
    if (me == 0) {
        for (int r = 1; r < n; r++)
            printf("rank %d: %s\n", r, look(r) ? "kept" : "lost");
        CHECK(keel_segment_free(NULL));
    }
    return keel_finalize() != KEEL_OK;
}
