/* Many ranks on one counter, of Keel or, compiled with -DPEER_MPI, of MPI's RMA: one program, so that both do the same
 * work. bench/counter.py starts both and lets them take turns. Rank 0 reads lines "OPERATION 8 MS" and answers each
 * with thousands of fetch-adds a second, by all ranks that take part together; every rank first prints its process id.
 * "end" ends. The counter is rank 0's.
 *   all, far                      all ranks; those of the second half, which with Keel are on the other node
 *   shadow-all, shadow-far        the same, with two copies: none with MPI
 *   raw-all, raw-far              beside it by plain TCP: as many processes ask one server, a message there and one
 *                                 back for each question
 *   raw-shadow-all, -far          and the server sends what it has found together to a second one, and answers when
 *                                 that has said that it came */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef PEER_MPI
#include <mpi.h>
#else
#include <keel/keel.h>

#include "bench/rawlib.h"
#endif

enum { LOOK_EVERY = 16, WIRE_BYTES = 88, MS_MAX = 10000 };

struct command {
    int ms; /* 0: end */
    int raw, shadow, far;
};

static int rank, size;

#ifdef PEER_MPI
static MPI_Win window;
static int64_t *part;

static void begin(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(sizeof *part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&part, &window);
    *part = 0;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void end(void)
{
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
}

static void share(struct command *c)
{
    MPI_Bcast(c, sizeof *c, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sum(double *mine, double *all, int n)
{
    MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int64_t add(int shadow)
{
    int64_t one = 1, old;
    (void)shadow;
    MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    return old;
}

static int is_there(const struct command *c)
{
    return !c->raw && !c->shadow;
}

static double raw_kops(const struct command *c)
{
    (void)c;
    return 0;
}
#else
static keel_segment *segment[2];

static void check(keel_status status)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, keel_status_name(status));
    exit(1);
}

static void begin(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    check(keel_init());
    rank = keel_rank();
    size = keel_size();
    check(keel_segment_alloc(8, KEEL_REDUNDANCY_NONE, &segment[0]));
    check(keel_segment_alloc(8, KEEL_REDUNDANCY_SHADOW, &segment[1]));
}

static void end(void)
{
    check(keel_finalize());
}

static void share(struct command *c)
{
    check(keel_bcast(0, c, sizeof *c));
}

static void meet(void)
{
    check(keel_barrier());
}

static void sum(double *mine, double *all, int n)
{
    check(keel_allreduce_sum(mine, all, (size_t)n));
}

static int64_t add(int shadow)
{
    int64_t old;
    check(keel_fetch_add(segment[shadow], 0, 0, 1, &old));
    return old;
}

static int is_there(const struct command *c)
{
    (void)c;
    return 1;
}

static double raw_kops(const struct command *c)
{
    return rank ? 0 : raw_crowd_kops(c->far ? size - size / 2 : size, WIRE_BYTES, 1e3 * c->ms, c->shadow);
}
#endif

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* Thousands a second; -1: what returned was not what a counter returns. */
static double counter_kops(const struct command *c)
{
    int takes_part = !c->far || rank >= size / 2;
    meet();
    double start = now_us(), count = 0, mine[4] = {0}, all[4];
    int64_t last = -1;
    for (int wrong = 0; takes_part && !wrong && now_us() - start < 1e3 * c->ms;)
        for (int i = 0; i < LOOK_EVERY; i++, count++) {
            int64_t old = add(c->shadow);
            wrong += old <= last;
            last = old;
            mine[3] = wrong;
        }
    mine[0] = count;
    mine[1] = takes_part ? now_us() - start : 0;
    mine[2] = takes_part;
    sum(mine, all, 4);
    return all[3] > 0 ? -1 : 1e3 * all[0] / (all[1] / all[2]);
}

static struct command read_command(char *name, size_t room)
{
    char line[64];
    struct command c = {0};
    if (!fgets(line, sizeof line, stdin) || strlen(line) >= room || sscanf(line, "%31s %*d %d", name, &c.ms) != 2 ||
        c.ms > MS_MAX)
        return (struct command){0};
    c.raw = strncmp(name, "raw-", 4) == 0;
    c.shadow = strstr(name, "shadow-") != NULL;
    c.far = strstr(name, "far") != NULL;
    return c;
}

int main(int argc, char **argv)
{
    char name[64] = "";
    begin(argc, argv);
    printf("process %d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        struct command c = {0};
        if (rank == 0)
            c = read_command(name, sizeof name);
        share(&c);
        if (c.ms <= 0)
            break;
        double kops = !is_there(&c) ? 0 : c.raw ? raw_kops(&c) : counter_kops(&c);
        if (rank == 0 && is_there(&c))
            printf("result %s 8 %.3f\n", name, kops);
        else if (rank == 0)
            printf("result %s 8 none\n", name);
        fflush(stdout);
    }
    end();
    return 0;
}
