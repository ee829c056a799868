/* misfits: ranks that allocate while others free, and such, are told so (keel/segment.h, keel/task.h, keel/mutex.h);
 * nothing is done then, and what follows goes well, also at a process that takes the place of one that died. Two ranks
 * or more; the last one dies on the way. Exit 0 if all is right. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { BYTES = 64 };

static int me, n;

#define MISFITS(expression) EXPECT_STATUS(expression, KEEL_ERR_MISMATCH)

static keel_status fill(keel_segment *s, int value)
{
    char bytes[BYTES];
    memset(bytes, value, sizeof bytes);
    return keel_put(s, me, 0, bytes, sizeof bytes);
}

static void look(keel_segment *s, int value)
{
    char bytes[BYTES];
    for (int r = 0; r < n; r++) {
        CHECK(keel_get(s, r, 0, bytes, sizeof bytes));
        for (int i = 0; i < BYTES; i++)
            EXPECT(bytes[i] == value);
    }
}

static void of_a_group(void)
{
    int *all = calloc((size_t)n, sizeof *all);
    size_t *bytes = calloc((size_t)n, sizeof *bytes);
    keel_group *g;
    keel_segment *a, *b, *c;
    uint64_t agreed;
    EXPECT(all && bytes);
    for (int r = 0; r < n; r++) {
        all[r] = r;
        bytes[r] = BYTES;
    }
    CHECK(keel_group_create(all, n, 1, &g));
    CHECK(keel_segment_alloc_group(g, bytes, KEEL_REDUNDANCY_SHADOW, &a));
    CHECK(keel_segment_alloc_group(g, bytes, KEEL_REDUNDANCY_SHADOW, &b));
    CHECK(fill(a, 1));
    CHECK(fill(b, 2));
    MISFITS(keel_segment_free(me == 0 ? a : b));
    MISFITS(me == 0 ? keel_segment_free(a) : keel_segment_alloc_group(g, bytes, KEEL_REDUNDANCY_SHADOW, &c));
    MISFITS(me == 0 ? keel_group_agree(g, KEEL_GROUP_MAX, 3, &agreed) : keel_segment_free(b));
    MISFITS(me == 0 ? keel_group_agree(g, KEEL_GROUP_MAX, 3, &agreed)
                    : keel_segment_alloc_group(g, bytes, KEEL_REDUNDANCY_SHADOW, &c));
    CHECK(keel_group_barrier(g));
    look(a, 1);
    look(b, 2);
    CHECK(keel_group_barrier(g));
    CHECK(keel_segment_alloc_group(g, bytes, KEEL_REDUNDANCY_SHADOW, &c));
    CHECK(fill(c, 3));
    CHECK(keel_segment_free(a));
    look(b, 2);
    CHECK(keel_segment_free(b));
    look(c, 3);
    CHECK(keel_segment_free(c));
    CHECK(keel_group_free(g));
    free(bytes);
    free(all);
}

static void of_all(keel_segment *a)
{
    keel_segment *b;
    keel_mutexes *m;
    keel_taskpool *p;
    CHECK(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, &b));
    CHECK(keel_mutexes_create(1, &m));
    CHECK(keel_taskpool_create(4, &p));
    CHECK(fill(a, 4));
    CHECK(fill(b, 5));
    MISFITS(keel_segment_free(me == 0 ? a : b));
    MISFITS(me == 0 ? keel_mutexes_free(m) : keel_taskpool_free(p));
    MISFITS(me == 0 ? keel_segment_free(b) : keel_mutexes_free(m));
    MISFITS(me == 0 ? keel_taskpool_reset(p) : keel_barrier());
    CHECK(keel_barrier());
    look(a, 4);
    look(b, 5);
    CHECK(keel_mutex_lock(m, 0, 0, NULL));
    CHECK(keel_mutex_unlock(m, 0, 0));
    for (int64_t task = 0; task >= 0;) {
        CHECK(keel_task_next(p, &task));
        if (task >= 0)
            CHECK(keel_task_commit(p, task));
    }
    CHECK(keel_barrier());
    CHECK(keel_taskpool_free(p));
    CHECK(keel_mutexes_free(m));
    CHECK(keel_segment_free(b));
}

/* Each of these takes a number, of those who free, too. What takes a dead process's place makes the calls of the
 * others. */
static void numbered(keel_segment *a, keel_segment **kept)
{
    keel_segment *s;
    keel_mutexes *m;
    keel_taskpool *p;
    MISFITS(me == 0 ? keel_segment_free(a) : keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, kept));
    MISFITS(me == 0 ? keel_segment_free(*kept) : keel_mutexes_create(1, &m));
    MISFITS(me == 0 ? keel_mutexes_create(1, &m) : keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, &s));
    MISFITS(me == 0 ? keel_segment_free(a) : keel_taskpool_create(8, &p));
}

static void await_successor(keel_segment *back)
{
    int64_t is_back = keel_restarted();
    if (is_back)
        CHECK(keel_put(back, 0, 0, &is_back, sizeof is_back));
    while (!is_back) {
        usleep(1000);
        CHECK(keel_get(back, 0, 0, &is_back, sizeof is_back));
    }
}

int main(void)
{
    keel_segment *a, *kept, *last, *back;
    uint64_t done = 0;
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    CHECK(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, &a));
    numbered(a, &kept);
    CHECK(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, &last));
    CHECK(keel_segment_alloc(sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &back));
    CHECK(keel_resume(&done));
    if (done == 0) {
        CHECK(fill(a, 6));
        CHECK(fill(kept, 7));
        CHECK(fill(last, 8));
        CHECK(keel_barrier());
        if (me == n - 1)
            raise(SIGKILL);
    }
    look(a, 6);
    look(kept, 7);
    look(last, 8);
    await_successor(back);
    CHECK(keel_barrier());
    of_all(a);
    of_a_group();
    CHECK(keel_segment_free(back));
    CHECK(keel_segment_free(last));
    CHECK(keel_segment_free(kept));
    CHECK(keel_segment_free(a));
    CHECK(keel_finalize());
    return 0;
}
