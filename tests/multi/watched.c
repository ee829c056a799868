/* Plain stores and segments that are freed, where something comes in between: a store while another thread's first
 * store to the same piece is being taken; a free that is refused; a free with operations under way; no descriptors.
 * What a strong get returns, all copies have. */
#include <keel/keel.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { BIG = 24 * 1024 * 1024 };
static int me, n;

/* ---- the library's mprotect and sched_yield are these ---- */

static _Thread_local volatile bool holds; /* this thread's first store stays in the handler, its piece just writable, */
static _Atomic bool writable, may_go_on;  /* until a flush has seen it so, or is over */

__attribute__((visibility("default"))) int mprotect(void *addr, size_t len, int prot)
{
    int result = (int)syscall(SYS_mprotect, addr, len, prot);
    if (holds && (prot & PROT_WRITE)) {
        holds = false;
        atomic_store(&writable, true);
        while (!atomic_load(&may_go_on))
            syscall(SYS_sched_yield);
    }
    return result;
}

__attribute__((visibility("default"))) int sched_yield(void)
{
    atomic_store(&may_go_on, true);
    return (int)syscall(SYS_sched_yield);
}

/* ---- */

static void *first_store(void *at)
{
    holds = true;
    *(volatile int64_t *)at = 1;
    return NULL;
}

static void store_beside_a_first_store(void)
{
    keel_segment *s;
    pthread_t other;
    int64_t got;
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_track(s));
    int64_t *mine = keel_address(s, me);
    atomic_store(&may_go_on, false);
    EXPECT(pthread_create(&other, NULL, first_store, mine) == 0);
    while (!atomic_load(&writable))
        syscall(SYS_sched_yield);
    mine[7] = 77;
    CHECK(keel_update_flush(s));
    atomic_store(&may_go_on, true);
    EXPECT(pthread_join(other, NULL) == 0);
    CHECK(keel_get_strong(s, me, 56, &got, sizeof got));
    EXPECT(got == 77);
    CHECK(keel_barrier());
    CHECK(keel_segment_free(s));
}

static void store_after_a_free_that_is_refused(void)
{
    keel_group *group;
    keel_segment *s;
    int *ranks = malloc((size_t)n * sizeof *ranks);
    size_t *bytes = malloc((size_t)n * sizeof *bytes);
    int64_t got;
    for (int r = 0; r < n; r++) {
        ranks[r] = r;
        bytes[r] = 4096;
    }
    CHECK(keel_group_create(ranks, n, 1, &group));
    CHECK(keel_segment_alloc_group(group, bytes, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_track(s));
    int64_t *mine = keel_address(s, me);
    mine[0] = 5;
    CHECK(keel_group_free(group));
    EXPECT(keel_segment_free(s) == KEEL_ERR_ARG);
    mine[511] = 6;
    CHECK(keel_update_flush(s));
    CHECK(keel_get_strong(s, me, 0, &got, sizeof got));
    EXPECT(got == 5);
    CHECK(keel_get_strong(s, me, 4088, &got, sizeof got));
    EXPECT(got == 6);
    free(ranks);
    free(bytes);
}

static void free_with_operations_under_way(keel_redundancy redundancy, bool of_group)
{
    keel_segment *s;
    keel_handle put = {{0}}, get = {{0}}, add = {{0}};
    char *out = malloc(BIG), *in = malloc(BIG);
    double *ones = malloc(BIG);
    int next = (me + 1) % n;
    size_t *bytes = malloc((size_t)n * sizeof *bytes);
    for (int r = 0; r < n; r++)
        bytes[r] = BIG;
    memset(out, 1, BIG);
    for (int i = 0; i < BIG / 8; i++)
        ones[i] = 1;
    if (of_group)
        CHECK(keel_segment_alloc_group(keel_group_world(), bytes, redundancy, &s));
    else
        CHECK(keel_segment_alloc(BIG, redundancy, &s));
    CHECK(keel_put_nb(s, me, 0, out, BIG, &put));
    CHECK(keel_get_nb(s, next, 0, in, BIG, &get));
    CHECK(keel_acc_nb(s, next, 0, KEEL_DOUBLE, NULL, ones, BIG / 8, &add));
    CHECK(keel_segment_free(s));
    CHECK(keel_wait(&put));
    CHECK(keel_wait(&get));
    CHECK(keel_wait(&add));
    EXPECT(keel_update_flush(s) == KEEL_ERR_ARG);
    EXPECT(keel_put(s, me, 0, out, 8) == KEEL_ERR_ARG);
    free(out);
    free(in);
    free(ones);
    free(bytes);
}

/* Touching an address that is only kept free would end the process. */
static void no_address_without_a_descriptor(void)
{
    keel_segment *s;
    struct rlimit many, none;
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_barrier());
    EXPECT(getrlimit(RLIMIT_NOFILE, &many) == 0);
    none = many;
    none.rlim_cur = (rlim_t)dup(0);
    EXPECT(close((int)none.rlim_cur) == 0 && setrlimit(RLIMIT_NOFILE, &none) == 0);
    int64_t word = 5;
    EXPECT(keel_address(s, me) == NULL);
    EXPECT_STATUS(keel_put(s, me, 0, &word, sizeof word), KEEL_ERR_NOMEM);
    EXPECT_STATUS(keel_get(s, me, 0, &word, sizeof word), KEEL_ERR_NOMEM);
    EXPECT(setrlimit(RLIMIT_NOFILE, &many) == 0);
    EXPECT(*(int64_t *)keel_address(s, me) == 0);
    CHECK(keel_barrier());
    CHECK(keel_segment_free(s));
}

int main(void)
{
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    no_address_without_a_descriptor();
    store_beside_a_first_store();
    store_after_a_free_that_is_refused();
    for (keel_redundancy r = KEEL_REDUNDANCY_NONE; r <= KEEL_REDUNDANCY_TRIPLE; r++) {
        free_with_operations_under_way(r, false);
        free_with_operations_under_way(r, true);
    }
    return keel_finalize() != KEEL_OK;
}
