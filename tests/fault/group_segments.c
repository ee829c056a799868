/* group_segments COUNT: all ranks but the last are a group, and allocate and free segments of it while some of them die
 * inside these calls. Those who live get the same segments, at the same place, and use each part of them, those of the
 * dead, too. The last rank has attached memory that rank 0 made alone, and uses it in the end. Exit 0 if so. */
#include "../lib/expect.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 3000 };

/* Each member that lives writes one piece of each part, as many as there are ranks; nobody else does. */
static void use(keel_segment *s, keel_group *g, int round)
{
    unsigned char piece[UNIT];
    int me = keel_rank(), members = keel_group_size(g);
    memset(piece, me * 16 + round, sizeof piece);
    for (int m = 0; m < members; m++)
        CHECK(keel_put(s, keel_group_to_world(g, m), (size_t)me * UNIT, piece, sizeof piece));
    CHECK(keel_fence_all());
    CHECK(keel_group_barrier(g));
    for (int m = 0; m < members; m++)
        for (int w = 0; w < members; w++) {
            int writer = keel_group_to_world(g, w);
            CHECK(keel_get(s, keel_group_to_world(g, m), (size_t)writer * UNIT, piece, sizeof piece));
            unsigned char expected = (unsigned char)(writer * 16 + round);
            for (int i = 0; i < UNIT; i++)
                EXPECT(piece[i] == expected || !keel_rank_alive(writer));
        }
}

/* The same address and number of bytes for all who live. */
static void same(keel_segment *s, keel_group *g)
{
    uint64_t mine = (uint64_t)(uintptr_t)keel_address(s, keel_group_to_world(g, 0)), least = mine, most = mine;
    CHECK(keel_group_agree(g, KEEL_GROUP_MIN, mine, &least));
    CHECK(keel_group_agree(g, KEEL_GROUP_MAX, mine, &most));
    EXPECT(least == most && mine != 0);
}

/* Rank 0 makes memory alone, and the last rank uses it, whatever becomes of rank 0 and its node. */
static keel_segment *lend_and_attach(void)
{
    int me = keel_rank(), last = keel_size() - 1;
    size_t bytes = UNIT + 8;
    keel_segment *s = NULL;
    keel_segment_part part;
    keel_group *alone;
    if (me == 0) {
        CHECK(keel_group_create(&me, 1, 0, &alone));
        CHECK(keel_segment_alloc_group(alone, &bytes, KEEL_REDUNDANCY_SHADOW, &s));
        CHECK(keel_segment_describe(s, 0, &part));
        CHECK(keel_message_send(last, 1, &part, sizeof part));
        CHECK(keel_wait_until(s, 0, KEEL_EQ, 1, last, NULL));
    }
    if (me == last) {
        unsigned char piece[UNIT];
        memset(piece, 99, sizeof piece);
        CHECK(keel_message_receive(0, 1, &part, sizeof part, NULL, NULL));
        CHECK(keel_segment_attach(&part, &s));
        CHECK(keel_put_signal(s, 0, 8, piece, sizeof piece, 0, 1));
    }
    return s;
}

static void look_at_it(keel_segment *s)
{
    unsigned char piece[UNIT];
    int64_t old;
    CHECK(keel_get(s, 0, 8, piece, sizeof piece));
    for (int i = 0; i < UNIT; i++)
        EXPECT(piece[i] == 99);
    CHECK(keel_fetch_add(s, 0, 0, 5, &old));
    EXPECT(old == 1);
    CHECK(keel_put(s, 0, 8, &old, 8));
    CHECK(keel_fetch_add(s, 0, 8, 5, &old));
    EXPECT(old == 1);
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 3;
    CHECK(keel_init());
    int n = keel_size(), members = n - 1, list[16];
    size_t bytes[16];
    keel_group *g;
    for (int m = 0; m < members; m++) {
        list[m] = m;
        bytes[m] = (size_t)n * UNIT;
    }
    keel_segment *lent = lend_and_attach();
    if (keel_rank() < members) {
        CHECK(keel_group_create(list, members, 0, &g));
        keel_segment *before = NULL, *s;
        for (int i = 0; i < count; i++) {
            CHECK(keel_segment_alloc_group(g, bytes, KEEL_REDUNDANCY_SHADOW, &s));
            same(s, g);
            use(s, g, i);
            if (before)
                CHECK(keel_segment_free(before));
            before = s;
        }
        use(before, g, count);
        CHECK(keel_segment_free(before));
    }
    keel_segment *of_all; /* numbers and places of all are as if nothing had been */
    CHECK(keel_barrier());
    CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &of_all));
    CHECK(keel_put(of_all, n - 1, 8 * ((size_t)keel_rank() % 8), &(int64_t){1}, 8));
    CHECK(keel_barrier());
    if (keel_rank() == n - 1)
        look_at_it(lent);
    printf("rank %d: right\n", keel_rank());
    fflush(stdout);
    CHECK(keel_finalize());
    return 0;
}
