/* Segments that one process makes alone, as a group of itself, and others attach by a description that was sent to
 * them: every operation, at any process, from any; and what is wrong. Exit 0 if all is right. */
#include <keel/keel.h>

#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { RANKS_MAX = 16, FIRST = 64 };

static int me, n;

static size_t size_of(int rank)
{
    return (size_t)8 * FIRST + 4096 * (size_t)rank;
}

/* What the others find of the one that made it, and do to it: the sum in word 0, one word each, the last word's
 * bits. */
static void use(keel_segment *s, int owner)
{
    int64_t by = 1 + me, word = 100 * owner + me, old = -1, bit = (int64_t)1 << me, two[2] = {-me, owner};
    size_t last = size_of(owner) - 8, at = 8 * (size_t)(1 + me);
    const keel_strided pair = {.levels = 1, .count = {8, 2}, .global_stride = {8 * RANKS_MAX}, .local_stride = {8}};
    keel_handle handle;
    EXPECT(keel_segment_bytes(s, owner) == size_of(owner) && keel_segment_bytes_per_rank(s) == size_of(owner));
    EXPECT(n == 1 || owner == me || keel_segment_bytes(s, me) == 0);
    CHECK(keel_acc(s, owner, 0, KEEL_INT64, NULL, &by, 1));
    CHECK(keel_put_nb(s, owner, at, &word, 8, &handle));
    CHECK(keel_wait(&handle));
    CHECK(keel_get(s, owner, at, &old, 8));
    EXPECT(old == word);
    CHECK(keel_rmw(s, owner, last, KEEL_INT64, KEEL_RMW_OR, &bit, NULL, &old));
    EXPECT(!(old & bit));
    CHECK(keel_put_strided(s, owner, 8 * (size_t)(1 + RANKS_MAX + me), two, &pair));
    EXPECT_STATUS(keel_put(s, owner, last + 1, &word, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_put(s, n, 0, &word, 8), KEEL_ERR_ARG);
    EXPECT(owner == me || keel_put(s, me, 0, &word, 8) == KEEL_ERR_ARG);
}

static void look(keel_segment *s, int owner)
{
    int64_t words[FIRST], bits;
    CHECK(keel_get(s, owner, 0, words, sizeof words));
    CHECK(keel_get_strong(s, owner, size_of(owner) - 8, &bits, 8));
    EXPECT(words[0] == n * (n + 1) / 2 && bits == ((int64_t)1 << n) - 1);
    for (int r = 0; r < n; r++)
        EXPECT(words[1 + r] == 100 * owner + r && words[1 + RANKS_MAX + r] == -r &&
               words[1 + 2 * RANKS_MAX + r] == owner);
}

/* An address of the process's own, apart from those of all other segments; within the node it can be touched. */
static void addresses(keel_segment **s)
{
    for (int r = 0; r < n; r++) {
        keel_segment *found;
        size_t offset;
        char *at = keel_address(s[r], r);
        EXPECT(at);
        CHECK(keel_locate(r, at + 40, &found, &offset));
        EXPECT(found == s[r] && offset == 40);
        if (keel_rank_node(r) == keel_rank_node(me))
            EXPECT(*(int64_t *)(void *)(at + 8) == 100 * r);
    }
}

static void wrong(keel_segment *own, const keel_segment_part *right)
{
    keel_segment *s, *of_all;
    keel_segment_part part = *right;
    CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_NONE, &of_all));
    EXPECT_STATUS(keel_segment_describe(of_all, 0, &part), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_segment_describe(NULL, 0, &part), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_segment_describe(own, -1, &part), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_segment_describe(own, n, &part), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_segment_describe(own, me, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_segment_attach(NULL, &s), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_segment_attach(right, NULL), KEEL_ERR_ARG);
    for (size_t bit = 0; bit < 8 * sizeof part; bit++) { /* damaged on the way: refused, or it was not looked at */
        part = *right;
        ((unsigned char *)&part)[bit / 8] ^= (unsigned char)(1 << bit % 8);
        keel_status status = keel_segment_attach(&part, &s);
        EXPECT(status == KEEL_ERR_ARG ? !s : status == KEEL_OK && keel_segment_free(s) == KEEL_OK);
    }
    CHECK(keel_segment_free(of_all));
}

static void all_to_all(keel_redundancy redundancy)
{
    keel_segment *s[RANKS_MAX], *again;
    keel_segment_part part, parts[RANKS_MAX];
    keel_group *alone;
    size_t bytes = size_of(me);
    CHECK(keel_group_create(&me, 1, 0, &alone));
    CHECK(keel_segment_alloc_group(alone, &bytes, redundancy, &s[me]));
    CHECK(keel_segment_describe(s[me], me, &part));
    CHECK(keel_group_allgather(keel_group_world(), &part, parts, sizeof part));
    for (int i = 1; i < n; i++) { /* not all in the same order */
        int r = (me + i) % n;
        CHECK(keel_segment_attach(&parts[r], &s[r]));
        EXPECT(keel_segment_redundancy(s[r]) == redundancy);
    }
    for (int r = 0; r < n; r++)
        use(s[r], r);
    CHECK(keel_barrier());
    for (int r = 0; r < n; r++)
        look(s[r], r);
    addresses(s);
    /* what is attached can be attached once more, and described */
    int next = (me + 1) % n;
    CHECK(keel_segment_describe(s[next], next, &part));
    CHECK(keel_segment_attach(&part, &again));
    look(again, next);
    CHECK(keel_segment_free(again));
    EXPECT_STATUS(keel_segment_free(again), KEEL_ERR_ARG);
    look(s[next], next);
    wrong(s[me], &parts[me]);
    for (int i = 1; i < n; i++) /* it frees nothing of the owner's */
        CHECK(keel_segment_free(s[(me + i) % n]));
    CHECK(keel_barrier());
    look(s[me], me);
    CHECK(keel_segment_free(s[me]));
    CHECK(keel_barrier());
    CHECK(keel_segment_attach(&parts[next], &again)); /* nobody knows here that it is gone */
    int64_t word = 5;
    EXPECT_STATUS(keel_put(again, next, 0, &word, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_get(again, next, 0, &word, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_fetch_add(again, next, 0, 1, &word), KEEL_ERR_ARG);
    CHECK(keel_segment_free(again));
    CHECK(keel_group_free(alone));
    CHECK(keel_barrier());
}

/* A part of a larger group's, at a process outside; the members go on with theirs. */
static void of_a_group(void)
{
    int list[RANKS_MAX];
    size_t bytes[RANKS_MAX];
    keel_group *most = NULL;
    keel_segment *s = NULL, *attached;
    keel_segment_part part;
    for (int r = 0; r < n - 1; r++) {
        list[r] = r;
        bytes[r] = 1000 + 64 * (size_t)r;
    }
    if (me < n - 1) {
        CHECK(keel_group_create(list, n - 1, 0, &most));
        CHECK(keel_segment_alloc_group(most, bytes, KEEL_REDUNDANCY_SHADOW, &s));
        CHECK(keel_segment_describe(s, n - 2, &part));
    }
    CHECK(keel_bcast(0, &part, sizeof part));
    int64_t word = 77;
    if (me == n - 1) {
        CHECK(keel_segment_attach(&part, &attached));
        EXPECT(keel_segment_bytes(attached, n - 2) == 1000 + 64 * (size_t)(n - 2) &&
               (n == 2 || keel_segment_bytes(attached, 0) == 0));
        CHECK(keel_put(attached, n - 2, 992, &word, 8));
        CHECK(keel_signal(attached, n - 2, 0, 1));
        CHECK(keel_segment_free(attached));
    } else {
        if (me == n - 2)
            CHECK(keel_wait_until(s, 0, KEEL_GE, 1, n - 1, NULL));
        CHECK(keel_group_barrier(most));
        CHECK(keel_get(s, n - 2, 992, &word, 8));
        EXPECT(word == 77);
        CHECK(keel_segment_free(s));
        CHECK(keel_group_free(most));
    }
    CHECK(keel_barrier());
}

int main(void)
{
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    for (keel_redundancy r = KEEL_REDUNDANCY_NONE; r <= KEEL_REDUNDANCY_TRIPLE; r++)
        all_to_all(r);
    if (n > 1)
        of_a_group();
    CHECK(keel_finalize());
    return 0;
}
