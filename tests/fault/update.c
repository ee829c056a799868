/* update REDUNDANCY: plain stores into replicated memory (keel/update.h). Between its phases rank 0 waits for a line,
 * and everything rests.
 *   1  each rank has stored all of its part, once watched and once told; all copies have it
 *   2  the same after some more stores, between what others put and added there, and over it, with the values of before
 *   3  stores that no other copy has, and stores into another segment, which alone was flushed
 *   4  the test has killed a node or a rank: what was brought to the copies is there, and the stores of phase 3 are
 *      there or not. Then those
 *      who live have stored the values of before again, which copies that were made meanwhile do not have, and all
 *      copies have them */
#include <keel/keel.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/expect.h"

enum {
    WORDS = 40003,
    STEP = 7,
    OTHERS = 3,
    FAR = 20 * STEP,
    ROWS = 1000,
    PIECES = 20011,
    THREADS = 4,
    FLUSHES = 5
}; /* parts do not begin at pages; who stores: i % STEP == 0, others put and add: i % FAR == OTHERS */
static int me, n;
static keel_segment *seen, *told, *shared, *pieces, *threaded, *threads_told, *back;

static int64_t value(int rank, int i, int round)
{
    return (int64_t)round << 48 | (int64_t)rank << 32 | i;
}

static void rest(int phase)
{
    char line[8];
    CHECK(keel_barrier());
    if (me == 0) {
        printf("phase %d\n", phase);
        fflush(stdout);
        EXPECT(fgets(line, sizeof line, stdin));
    }
    CHECK(keel_barrier());
}

static void bring(void)
{
    CHECK(keel_fence_all());
    CHECK(keel_barrier());
    CHECK(keel_update_flush(NULL));
    CHECK(keel_barrier());
}

static void store_all(void)
{
    int64_t *mine = keel_address(seen, me), *at;
    for (int i = 0; i < WORDS; i++)
        mine[i] = value(me, i, 1);
    void *place;
    CHECK(keel_update_begin(told, 0, sizeof(int64_t) * WORDS, &place));
    at = place;
    for (int i = 0; i < WORDS; i++)
        at[i] = value(me, i, 1);
    CHECK(keel_update_end(told, 0, sizeof(int64_t) * WORDS));
    EXPECT(((int64_t *)keel_address(told, me))[WORDS - 1] == value(me, WORDS - 1, 1));
}

/* Pieces have words of two neighbours, who flush while the other one stores. */
static void store_beside_neighbours(int round)
{
    volatile int64_t *mine = keel_address(shared, me);
    for (int i = 0; i < WORDS; i++)
        mine[i] = value(me, i, round);
}

/* Several updates at a time, which overlap; of one byte, of all; one that is never ended, and one that never began. */
static void store_pieces(void)
{
    void *low, *high, *byte;
    CHECK(keel_update_begin(pieces, 4097, 1, &byte));
    CHECK(keel_update_begin(pieces, 0, 8200, &low));
    CHECK(keel_update_begin(pieces, 8000, PIECES - 8000, &high));
    CHECK(keel_update_begin(pieces, 0, PIECES, NULL));
    memset(low, 1, 8200);
    memset(high, 2, PIECES - 8000);
    memset(byte, 3, 1);
    CHECK(keel_update_end(pieces, 4097, 1));
    CHECK(keel_update_end(pieces, 8000, PIECES - 8000));
    CHECK(keel_update_end(pieces, 0, 8200));
    memset((char *)keel_address(pieces, me) + 9000, 4, 1);
    CHECK(keel_update_end(pieces, 9000, 1));
}

static int piece_at(size_t at)
{
    return at == 4097 ? 3 : at == 9000 ? 4 : at < 8000 ? 1 : 2;
}

/* What update_end and flushes of store_pieces, store_beside_neighbours and stores_of_threads have brought. */
static void look_at_pieces(int rank, int round)
{
    static unsigned char byte[PIECES];
    static int64_t word[WORDS];
    CHECK(keel_get(pieces, rank, 0, byte, sizeof byte));
    for (size_t i = 0; i < PIECES; i++)
        EXPECT(byte[i] == piece_at(i));
    CHECK(keel_get(shared, rank, 0, word, sizeof word));
    for (int i = 0; i < WORDS; i++)
        EXPECT(word[i] == value(rank, i, round));
    CHECK(keel_get(threaded, rank, 0, word, sizeof word));
    for (int i = 0; i < WORDS; i++)
        EXPECT(word[i] == value(rank, i, FLUSHES));
    CHECK(keel_get(threads_told, rank, 0, word, sizeof word));
    for (int i = 0; i < WORDS; i++)
        EXPECT(word[i] == value(rank, i, 1));
}

/* Each thread stores again and again into a stretch of its own, whose ends lie in one page with the others', and
 * tells of another. */
static void *thread(void *number)
{
    int from = (int)(intptr_t)number, lo = from * WORDS / THREADS, hi = (from + 1) * WORDS / THREADS;
    int64_t *mine = keel_address(threaded, me);
    for (int round = 1; round <= FLUSHES; round++)
        for (int i = lo; i < hi; i++)
            __atomic_store_n(&mine[i], value(me, i, round), __ATOMIC_RELAXED);
    void *at;
    CHECK(keel_update_begin(threads_told, 8 * (size_t)lo, 8 * (size_t)(hi - lo), &at));
    for (int i = lo; i < hi; i++)
        ((int64_t *)at)[i - lo] = value(me, i, 1);
    CHECK(keel_update_end(threads_told, 8 * (size_t)lo, 8 * (size_t)(hi - lo)));
    return NULL;
}

/* While they store, flushes bring what is there; the last one, in main, has all. */
static void stores_of_threads(void)
{
    pthread_t id[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&id[i], NULL, thread, (void *)(intptr_t)i) == 0); // NOLINT(performance-no-int-to-ptr)
    for (int i = 0; i < FLUSHES; i++)
        CHECK(keel_update_flush(threaded));
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(id[i], NULL) == 0);
}

static void *own_page;
static volatile sig_atomic_t own_faults;

static void on_own_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if (info->si_addr != own_page || mprotect(own_page, 4096, PROT_READ | PROT_WRITE))
        _exit(2);
    own_faults = own_faults + 1;
}

/* Before the first segment is tracked. */
static void handle_own_faults(void)
{
    struct sigaction how = {.sa_sigaction = on_own_fault, .sa_flags = SA_SIGINFO};
    EXPECT(sigaction(SIGSEGV, &how, NULL) == 0);
    own_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(own_page != MAP_FAILED);
}

/* A fault of another kind is the program's own; a system call fails where no store was before. */
static void faults(keel_redundancy copies)
{
    keel_segment *s;
    int end[2];
    CHECK(keel_segment_alloc(4096, copies, &s));
    CHECK(keel_segment_track(s));
    char *mine = keel_address(s, me);
    EXPECT(pipe(end) == 0 && write(end[1], "word", 4) == 4);
    EXPECT(read(end[0], mine + 8, 4) == -1 && errno == EFAULT);
    *(volatile char *)mine = 1;
    EXPECT(own_faults == 0);
    *(volatile char *)own_page = 1;
    EXPECT(own_faults == 1 && *(char *)own_page == 1);
    EXPECT(read(end[0], mine + 8, 4) == 4 && memcmp(mine + 8, "word", 4) == 0);
    EXPECT(close(end[0]) == 0 && close(end[1]) == 0);
    bring();
    CHECK(keel_segment_free(s));
}

/* Others put and add to my part while I store into other words of it. */
static void store_among_others(void)
{
    int next = (me + 1) % n;
    int64_t *mine = keel_address(seen, me);
    for (int i = 0; i < WORDS; i++) {
        int64_t v = value(next, i, 2), one = 1;
        if (i % STEP == 0)
            mine[i] = value(me, i, 2);
        else if (i % FAR == OTHERS && i % 5 == 0)
            CHECK(keel_put_nb(seen, next, 8 * (size_t)i, &v, 8, NULL));
        else if (i % FAR == OTHERS)
            CHECK(keel_acc(seen, next, 8 * (size_t)i, KEEL_INT64, NULL, &one, 1));
        if (i % 1000 == 0)
            CHECK(keel_fence_all());
    }
}

/* Others write words of a piece that is watched since a store beside them; its owner stores what was there before. */
static void store_back(void)
{
    volatile int64_t *mine = keel_address(back, me);
    int64_t one = 1;
    int next = (me + 1) % n;
    mine[0] = 1;
    CHECK(keel_barrier());
    CHECK(keel_put(back, next, 8, &one, 8));
    CHECK(keel_acc(back, next, 16, KEEL_INT64, NULL, &one, 1));
    CHECK(keel_fetch_add(back, next, 24, 1, NULL));
    CHECK(keel_barrier());
    for (int i = 1; i <= OTHERS; i++) {
        EXPECT(mine[i] == 1);
        mine[i] = 0;
    }
}

static int64_t expected(int rank, int i)
{
    if (i % STEP == 0 || (i % FAR == OTHERS && i % 5 == 0))
        return value(rank, i, 2);
    return value(rank, i, 1) + (i % FAR == OTHERS);
}

/* The number of words with the stores of phase 3; every other one is as it was brought. */
static int look(int rank)
{
    static int64_t got[WORDS];
    int late = 0;
    CHECK(keel_get(seen, rank, 0, got, sizeof got));
    for (int i = 0; i < WORDS; i++) {
        late += got[i] == value(rank, i, 3);
        EXPECT(got[i] == expected(rank, i) || (i % STEP == 1 && got[i] == value(rank, i, 3)));
    }
    CHECK(keel_get(told, rank, 0, got, sizeof got));
    for (int i = 0; i < WORDS; i++)
        EXPECT(got[i] == value(rank, i, 1));
    CHECK(keel_get(back, rank, 0, got, 8 * (1 + OTHERS)));
    for (int i = 0; i <= OTHERS; i++)
        EXPECT(got[i] == (i == 0));
    return late;
}

static void wrong_arguments(void)
{
    EXPECT(keel_update_begin(told, 8 * WORDS, 1, NULL) == KEEL_ERR_ARG &&
           keel_update_begin(NULL, 0, 0, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_update_end(told, 1, SIZE_MAX) == KEEL_ERR_ARG && keel_segment_track(NULL) == KEEL_ERR_ARG);
    keel_segment *single;
    void *at;
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_NONE, &single));
    CHECK(keel_segment_track(single));
    CHECK(keel_update_begin(single, 8, 8, &at));
    EXPECT(at == (char *)keel_address(single, me) + 8);
    memset(at, 1, 8);
    CHECK(keel_update_end(single, 8, 8));
    CHECK(keel_update_flush(single));
    CHECK(keel_segment_free(single));
}

/* A get is a store, too, where the system itself does it. */
static void get_into_watched(keel_redundancy copies)
{
    keel_segment *s;
    int next = (me + 1) % n;
    CHECK(keel_segment_alloc(3 * sizeof(int64_t) * WORDS, copies, &s));
    CHECK(keel_segment_track(s));
    int64_t *mine = keel_address(s, me);
    keel_strided shape = {.levels = 1, .count = {8, ROWS}, .global_stride = {8}, .local_stride = {16}};
    CHECK(keel_get(told, next, 0, mine, sizeof(int64_t) * WORDS));
    CHECK(keel_get_strided(told, next, 0, mine + WORDS, &shape));
    for (int i = 0; i < WORDS; i++)
        EXPECT(mine[i] == value(next, i, 1));
    for (int i = 0; i < ROWS; i++)
        EXPECT(mine[WORDS + 2 * i] == value(next, i, 1));
    bring();
    CHECK(keel_segment_free(s));
}

int main(int argc, char **argv)
{
    EXPECT(keel_update_begin(NULL, 0, 0, NULL) == KEEL_ERR_STATE && keel_update_end(NULL, 0, 0) == KEEL_ERR_STATE);
    EXPECT(keel_segment_track(NULL) == KEEL_ERR_STATE && keel_update_flush(NULL) == KEEL_ERR_STATE);
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    EXPECT(argc == 2);
    keel_redundancy copies = strcmp(argv[1], "triple") == 0 ? KEEL_REDUNDANCY_TRIPLE : KEEL_REDUNDANCY_SHADOW;
    CHECK(keel_segment_alloc(sizeof(int64_t) * WORDS, copies, &seen));
    CHECK(keel_segment_alloc(sizeof(int64_t) * WORDS, copies, &told));
    CHECK(keel_segment_alloc(sizeof(int64_t) * WORDS, copies, &shared));
    CHECK(keel_segment_alloc(PIECES, copies, &pieces));
    CHECK(keel_segment_alloc(sizeof(int64_t) * WORDS, copies, &threaded));
    CHECK(keel_segment_alloc(sizeof(int64_t) * WORDS, copies, &threads_told));
    CHECK(keel_segment_alloc(sizeof(int64_t) * WORDS, copies, &back));
    void *before = keel_address(seen, me);
    handle_own_faults();
    CHECK(keel_segment_track(shared));
    CHECK(keel_segment_track(back));
    CHECK(keel_segment_track(threaded));
    CHECK(keel_segment_track(seen));
    CHECK(keel_segment_track(seen));
    EXPECT(keel_address(seen, me) == before);
    wrong_arguments();
    faults(copies);
    store_all();
    store_beside_neighbours(1);
    store_pieces();
    for (int r = 0; r < n; r++) { /* one after the other: a node's ranks share what is watched */
        CHECK(keel_barrier());
        if (r == me)
            stores_of_threads();
    }
    bring();
    look_at_pieces((me + 1) % n, 1);
    get_into_watched(copies);
    rest(1);
    store_among_others();
    store_back();
    bring();
    rest(2);
    int64_t *mine = keel_address(seen, me);
    for (int i = 1; i < WORDS; i += STEP)
        mine[i] = value(me, i, 3);
    store_beside_neighbours(2);
    CHECK(keel_update_flush(shared));
    rest(3);
    for (int r = me; r < n; r += n) {
        int late = look(r);
        EXPECT(late == (WORDS + STEP - 2) / STEP); /* its own node's copy has them */
    }
    if (me == 0) {
        for (int r = 0; r < n; r++)
            look_at_pieces(r, 2);
        for (int r = 1; r < n; r++)
            printf("rank %d: %s\n", r, look(r) ? "kept" : "lost");
        CHECK(keel_segment_free(NULL));
        fflush(stdout);
    }
    CHECK(keel_barrier());
    for (int i = 1; i < WORDS; i += STEP)
        mine[i] = expected(me, i);
    bring();
    rest(4);
    return keel_finalize() != KEEL_OK;
}
