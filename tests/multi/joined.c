/* A program that keelrun does not start. joined MODE [FILE]:
 *   work      puts, accumulates and reads across nodes, then leaves
 *   return    the same, and ends without keel_finalize
 *   rest      tells its rank and pid, and waits to be killed
 *   survive   the same; when a node has died the others find what its ranks had written, and say so in the file
 *             that is named behind it
 *   wrong     what keel_init_over refuses
 *   before, after, over   with MPI that was initialised before, after; that carries the addresses */
#include "../lib/expect.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_MPI
#include <mpi.h>
#endif

enum { WORDS = 1000 };

static keel_segment *segment;

static uint64_t value_of(int rank, int i)
{
    return (uint64_t)rank * 1000000 + (uint64_t)i;
}

/* Each rank writes the part of the next one. */
static void fill(void)
{
    uint64_t words[WORDS];
    int n = keel_size(), next = (keel_rank() + 1) % n;
    CHECK(keel_segment_alloc(sizeof words + 8, KEEL_REDUNDANCY_SHADOW, &segment));
    for (int i = 0; i < WORDS; i++)
        words[i] = value_of(next, i);
    CHECK(keel_put(segment, next, 0, words, sizeof words));
    for (int r = 0; r < n; r++)
        CHECK(keel_acc_double(segment, r, sizeof words, 1, &(double){1}, 1));
    CHECK(keel_fence_all());
    CHECK(keel_barrier());
}

static void look(int rank)
{
    uint64_t words[WORDS];
    double sum;
    CHECK(keel_get(segment, rank, 0, words, sizeof words));
    for (int i = 0; i < WORDS; i++)
        EXPECT(words[i] == value_of(rank, i));
    CHECK(keel_get(segment, rank, sizeof words, &sum, sizeof sum));
    EXPECT(sum == keel_size());
}

static void work(void)
{
    fill();
    for (int r = 0; r < keel_size(); r++)
        look(r);
    CHECK(keel_barrier());
    printf("rank %d of %d on node %d: right\n", keel_rank(), keel_size(), keel_rank_node(keel_rank()));
    fflush(stdout);
}

/* On one line, at once. */
static void tell_pid(void)
{
    char line[64];
    int n = snprintf(line, sizeof line, "pid %d %d %d\n", keel_rank(), (int)getpid(), keel_rank_node(keel_rank()));
    EXPECT(write(STDOUT_FILENO, line, (size_t)n) == n);
}

static void survive(const char *file)
{
    char line[64];
    int told = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
    EXPECT(told >= 0);
    fill();
    tell_pid();
    int dead = -1;
    while (dead < 0) {
        for (int r = 0; r < keel_size(); r++)
            dead = keel_rank_alive(r) ? dead : r;
        usleep(1000);
    }
    CHECK(keel_barrier());
    for (int r = 0; r < keel_size(); r++)
        look(r);
    CHECK(keel_barrier());
    int n = snprintf(line, sizeof line, "rank %d goes on without rank %d: right\n", keel_rank(), dead);
    EXPECT(write(told, line, (size_t)n) == n);
    close(told);
}

static int fails(void *user, const void *mine, size_t len, void *all)
{
    (void)user;
    (void)mine;
    (void)len;
    (void)all;
    return 1;
}

static int alone(void *user, const void *mine, size_t len, void *all)
{
    ++*(int *)user;
    memcpy(all, mine, len);
    return 0;
}

static void wrong(void)
{
    int calls = 0;
    EXPECT_STATUS(keel_init_over(NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_init_over(&(struct keel_exchange){.size = 1}), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_init_over(&(struct keel_exchange){.rank = 1, .size = 1, .gather = alone}), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_init_over(&(struct keel_exchange){.rank = -1, .size = 1, .gather = alone}), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_init_over(&(struct keel_exchange){.size = 0, .gather = alone}), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_init_over(&(struct keel_exchange){.size = 1, .gather = fails}), KEEL_ERR_SYSTEM);
    CHECK(keel_init_over(&(struct keel_exchange){.size = 1, .gather = alone, .user = &calls}));
    EXPECT(calls == 2);
    EXPECT_STATUS(keel_init_over(&(struct keel_exchange){.size = 1, .gather = alone, .user = &calls}), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_init(), KEEL_ERR_STATE);
    work();
    CHECK(keel_finalize());
}

#ifdef WITH_MPI
static int gather(void *user, const void *mine, size_t len, void *all)
{
    (void)user;
    return MPI_Allgather(mine, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, MPI_COMM_WORLD) != MPI_SUCCESS;
}

static void with_mpi(const char *mode)
{
    int sum = 0;
    struct keel_exchange e = {.gather = gather};
    if (strcmp(mode, "after") == 0)
        CHECK(keel_init());
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &e.size);
    if (strcmp(mode, "before") == 0)
        CHECK(keel_init());
    if (strcmp(mode, "over") == 0)
        CHECK(keel_init_over(&e));
    EXPECT(e.rank == keel_rank() && e.size == keel_size());
    work();
    MPI_Allreduce(&e.rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(sum == e.size * (e.size - 1) / 2);
    CHECK(keel_finalize());
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
#endif

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "work";
    if (strcmp(mode, "wrong") == 0) {
        wrong();
        return 0;
    }
#ifdef WITH_MPI
    with_mpi(mode);
    return 0;
#endif
    keel_status status = keel_init();
    if (status != KEEL_OK) {
        fprintf(stderr, "init: %s\n", keel_status_name(status));
        return 3;
    }
    if (strcmp(mode, "rest") == 0) {
        tell_pid();
        for (;;)
            pause();
    }
    if (strcmp(mode, "survive") == 0)
        survive(argv[2]);
    else
        work();
    if (strcmp(mode, "return") != 0)
        CHECK(keel_finalize());
    return 0;
}
