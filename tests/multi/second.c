/* second MODE: for second.py, a program that is started several times in one rank's place.
 *   whole      works with the others and leaves
 *   long N     works so N times
 *   unsaid     works and exits without keel_finalize
 *   forks      works beside a child of a fork that lives on, and leaves; the child ends much later
 *   taker      rank 1's first life waits to be killed; its second, and the others, work
 * Exit 0 if it was the rank and all is right, 7 if it was told that it is not: KEEL_ERR_NOT_LAUNCHED. */
#include <keel/keel.h>

#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

static void work(keel_segment *s, int times)
{
    int next = (keel_rank() + 1) % keel_size();
    int64_t got, one = 1;
    for (int64_t i = 1; i <= times; i++) {
        CHECK(keel_acc(s, next, 0, KEEL_INT64, NULL, &one, 1));
        CHECK(keel_barrier());
        CHECK(keel_get(s, next, 0, &got, sizeof got));
        EXPECT(got == i);
        CHECK(keel_barrier());
    }
}

static void take(keel_segment *s)
{
    uint64_t done;
    while (keel_rank() == 1 && !keel_restarted())
        pause();
    CHECK(keel_resume(&done));
    int64_t one = 1;
    CHECK(keel_acc(s, 0, 0, KEEL_INT64, NULL, &one, 1));
    CHECK(keel_barrier());
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "whole";
    keel_segment *s;
    keel_status status = keel_init();
    if (status == KEEL_ERR_NOT_LAUNCHED)
        return 7;
    CHECK(status);
    CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &s));
    if (strcmp(mode, "taker") == 0)
        take(s);
    else
        work(s, argc > 2 ? atoi(argv[2]) : 1);
    if (strcmp(mode, "unsaid") == 0)
        return 0;
    if (strcmp(mode, "forks") == 0 && fork() == 0) {
        sleep(2);
        EXPECT_STATUS(keel_barrier(), KEEL_ERR_STATE);
        return 0;
    }
    CHECK(keel_finalize());
    return 0;
}
