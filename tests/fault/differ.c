/* differ: two ranks commit versions that differ, so that neither counts, and go back; then rank 1 dies once. Who
 * takes it over begins with the version before, as rank 0 does, and both commit the next one. */
#include <keel/keel.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "../lib/expect.h"

int main(void)
{
    int64_t x = 101;
    uint64_t version = 0, since = 0;
    CHECK(keel_init());
    const int me = keel_rank();
    CHECK(keel_keep_room(4096));
    CHECK(keel_keep("x", &x, sizeof x));
    CHECK(keel_keep_restore(&version, &since));
    printf("rank %d begins with version %d, x %d\n", me, (int)version, (int)x);
    fflush(stdout);
    if (version == 0) {
        CHECK(keel_keep_commit(1));
        x = 601;
        EXPECT(keel_keep_commit(me == 0 ? 5 : 6) == KEEL_ERR_MISMATCH);
        CHECK(keel_keep_rollback(&version));
        EXPECT(version == 1 && x == 101);
        if (me == 1)
            kill(getpid(), SIGKILL);
    } else {
        EXPECT(version == 1 && x == 101);
    }
    CHECK(keel_keep_commit(7));
    printf("rank %d ends with x %d\n", me, (int)x);
    fflush(stdout);
    return keel_finalize() != KEEL_OK;
}
