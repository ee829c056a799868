/* stopped: what collectives do while the process of a rank is stopped (keel/collective.h, keel/group.h). Three ranks or
 * more. The last one stops itself; the first lets it go on when all others have been told. Exit 0 if all is right. */
#include <keel/keel.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { TAG = 3 };

static int me, last, *all_ranks;
static double mine = 1, all; /* Keel's, from a call that ends by its time-out until it is complete */

/* It is given up by the others, who had all come to the barrier. */
static void stop_myself(keel_group *g)
{
    pid_t pid = getpid();
    CHECK(keel_message_send(0, TAG, &pid, sizeof pid));
    CHECK(keel_group_barrier(keel_group_world()));
    raise(SIGSTOP);
    keel_status status = keel_group_barrier(g);
    EXPECT(status == KEEL_ERR_REVOKED || status == KEEL_OK);
    EXPECT(keel_group_barrier(g) == KEEL_ERR_REVOKED);
    EXPECT(keel_group_stopped(g) == last);
}

/* What finds out who lives: an error, and the same call goes on, no other of the group. */
static void repairs_end(keel_group *g)
{
    uint64_t agreed;
    keel_group *none = NULL;
    EXPECT(keel_group_agree(g, KEEL_GROUP_MAX, (uint64_t)me, &agreed) == KEEL_ERR_TIMEOUT);
    EXPECT(keel_group_stopped(g) == last);
    EXPECT(keel_group_agree(g, KEEL_GROUP_MIN, (uint64_t)me, &agreed) == KEEL_ERR_STATE);
    EXPECT(keel_group_shrink(g, &none) == KEEL_ERR_STATE && !none);
    EXPECT(keel_group_free(g) == KEEL_ERR_STATE);
    EXPECT(keel_group_shrink(keel_group_world(), &none) == KEEL_ERR_TIMEOUT && !none);
    EXPECT(keel_group_stopped(keel_group_world()) == last);
    EXPECT(keel_group_create(all_ranks, last + 1, 9, &none) == KEEL_ERR_TIMEOUT && !none);
    EXPECT(keel_group_create(all_ranks, last + 1, 9, &none) == KEEL_ERR_TIMEOUT && !none);
}

static void go_on_without(keel_group *g)
{
    keel_group *others;
    pid_t pid = 0;
    int64_t one = 1, sum = 0;
    if (me == 0)
        CHECK(keel_message_receive(last, TAG, &pid, sizeof pid, NULL, NULL));
    CHECK(keel_group_barrier(keel_group_world()));
    keel_status status = keel_group_barrier(g);
    EXPECT(status == KEEL_ERR_TIMEOUT || status == KEEL_ERR_REVOKED);
    EXPECT(keel_group_stopped(g) == last);
    CHECK(keel_group_create(all_ranks, last, 1, &others)); /* needs its members only */
    CHECK(keel_group_allreduce(others, &one, &sum, 1, &(keel_combine){.type = KEEL_INT64, .op = KEEL_SUM}));
    EXPECT(sum == last);
    repairs_end(g);
    /* All live ranks: an error, and the same call goes on. */
    EXPECT(keel_allreduce_sum(&mine, &all, 1) == KEEL_ERR_TIMEOUT);
    CHECK(keel_group_barrier(others));
    if (me == 0)
        EXPECT(kill(pid, SIGCONT) == 0);
    CHECK(keel_group_free(others));
}

/* Each call is repeated until it is complete; the one that was stopped does the same. */
static void all_complete(keel_group *g)
{
    keel_group *shrunk, *made;
    keel_status status;
    uint64_t agreed;
    while ((status = keel_allreduce_sum(&mine, &all, 1)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    EXPECT(all == keel_size());
    while ((status = keel_group_agree(g, KEEL_GROUP_MAX, (uint64_t)me, &agreed)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    EXPECT(agreed == (uint64_t)last);
    EXPECT(keel_group_stopped(g) == last); /* it is why the group was revoked */
    while ((status = keel_group_shrink(keel_group_world(), &shrunk)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    EXPECT(keel_group_size(shrunk) == last + 1 && keel_group_stopped(keel_group_world()) == -1);
    while ((status = keel_group_create(all_ranks, last + 1, 9, &made)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    CHECK(keel_group_barrier(made));
    CHECK(keel_group_barrier(shrunk));
    CHECK(keel_group_free(made));
    CHECK(keel_group_free(shrunk));
}

static void *wake(void *pid)
{
    usleep(2000 * 1000); /* several times KEEL_TIMEOUT_MS */
    EXPECT(kill(*(pid_t *)pid, SIGCONT) == 0);
    return NULL;
}

/* All but the last, which is stopped meanwhile, and told to go on by the first. */
static keel_status barrier_beside_a_stopped_one(keel_group *g)
{
    pid_t pid = getpid();
    pthread_t thread;
    const bool first = me == 0;
    if (me == last)
        CHECK(keel_message_send(0, TAG, &pid, sizeof pid));
    if (first)
        CHECK(keel_message_receive(last, TAG, &pid, sizeof pid, NULL, NULL));
    CHECK(keel_group_barrier(keel_group_world()));
    if (first)
        EXPECT(!pthread_create(&thread, NULL, wake, &pid));
    if (me == last)
        raise(SIGSTOP);
    keel_status status = keel_group_barrier(g);
    if (first)
        pthread_join(thread, NULL);
    return status;
}

static void patience(void)
{
    keel_group *g;
    CHECK(keel_group_create(all_ranks, last + 1, 11, &g));
    CHECK(keel_group_patience(g, true));
    CHECK(barrier_beside_a_stopped_one(g));
    EXPECT(keel_group_stopped(g) == -1);
    CHECK(keel_group_barrier(g));
    CHECK(keel_group_patience(g, false));
    keel_status status = barrier_beside_a_stopped_one(g);
    EXPECT(status == KEEL_ERR_TIMEOUT || status == KEEL_ERR_REVOKED);
    while ((status = keel_barrier()) == KEEL_ERR_TIMEOUT) /* it is stopped still */
        ;
    CHECK(status);
    CHECK(keel_group_free(g));
    EXPECT(keel_group_patience(g, true) == KEEL_ERR_ARG);
}

int main(void)
{
    keel_group *g;
    setenv("KEEL_TIMEOUT_MS", "500", 1);
    CHECK(keel_init());
    me = keel_rank();
    last = keel_size() - 1;
    all_ranks = calloc((size_t)keel_size(), sizeof *all_ranks);
    EXPECT(all_ranks);
    for (int r = 0; r <= last; r++)
        all_ranks[r] = r;
    CHECK(keel_group_split(keel_group_world(), 0, 0, &g));
    EXPECT(keel_group_stopped(g) == -1);
    if (me == last)
        stop_myself(g);
    else
        go_on_without(g);
    all_complete(g);
    CHECK(keel_barrier());
    patience();
    CHECK(keel_group_free(g));
    free(all_ranks);
    CHECK(keel_finalize());
    return 0;
}
