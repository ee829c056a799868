/* crowd ROUNDS: 64 threads of each rank do all kinds of operations at once, one mutex at each rank is wanted by all of
 * them, and one thread attaches to parts of a group's segment again and again, while ranks and nodes die (crowd.py).
 * Four ranks or more, those with numbers from 2 are no members of the group. Each thread that lives knows what it has
 * done: counts are exact, its own bytes are what it has written last, and what a mutex protects is consistent. Exit
 * 0 if all is right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { THREADS = 64, RANKS_MAX = 8, CELL = 256, LONG = 2 * 384 * 1024, MEMBERS = 2 };

static int me, n, rounds;
static keel_segment *counts, *sums, *cells, *guarded, *lengthy, *told, *of_group;
static keel_mutexes *mutexes;
static keel_group *group;
static _Atomic int64_t counted[RANKS_MAX], summed[RANKS_MAX], entered[RANKS_MAX], reached[MEMBERS];

struct worker {
    int number;
    uint64_t seed;
    unsigned char value;
    pthread_t thread;
};

static unsigned pick(struct worker *w, unsigned below)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->seed >> 33) % below;
}

/* ---- what threads do ---- */

static void count(struct worker *w)
{
    int64_t old, one = 1;
    int to = (int)pick(w, (unsigned)n);
    size_t at = (size_t)me * sizeof one;
    if (pick(w, 2))
        CHECK(keel_fetch_add(counts, to, at, 1, &old));
    else
        CHECK(keel_rmw(counts, to, at, KEEL_INT64, KEEL_RMW_ADD, &one, NULL, &old));
    atomic_fetch_add(&counted[to], 1);
}

static void sum(struct worker *w)
{
    int64_t one = 1;
    int to = (int)pick(w, (unsigned)n);
    keel_handle h;
    if (pick(w, 2)) {
        CHECK(keel_acc(sums, to, (size_t)me * sizeof one, KEEL_INT64, NULL, &one, 1));
    } else {
        CHECK(keel_acc_nb(sums, to, (size_t)me * sizeof one, KEEL_INT64, NULL, &one, 1, &h));
        CHECK(keel_wait(&h));
    }
    atomic_fetch_add(&summed[to], 1);
}

/* The cells of a thread are its own. */
static void copy(struct worker *w)
{
    unsigned char bytes[CELL], back[CELL];
    size_t len = 1 + pick(w, CELL), at = ((size_t)me * THREADS + (size_t)w->number) * CELL;
    int to = (int)pick(w, (unsigned)n);
    memset(bytes, ++w->value, len);
    CHECK(keel_put(cells, to, at, bytes, len));
    CHECK(pick(w, 2) ? keel_get(cells, to, at, back, len) : keel_get_strong(cells, to, at, back, len));
    EXPECT(memcmp(bytes, back, len) == 0);
}

static void copy_much(struct worker *w)
{
    static _Atomic int users; /* one part of the segment for each of these */
    enum { USERS = 4 };
    int user = atomic_fetch_add(&users, 1), to = (int)pick(w, (unsigned)n);
    keel_handle h[2];
    if (user < USERS) {
        static unsigned char bytes[USERS][LONG], back[USERS][LONG];
        static pthread_mutex_t own[USERS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                             PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
        size_t at = ((size_t)me * USERS + (size_t)user) * LONG;
        pthread_mutex_lock(&own[user]);
        memset(bytes[user], ++w->value, LONG);
        CHECK(keel_put_nb(lengthy, to, at, bytes[user], LONG / 2, &h[0]));
        CHECK(keel_put_nb(lengthy, to, at + LONG / 2, bytes[user] + LONG / 2, LONG / 2, &h[1]));
        CHECK(keel_wait_all(h, 2));
        CHECK(keel_get_nb(lengthy, to, at, back[user], LONG, &h[0]));
        CHECK(keel_wait(&h[0]));
        EXPECT(memcmp(bytes[user], back[user], LONG) == 0);
        pthread_mutex_unlock(&own[user]);
    }
    atomic_fetch_sub(&users, 1);
}

/* The first word is how often all ranks were in here, the others how often each was. */
static void look_after(int home, int dead, int64_t words[RANKS_MAX + 1])
{
    int64_t all = 0;
    CHECK(keel_get(guarded, home, 0, words, (size_t)(n + 1) * sizeof *words));
    for (int r = 0; r < n; r++)
        all += words[r + 1];
    EXPECT(dead >= 0 || words[0] == all); /* a dead holder may have been between the two */
    words[0] = all;
}

static void enter(struct worker *w)
{
    int64_t words[RANKS_MAX + 1];
    int home = (int)pick(w, (unsigned)n), dead;
    keel_status status =
        pick(w, 4) ? keel_mutex_lock(mutexes, home, 0, &dead) : keel_mutex_try(mutexes, home, 0, &dead);
    if (status == KEEL_IN_PROGRESS)
        return;
    CHECK(status);
    look_after(home, dead, words);
    words[0]++;
    words[me + 1]++;
    CHECK(keel_put(guarded, home, 0, words, sizeof *words));
    CHECK(keel_put(guarded, home, (size_t)(me + 1) * sizeof *words, &words[me + 1], sizeof *words));
    CHECK(keel_mutex_unlock(mutexes, home, 0));
    atomic_fetch_add(&entered[home], 1);
}

static void tell(struct worker *w)
{
    static const int64_t value = 7;
    size_t at = ((size_t)me * THREADS + (size_t)w->number) * CELL;
    CHECK(keel_put_signal(cells, (int)pick(w, (unsigned)n), at, &value, sizeof value, (size_t)n * THREADS * CELL, 1));
}

static void *work(void *arg)
{
    static void (*const kinds[])(struct worker *) = {count, sum, copy, copy_much, enter, tell, count, copy};
    struct worker *w = arg;
    for (int i = 0; i < rounds; i++)
        kinds[pick(w, sizeof kinds / sizeof kinds[0])](w);
    return NULL;
}

/* ---- parts of others' segments ---- */

static void describe_own(void)
{
    keel_segment_part part;
    if (me >= MEMBERS)
        return;
    CHECK(keel_segment_describe(of_group, me, &part));
    CHECK(keel_put(told, 0, (size_t)me * sizeof part, &part, sizeof part));
}

static void *reach(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < rounds && me >= MEMBERS; i++) {
        keel_segment_part part;
        keel_segment *s;
        int64_t mine = i + 1, got, old;
        int of = (int)pick(w, MEMBERS);
        CHECK(keel_get(told, 0, (size_t)of * sizeof part, &part, sizeof part));
        CHECK(keel_segment_attach(&part, &s));
        EXPECT(keel_segment_bytes(s, of) == (size_t)2 * RANKS_MAX * sizeof mine && keel_segment_bytes(s, 1 - of) == 0);
        CHECK(keel_put(s, of, (size_t)me * sizeof mine, &mine, sizeof mine));
        CHECK(keel_get(s, of, (size_t)me * sizeof mine, &got, sizeof got));
        EXPECT(got == mine);
        CHECK(keel_fetch_add(s, of, (size_t)(RANKS_MAX + me) * sizeof mine, 1, &old));
        atomic_fetch_add(&reached[of], 1);
        CHECK(keel_segment_free(s));
    }
    return NULL;
}

/* ---- the whole ---- */

static void begin(void)
{
    static const int members[MEMBERS] = {0, 1};
    size_t sizes[MEMBERS], words = RANKS_MAX * sizeof(int64_t);
    CHECK(keel_segment_alloc(words, KEEL_REDUNDANCY_SHADOW, &counts));
    CHECK(keel_segment_alloc(words, KEEL_REDUNDANCY_SHADOW, &sums));
    CHECK(keel_segment_alloc((size_t)n * THREADS * CELL + sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &cells));
    CHECK(keel_segment_alloc(words + sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &guarded));
    CHECK(keel_segment_alloc((size_t)n * 4 * LONG, KEEL_REDUNDANCY_SHADOW, &lengthy));
    CHECK(keel_segment_alloc(MEMBERS * sizeof(keel_segment_part), KEEL_REDUNDANCY_SHADOW, &told));
    CHECK(keel_mutexes_create(1, &mutexes));
    for (int m = 0; m < MEMBERS; m++)
        sizes[m] = 2 * words;
    if (me < MEMBERS) {
        CHECK(keel_group_create(members, MEMBERS, 1, &group));
        CHECK(keel_segment_alloc_group(group, sizes, KEEL_REDUNDANCY_SHADOW, &of_group));
    }
    describe_own();
    CHECK(keel_barrier());
    CHECK(keel_event("begun", me, NULL));
}

static void expect_count(keel_segment *s, int rank, int at, int64_t wanted, const char *what)
{
    int64_t got;
    CHECK(keel_get(s, rank, (size_t)at * sizeof got, &got, sizeof got));
    if (got != wanted)
        fprintf(stderr, "rank %d: %s of rank %d is %lld, not %lld\n", me, what, rank, (long long)got,
                (long long)wanted);
    EXPECT(got == wanted);
}

static void check_all(void)
{
    for (int r = 0; r < n; r++) {
        int64_t words[RANKS_MAX + 1];
        int dead;
        expect_count(counts, r, me, counted[r], "the count");
        expect_count(sums, r, me, summed[r], "the sum");
        expect_count(guarded, r, me + 1, entered[r], "the guarded count");
        CHECK(keel_mutex_lock(mutexes, r, 0, &dead));
        look_after(r, dead, words);
        CHECK(keel_put(guarded, r, 0, words, sizeof *words));
        CHECK(keel_mutex_unlock(mutexes, r, 0));
    }
    for (int of = 0; me >= MEMBERS && of < MEMBERS; of++) {
        keel_segment_part part;
        keel_segment *s;
        CHECK(keel_get(told, 0, (size_t)of * sizeof part, &part, sizeof part));
        CHECK(keel_segment_attach(&part, &s));
        expect_count(s, of, RANKS_MAX + me, reached[of], "what was attached");
        CHECK(keel_segment_free(s));
    }
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS + 1];
    rounds = argc > 1 ? atoi(argv[1]) : 50;
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    EXPECT(n > MEMBERS && n <= RANKS_MAX);
    begin();
    for (int t = 0; t <= THREADS; t++) {
        workers[t] = (struct worker){.number = t, .seed = (uint64_t)(me * 1000 + t + 1) * 0x9e3779b97f4a7c15u};
        EXPECT(pthread_create(&workers[t].thread, NULL, t < THREADS ? work : reach, &workers[t]) == 0);
    }
    for (int t = 0; t <= THREADS; t++)
        EXPECT(pthread_join(workers[t].thread, NULL) == 0);
    CHECK(keel_barrier());
    check_all();
    CHECK(keel_barrier());
    printf("rank %d, right\n", me);
    CHECK(keel_finalize());
    return 0;
}
