/* mutex alone: rank 1 takes and frees a mutex while the agent that keeps it stands still; then each rank does.
 * mutex TURNS: ranks take a mutex in turns while some of them die in all places. Who holds it says so in a word, adds
 * one to a sum and to its own count; whoever is let in finds nobody inside, but one that died and of which it was
 * told. Exit 0 if that is so. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(c)                                                                                                      \
    do {                                                                                                               \
        if (!(c)) {                                                                                                    \
            fprintf(stderr, "rank %d line %d: %s\n", keel_rank(), __LINE__, #c);                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK(expression) EXPECT((expression) == KEEL_OK)

enum { INSIDE = 0, SUM = 8, COUNTS = 16 };

static keel_segment *memory;

static int64_t load(size_t at)
{
    int64_t value;
    CHECK(keel_get(memory, 0, at, &value, sizeof value));
    return value;
}

static void store(size_t at, int64_t value)
{
    CHECK(keel_put(memory, 0, at, &value, sizeof value));
}

static void turn(keel_mutexes *m, int *told)
{
    int dead, me = keel_rank();
    CHECK(keel_mutex_lock(m, 0, 0, &dead));
    int64_t inside = load(INSIDE);
    if (dead < 0)
        EXPECT(inside == 0);
    else
        EXPECT(inside == 0 || inside == dead + 1);
    *told += dead >= 0;
    store(INSIDE, me + 1);
    store(SUM, load(SUM) + 1);
    store(COUNTS + 8 * (size_t)me, load(COUNTS + 8 * (size_t)me) + 1);
    EXPECT(load(INSIDE) == me + 1);
    store(INSIDE, 0);
    CHECK(keel_mutex_unlock(m, 0, 0));
}

/* Whatever stands still meanwhile, who is told that he has it has it, and who is told that it is free has freed it. */
static int alone(void)
{
    keel_mutexes *m;
    CHECK(keel_init());
    CHECK(keel_mutexes_create(1, &m));
    CHECK(keel_barrier());
    if (keel_rank() == 1) {
        CHECK(keel_mutex_lock(m, 0, 0, NULL));
        CHECK(keel_mutex_unlock(m, 0, 0));
        CHECK(keel_mutex_try(m, 0, 0, NULL));
        CHECK(keel_mutex_unlock(m, 0, 0));
        CHECK(keel_mutex_lock(m, 0, 0, NULL));
        CHECK(keel_mutex_unlock(m, 0, 0));
    }
    CHECK(keel_barrier());
    CHECK(keel_mutex_lock(m, 0, 0, NULL));
    CHECK(keel_mutex_unlock(m, 0, 0));
    CHECK(keel_barrier());
    CHECK(keel_mutexes_free(m));
    CHECK(keel_finalize());
    return 0;
}

int main(int argc, char **argv)
{
    keel_mutexes *m;
    uint64_t collectives;
    if (argc > 1 && strcmp(argv[1], "alone") == 0)
        return alone();
    int turns = argc > 1 ? atoi(argv[1]) : 20, told = 0;
    CHECK(keel_init());
    CHECK(keel_segment_alloc(COUNTS + 8 * (size_t)keel_size(), KEEL_REDUNDANCY_SHADOW, &memory));
    CHECK(keel_mutexes_create(1, &m));
    CHECK(keel_resume(&collectives));
    for (int i = 0; i < turns; i++)
        turn(m, &told);
    CHECK(keel_barrier());
    size_t n = 0;
    keel_failure *f = calloc((size_t)(keel_node_count() + keel_size()), sizeof *f);
    EXPECT(f);
    CHECK(keel_failures(0, f, (size_t)(keel_node_count() + keel_size()), &n, NULL));
    int64_t sum = load(SUM), counts = 0;
    for (int r = 0; r < keel_size(); r++)
        counts += load(COUNTS + 8 * (size_t)r);
    EXPECT(load(INSIDE) == 0 || n > 0);
    EXPECT(sum >= counts && sum - counts <= (int64_t)n && sum >= (int64_t)turns);
    printf("mutex: rank %d told %d times, right\n", keel_rank(), told);
    free(f);
    CHECK(keel_mutexes_free(m));
    CHECK(keel_finalize());
    return 0;
}
