/* two_nodes: a program with three copies of its data. It says `here` when these are written, and waits for two nodes to
 * die together. Who takes their place finds the data and allocates with the others. Tasks and mutexes go on, too: those
 * that the dead had begun are run again, and what they held is free. Exit 0 if so. */
#include "../lib/expect.h"

#include <string.h>

enum { WORDS = 64, TASKS = 60, TASKS_BEFORE = 3 };

static void look(keel_segment *s)
{
    int64_t words[WORDS];
    for (int r = 0; r < keel_size(); r++) {
        CHECK(keel_get_strong(s, r, 0, words, sizeof words));
        for (int i = 0; i < WORDS; i++)
            EXPECT(words[i] == r * 1000 + i);
    }
}

static int64_t begin(keel_taskpool *pool, keel_segment *sums)
{
    static const double one = 1;
    int64_t task;
    CHECK(keel_task_next(pool, &task));
    if (task >= 0)
        CHECK(keel_acc_double(sums, (int)(task % keel_size()), (size_t)(task / keel_size()) * 8, 1, &one, 1));
    return task;
}

static void run(keel_taskpool *pool, keel_segment *sums)
{
    for (int64_t task; (task = begin(pool, sums)) >= 0;)
        CHECK(keel_task_commit(pool, task));
    for (int task = 0; task < TASKS; task++) {
        double sum = 0;
        CHECK(keel_get(sums, task % keel_size(), (size_t)(task / keel_size()) * 8, &sum, sizeof sum));
        EXPECT(sum == 1);
    }
}

static void lock_each(keel_mutexes *mutexes)
{
    for (int r = 0; r < keel_size(); r++) {
        CHECK(keel_mutex_lock(mutexes, r, 0, NULL));
        CHECK(keel_mutex_unlock(mutexes, r, 0));
    }
}

int main(void)
{
    keel_segment *data, *more, *sums;
    keel_taskpool *pool;
    keel_mutexes *mutexes;
    int64_t words[WORDS];
    uint64_t done = 0;
    CHECK(keel_init());
    int me = keel_rank(), right = (me + 1) % keel_size();
    CHECK(keel_segment_alloc(sizeof words, KEEL_REDUNDANCY_TRIPLE, &data));
    CHECK(keel_segment_alloc(TASKS * sizeof *words, KEEL_REDUNDANCY_TRIPLE, &sums));
    CHECK(keel_taskpool_create(TASKS, &pool));
    CHECK(keel_mutexes_create(1, &mutexes));
    CHECK(keel_resume(&done));
    if (done == 0) {
        for (int i = 0; i < WORDS; i++)
            words[i] = me * 1000 + i;
        CHECK(keel_put(data, me, 0, words, sizeof words));
        for (int i = 0; i < TASKS_BEFORE; i++)
            CHECK(keel_task_commit(pool, begin(pool, sums)));
        CHECK(keel_mutex_lock(mutexes, right, 0, NULL));
        CHECK(keel_barrier());
        int64_t open = begin(pool, sums);
        CHECK(keel_event("here", me, NULL));
        while (keel_view_epoch() == 0)
            usleep(1000);
        CHECK(keel_mutex_unlock(mutexes, right, 0));
        CHECK(keel_task_commit(pool, open));
    }
    run(pool, sums);
    lock_each(mutexes);
    look(data);
    CHECK(keel_barrier());
    CHECK(keel_segment_alloc(sizeof words, KEEL_REDUNDANCY_TRIPLE, &more));
    memset(words, me, sizeof words);
    CHECK(keel_put(more, right, 0, words, sizeof words));
    CHECK(keel_barrier());
    memset(words, 0, sizeof words);
    CHECK(keel_get(more, right, 0, words, sizeof words));
    EXPECT(words[WORDS - 1] == me * 0x0101010101010101);
    CHECK(keel_segment_free(more));
    look(data);
    printf("%d: right\n", me);
    return keel_finalize() == KEEL_OK ? 0 : 1;
}
