/* stopped_segments: allocating and freeing segments, of all ranks and of a group, while the process of a rank is
 * stopped (keel/segment.h). The last rank stops itself, twice for each; the first lets it go on when the others have
 * been told, or kills it the N-th time, from 0 on. Two ranks or more. Exit 0 if all is right.
 *
 *   stopped_segments [N] */
#include <keel/keel.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { TAG = 3, WORDS = 8 };

static int me, last, *all_ranks;
static size_t *sizes;
static keel_group *others;
static keel_group *group; /* of all ranks; NULL: segments are the world's */
static int kill_at = -1, stops;
static bool killed;

static keel_status make(keel_segment **s)
{
    return group ? keel_segment_alloc_group(group, sizes, KEEL_REDUNDANCY_SHADOW, s)
                 : keel_segment_alloc(WORDS * sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, s);
}

/* With other arguments it is another call. */
static void expect_no_other_allocation(void)
{
    keel_segment *s;
    keel_mutexes *m;
    keel_taskpool *p;
    size_t *others_sizes = calloc((size_t)keel_size(), sizeof *others_sizes);
    EXPECT(others_sizes);
    if (group) {
        EXPECT(keel_segment_alloc_group(group, others_sizes, KEEL_REDUNDANCY_SHADOW, &s) == KEEL_ERR_STATE && !s);
        EXPECT(keel_segment_alloc_group(group, sizes, KEEL_REDUNDANCY_NONE, &s) == KEEL_ERR_STATE && !s);
    } else {
        EXPECT(keel_segment_alloc(WORDS * sizeof(int64_t), KEEL_REDUNDANCY_NONE, &s) == KEEL_ERR_STATE && !s);
        EXPECT(keel_segment_alloc(2 * WORDS * sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &s) == KEEL_ERR_STATE && !s);
        EXPECT(keel_segment_alloc_parts(others_sizes, KEEL_REDUNDANCY_SHADOW, &s) == KEEL_ERR_STATE && !s);
        EXPECT(keel_mutexes_create(1, &m) == KEEL_ERR_STATE && !m);
        EXPECT(keel_taskpool_create(WORDS, &p) == KEEL_ERR_STATE && !p);
    }
    free(others_sizes);
}

/* While the call of the group, or of all ranks, has not ended. */
static void expect_nothing_else_begins(void)
{
    uint64_t value;
    keel_group *made;
    if (!group) {
        EXPECT(keel_barrier() == KEEL_ERR_STATE);
        return;
    }
    EXPECT(keel_group_agree(group, KEEL_GROUP_MAX, 1, &value) == KEEL_ERR_STATE);
    EXPECT(keel_group_shrink(group, &made) == KEEL_ERR_STATE && !made);
    EXPECT(keel_group_free(group) == KEEL_ERR_STATE);
    EXPECT(keel_group_stopped(group) == last);
}

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
    killed = stops++ == kill_at;
    if (me == 0)
        EXPECT(kill(pid, killed ? SIGKILL : SIGCONT) == 0);
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
            EXPECT(make(&s) == KEEL_ERR_TIMEOUT && !s);
        expect_no_other_allocation();
        EXPECT(keel_segment_free(before) == KEEL_ERR_STATE);
        expect_nothing_else_begins();
        goes_on(pid);
    }
    while ((status = make(&s)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    EXPECT(keel_segment_redundancy(s) == KEEL_REDUNDANCY_SHADOW);
    for (int r = 0; r <= last; r++)
        EXPECT(keel_segment_bytes(s, r) == (group ? sizes[r] : WORDS * sizeof(int64_t)));
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
        EXPECT(make(&none) == KEEL_ERR_STATE && !none);
        expect_nothing_else_begins();
        goes_on(pid);
    }
    while ((status = keel_segment_free(s)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
}

static void run(void)
{
    keel_segment *before;
    int64_t value = 0;
    CHECK(make(&before));
    keel_segment *s = allocate(before);
    CHECK(keel_fetch_add(s, 0, 0, 1, &value));
    CHECK(keel_barrier());
    CHECK(keel_get(s, 0, 0, &value, sizeof value));
    EXPECT(value == keel_size() - killed);
    CHECK(keel_barrier());
    if (killed)
        return;
    release(s);
    if (killed)
        return;
    CHECK(keel_segment_free(before));
    CHECK(keel_barrier());
}

int main(int argc, char **argv)
{
    setenv("KEEL_TIMEOUT_MS", "500", 1);
    kill_at = argc > 1 ? atoi(argv[1]) : -1;
    CHECK(keel_init());
    me = keel_rank();
    last = keel_size() - 1;
    all_ranks = calloc((size_t)keel_size(), sizeof *all_ranks);
    sizes = calloc((size_t)keel_size(), sizeof *sizes);
    EXPECT(all_ranks && sizes);
    for (int r = 0; r <= last; r++) {
        all_ranks[r] = r;
        sizes[r] = (size_t)(r + 1) * WORDS * sizeof(int64_t);
    }
    if (me != last)
        CHECK(keel_group_create(all_ranks, last, 1, &others));
    run();
    if (!killed) {
        CHECK(keel_group_create(all_ranks, last + 1, 2, &group));
        run();
        CHECK(keel_group_free(group));
    }
    if (me != last)
        CHECK(keel_group_free(others));
    free(all_ranks);
    free(sizes);
    CHECK(keel_finalize());
    return 0;
}
