/* leaves ask|late|ends|tells|stays|falls|trips: how ranks end that are to go to another node, on a grid whose node 0 is
 * killed. Ranks count in a segment of three copies and meet after each step; in the end rank 0 says what all have
 * counted.
 *   ask    rank 2 is told that it is to go, waits until it is not, and ends by keel_finalize and 0 all the same
 *   late   1 and 2 are asked when all is done, call keel_finalize and write for longer than KEEL_LEAVE_MS
 *   tells  rank 2 is told that it is to go, calls keel_finalize at once, and writes for longer than KEEL_LEAVE_MS
 *   stays  rank 2 is told that it is to go, calls keel_finalize, and waits for a signal
 *   falls  rank 2 is told that it is to go, calls keel_finalize, and crashes
 *   trips  so does its next process, when all is done
 *   ends   rank 2, when it is to go, waits for SIGUSR1, which ends it with 5, SIGUSR2, with 0, or what else comes */
#include <keel/keel.h>
#include <keel/move.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { STEP_US = 20000, STEPS = 60, LINES = 30, LINE_US = 100000 };

static keel_segment *s;

static void end_by(int signal_number)
{
    _exit(signal_number == SIGUSR1 ? 5 : 0);
}

static void wait_until_asked(bool asked)
{
    while (keel_move_pending() != asked)
        usleep(1000);
}

/* True: the process is to return from main, having called keel_finalize. */
static bool goes(const char *how)
{
    if (!keel_move_pending())
        return false;
    if (keel_rank() != 2) {
        EXPECT(keel_move() == KEEL_ERR_STATE);
        return false;
    }
    CHECK(keel_event("asked", 2, NULL));
    if (strcmp(how, "ends") == 0)
        for (;;)
            pause();
    if (strcmp(how, "ask") == 0)
        wait_until_asked(false);
    return true;
}

static void write_lines(void)
{
    for (int i = 1; i <= LINES; i++) {
        usleep(LINE_US);
        printf("rank %d line %d\n", keel_rank(), i);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const bool late = strcmp(how, "late") == 0;
    uint64_t done;
    int64_t at, sum = 0;
    signal(SIGUSR1, end_by);
    signal(SIGUSR2, end_by);
    CHECK(keel_init());
    const int me = keel_rank();
    const bool restarted = keel_restarted();
    if (!late)
        CHECK(keel_move_mode(KEEL_MOVE_ASK));
    CHECK(keel_segment_alloc(sizeof at, KEEL_REDUNDANCY_TRIPLE, &s));
    CHECK(keel_resume(&done));
    CHECK(keel_event("begun", me, NULL));
    for (at = (int64_t)done + 1; at <= STEPS; at++) {
        if (at == STEPS / 2 && me == 2 && !late && !restarted)
            wait_until_asked(true); /* the job does not end before node 0 does, however late that is */
        if (!late && !keel_restarted() && goes(how)) {
            CHECK(keel_finalize());
            if (strcmp(how, "tells") == 0)
                write_lines();
            if (strcmp(how, "stays") == 0)
                pause();
            if (strcmp(how, "falls") == 0 || strcmp(how, "trips") == 0)
                raise(SIGSEGV);
            return 0;
        }
        usleep(STEP_US);
        CHECK(keel_put(s, me, 0, &at, sizeof at));
        CHECK(keel_barrier());
    }
    CHECK(keel_event("done", me, NULL));
    if (late && !keel_restarted())
        wait_until_asked(true); /* rank 0 dies here */
    for (int r = 0; me == 0 && r < keel_size(); r++) {
        CHECK(keel_get(s, r, 0, &at, sizeof at));
        sum += at;
    }
    if (me == 0)
        printf("all have counted to %" PRId64 "\n", sum);
    CHECK(keel_finalize());
    if (late)
        write_lines();
    if (strcmp(how, "trips") == 0 && restarted && me == 2)
        raise(SIGSEGV);
    return 0;
}
