/* refused WHO: a segment for which one node has no memory is KEEL_ERR_NOMEM for all who allocate it, a smaller one
 * after it is not, and all go on. Exit code 1 if it is otherwise. WHO allocates:
 *   group   the last rank alone, then the last two ranks, parts of LARGE bytes, in a job whose files may not have twice
 *           as many
 *   all     all ranks that live, when standard input has ended; ranks 2 and 3 wait for the end of their processes */
#include "../lib/expect.h"

#include <string.h>

enum { LARGE = 1500 * 1024, SMALL = 4096, FIRST_OF_THOSE_THAT_DIE = 2, LAST_OF_THEM = 3 };

/* Each writes to all parts that somebody has, and reads what it wrote. */
static void use(keel_segment *s, int first, int last)
{
    for (int r = first; r <= last; r++) {
        int64_t mine = 1000 * keel_rank() + r, found = 0;
        size_t at = 8 * (size_t)keel_rank();
        CHECK(keel_put(s, r, at, &mine, sizeof mine));
        CHECK(keel_fence_all());
        CHECK(keel_get(s, r, at, &found, sizeof found));
        EXPECT(found == mine);
    }
}

static void in_group(int members)
{
    int list[2], last = keel_size() - 1;
    size_t bytes[2];
    keel_group *g;
    keel_segment *s;
    for (int m = 0; m < members; m++)
        list[m] = last - members + 1 + m;
    if (keel_rank() < list[0])
        return;
    CHECK(keel_group_create(list, members, 0, &g));
    for (keel_redundancy r = KEEL_REDUNDANCY_NONE; r <= KEEL_REDUNDANCY_SHADOW; r++) {
        for (int m = 0; m < members; m++)
            bytes[m] = LARGE;
        EXPECT_STATUS(keel_segment_alloc_group(g, bytes, r, &s), KEEL_ERR_NOMEM);
        EXPECT(!s);
        for (int m = 0; m < members; m++)
            bytes[m] = SMALL;
        CHECK(keel_segment_alloc_group(g, bytes, r, &s));
        use(s, list[0], last);
        CHECK(keel_segment_free(s));
    }
    CHECK(keel_group_free(g));
}

static void among_all(void)
{
    keel_segment *before, *s;
    char byte;
    CHECK(keel_segment_alloc(SMALL, KEEL_REDUNDANCY_SHADOW, &before));
    CHECK(keel_event("begun", keel_rank(), NULL));
    if (keel_rank() >= FIRST_OF_THOSE_THAT_DIE && keel_rank() <= LAST_OF_THEM)
        for (;;)
            pause();
    if (keel_rank() == 0)
        EXPECT(read(STDIN_FILENO, &byte, 1) == 0);
    CHECK(keel_barrier());
    EXPECT_STATUS(keel_segment_alloc(LARGE, KEEL_REDUNDANCY_TRIPLE, &s), KEEL_ERR_NOMEM);
    EXPECT(!s);
    CHECK(keel_segment_alloc(SMALL, KEEL_REDUNDANCY_TRIPLE, &s));
    use(s, 0, keel_size() - 1);
    CHECK(keel_barrier());
    CHECK(keel_segment_free(s));
    use(before, 0, keel_size() - 1);
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2);
    CHECK(keel_init());
    if (strcmp(argv[1], "group") == 0) {
        in_group(1);
        in_group(2);
    } else {
        among_all();
    }
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    return 0;
}
