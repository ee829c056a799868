/* many: as many segments as the agents' descriptors are enough for (keel_segment_alloc(3)); the next one is
 * KEEL_ERR_NOMEM on all ranks, those that are there work, and when they are freed there is room again. To be started
 * with a low limit (ulimit -n). Exit 0 if all is right. */
#include <stdlib.h>

#include "../lib/expect.h"

enum { MANY = 2000, FEW = 20 };

int main(void)
{
    static keel_segment *segment[MANY];
    keel_status status = KEEL_OK;
    uint64_t n = 0, least, most;
    CHECK(keel_init());
    int me = keel_rank(), next = (me + 1) % keel_size();
    while (n < MANY && (status = keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &segment[n])) == KEEL_OK)
        n++;
    EXPECT_STATUS(status, KEEL_ERR_NOMEM);
    EXPECT(n > FEW && !segment[n]);
    CHECK(keel_group_agree(keel_group_world(), KEEL_GROUP_MIN, n, &least));
    CHECK(keel_group_agree(keel_group_world(), KEEL_GROUP_MAX, n, &most));
    EXPECT(least == n && most == n);
    for (uint64_t i = 0; i < n; i++) {
        int64_t word = (int64_t)i * 100 + me;
        CHECK(keel_put(segment[i], next, 8, &word, sizeof word));
    }
    CHECK(keel_barrier());
    for (uint64_t i = 0; i < n; i++) {
        int64_t word = -1;
        CHECK(keel_get(segment[i], next, 8, &word, sizeof word));
        EXPECT(word == (int64_t)i * 100 + me);
        CHECK(keel_segment_free(segment[i]));
    }
    for (int i = 0; i < FEW; i++)
        CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &segment[i]));
    for (int i = 0; i < FEW; i++)
        CHECK(keel_segment_free(segment[i]));
    CHECK(keel_finalize());
    return 0;
}
