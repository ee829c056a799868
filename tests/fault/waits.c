/* waits: all ranks but the last wait in a call for the last one, which the test has stopped, or which is late. Usage:
 * waits CALL DIRECTORY. Each says "ready" in the event log, goes on when DIRECTORY/go is there, and ends when
 * DIRECTORY/end is. Exit 0 if the results are right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { TAG = 5 };

static int me, last, *all_ranks;
static keel_segment *words;
static keel_mutexes *locks;

static void await_file(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    while (access(path, F_OK) != 0)
        usleep(2000);
}

static void barrier(void)
{
    CHECK(keel_barrier());
}

static void commit(void)
{
    CHECK(keel_keep_commit(1));
}

static void rollback(void)
{
    uint64_t version;
    CHECK(keel_keep_rollback(&version));
}

static void group(void)
{
    double mine = me + 1, sum = 0;
    CHECK(
        keel_group_allreduce(keel_group_world(), &mine, &sum, 1, &(keel_combine){.type = KEEL_DOUBLE, .op = KEEL_SUM}));
    EXPECT(sum == (last + 1) * (last + 2) / 2.0);
}

static void create(void)
{
    keel_group *g = NULL;
    keel_status status;
    while ((status = keel_group_create(all_ranks, last + 1, 3, &g)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    EXPECT(keel_group_size(g) == last + 1);
    CHECK(keel_group_free(g));
}

static void receive(void)
{
    int number = 0;
    for (int r = 0; me == last && r < last; r++)
        CHECK(keel_message_send(r, TAG, &r, sizeof r));
    if (me != last) {
        CHECK(keel_message_receive(last, TAG, &number, sizeof number, NULL, NULL));
        EXPECT(number == me);
    }
}

static void until(void)
{
    int64_t got = 0;
    for (int r = 0; me == last && r < last; r++)
        CHECK(keel_signal(words, r, 0, 7));
    if (me != last) {
        CHECK(keel_wait_until(words, 0, KEEL_EQ, 7, last, &got));
        EXPECT(got == 7);
    }
}

static void lock(void)
{
    int64_t old;
    if (me != last)
        CHECK(keel_mutex_lock(locks, 0, 0, NULL));
    CHECK(keel_fetch_add(words, 0, 8, 1, &old));
    CHECK(keel_mutex_unlock(locks, 0, 0));
    CHECK(keel_barrier());
    CHECK(keel_fetch_add(words, 0, 8, 0, &old));
    EXPECT(old == last + 1);
}

static void *take_it(void *arg)
{
    CHECK(keel_mutex_lock(locks, 0, 0, arg));
    CHECK(keel_mutex_unlock(locks, 0, 0));
    return NULL;
}

/* A thread of rank 0 waits for the mutex that the first one has until the end. */
static void threads(const char *folder)
{
    pthread_t other;
    if (me != 0)
        return;
    CHECK(keel_mutex_lock(locks, 0, 0, NULL));
    EXPECT(pthread_create(&other, NULL, take_it, NULL) == 0);
    await_file(folder, "mercy");
    CHECK(keel_mutex_unlock(locks, 0, 0));
    EXPECT(pthread_join(other, NULL) == 0);
}

static void alloc(void)
{
    keel_segment *s;
    keel_status status;
    while ((status = keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &s)) == KEEL_ERR_TIMEOUT)
        ;
    CHECK(status);
    CHECK(keel_segment_free(s));
}

/* To the node of the last one, whose agent does not run. */
static void put(void)
{
    int64_t value = 5, got = 0;
    if (me == last)
        return;
    CHECK(keel_put(words, last, 16 + 8 * (size_t)me, &value, sizeof value));
    CHECK(keel_get(words, last, 16 + 8 * (size_t)me, &got, sizeof got));
    EXPECT(got == value);
}

/* The same, of what the agent does. */
static void add_one(void)
{
    int64_t old;
    if (me == last)
        return;
    CHECK(keel_fetch_add(words, last, 16 + 8 * (size_t)me, 1, &old));
    EXPECT(old == 0);
}

/* Of the part of the last but one, whose other copy is on the last node. */
static void strong(void)
{
    int64_t got = 0;
    if (me == 0)
        CHECK(keel_get_strong(words, last - 1, 16, &got, sizeof got));
    EXPECT(got == 0);
}

/* Each waits for the next one's signal, in a ring, until the last one has mercy. */
static void ring(const char *folder)
{
    int64_t got;
    if (me != last) {
        CHECK(keel_wait_until(words, 0, KEEL_EQ, 7, (me + 1) % last, &got));
        return;
    }
    await_file(folder, "mercy");
    for (int r = 0; r < last; r++)
        CHECK(keel_signal(words, r, 0, 7));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"barrier", barrier}, {"group", group},   {"create", create}, {"receive", receive},
                 {"until", until},     {"lock", lock},     {"alloc", alloc},   {"put", put},
                 {"add", add_one},     {"strong", strong}, {"commit", commit}, {"rollback", rollback}};
    EXPECT(argc == 3);
    CHECK(keel_init());
    me = keel_rank();
    last = keel_size() - 1;
    all_ranks = calloc((size_t)last + 1, sizeof *all_ranks);
    for (int r = 0; r <= last; r++)
        all_ranks[r] = r;
    CHECK(keel_segment_alloc(256, KEEL_REDUNDANCY_SHADOW, &words));
    CHECK(keel_mutexes_create(1, &locks));
    CHECK(keel_keep_room(64));
    if (strcmp(argv[1], "lock") == 0 && me == last)
        CHECK(keel_mutex_lock(locks, 0, 0, NULL));
    CHECK(keel_barrier());
    CHECK(keel_event("ready", 1, NULL));
    await_file(argv[2], "go");
    if (strcmp(argv[1], "ring") == 0)
        ring(argv[2]);
    if (strcmp(argv[1], "threads") == 0)
        threads(argv[2]);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(argv[1], calls[i].name) == 0)
            calls[i].call();
    CHECK(keel_event("right", 1, NULL));
    await_file(argv[2], "end");
    CHECK(keel_finalize());
    return 0;
}
