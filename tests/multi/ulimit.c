/* ulimit: a segment of 300 MB where files may be smaller. KEEL_ERR_NOMEM, and nobody dies of it. Exit 0 if all is
 * right. */
#include "../lib/expect.h"

int main(void)
{
    keel_segment *s;
    CHECK(keel_init());
    EXPECT_STATUS(keel_segment_alloc((size_t)300 << 20, KEEL_REDUNDANCY_NONE, &s), KEEL_ERR_NOMEM);
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_NONE, &s));
    CHECK(keel_segment_free(s));
    CHECK(keel_finalize());
    return 0;
}
