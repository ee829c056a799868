/* parts: segments whose parts differ, segments of groups, and what a segment says of itself: keel/segment.h. Exit 0
 * if all is right. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { RANKS_MAX = 64 };

static int me, n;

/* Rank 1 has none; the others differ. */
static size_t size_of(int rank)
{
    return rank == 1 ? 0 : 1000 * (size_t)(rank + 1) + 8;
}

/* Each rank of the list writes the whole part of the next; all are right after that, and nobody has written beside. */
static void use(keel_segment *s, keel_group *group)
{
    int members = keel_group_size(group), place = keel_group_rank(group);
    int next = keel_group_to_world(group, (place + 1) % members);
    size_t bytes = keel_segment_bytes(s, next);
    unsigned char *out = malloc(bytes + 1), *in = malloc(keel_segment_bytes_per_rank(s) + 1);
    EXPECT(out && in);
    memset(out, 1 + next, bytes);
    CHECK(keel_put(s, next, 0, out, bytes));
    CHECK(keel_group_barrier(group));
    for (int m = 0; m < members; m++) {
        int r = keel_group_to_world(group, m);
        size_t len = keel_segment_bytes(s, r);
        CHECK(keel_get(s, r, 0, in, len));
        for (size_t i = 0; i < len; i++)
            EXPECT(in[i] == 1 + r);
        EXPECT(keel_get(s, r, 0, in, len + 1) == KEEL_ERR_ARG && keel_put(s, r, len, in, 1) == KEEL_ERR_ARG);
        CHECK(keel_put(s, r, len, in, 0));
    }
    CHECK(keel_group_barrier(group));
    int64_t word = 0, sum = 0;
    double one = 1, got;
    if (bytes >= 16) {
        CHECK(keel_put(s, next, bytes - 8, &sum, 8));
        CHECK(keel_acc_double(s, next, bytes - 8, 2.0, &one, 1));
        CHECK(keel_get(s, next, bytes - 8, &got, 8));
        EXPECT(got == 2);
        CHECK(keel_put(s, next, 0, &word, 8));
        CHECK(keel_fetch_add(s, next, 0, 5, &word));
        EXPECT(word == 0 && keel_fetch_add(s, next, bytes, 1, NULL) == KEEL_ERR_ARG);
    }
    CHECK(keel_group_barrier(group));
    free(out);
    free(in);
}

/* The same in every member's process; a place of its own for each part; and back from the address. */
static void addresses(keel_segment *s, keel_group *group)
{
    int members = keel_group_size(group);
    for (int m = 0; m < members; m++) {
        int r = keel_group_to_world(group, m);
        size_t len = keel_segment_bytes(s, r), offset;
        uint64_t mine = (uintptr_t)keel_address(s, r), least, most;
        keel_segment *found;
        CHECK(keel_group_agree(group, KEEL_GROUP_MIN, mine, &least));
        CHECK(keel_group_agree(group, KEEL_GROUP_MAX, mine, &most));
        EXPECT(mine && least == most);
        const char *at = keel_address(s, r);
        if (len) {
            CHECK(keel_locate(r, at + len - 1, &found, &offset));
            EXPECT(found == s && offset == len - 1);
        }
        EXPECT(keel_locate(r, at + len, &found, &offset) == KEEL_ERR_ARG);
    }
}

static void queries(keel_segment *s, keel_redundancy redundancy)
{
    int nodes[KEEL_COPIES_MAX], copies;
    EXPECT(keel_segment_redundancy(s) == redundancy);
    for (int r = 0; r < n; r++) {
        CHECK(keel_segment_copies(s, r, nodes, &copies));
        EXPECT(copies >= 1 && copies <= 1 + (int)redundancy);
        EXPECT(keel_node_count() == 1 || copies == 1 + (int)redundancy || copies == keel_node_count());
        EXPECT(nodes[0] == keel_rank_node(r)); /* nobody has died */
        for (int i = 1; i < copies; i++)
            EXPECT(nodes[i] >= 0 && nodes[i] < keel_node_count() && nodes[i] != nodes[0]);
    }
    EXPECT(keel_segment_copies(NULL, 0, nodes, &copies) == KEEL_ERR_ARG);
    EXPECT(keel_segment_copies(s, n, nodes, &copies) == KEEL_ERR_ARG);
    EXPECT(keel_segment_copies(s, 0, NULL, &copies) == KEEL_ERR_ARG);
    EXPECT(keel_segment_bytes(s, -1) == 0 && keel_segment_bytes(s, n) == 0 && keel_segment_bytes(NULL, 0) == 0);
}

static void parts(keel_redundancy redundancy)
{
    size_t bytes[RANKS_MAX] = {0}, largest = 0;
    keel_segment *s;
    for (int r = 0; r < n; r++) {
        bytes[r] = size_of(r);
        largest = bytes[r] > largest ? bytes[r] : largest;
    }
    CHECK(keel_segment_alloc_parts(bytes, redundancy, &s));
    EXPECT(keel_segment_bytes_per_rank(s) == largest);
    for (int r = 0; r < n; r++)
        EXPECT(keel_segment_bytes(s, r) == size_of(r));
    queries(s, redundancy);
    addresses(s, keel_group_world());
    use(s, keel_group_world());
    CHECK(keel_segment_free(s));
    /* what differs is told to all, and nothing is left */
    bytes[0] += (size_t)me;
    keel_status wanted = n == 1 ? KEEL_OK : KEEL_ERR_MISMATCH;
    EXPECT(keel_segment_alloc_parts(bytes, redundancy, &s) == wanted);
    CHECK(keel_segment_free(s));
    EXPECT(keel_segment_alloc_parts(me == 0 ? NULL : bytes, redundancy, &s) ==
           (n == 1 ? KEEL_ERR_ARG : KEEL_ERR_MISMATCH));
    EXPECT(keel_segment_alloc(8, me == 0 ? (keel_redundancy)7 : redundancy, &s) ==
           (n == 1 ? KEEL_ERR_ARG : KEEL_ERR_MISMATCH));
    EXPECT(keel_segment_alloc(8, redundancy, me == n - 1 ? NULL : &s) == KEEL_ERR_ARG);
    EXPECT(keel_segment_alloc(me == 0 ? 8 : SIZE_MAX / 2, redundancy, &s) == (n == 1 ? KEEL_OK : KEEL_ERR_MISMATCH));
    CHECK(keel_segment_free(s));
}

/* Two groups that know nothing of each other, each with its own segments; and one of both. */
static void groups(keel_redundancy redundancy)
{
    keel_group *half, *pair[2] = {NULL, NULL};
    keel_segment *s[4], *of_all, *of_pair;
    size_t bytes[RANKS_MAX] = {0}, same[RANKS_MAX];
    CHECK(keel_group_split(keel_group_world(), me % 2, n - me, &half));
    int members = keel_group_size(half);
    for (int m = 0; m < members; m++) {
        bytes[m] = size_of(keel_group_to_world(half, m));
        same[m] = 64;
    }
    for (int i = 0; i <= me % 2; i++) { /* one has more than the other */
        CHECK(keel_segment_alloc_group(half, bytes, redundancy, &s[i]));
        for (int r = 0; r < n; r++)
            EXPECT(keel_segment_bytes(s[i], r) == (r % 2 == me % 2 ? size_of(r) : 0));
        EXPECT(n == 1 || keel_put(s[i], (me + 1) % n, 0, bytes, 1) == (n % 2 && me == n - 1 ? KEEL_OK : KEEL_ERR_ARG) ||
               size_of((me + 1) % n) == 0);
        CHECK(keel_group_barrier(half));
        use(s[i], half);
        addresses(s[i], half);
    }
    CHECK(keel_segment_alloc(104, redundancy, &of_all)); /* places and numbers of all are not disturbed */
    CHECK(keel_segment_alloc_group(half, same, redundancy, &s[2]));
    use(s[2], half);
    int list[2] = {0, n - 1};
    if (n > 2 && (me == 0 || me == n - 1)) { /* a group across, while members of it hold others */
        size_t two[2] = {504, 70000};
        CHECK(keel_group_create(list, 2, 0, &pair[0]));
        CHECK(keel_segment_alloc_group(pair[0], two, redundancy, &of_pair));
        addresses(of_pair, pair[0]);
        use(of_pair, pair[0]);
        CHECK(keel_segment_free(of_pair));
        CHECK(keel_group_free(pair[0]));
    }
    use(of_all, keel_group_world());
    addresses(of_all, keel_group_world());
    CHECK(keel_segment_free(of_all));
    for (int i = 0; i <= me % 2; i++)
        CHECK(keel_segment_free(s[i]));
    /* what is wrong at one member is told to all */
    bytes[0] += (size_t)me;
    EXPECT(keel_segment_alloc_group(half, bytes, redundancy, &s[3]) == (members == 1 ? KEEL_OK : KEEL_ERR_MISMATCH));
    CHECK(keel_segment_free(s[3]));
    bool first = keel_group_rank(half) == 0;
    EXPECT(keel_segment_alloc_group(half, first ? NULL : same, redundancy, &s[3]) == KEEL_ERR_ARG && !s[3]);
    EXPECT(keel_segment_alloc_group(half, same, first ? (keel_redundancy)3 : redundancy, &s[3]) == KEEL_ERR_ARG);
    EXPECT(keel_segment_alloc_group(NULL, same, redundancy, &s[3]) == KEEL_ERR_ARG && !s[3]);
    use(s[2], half);
    CHECK(keel_segment_free(s[2]));
    CHECK(keel_segment_alloc_group(half, same, redundancy, &s[3]));
    CHECK(keel_group_free(half));
    EXPECT(keel_segment_alloc_group(half, same, redundancy, &s[2]) == KEEL_ERR_ARG);
    EXPECT(keel_segment_free(s[3]) == KEEL_ERR_ARG); /* its group was to live longer */
    CHECK(keel_barrier());
}

/* What was freed is told, and nothing of what lives is damaged. */
static void freed(void)
{
    enum { MANY = 1100 };
    keel_segment *s, *other;
    unsigned char byte = 1;
    int64_t old;
    int nodes[KEEL_COPIES_MAX], copies;
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_NONE, &s));
    CHECK(keel_put(s, me, 0, &byte, 1)); /* by the fast way, if there is one */
    CHECK(keel_put(s, me, 0, &byte, 1));
    CHECK(keel_segment_free(s));
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_NONE, &other));
    EXPECT(keel_segment_free(s) == KEEL_ERR_ARG);
    EXPECT(keel_put(s, me, 0, &byte, 1) == KEEL_ERR_ARG && keel_get(s, me, 0, &byte, 1) == KEEL_ERR_ARG);
    EXPECT(keel_fetch_add(s, me, 0, 1, &old) == KEEL_ERR_ARG);
    EXPECT(!keel_address(s, me) && keel_segment_bytes(s, me) == 0 && keel_segment_bytes_per_rank(s) == 0);
    EXPECT(keel_segment_copies(s, me, nodes, &copies) == KEEL_ERR_ARG);
    CHECK(keel_get(other, me, 0, &byte, 1));
    EXPECT(byte == 0);
    for (int i = 0; n < 3 && i < MANY; i++) { /* more than are kept apart */
        CHECK(keel_segment_free(other));
        CHECK(keel_segment_alloc(64, i % 2 ? KEEL_REDUNDANCY_SHADOW : KEEL_REDUNDANCY_NONE, &other));
        size_t at = 8 * (size_t)(1 + me);
        CHECK(keel_get(other, n - 1, at, &old, 8));
        EXPECT(old == 0);
        old = i + 1;
        CHECK(keel_put(other, n - 1, at, &old, 8));
    }
    CHECK(keel_segment_free(other));
}

static void local(void)
{
    static const size_t sizes[] = {0, 1, 4096, 5 * 1024 * 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *at = keel_local_alloc(sizes[i]);
        EXPECT(at && (uintptr_t)at % 4096 == 0);
        for (size_t k = 0; k < sizes[i]; k++)
            EXPECT(at[k] == 0);
        memset(at, 1, sizes[i]);
        keel_local_free(at);
    }
    EXPECT(!keel_local_alloc(SIZE_MAX));
    keel_local_free(NULL);
}

int main(void)
{
    keel_segment *s;
    size_t one = 1;
    local();
    EXPECT(keel_segment_alloc_parts(&one, KEEL_REDUNDANCY_NONE, &s) == KEEL_ERR_STATE && !s);
    EXPECT(keel_segment_alloc_group(NULL, &one, KEEL_REDUNDANCY_NONE, &s) == KEEL_ERR_STATE && !s);
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    for (keel_redundancy r = KEEL_REDUNDANCY_NONE; r <= KEEL_REDUNDANCY_TRIPLE; r++) {
        parts(r);
        groups(r);
    }
    freed();
    local();
    CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_NONE, &s));
    CHECK(keel_finalize());
    int nodes[KEEL_COPIES_MAX], copies;
    EXPECT(keel_put(s, 0, 0, &one, 8) == KEEL_ERR_STATE && keel_get(s, 0, 0, &one, 8) == KEEL_ERR_STATE);
    EXPECT(!keel_address(s, 0) && keel_segment_bytes(s, 0) == 0 && keel_segment_free(s) == KEEL_ERR_STATE);
    EXPECT(keel_segment_copies(s, 0, nodes, &copies) == KEEL_ERR_STATE);
    return 0;
}
