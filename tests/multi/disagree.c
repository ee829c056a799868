/* disagree: one rank is in a collective of all live ranks (argument: barrier, split, bcast, sum or reset), the others
 * allocate or free (second argument: alloc, parts, free, mutexes, pool, unlock or unpool); or the other way round
 * (third argument: others). All are told, and told so from then on; the rest goes on (keel/collective.h). Two ranks
 * or more. Exit 0 if all is right. */
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

static int me, n;
static keel_segment *segment;
static keel_mutexes *mutexes;
static keel_taskpool *pool;

static keel_status collective(const char *name)
{
    double x = 1;
    keel_status status;
    if (!strcmp(name, "barrier"))
        return keel_barrier();
    if (!strcmp(name, "bcast"))
        return keel_bcast(0, &x, sizeof x);
    if (!strcmp(name, "sum"))
        return keel_allreduce_sum(&x, &x, 1);
    if (!strcmp(name, "reset"))
        return keel_taskpool_reset(pool);
    EXPECT(!strcmp(name, "split"));
    status = keel_barrier_begin();
    return status == KEEL_OK ? keel_barrier_end(NULL) : status;
}

static keel_status allocation(const char *name)
{
    keel_segment *s;
    keel_mutexes *m;
    keel_taskpool *p;
    size_t *bytes = calloc((size_t)n, sizeof *bytes);
    EXPECT(bytes);
    keel_status status = !strcmp(name, "alloc")     ? keel_segment_alloc(8, KEEL_REDUNDANCY_SHADOW, &s)
                         : !strcmp(name, "parts")   ? keel_segment_alloc_parts(bytes, KEEL_REDUNDANCY_SHADOW, &s)
                         : !strcmp(name, "free")    ? keel_segment_free(segment)
                         : !strcmp(name, "mutexes") ? keel_mutexes_create(1, &m)
                         : !strcmp(name, "pool")    ? keel_taskpool_create(4, &p)
                         : !strcmp(name, "unlock")  ? keel_mutexes_free(mutexes)
                         : !strcmp(name, "unpool")  ? keel_taskpool_free(pool)
                                                    : KEEL_OK;
    free(bytes);
    return status;
}

int main(int argc, char **argv)
{
    int64_t value = 0;
    EXPECT(argc >= 3);
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    CHECK(keel_segment_alloc(sizeof value, KEEL_REDUNDANCY_SHADOW, &segment));
    CHECK(keel_mutexes_create(1, &mutexes));
    CHECK(keel_taskpool_create(4, &pool));
    CHECK(keel_barrier());
    bool odd = (me == n - 1) != (argc > 3);
    EXPECT_STATUS(odd ? collective(argv[1]) : allocation(argv[2]), KEEL_ERR_MISMATCH);
    for (int k = 0; k < 2; k++) {
        EXPECT_STATUS(collective(argv[1]), KEEL_ERR_MISMATCH);
        EXPECT_STATUS(allocation(argv[2]), KEEL_ERR_MISMATCH);
        EXPECT_STATUS(keel_barrier(), KEEL_ERR_MISMATCH);
    }
    CHECK(keel_group_barrier(keel_group_world()));
    value = me + 1;
    CHECK(keel_put(segment, (me + 1) % n, 0, &value, sizeof value));
    CHECK(keel_group_sync(keel_group_world()));
    CHECK(keel_get(segment, me, 0, &value, sizeof value));
    EXPECT(value == (me + n - 1) % n + 1);
    CHECK(keel_mutex_lock(mutexes, 0, 0, NULL));
    CHECK(keel_mutex_unlock(mutexes, 0, 0));
    CHECK(keel_finalize());
    return 0;
}
