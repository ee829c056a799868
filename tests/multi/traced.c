/* traced: calls whose number traced.py knows. With an argument it ends without keel_finalize. */
#include <keel/keel.h>

#include <stdlib.h>

#include "../lib/expect.h"

enum { PUTS = 10 };

int main(int argc, char **argv)
{
    (void)argv;
    keel_segment *s;
    uint64_t word = 1, sum;
    CHECK(keel_init());
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_SHADOW, &s));
    for (int i = 0; i < PUTS; i++)
        CHECK(keel_put(s, (keel_rank() + 1) % keel_size(), 0, &word, sizeof word));
    EXPECT_STATUS(keel_put(s, keel_size(), 0, &word, sizeof word), KEEL_ERR_ARG);
    CHECK(keel_put_signal(s, keel_rank(), 8, &word, sizeof word, 16, 1)); /* one call, whatever it is made of */
    EXPECT_STATUS(keel_message_test(keel_rank(), 7, NULL, NULL), KEEL_IN_PROGRESS);
    CHECK(keel_group_agree(keel_group_world(), KEEL_GROUP_MAX, 1, &sum));
    EXPECT(keel_rank_alive(0));
    CHECK(keel_barrier());
    CHECK(keel_barrier());
    if (argc > 1)
        exit(0);
    CHECK(keel_finalize());
    return 0;
}
