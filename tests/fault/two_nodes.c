/* two_nodes: a program with three copies of its data. It says `here` when these are written, and waits for two nodes to die together. Who takes
 * their place finds the data and allocates with the others. Exit 0 if so. */
#include "../lib/expect.h"

#include <string.h>

enum { WORDS = 64 };

static void look(keel_segment *s)
{
    int64_t words[WORDS];
    for (int r = 0; r < keel_size(); r++) {
        CHECK(keel_get_strong(s, r, 0, words, sizeof words));
        for (int i = 0; i < WORDS; i++)
            EXPECT(words[i] == r * 1000 + i);
    }
}

int main(void)
{
    keel_segment *data, *more;
    int64_t words[WORDS];
    uint64_t done = 0;
    CHECK(keel_init());
    int me = keel_rank(), right = (me + 1) % keel_size();
    CHECK(keel_segment_alloc(sizeof words, KEEL_REDUNDANCY_TRIPLE, &data));
    CHECK(keel_resume(&done));
    if (done == 0) {
        for (int i = 0; i < WORDS; i++)
            words[i] = me * 1000 + i;
        CHECK(keel_put(data, me, 0, words, sizeof words));
        CHECK(keel_barrier());
        CHECK(keel_event("here", me, NULL));
        while (keel_view_epoch() == 0)
            usleep(1000);
    }
    look(data);
    CHECK(keel_barrier());
    CHECK(keel_segment_alloc(sizeof words, KEEL_REDUNDANCY_TRIPLE, &more));
    memset(words, me, sizeof words);
    CHECK(keel_put(more, right, 0, words, sizeof words));
    CHECK(keel_barrier());
    memset(words, 0, sizeof words);
    CHECK(keel_get(more, right, 0, words, sizeof words));
    EXPECT(words[WORDS - 1] == me * 0x0101010101010101);
    CHECK(keel_segment_free(more));
    look(data);
    printf("%d: right\n", me);
    return keel_finalize() == KEEL_OK ? 0 : 1;
}
