/* made COUNT: what groups leave when they are freed. So many are made by splits, by shrinks, by a list with one tag,
 * and by a list with a tag each; the memory in use is the same before and after, but for the 16 bytes of each list and
 * tag, and for what groups that were on their way out at a time leave for later ones: on a busy machine that is some
 * hundred groups. Exit 0 if all is right; it hangs if something stays of each. */
#include <keel/keel.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/expect.h"

enum { KEPT = 8, FIRST = 200, SLACK = 256 * 1024, NUMBER = 16, GROWTH = 2 /* of a table that doubles */ };

enum way { BY_SPLIT, BY_SHRINK, BY_ONE_TAG, BY_TAGS, WAYS };
static const char *const names[] = {"split", "shrink", "one list and tag", "a tag each"};
static int *all_ranks;

static keel_group *make(enum way way, int k)
{
    keel_group *g = NULL;
    if (way == BY_SPLIT)
        CHECK(keel_group_split(keel_group_world(), 0, k % 2 ? keel_rank() : -keel_rank(), &g));
    else if (way == BY_SHRINK)
        CHECK(keel_group_shrink(keel_group_world(), &g));
    else
        CHECK(keel_group_create(all_ranks, keel_size(), way == BY_TAGS ? (uint64_t)k + 1 : 0, &g));
    return g;
}

static void make_many(enum way way, int from, int to)
{
    keel_group *kept[KEPT] = {NULL};
    int64_t x = 1, y;
    for (int k = from; k < to; k++) {
        CHECK(keel_group_free(kept[k % KEPT]));
        kept[k % KEPT] = make(way, k);
        if (k % 50 == 0)
            CHECK(keel_group_allreduce(kept[k % KEPT], &x, &y, 1, &(keel_combine){.type = KEEL_INT64, .op = KEEL_SUM}));
    }
    for (int k = 0; k < KEPT; k++)
        CHECK(keel_group_free(kept[k]));
}

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* A freed group goes when all have freed it, which each hears inside its calls. */
static size_t settled(size_t most)
{
    size_t now;
    uint64_t fits = 0;
    while (!fits) {
        now = in_use();
        CHECK(keel_group_agree(keel_group_world(), KEEL_GROUP_AND, now <= most, &fits));
    }
    return now;
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2);
    int count = atoi(argv[1]);
    CHECK(keel_init());
    all_ranks = calloc((size_t)keel_size(), sizeof *all_ranks);
    EXPECT(all_ranks);
    for (int r = 0; r < keel_size(); r++)
        all_ranks[r] = r;
    for (enum way way = 0; way < WAYS; way++) {
        make_many(way, 0, FIRST);
        CHECK(keel_barrier());
        size_t before = in_use(), numbers = way == BY_TAGS ? (size_t)(FIRST + count) * NUMBER * GROWTH : 0;
        make_many(way, FIRST, FIRST + count);
        size_t after = settled(before + numbers + SLACK);
        if (keel_rank() == 0)
            printf("%d groups by %s: %zu bytes in use before, %zu after\n", count, names[way], before, after);
    }
    free(all_ranks);
    CHECK(keel_finalize());
    return 0;
}
