/* Collectives of Keel or, compiled with -DPEER_MPI by an MPI compiler, the same of MPI: one program, so that both do
 * the same work. bench/collectives.py starts both and lets them take turns. Rank 0 reads lines "OPERATION BYTES TIMES"
 * and answers each with the median and the least time of a call in microseconds, where a call's time is that of the
 * rank that took longest; each rank in turn is the root of broadcasts. Every rank first prints its process id. "end"
 * ends. */
#include <signal.h>
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
#endif

enum { TIMES_MAX = 20000, BYTES_MAX = 4 << 20 };

/* LIVE: keel_barrier and its kin, the calls over all live ranks; MPI has one of each. */
enum operation {
    BARRIER,
    ALLREDUCE,
    BCAST,
    ALLGATHER,
    ALLTOALL,
    LIVE_BARRIER,
    LIVE_ALLREDUCE,
    LIVE_BCAST,
    AGREE,
    SHRINK,
    ALLOC,
    OPERATIONS
};
static const char *const names[OPERATIONS] = {"barrier",  "allreduce",    "bcast",          "allgather",
                                              "alltoall", "live-barrier", "live-allreduce", "live-bcast",
                                              "agree",    "shrink",       "alloc"};

struct command {
    int operation; /* -1: end */
    int times;
    uint64_t bytes;
};

static char *in, *out;
static double taken[TIMES_MAX];

#ifdef PEER_MPI
static int rank, size;

static void begin(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void end(void)
{
    MPI_Finalize();
}

static void share(struct command *c)
{
    MPI_Bcast(c, sizeof *c, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* taken of the rank that took longest, on rank 0. */
static void slowest(int times)
{
    MPI_Reduce(rank ? taken : MPI_IN_PLACE, rank ? NULL : taken, times, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}

/* False: there is no such call. */
static int call(enum operation o, size_t bytes, int root)
{
    int n = (int)bytes;
    if (o == BARRIER || o == LIVE_BARRIER)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (o == ALLREDUCE || o == LIVE_ALLREDUCE)
        MPI_Allreduce(in, out, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else if (o == BCAST || o == LIVE_BCAST)
        MPI_Bcast(out, n, MPI_BYTE, root, MPI_COMM_WORLD);
    else if (o == ALLGATHER)
        MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
    else if (o == ALLTOALL)
        MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
    else
        return 0;
    return 1;
}
#else
static int rank, size;

static void check(keel_status status)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, keel_status_text(status));
    exit(1);
}

static void begin(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    check(keel_init());
    rank = keel_rank();
    size = keel_size();
}

static void end(void)
{
    check(keel_finalize());
}

static void share(struct command *c)
{
    check(keel_group_bcast(keel_group_world(), 0, c, sizeof *c));
}

static void of_groups(keel_group *g, enum operation o, size_t bytes)
{
    keel_group *survivors;
    keel_segment *s;
    uint64_t value;
    if (o == AGREE) {
        check(keel_group_agree(g, KEEL_GROUP_AND, 1, &value));
    } else if (o == SHRINK) {
        check(keel_group_shrink(g, &survivors));
        check(keel_group_free(survivors));
    } else {
        check(keel_segment_alloc(bytes, KEEL_REDUNDANCY_NONE, &s));
        check(keel_segment_free(s));
    }
}

/* taken of the rank that took longest. */
static void slowest(int times)
{
    check(keel_group_allreduce(keel_group_world(), taken, taken, (size_t)times,
                               &(keel_combine){.type = KEEL_DOUBLE, .op = KEEL_MAX}));
}

/* False: there is no such call. */
static int call(enum operation o, size_t bytes, int root)
{
    keel_group *g = keel_group_world();
    if (o == BARRIER)
        check(keel_group_barrier(g));
    else if (o == ALLREDUCE)
        check(keel_group_allreduce(g, in, out, bytes / sizeof(double), &(keel_combine){.type = KEEL_DOUBLE}));
    else if (o == BCAST)
        check(keel_group_bcast(g, root, out, bytes));
    else if (o == ALLGATHER)
        check(keel_group_allgather(g, in, out, bytes));
    else if (o == ALLTOALL)
        check(keel_group_alltoall(g, in, out, bytes));
    else if (o == LIVE_BARRIER)
        check(keel_barrier());
    else if (o == LIVE_ALLREDUCE)
        check(keel_allreduce_sum((double *)in, (double *)out, bytes / sizeof(double)));
    else if (o == LIVE_BCAST)
        check(keel_bcast(root, out, bytes));
    else
        of_groups(g, o, bytes);
    return 1;
}
#endif

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each call begins together, but for barriers, which begin with the end of the one before. */
static void measure(const struct command *c)
{
    int there = 1;
    for (int i = -c->times / 10 - 1; i < c->times && there; i++) {
        if (c->operation != BARRIER && c->operation != LIVE_BARRIER)
            (void)call(BARRIER, 0, 0);
        double start = now_us();
        there = call((enum operation)c->operation, c->bytes, (i + c->times) % size);
        if (i >= 0)
            taken[i] = now_us() - start;
    }
    if (there)
        slowest(c->times);
    if (rank)
        return;
    qsort(taken, (size_t)c->times, sizeof taken[0], by_value);
    if (there)
        printf("result %s %llu %.2f %.2f\n", names[c->operation], (unsigned long long)c->bytes, taken[c->times / 2],
               taken[0]);
    else
        printf("result %s %llu none none\n", names[c->operation], (unsigned long long)c->bytes);
    fflush(stdout);
}

static struct command read_command(void)
{
    struct command c = {-1, 1, 0};
    char line[100], name[20];
    unsigned long long bytes;
    if (!fgets(line, sizeof line, stdin) || sscanf(line, "%19s %llu %d", name, &bytes, &c.times) != 3)
        return c;
    for (int o = 0; o < OPERATIONS; o++)
        if (!strcmp(name, names[o]))
            c.operation = o;
    c.bytes = bytes;
    if (bytes > BYTES_MAX || c.times < 1 || c.times > TIMES_MAX)
        c.operation = -1;
    return c;
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    in = calloc((size_t)size, BYTES_MAX);
    out = calloc((size_t)size, BYTES_MAX);
    if (!in || !out)
        return 1;
    printf("process %d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        struct command c = {0};
        if (!rank)
            c = read_command();
        share(&c);
        if (c.operation < 0)
            break;
        measure(&c);
    }
    end();
    free(in);
    free(out);
    return 0;
}
