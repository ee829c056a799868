/* A process dies within an update that it has begun (keel_update_begin). Another one of its node, which tracks the
 * segment, stores the same there and flushes, once a line has come; then the node dies. What was flushed is not
 * lost. */
#include <keel/keel.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { BEGINS = 2, FOLLOWS = 3, AT = 40, STORED = 77 };
static keel_segment *s;

static _Noreturn void die_in_an_update(void)
{
    void *at;
    CHECK(keel_update_begin(s, AT, sizeof(int64_t), &at));
    *(volatile int64_t *)at = STORED;
    (void)raise(SIGKILL);
    _exit(1);
}

static _Noreturn void store_the_same(void)
{
    volatile int64_t *word = (int64_t *)keel_address(s, BEGINS) + AT / sizeof *word;
    EXPECT(*word == STORED);
    *word = STORED;
    CHECK(keel_update_flush(s));
    kill(getppid(), SIGKILL);
    (void)raise(SIGKILL);
    _exit(1);
}

int main(void)
{
    char line[8];
    CHECK(keel_init());
    CHECK(keel_segment_alloc(200000, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_track(s));
    CHECK(keel_barrier());
    if (keel_rank() == BEGINS)
        die_in_an_update();
    CHECK(keel_barrier());
    if (keel_rank() == 0) {
        printf("phase 1\n");
        fflush(stdout);
        EXPECT(fgets(line, sizeof line, stdin));
    }
    CHECK(keel_barrier());
    if (keel_rank() == FOLLOWS)
        store_the_same();
    CHECK(keel_barrier());
    int64_t got = 0;
    CHECK(keel_get(s, BEGINS, AT, &got, sizeof got));
    EXPECT(got == STORED);
    return keel_finalize() != KEEL_OK;
}
