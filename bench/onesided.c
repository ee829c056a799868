/* One-sided operations of Keel or, compiled with -DPEER_ARMCI or -DPEER_MPI, the same of another ARMCI or of MPI's RMA:
 * one program, so that all do the same work. bench/onesided.py starts them and lets them take turns. Rank 0 reads lines
 * "OPERATION BYTES TIMES", works on the memory of rank 1, and answers with the mean time of an operation in
 * microseconds; every rank first prints its process id. "end" ends. Every operation is complete at the target when its
 * time is taken. The target waits in a broadcast; for operations whose name ends in "-busy" it computes and calls
 * nothing for BUSY_US, and only what ends in the first nine tenths of that, or the first, is measured. Rank 0's own
 * memory begins with a page, or, for those that end in "-16", 16 bytes behind, as malloc's does. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef PEER_MPI
#include <mpi.h>
#elif defined PEER_ARMCI
#include <armci.h>
#include <message.h>
#else
#include <keel/keel.h>
#endif

enum {
    TIMES_MAX = 1000000,
    BYTES_MAX = 4 << 20,
    STRIDED_BYTES = 1 << 20,
    THREADS_MAX = 8,
    BUSY_US = 100000,
    PAGE = 4096
};

/* STRIDED: STRIDED_BYTES put in pieces of so many bytes with gaps as long. THREADS: puts of 8 bytes by as many
 * threads as BYTES says. */
enum operation { PUT, GET, PUT_NB, GET_NB, ACC, ACC_HANDLE, FETCH_ADD, ALLOC, STRIDED, THREADS, OPERATIONS };
static const char *const names[OPERATIONS] = {
    "put", "get", "put-nb", "get-nb", "accumulate", "accumulate-handle", "fetch-add", "alloc", "strided", "threads"};

struct command {
    int operation; /* -1: end */
    int busy;
    int behind; /* bytes, of a page's beginning */
    int times;
    uint64_t bytes;
};

static char *memory, *buffer; /* what is allocated; where this command's own memory is */
static int rank;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

#ifdef PEER_MPI
static MPI_Win window;
static char *part;

static void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(2 * BYTES_MAX, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&part, &window);
    memset(part, 0, 2 * BYTES_MAX);
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

static void alloc(size_t bytes)
{
    MPI_Win w;
    void *base;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&base, &w);
    MPI_Win_free(&w);
}

static void strided(size_t piece)
{
    MPI_Datatype there;
    MPI_Type_vector((int)(STRIDED_BYTES / piece), (int)piece, 2 * (int)piece, MPI_BYTE, &there);
    MPI_Type_commit(&there);
    MPI_Put(buffer, STRIDED_BYTES, MPI_BYTE, 1, 0, 1, there, window);
    MPI_Win_flush(1, window);
    MPI_Type_free(&there);
}

static void with_request(enum operation o, int n)
{
    MPI_Request request;
    if (o == PUT_NB)
        MPI_Rput(buffer, n, MPI_BYTE, 1, 0, n, MPI_BYTE, window, &request);
    else
        MPI_Rget(buffer, n, MPI_BYTE, 1, 0, n, MPI_BYTE, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* False: there is no such call. */
static int call(enum operation o, size_t bytes)
{
    int n = (int)bytes;
    int64_t one = 1, old;
    if (o == PUT)
        MPI_Put(buffer, n, MPI_BYTE, 1, 0, n, MPI_BYTE, window);
    else if (o == GET)
        MPI_Get(buffer, n, MPI_BYTE, 1, 0, n, MPI_BYTE, window);
    else if (o == PUT_NB || o == GET_NB)
        with_request(o, n);
    else if (o == ACC)
        MPI_Accumulate(buffer, n / 8, MPI_DOUBLE, 1, 0, n / 8, MPI_DOUBLE, MPI_SUM, window);
    else if (o == FETCH_ADD)
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, 64, MPI_SUM, window);
    else if (o == ALLOC)
        alloc(bytes);
    else if (o == STRIDED)
        strided(bytes);
    else
        return 0;
    if (o != ALLOC && o != STRIDED && o != GET_NB)
        MPI_Win_flush(1, window);
    return 1;
}
#elif defined PEER_ARMCI
static void *part[2];

static void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    ARMCI_Init();
    rank = armci_msg_me();
    ARMCI_Malloc(part, 2 * BYTES_MAX);
    memset(part[rank], 0, 2 * BYTES_MAX);
    ARMCI_Barrier();
}

static void end(void)
{
    ARMCI_Free(part[rank]);
    ARMCI_Finalize();
    MPI_Finalize();
}

static void share(struct command *c)
{
    armci_msg_bcast(c, sizeof *c, 0);
}

static void with_handle(enum operation o, int bytes)
{
    armci_hdl_t handle;
    double one = 1;
    ARMCI_INIT_HANDLE(&handle);
    if (o == PUT_NB)
        ARMCI_NbPut(buffer, part[1], bytes, 1, &handle);
    else if (o == GET_NB)
        ARMCI_NbGet(part[1], buffer, bytes, 1, &handle);
    else
        ARMCI_NbAcc(ARMCI_ACC_DBL, &one, buffer, part[1], bytes, 1, &handle);
    ARMCI_Wait(&handle);
}

static void strided(int piece)
{
    int here = piece, there = 2 * piece, count[2] = {piece, STRIDED_BYTES / piece};
    ARMCI_PutS(buffer, &here, part[1], &there, count, 1, 1);
}

/* False: there is no such call. */
static int call(enum operation o, size_t bytes)
{
    void *mine[2];
    double one = 1;
    long old;
    if (o == PUT)
        ARMCI_Put(buffer, part[1], (int)bytes, 1);
    else if (o == GET)
        ARMCI_Get(part[1], buffer, (int)bytes, 1);
    else if (o == ACC)
        ARMCI_Acc(ARMCI_ACC_DBL, &one, buffer, part[1], (int)bytes, 1);
    else if (o == ACC_HANDLE || o == PUT_NB || o == GET_NB)
        with_handle(o, (int)bytes);
    else if (o == FETCH_ADD)
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, (char *)part[1] + 64, 1, 1);
    else if (o == STRIDED)
        strided((int)bytes);
    else if (o == ALLOC) {
        ARMCI_Malloc(mine, (armci_size_t)bytes);
        ARMCI_Free(mine[rank]);
    } else
        return 0;
    if (o != GET && o != GET_NB && o != FETCH_ADD && o != ALLOC)
        ARMCI_Fence(1);
    return 1;
}
#else
static keel_segment *part;

static void check(keel_status status)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, keel_status_text(status));
    exit(1);
}

/* KEEL_BENCH_REDUNDANCY: as KEEL_ARMCI_REDUNDANCY, none if it is not there. */
static void begin(int *argc, char ***argv)
{
    const char *copies = getenv("KEEL_BENCH_REDUNDANCY");
    (void)argc;
    (void)argv;
    check(keel_init());
    rank = keel_rank();
    keel_redundancy redundancy = KEEL_REDUNDANCY_NONE;
    if (copies && strcmp(copies, "shadow") == 0)
        redundancy = KEEL_REDUNDANCY_SHADOW;
    else if (copies && strcmp(copies, "triple") == 0)
        redundancy = KEEL_REDUNDANCY_TRIPLE;
    check(keel_segment_alloc(2 * BYTES_MAX, redundancy, &part));
    for (int half = 0; half < 2; half++)
        check(keel_put(part, rank, (size_t)half * BYTES_MAX, buffer, BYTES_MAX));
    check(keel_barrier());
}

static void end(void)
{
    check(keel_finalize());
}

static void share(struct command *c)
{
    check(keel_group_bcast(keel_group_world(), 0, c, sizeof *c));
}

static void with_handle(enum operation o, size_t bytes)
{
    keel_handle handle;
    if (o == PUT_NB)
        check(keel_put_nb(part, 1, 0, buffer, bytes, &handle));
    else if (o == GET_NB)
        check(keel_get_nb(part, 1, 0, buffer, bytes, &handle));
    else
        check(keel_acc_nb(part, 1, 0, KEEL_DOUBLE, NULL, buffer, bytes / 8, &handle));
    check(keel_wait(&handle));
}

static void alloc(size_t bytes)
{
    keel_segment *s;
    check(keel_segment_alloc(bytes, KEEL_REDUNDANCY_NONE, &s));
    check(keel_segment_free(s));
}

static void strided(size_t piece)
{
    const keel_strided d = {
        .levels = 1, .count = {piece, STRIDED_BYTES / piece}, .global_stride = {2 * piece}, .local_stride = {piece}};
    check(keel_put_strided(part, 1, 0, buffer, &d));
}

/* False: there is no such call. */
static int call(enum operation o, size_t bytes)
{
    int64_t old;
    if (o == PUT)
        check(keel_put(part, 1, 0, buffer, bytes));
    else if (o == GET)
        check(keel_get(part, 1, 0, buffer, bytes));
    else if (o == ACC)
        check(keel_acc(part, 1, 0, KEEL_DOUBLE, NULL, buffer, bytes / 8));
    else if (o == ACC_HANDLE || o == PUT_NB || o == GET_NB)
        with_handle(o, bytes);
    else if (o == FETCH_ADD)
        check(keel_fetch_add(part, 1, 64, 1, &old));
    else if (o == ALLOC)
        alloc(bytes);
    else if (o == STRIDED)
        strided(bytes);
    else
        return 0;
    return 1;
}
#endif

struct thread {
    pthread_t id;
    int times;
};

static void *puts_of_8(void *arg)
{
    const struct thread *t = arg;
    for (int i = 0; i < t->times; i++)
        (void)call(PUT, 8);
    return NULL;
}

/* A put's time, as the job sees it: with twice the threads half of it, if they do not disturb each other. */
static double threads_us(int threads, int times)
{
    struct thread t[THREADS_MAX];
    double start = now_us();
    for (int i = 0; i < threads; i++) {
        t[i].times = times / threads;
        if (pthread_create(&t[i].id, NULL, puts_of_8, &t[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < threads; i++)
        (void)pthread_join(t[i].id, NULL);
    return (now_us() - start) / times;
}

static volatile double sink;

static void compute(double until)
{
    while (now_us() < until)
        for (int i = 0; i < 10000; i++)
            sink = sink * 0.999 + i;
}

static double busy_us(const struct command *c)
{
    double start = now_us(), first = 0;
    int n = 0;
    while (n < c->times && (!n || now_us() < start + 0.9 * BUSY_US)) {
        (void)call((enum operation)c->operation, c->bytes);
        n++;
        first = n == 1 ? now_us() - start : first;
    }
    return n == 1 ? first : (now_us() - start) / n;
}

/* A negative number: there is no such call. */
static double measure(const struct command *c)
{
    enum operation o = (enum operation)c->operation;
#if !defined PEER_MPI && !defined PEER_ARMCI
    if (o == THREADS)
        return rank ? 0 : threads_us((int)c->bytes, c->times);
#endif
    if (o == THREADS)
        return -1;
    if (rank && o != ALLOC) {
        if (c->busy)
            compute(now_us() + BUSY_US);
        return 0;
    }
    for (int i = 0; i < c->times / 10 + 1 && !c->busy; i++)
        if (!call(o, c->bytes))
            return -1;
    if (c->busy)
        return busy_us(c);
    double start = now_us();
    for (int i = 0; i < c->times; i++)
        (void)call(o, c->bytes);
    return (now_us() - start) / c->times;
}

static struct command read_command(void)
{
    struct command c = {-1, 0, 0, 1, 0};
    char line[100], name[30], *busy, *behind;
    unsigned long long bytes;
    if (!fgets(line, sizeof line, stdin) || sscanf(line, "%29s %llu %d", name, &bytes, &c.times) != 3)
        return c;
    if ((busy = strstr(name, "-busy"))) {
        *busy = 0;
        c.busy = 1;
    }
    if ((behind = strstr(name, "-16"))) {
        *behind = 0;
        c.behind = 16;
    }
    for (int o = 0; o < OPERATIONS; o++)
        if (!strcmp(name, names[o]))
            c.operation = o;
    c.bytes = bytes;
    if (bytes > BYTES_MAX || c.times < 1 || c.times > TIMES_MAX || (c.operation == STRIDED && bytes < 8) ||
        (c.operation == THREADS && (bytes < 1 || bytes > THREADS_MAX)))
        c.operation = -1;
    return c;
}

int main(int argc, char **argv)
{
    memory = buffer = aligned_alloc(PAGE, BYTES_MAX + PAGE);
    if (!memory)
        return 1;
    memset(memory, 0, BYTES_MAX + PAGE);
    begin(&argc, &argv);
    printf("process %d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        struct command c = {0};
        if (!rank)
            c = read_command();
        share(&c);
        if (c.operation < 0)
            break;
        buffer = memory + c.behind;
        double us = measure(&c);
        if (!rank && us < 0)
            printf("result %s %llu none none\n", names[c.operation], (unsigned long long)c.bytes);
        else if (!rank)
            printf("result %s %llu %.4f %.4f\n", names[c.operation], (unsigned long long)c.bytes, us, us);
        fflush(stdout);
    }
    end();
    free(memory);
    return 0;
}
