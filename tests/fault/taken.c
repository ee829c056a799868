/* Rank 1 kills its node. Who takes its place finds its parts at the addresses where they were, as everybody else does,
 * loads all of them, stores into them, and tells of it, while the copies on its new node are being made again. */
#include <keel/keel.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { WORDS = 2 * 1024 * 1024, STORES = 1000, DIES = 1 };
static int me, n;
static keel_segment *told, *seen, *places, *bare;

static keel_segment *allocate(keel_redundancy redundancy)
{
    keel_segment *s;
    size_t *bytes = calloc((size_t)n, sizeof *bytes);
    bytes[DIES] = sizeof(int64_t) * WORDS;
    CHECK(keel_segment_alloc_parts(bytes, redundancy, &s));
    free(bytes);
    return s;
}

static void fill(void)
{
    int64_t *word = malloc(sizeof *word * WORDS);
    for (int64_t i = 0; i < WORDS; i++)
        word[i] = i + 1;
    CHECK(keel_put(told, DIES, 0, word, sizeof *word * WORDS));
    CHECK(keel_put(seen, DIES, 0, word, sizeof *word * WORDS));
    CHECK(keel_put(bare, DIES, 0, word, sizeof *word * WORDS));
    EXPECT(*(int64_t *)keel_address(bare, me) == 1);
    free(word);
}

/* Where the parts of who dies lie; rank 0 keeps it. */
static void remember_places(void)
{
    const void *at[2] = {keel_address(told, DIES), keel_address(seen, DIES)};
    CHECK(keel_put(places, 0, 0, at, sizeof at));
}

static void check_places(void)
{
    keel_segment *found;
    size_t offset;
    void *at[2];
    CHECK(keel_get(places, 0, 0, at, sizeof at));
    EXPECT(at[0] && at[0] == keel_address(told, DIES) && at[1] && at[1] == keel_address(seen, DIES));
    CHECK(keel_locate(DIES, (char *)at[1] + 8, &found, &offset));
    EXPECT(found == seen && offset == 8);
}

static void look(keel_segment *s)
{
    const int64_t *word = keel_address(s, me);
    for (int64_t i = 0; i < WORDS; i++)
        EXPECT(word[i] == i + 1);
}

/* What nobody has a copy of is nowhere: there is an error for who asks, and a plain load, here a child's, is its
 * end. */
static void look_at_what_is_lost(void)
{
    const volatile int64_t *word = keel_address(bare, me);
    int64_t first;
    int status = 0;
    EXPECT(word);
    EXPECT(keel_get(bare, me, 0, &first, sizeof first) == KEEL_ERR_DATA_LOST);
    EXPECT(keel_get(bare, me, sizeof first * (WORDS - 1), &first, sizeof first) == KEEL_ERR_DATA_LOST);
    for (int k = 0; k < 2; k++) {
        pid_t child = fork();
        if (child == 0) {
            first = word[k * (WORDS - 1)];
            _exit(0);
        }
        EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
}

/* At the end of the part, where the last block comes. */
static void store(void)
{
    const size_t at = sizeof(int64_t) * (WORDS - STORES);
    void *place;
    CHECK(keel_update_begin(told, at, sizeof(int64_t) * STORES, &place));
    int64_t *mine = place, *watched = (int64_t *)keel_address(seen, me) + WORDS - STORES;
    for (int64_t i = 0; i < STORES; i++)
        mine[i] = watched[i] = -i;
    CHECK(keel_update_end(told, at, sizeof(int64_t) * STORES));
    CHECK(keel_update_flush(seen));
}

static void check(keel_segment *s)
{
    int64_t *word = malloc(sizeof *word * WORDS);
    CHECK(keel_get(s, DIES, 0, word, sizeof *word * WORDS));
    for (int64_t i = 0; i < WORDS; i++)
        EXPECT(word[i] == (i < WORDS - STORES ? i + 1 : WORDS - STORES - i));
    free(word);
}

int main(void)
{
    uint64_t done;
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    told = allocate(KEEL_REDUNDANCY_SHADOW);
    seen = allocate(KEEL_REDUNDANCY_SHADOW);
    bare = allocate(KEEL_REDUNDANCY_NONE);
    CHECK(keel_segment_track(seen));
    CHECK(keel_segment_alloc(2 * sizeof(void *), KEEL_REDUNDANCY_SHADOW, &places));
    if (keel_restarted()) {
        check_places();
        look(told);
        look(seen);
        look_at_what_is_lost();
        store();
        CHECK(keel_resume(&done));
        EXPECT(done == 1);
    } else {
        if (me == DIES) {
            fill();
            remember_places();
        }
        CHECK(keel_barrier());
        check_places();
        if (me == DIES) {
            kill(getppid(), SIGKILL);
            kill(getpid(), SIGKILL);
        }
    }
    CHECK(keel_barrier());
    check_places();
    check(told);
    check(seen);
    return keel_finalize() != KEEL_OK;
}
