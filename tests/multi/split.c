/* split MODE: the barrier in two phases, keel_sync and keel_group_fence, on real processes. Exit 0 if all is right.
 *   rounds   barriers of all kinds in turns, with puts between the phases; what may not be called meanwhile
 *   die      the last rank dies before it enters (two ranks or more, --on-failure degrade)
 *   lost     an operation before it has failed: who began that has not entered (three ranks on three nodes,
 *            --on-failure degrade)
 *   stop     the last rank stops itself before it enters; the first lets it go on (two ranks or more)
 *   leave    the process leaves between the phases */
#include <keel/keel.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { ROUNDS = 60, TAG = 5 };

static int me, n;
static keel_segment *seg;

/* The barrier that follows completes them. */
static void tell(int64_t round)
{
    static int64_t word;
    word = round;
    for (int r = 0; r < n; r++)
        CHECK(keel_put_nb(seg, r, 8 * (size_t)me, &word, sizeof word, NULL));
}

/* Everybody had told of that round when it entered. */
static void expect_told(int64_t round)
{
    int64_t *told = calloc((size_t)n, sizeof *told);
    EXPECT(told);
    CHECK(keel_get(seg, me, 0, told, (size_t)n * sizeof *told));
    for (int r = 0; r < n; r++)
        EXPECT(told[r] == round || told[r] == round + 1);
    free(told);
}

static void expect_same_epoch(uint64_t epoch)
{
    uint64_t least, most;
    EXPECT(epoch <= keel_view_epoch());
    CHECK(keel_group_agree(keel_group_world(), KEEL_GROUP_MIN, epoch, &least));
    CHECK(keel_group_agree(keel_group_world(), KEEL_GROUP_MAX, epoch, &most));
    EXPECT(least == most);
}

static uint64_t two_phases(int64_t round)
{
    uint64_t epoch = 7, word = (uint64_t)round;
    keel_status status;
    CHECK(keel_barrier_begin());
    CHECK(keel_put(seg, (me + 1) % n, 8 * (size_t)(n + me), &word, sizeof word));
    word = 0;
    CHECK(keel_get(seg, (me + 1) % n, 8 * (size_t)(n + me), &word, sizeof word));
    EXPECT(word == (uint64_t)round);
    if (round % 3 == 0) {
        while ((status = keel_barrier_test(&epoch)) == KEEL_IN_PROGRESS)
            EXPECT(epoch == 0);
        CHECK(status);
    } else {
        CHECK(keel_barrier_end(round % 3 == 1 ? &epoch : NULL));
    }
    return epoch;
}

static void rounds(void)
{
    for (int64_t round = 1; round <= ROUNDS; round++) {
        tell(round);
        switch ((round + me) % 4) {
        case 0:
            CHECK(keel_barrier());
            break;
        case 1:
            CHECK(keel_sync());
            break;
        default:
            (void)two_phases(round);
        }
        expect_told(round);
    }
    CHECK(keel_barrier());
    expect_same_epoch(two_phases(3));
}

static void nothing_else_meanwhile(void)
{
    keel_segment *other = NULL;
    keel_mutexes *mutexes, *more = NULL;
    keel_taskpool *pool, *second = NULL;
    double x = 1;
    int64_t task;
    uint64_t epoch = 9, count = keel_collective_count();
    CHECK(keel_mutexes_create(1, &mutexes));
    CHECK(keel_taskpool_create(n, &pool));
    EXPECT_STATUS(keel_barrier_test(&epoch), KEEL_ERR_STATE);
    EXPECT(epoch == 0);
    EXPECT_STATUS(keel_barrier_end(NULL), KEEL_ERR_STATE);
    CHECK(keel_barrier_begin());
    EXPECT_STATUS(keel_barrier_begin(), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_barrier(), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_sync(), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_bcast(0, &x, sizeof x), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_allreduce_sum(&x, &x, 1), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_segment_alloc(8, KEEL_REDUNDANCY_NONE, &other), KEEL_ERR_STATE);
    EXPECT(!other);
    EXPECT_STATUS(keel_segment_free(seg), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_mutexes_create(1, &more), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_mutexes_free(mutexes), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_taskpool_create(1, &second), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_taskpool_reset(pool), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_taskpool_free(pool), KEEL_ERR_STATE);
    CHECK(keel_group_barrier(keel_group_world())); /* of a group: it is another row of calls */
    EXPECT(keel_collective_count() == count);
    CHECK(keel_barrier_end(NULL));
    EXPECT(keel_collective_count() == count + 1);
    while (keel_task_next(pool, &task) == KEEL_OK && task >= 0) {
        EXPECT_STATUS(keel_barrier_begin(), KEEL_ERR_STATE);
        EXPECT_STATUS(keel_barrier_end(NULL), KEEL_ERR_STATE);
        CHECK(keel_task_commit(pool, task));
    }
    CHECK(keel_mutexes_free(mutexes)); /* what was refused is still there */
    CHECK(keel_taskpool_free(pool));
}

static void fences(void)
{
    int64_t word = 77, there = 0;
    keel_group *self;
    CHECK(keel_group_create(&me, 1, (uint64_t)me, &self));
    CHECK(keel_put_nb(seg, me, 0, &word, sizeof word, NULL));
    CHECK(keel_group_fence(self)); /* nobody else calls */
    CHECK(keel_get(seg, me, 0, &there, sizeof there));
    EXPECT(there == word);
    CHECK(keel_group_fence(keel_group_world()));
    CHECK(keel_group_free(self));
    EXPECT_STATUS(keel_group_fence(self), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_fence(NULL), KEEL_ERR_ARG);
}

/* Who lives in the view that the barrier was completed in has entered: the dead one does not. */
static void die(void)
{
    uint64_t epoch;
    keel_failure failure;
    size_t count;
    if (me == n - 1)
        raise(SIGKILL);
    CHECK(keel_barrier_begin());
    CHECK(keel_barrier_end(&epoch));
    EXPECT(epoch > 0 && !keel_rank_alive(n - 1));
    CHECK(keel_failures(0, &failure, 1, &count, NULL));
    EXPECT(count == 1 && failure.rank == n - 1 && failure.epoch <= epoch);
    expect_same_epoch(epoch);
}

/* An implicit get of what is lost with the last rank's node. */
static void get_the_lost(keel_segment *frail)
{
    static int64_t word;
    CHECK(keel_get_nb(frail, n - 1, 0, &word, sizeof word, NULL));
}

static void lost(void)
{
    keel_segment *frail;
    int64_t word = 0, sum = 0;
    double in = 1, out;
    CHECK(keel_segment_alloc(8, KEEL_REDUNDANCY_NONE, &frail));
    if (me == n - 1) {
        kill(getppid(), SIGKILL); /* its agent, and with it the node */
        pause();
    }
    while (keel_rank_alive(n - 1))
        CHECK(keel_get(seg, me, 0, &word, sizeof word));
    if (me == 0) {
        get_the_lost(frail);
        EXPECT_STATUS(keel_barrier(), KEEL_ERR_DATA_LOST);
        get_the_lost(frail);
        EXPECT_STATUS(keel_sync(), KEEL_ERR_DATA_LOST);
        get_the_lost(frail);
        EXPECT_STATUS(keel_allreduce_sum(&in, &out, 1), KEEL_ERR_DATA_LOST);
        get_the_lost(frail);
        EXPECT_STATUS(keel_group_sync(keel_group_world()), KEEL_ERR_DATA_LOST);
        get_the_lost(frail);
        EXPECT_STATUS(keel_barrier_begin(), KEEL_ERR_DATA_LOST);
        EXPECT_STATUS(keel_barrier_end(NULL), KEEL_ERR_STATE);
        sum = 5;
        CHECK(keel_put(seg, 1, 0, &sum, sizeof sum));
    }
    CHECK(keel_barrier_begin()); /* once told, an error is over; rank 1 was not let through by any of these */
    CHECK(keel_barrier_end(NULL));
    CHECK(keel_get(seg, 1, 0, &sum, sizeof sum));
    EXPECT(sum == 5);
}

static void stop(void)
{
    pid_t pid = getpid();
    if (me == n - 1) {
        CHECK(keel_message_send(0, TAG, &pid, sizeof pid));
        CHECK(keel_group_barrier(keel_group_world()));
        raise(SIGSTOP);
        keel_status status;
        CHECK(keel_barrier_begin());
        while ((status = keel_barrier_end(NULL)) == KEEL_ERR_TIMEOUT)
            ;
        CHECK(status);
        return;
    }
    if (me == 0)
        CHECK(keel_message_receive(n - 1, TAG, &pid, sizeof pid, NULL, NULL));
    CHECK(keel_group_barrier(keel_group_world()));
    CHECK(keel_barrier_begin());
    if (me == 0) { /* nobody is let go on before this one was told */
        uint64_t epoch = 1;
        EXPECT_STATUS(keel_barrier_end(&epoch), KEEL_ERR_TIMEOUT);
        EXPECT(epoch == 0);
        EXPECT_STATUS(keel_barrier_test(&epoch), KEEL_IN_PROGRESS);
        EXPECT_STATUS(keel_barrier(), KEEL_ERR_STATE); /* it is not over */
        EXPECT(kill(pid, SIGCONT) == 0);
    }
    keel_status status;
    while ((status = keel_barrier_end(NULL)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    EXPECT_STATUS(keel_barrier_begin(), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_sync(), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_barrier_end(NULL), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_group_fence(NULL), KEEL_ERR_STATE);
    if (strcmp(mode, "stop") == 0)
        setenv("KEEL_TIMEOUT_MS", "500", 1);
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    CHECK(keel_segment_alloc(16 * (size_t)n, KEEL_REDUNDANCY_SHADOW, &seg));
    if (strcmp(mode, "rounds") == 0) {
        rounds();
        nothing_else_meanwhile();
        fences();
        CHECK(keel_barrier());
        CHECK(keel_segment_free(seg));
    } else if (strcmp(mode, "die") == 0) {
        die();
    } else if (strcmp(mode, "lost") == 0) {
        lost();
    } else if (strcmp(mode, "stop") == 0) {
        stop();
    } else if (strcmp(mode, "leave") == 0) {
        CHECK(keel_barrier_begin());
    } else {
        return 2;
    }
    CHECK(keel_finalize());
    EXPECT_STATUS(keel_barrier_end(NULL), KEEL_ERR_STATE);
    return 0;
}
