/* stopped_segments: allocating and freeing segments while the process of a rank is stopped (keel/segment.h). The last rank stops itself, twice; the
 * first lets it go on when the others have been told. Two ranks or more. Exit 0 if all is right. */
#include <keel/keel.h>

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { TAG = 3, WORDS = 8 };

static int me, last, *all_ranks;
static keel_group *others;

static void stop_myself(void)
{
    pid_t pid = getpid();
    CHECK(keel_message_send(0, TAG, &pid, sizeof pid));
    CHECK(keel_group_barrier(keel_group_world()));
    raise(SIGSTOP);
}

static pid_t one_stops(void)
{
    pid_t pid = 0;
    if (me == 0)
        CHECK(keel_message_receive(last, TAG, &pid, sizeof pid, NULL, NULL));
    CHECK(keel_group_barrier(keel_group_world()));
    return pid;
}

static void goes_on(pid_t pid)
{
    CHECK(keel_group_barrier(others));
    if (me == 0)
        EXPECT(kill(pid, SIGCONT) == 0);
}

static keel_segment *allocate(keel_segment *before)
{
    keel_segment *s;
    keel_status status;
    if (me == last) {
        stop_myself();
    } else {
        pid_t pid = one_stops();
        for (int i = 0; i < 2; i++)
            EXPECT(keel_segment_alloc(WORDS * sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &s) == KEEL_ERR_TIMEOUT && !s);
        EXPECT(keel_segment_free(before) == KEEL_ERR_STATE); /* nothing else meanwhile */
        EXPECT(keel_barrier() == KEEL_ERR_STATE);
        goes_on(pid);
    }
    while ((status = keel_segment_alloc(WORDS * sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &s)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    return s;
}

static void release(keel_segment *s)
{
    keel_segment *none;
    keel_status status;
    if (me == last) {
        stop_myself();
    } else {
        pid_t pid = one_stops();
        EXPECT(keel_segment_free(s) == KEEL_ERR_TIMEOUT);
        EXPECT(keel_segment_alloc(8, KEEL_REDUNDANCY_NONE, &none) == KEEL_ERR_STATE && !none);
        goes_on(pid);
    }
    while ((status = keel_segment_free(s)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
}

int main(void)
{
    keel_segment *before;
    int64_t value = 0;
    setenv("KEEL_TIMEOUT_MS", "500", 1);
    CHECK(keel_init());
    me = keel_rank();
    last = keel_size() - 1;
    all_ranks = calloc((size_t)keel_size(), sizeof *all_ranks);
    EXPECT(all_ranks);
    for (int r = 0; r <= last; r++)
        all_ranks[r] = r;
    if (me != last)
        CHECK(keel_group_create(all_ranks, last, 1, &others));
    CHECK(keel_segment_alloc(8, KEEL_REDUNDANCY_SHADOW, &before));
    keel_segment *s = allocate(before);
    CHECK(keel_fetch_add(s, 0, 0, 1, &value));
    CHECK(keel_barrier());
    CHECK(keel_get(s, 0, 0, &value, sizeof value));
    EXPECT(value == keel_size());
    CHECK(keel_barrier());
    release(s);
    CHECK(keel_segment_free(before));
    CHECK(keel_barrier());
    if (me != last)
        CHECK(keel_group_free(others));
    free(all_ranks);
    CHECK(keel_finalize());
    return 0;
}
