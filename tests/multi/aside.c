/* aside SEED ROUNDS: nobody needs who has returned from a collective call. Calls are drawn, the same on all ranks;
 * after some of them each rank waits, without calling Keel, until all have returned. Where a call needs a rank that is
 * through with it the program hangs. Ranks also go on at once, so that some are in the next call while others are in
 * the last. Exit 0 if all is right. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { RANKS_MAX = 64, BYTES_MAX = 200 * 1024, GROUPS = 2 };

/* Of all ranks, outside of Keel: how often each has come. */
static _Atomic long *came;
static int me, n;
static uint64_t state;
static char in[BYTES_MAX * 8], out[BYTES_MAX * 8];
static keel_group *group[GROUPS]; /* NULL: none, or without this rank */

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void share(void)
{
    struct {
        int pid, fd;
    } at = {(int)getpid(), -1};
    if (me == 0) {
        at.fd = memfd_create("aside", 0); /* open in the others' way, by /proc */
        EXPECT(at.fd >= 0 && ftruncate(at.fd, RANKS_MAX * sizeof *came) == 0);
    }
    CHECK(keel_bcast(0, &at, sizeof at));
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", at.pid, at.fd);
    FILE *f = fopen(path, "r+");
    EXPECT(f != NULL);
    void *memory = mmap(NULL, RANKS_MAX * sizeof *came, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    EXPECT(memory != MAP_FAILED);
    came = memory;
    (void)fclose(f);
    CHECK(keel_barrier());
}

static void wait_outside(void)
{
    long times = atomic_fetch_add(&came[me], 1) + 1;
    for (int r = 0; r < n; r++)
        while (atomic_load(&came[r]) < times)
            (void)sched_yield();
}

/* All ranks, or most, so that the same list comes again soon. */
static int draw_list(int *ranks)
{
    int first = (int)draw(2) % n, len = n - (n > 2 ? (int)draw(2) : 0);
    for (int i = 0; i < len; i++)
        ranks[i] = (first + i) % n;
    return len;
}

static void make_or_free(keel_group **g)
{
    int ranks[RANKS_MAX], len = draw_list(ranks), how = (int)draw(6), colour = (int)draw(2);
    if (*g) {
        CHECK(keel_group_free(*g));
        *g = NULL;
    }
    bool listed = false;
    for (int i = 0; i < len; i++)
        listed = listed || ranks[i] == me;
    if (how == 1)
        CHECK(keel_group_split(keel_group_world(), (me + colour) % 2, me, g));
    else if (how == 2)
        CHECK(keel_group_shrink(keel_group_world(), g));
    else if (listed)
        CHECK(keel_group_create(ranks, len, 0, g));
}

static void move(keel_group *g, unsigned what, size_t len, int root)
{
    static const keel_combine sum = {.type = KEEL_DOUBLE, .op = KEEL_SUM};
    uint64_t value;
    if (!g)
        return;
    int members = keel_group_size(g);
    len = (len / (size_t)members) & ~(size_t)7;
    root %= members;
    switch (what) {
    case 0:
        CHECK(keel_group_barrier(g));
        break;
    case 1:
        CHECK(keel_group_bcast(g, root, in, len));
        break;
    case 2:
        CHECK(keel_group_allreduce(g, in, out, len / 8, &sum));
        break;
    case 3:
        CHECK(keel_group_allgather(g, in, out, len));
        break;
    case 4:
        CHECK(keel_group_alltoall(g, in, out, len));
        break;
    case 5:
        CHECK(keel_group_reduce(g, root, in, out, len / 8, &sum));
        break;
    case 6:
        CHECK(keel_group_gather(g, root, in, out, len));
        break;
    case 7:
        CHECK(keel_group_scatter(g, root, in, out, len));
        break;
    case 8:
        CHECK(keel_group_scan(g, in, out, len / 8, &sum));
        break;
    case 9:
        CHECK(keel_group_sync(g));
        break;
    default:
        CHECK(keel_group_agree(g, KEEL_GROUP_MAX, (uint64_t)me, &value));
        break;
    }
}

static void with_memory(unsigned what, keel_redundancy redundancy)
{
    keel_segment *s;
    keel_mutexes *locks;
    keel_taskpool *pool;
    size_t bytes[RANKS_MAX];
    int dead;
    for (int r = 0; r < n; r++)
        bytes[r] = 64 + 64 * (size_t)r;
    if (what == 0)
        CHECK(keel_segment_alloc(5000, redundancy, &s));
    else if (what == 1)
        CHECK(keel_segment_alloc_group(keel_group_world(), bytes, redundancy, &s));
    if (what < 2) {
        CHECK(keel_put(s, (me + 1) % n, 0, in, 64));
        CHECK(keel_sync());
        if (draw(2))
            wait_outside();
        CHECK(keel_segment_free(s));
    } else if (what == 2) {
        CHECK(keel_mutexes_create(1, &locks));
        CHECK(keel_mutex_lock(locks, 0, 0, &dead));
        CHECK(keel_mutex_unlock(locks, 0, 0));
        CHECK(keel_mutexes_free(locks));
    } else {
        int64_t task;
        CHECK(keel_taskpool_create(1, &pool));
        while (keel_task_next(pool, &task) == KEEL_OK && task >= 0)
            CHECK(keel_task_commit(pool, task));
        CHECK(keel_taskpool_free(pool));
    }
}

static void one_call(void)
{
    static const size_t most[] = {0, 8, 4096, 40 * 1024, BYTES_MAX};
    unsigned kind = draw(8), what = draw(11), which = draw(GROUPS + 2), of = draw(4);
    size_t len = most[draw(5)];
    int root = (int)draw(64);
    if (kind < 3)
        make_or_free(&group[which % GROUPS]);
    else if (kind < 7)
        move(which < GROUPS    ? group[which]
             : which == GROUPS ? keel_group_world()
                               : keel_group_node(),
             what, len * 8, root);
    else
        with_memory(of, draw(2) ? KEEL_REDUNDANCY_SHADOW : KEEL_REDUNDANCY_NONE);
}

int main(int argc, char **argv)
{
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    EXPECT(n <= RANKS_MAX && argc == 3);
    state = strtoull(argv[1], NULL, 10);
    share();
    for (long i = strtol(argv[2], NULL, 10); i > 0; i--) {
        one_call();
        if (draw(2))
            wait_outside();
    }
    return keel_finalize() != KEEL_OK;
}
