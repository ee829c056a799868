/* stack [say]: the stack that Keel's calls take, measured on painted stacks: each kind of call in a thread of its own,
 * between nodes, the first one of which makes the connections; then all of them in a thread whose stack is as large
 * as keel.h says. say: what each took. Exit 0 if all is right. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../lib/expect.h"

enum { STACK = 512 * 1024, PAINT = 0xa7, WORDS = 64, BIG = 1 << 20, TAG = 5 };

static int me, n, next;
static keel_segment *segment, *plain, *large;
static keel_mutexes *mutexes;
static keel_taskpool *pool;
static keel_group *group;
static int *everybody;
static double numbers[WORDS], results[WORDS * 16];
static char *bytes;

static void put(void)
{
    keel_handle h;
    CHECK(keel_put(segment, next, 0, numbers, sizeof numbers));
    CHECK(keel_put(plain, next, 0, numbers, sizeof numbers));
    CHECK(keel_put(large, next, 0, bytes, BIG));
    CHECK(keel_put_nb(segment, next, 0, numbers, sizeof numbers, &h));
    CHECK(keel_wait(&h));
    CHECK(keel_put_nb(large, next, 0, bytes, BIG, NULL));
    CHECK(keel_fence_all());
}

static void get(void)
{
    keel_handle h;
    CHECK(keel_get(segment, next, 0, results, sizeof numbers));
    CHECK(keel_get_strong(segment, next, 0, results, sizeof numbers));
    CHECK(keel_get(large, next, 0, bytes, BIG));
    CHECK(keel_get_nb(large, next, 0, bytes, BIG, &h));
    CHECK(keel_wait_all(&h, 1));
}

static void accumulate(void)
{
    int64_t old, one = 1;
    CHECK(keel_acc(segment, next, 0, KEEL_DOUBLE, NULL, numbers, WORDS));
    CHECK(keel_acc(large, next, 0, KEEL_DOUBLE, NULL, bytes, BIG / 8));
    CHECK(keel_rmw(segment, next, 0, KEEL_INT64, KEEL_RMW_ADD, &one, NULL, &old));
    CHECK(keel_fetch_add(plain, next, 0, 1, &old));
    CHECK(keel_fence(next));
}

static void shapes(void)
{
    static const keel_strided shape = {
        .levels = 2, .count = {64, 8, 2}, .global_stride = {128, 4096}, .local_stride = {64, 512}};
    keel_piece pieces[4];
    for (int i = 0; i < 4; i++)
        pieces[i] = (keel_piece){(size_t)i * 256, bytes + i * 64, 64};
    CHECK(keel_put_strided(large, next, 0, bytes, &shape));
    CHECK(keel_get_strided(large, next, 0, bytes, &shape));
    CHECK(keel_acc_strided(large, next, 0, KEEL_DOUBLE, NULL, bytes, &shape));
    CHECK(keel_put_vector(large, next, pieces, 4));
    CHECK(keel_get_vector(large, next, pieces, 4));
    CHECK(keel_acc_vector(large, next, KEEL_DOUBLE, NULL, pieces, 4));
}

static void signals(void)
{
    int64_t got;
    CHECK(keel_put_signal(segment, next, 64, numbers, 8, 8, 1));
    CHECK(keel_wait_until(segment, 8, KEEL_NE, -1, KEEL_ANY_RANK, &got));
}

static void messages(void)
{
    size_t len;
    int from;
    CHECK(keel_message_send(next, TAG, bytes, 4096));
    CHECK(keel_message_receive(KEEL_ANY_RANK, TAG, bytes, 4096, &len, &from));
}

static void locks(void)
{
    CHECK(keel_mutex_lock(mutexes, 0, 0, NULL));
    CHECK(keel_mutex_unlock(mutexes, 0, 0));
}

static void tasks(void)
{
    CHECK(keel_taskpool_reset(pool));
    for (int64_t task = 0; task >= 0;) {
        CHECK(keel_task_next(pool, &task));
        if (task < 0)
            break;
        CHECK(keel_acc(segment, next, 0, KEEL_DOUBLE, NULL, numbers, WORDS));
        CHECK(keel_task_commit(pool, task));
    }
}

static void collectives(void)
{
    static const keel_combine sum = {.type = KEEL_DOUBLE, .op = KEEL_SUM};
    CHECK(keel_barrier());
    CHECK(keel_bcast(0, bytes, 1024));
    CHECK(keel_allreduce_sum(numbers, results, WORDS));
    CHECK(keel_group_barrier(group));
    CHECK(keel_group_bcast(group, 0, bytes, BIG));
    CHECK(keel_group_allreduce(group, numbers, results, WORDS, &sum));
    CHECK(keel_group_allgather(group, numbers, results, 16));
    CHECK(keel_group_alltoall(group, numbers, results, 8));
    CHECK(keel_group_scan(group, numbers, results, 8, &sum));
}

static void groups(void)
{
    keel_group *made, *part, *less;
    uint64_t agreed;
    CHECK(keel_group_create(everybody, n, 2, &made));
    CHECK(keel_group_agree(made, KEEL_GROUP_AND, 1, &agreed));
    CHECK(keel_group_split(made, me % 2, me, &part));
    CHECK(keel_group_shrink(made, &less));
    CHECK(keel_group_free(less));
    CHECK(keel_group_free(part));
    CHECK(keel_group_free(made));
}

static void segments(void)
{
    keel_segment *s, *g;
    keel_segment_part part;
    static size_t sizes[64]; /* several threads write the same */
    void *at;
    for (int r = 0; r < n; r++)
        sizes[r] = 4096;
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_alloc_group(group, sizes, KEEL_REDUNDANCY_SHADOW, &g));
    CHECK(keel_segment_describe(g, next, &part));
    CHECK(keel_segment_track(s));
    *(double *)keel_address(s, me) = 1;
    CHECK(keel_update_flush(NULL));
    CHECK(keel_update_begin(s, 0, 64, &at));
    CHECK(keel_update_end(s, 0, 64));
    CHECK(keel_barrier());
    CHECK(keel_segment_free(g));
    CHECK(keel_segment_free(s));
}

static void questions(void)
{
    keel_failure failures[4];
    keel_verdict verdict;
    size_t count;
    CHECK(keel_failures(0, failures, 4, &count, NULL));
    CHECK(keel_rank_status(next, 1000, &verdict));
    CHECK(keel_event("stack", 1, NULL));
}

static const struct kind {
    const char *name;
    void (*run)(void);
} kinds[] = {{"put", put},       {"get", get},           {"accumulate", accumulate},
             {"shapes", shapes}, {"signals", signals},   {"messages", messages},
             {"locks", locks},   {"tasks", tasks},       {"collectives", collectives},
             {"groups", groups}, {"segments", segments}, {"questions", questions}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* What the calls took below the frame of the thread's function. */
static _Atomic(const unsigned char *) begin;

static void *one(void *arg)
{
    const struct kind *kind = arg;
    atomic_store(&begin, (const unsigned char *)__builtin_frame_address(0));
    kind->run();
    return NULL;
}

static size_t measure(const struct kind *kind)
{
    pthread_attr_t attr;
    pthread_t thread;
    unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(stack != MAP_FAILED);
    memset(stack, PAINT, STACK);
    EXPECT(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, stack, STACK) == 0);
    EXPECT(pthread_create(&thread, &attr, one, (void *)kind) == 0 && pthread_join(thread, NULL) == 0);
    size_t untouched = 0;
    while (untouched < STACK && stack[untouched] == PAINT)
        untouched++;
    size_t took = (size_t)(atomic_load(&begin) - (stack + untouched));
    munmap(stack, STACK);
    pthread_attr_destroy(&attr);
    return took;
}

static void *all(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < KINDS; i++)
        kinds[i].run();
    return NULL;
}

/* The system's own part of a thread's stack is what a thread needs that does nothing. */
static void run_in_small_thread(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    EXPECT(pthread_attr_init(&attr) == 0);
    EXPECT(pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN) + KEEL_CALL_STACK) == 0);
    EXPECT(pthread_create(&thread, &attr, all, NULL) == 0 && pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attr);
}

int main(int argc, char **argv)
{
    size_t most = 0;
    (void)argv;
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    next = (me + 1) % n;
    everybody = calloc((size_t)n, sizeof *everybody);
    bytes = calloc(1, BIG);
    EXPECT(everybody && bytes && n <= 16);
    for (int r = 0; r < n; r++)
        everybody[r] = r;
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_SHADOW, &segment));
    CHECK(keel_segment_alloc(4096, KEEL_REDUNDANCY_NONE, &plain));
    CHECK(keel_segment_alloc(BIG, KEEL_REDUNDANCY_TRIPLE, &large));
    CHECK(keel_mutexes_create(1, &mutexes));
    CHECK(keel_taskpool_create(8, &pool));
    CHECK(keel_group_create(everybody, n, 1, &group));
    for (size_t i = 0; i < KINDS; i++) {
        size_t took = measure(&kinds[i]);
        if (argc > 1)
            fprintf(stderr, "rank %d %s: %zu bytes\n", me, kinds[i].name, took);
        most = took > most ? took : most;
        CHECK(keel_barrier());
    }
    if (argc > 1)
        fprintf(stderr, "rank %d all: %zu bytes\n", me, most);
    EXPECT(most <= KEEL_CALL_STACK);
    run_in_small_thread();
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    free(bytes);
    free(everybody);
    return 0;
}
