/* A program that looks at everything that sets of replicas translate, compare and decide, and ends with 0 if it is as
 * in a job without replicas. KEEL_TEST_FLIP="RANK STEP[,STEP...] FILE": of the processes of that rank the one that
 * makes FILE-STEP flips a bit of what it sends in that step; nothing else tells one replica from another. Steps: 1 put,
 * 2 put_nb, 3 message, 4 allreduce, 5 data of a signal, 6 accumulate, 7 strided put, 8 one of many puts, 9 vector put,
 * 10 an allgather. KEEL_TEST_FLIGHT likewise: it flips it in what goes into a socket, with KEEL_TEST_SECOND when it
 * goes again; further steps are 11 strided accumulate, 12 vector accumulate, 13 non-blocking accumulate, 14 the scale
 * of one (in the header), 15 fetch-and-add, 16 compare-and-swap, 17 the number that a signal adds; of FLIP: 18 kept
 * memory.
 * KEEL_TEST_TARGET: the process to which it was sent flips it where it lies, before the sender goes on.
 * KEEL_TEST_DIE and KEEL_TEST_STOP likewise: that process is killed, or stopped, there; KEEL_TEST_FENCE,
 * KEEL_TEST_ACC, KEEL_TEST_END, KEEL_TEST_EXIT: it makes a fence or an accumulate that the others do not make, or ends
 * by keel_finalize, or without it; KEEL_TEST_NO_ACC: only that one does not make it.
 * KEEL_TEST_COST=FOLDER: what a put and its fence cost, before all else. KEEL_TEST_FEW: the many puts are few.
 * KEEL_TEST_COPIES=0|1: whether a segment that is allocated with two copies has them. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <keel/keel.h>

#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            fprintf(stderr, "rank %d: %s:%d: %s\n", keel_rank(), __FILE__, __LINE__, #x);                              \
            keel_abort(3, "a check failed");                                                                           \
        }                                                                                                              \
    } while (0)
#define OK(x) CHECK((x) == KEEL_OK)

enum {
    COST_BYTES = 16 * 1024,
    FILE_BYTES = 300,
    WORDS = 512,
    MANY = 5000, /* more than a replica remembers */
    FEW = 100,
    SIGNAL_AT = 8 * (WORDS - 1),
    COUNTER_AT = 8 * (WORDS - 2),
    SUM_AT = 8 * (WORDS - 3)
};

static int rank, size, right;
static keel_segment *segment;
static size_t went_messages, went_bytes; /* into sockets */
static int64_t in_flight;                /* what to flip a bit of when it is sent; 0: nothing */

/* With the bit flipped in bytes of its own, if they are in there; NULL: they are not. */
static void *flipped(const void *bytes, size_t len)
{
    static uint8_t copy[256 * 1024];
    static int seen;
    const uint8_t *at =
        in_flight && len && len <= sizeof copy ? memmem(bytes, len, &in_flight, sizeof in_flight) : NULL;
    if (!at || (getenv("KEEL_TEST_SECOND") && !seen++))
        return NULL;
    memcpy(copy, bytes, len);
    copy[at - (const uint8_t *)bytes + 3] ^= 0x10;
    in_flight = 0;
    return copy;
}

/* In the place of the C library's two, for all libraries. */
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    static ssize_t (*next)(int, const void *, size_t, int);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "send");
    const void *other = flipped(bytes, len);
    went_messages++;
    went_bytes += len;
    return next(fd, other ? other : bytes, len, flags);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    static ssize_t (*next)(int, const struct msghdr *, int);
    struct iovec iov[8];
    struct msghdr other = *msg;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "sendmsg");
    went_messages++;
    for (size_t i = 0; i < msg->msg_iovlen; i++)
        went_bytes += msg->msg_iov[i].iov_len;
    for (size_t i = 0; in_flight && i < msg->msg_iovlen && msg->msg_iovlen <= 8; i++) {
        void *bytes = flipped(msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
        if (bytes) {
            memcpy(iov, msg->msg_iov, msg->msg_iovlen * sizeof *iov);
            iov[i].iov_base = bytes;
            other.msg_iov = iov;
        }
    }
    return next(fd, &other, flags);
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

/* Does something of that name happen in this step? To whom, and the file of the one who does it. */
static bool happens(const char *name, int step, int *of, char file[FILE_BYTES])
{
    const char *text = getenv(name);
    char steps[64], start[256], *rest;
    if (!text || sscanf(text, "%d %63s %255s", of, steps, start) != 3)
        return false;
    snprintf(file, FILE_BYTES, "%s-%d", start, step);
    for (const char *one = strtok_r(steps, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
        if (strtol(one, NULL, 10) == step)
            return true;
    return false;
}

/* Is it for this process to do, what only one of the rank's does, or all but one? */
static bool is_for_me(const char *name, int step, bool alone)
{
    char file[FILE_BYTES];
    int of;
    if (!happens(name, step, &of, file) || of != rank)
        return false;
    int fd = open(file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return alone == (fd >= 0);
}

static bool mine(const char *name, int step)
{
    return is_for_me(name, step, true);
}

/* The receiver flips a bit where it has come to lie, and the sender goes on when some set's has. */
static void flip_at_target(int step, size_t offset, int64_t value)
{
    char file[FILE_BYTES], done[FILE_BYTES + 8];
    int of;
    if (!happens("KEEL_TEST_TARGET", step, &of, file))
        return;
    snprintf(done, sizeof done, "%s.done", file);
    if (rank == (of + 1) % size) {
        volatile int64_t *word = (volatile int64_t *)((char *)keel_address(segment, rank) + offset);
        while (*word != value)
            usleep(100);
        int fd = open(file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0) {
            *word ^= 0x10000000;
            char pid[16]; /* which is not what replicas have in common */
            ssize_t n = readlink("/proc/self", pid, sizeof pid);
            CHECK(n > 0 && write(fd, pid, (size_t)n) == n);
            CHECK(close(fd) == 0 && close(open(done, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
        }
    }
    while (rank == of && access(done, F_OK) != 0)
        usleep(100);
}

static void flip(int step, void *bytes)
{
    if (mine("KEEL_TEST_FLIGHT", step))
        memcpy(&in_flight, bytes, sizeof in_flight);
    if (mine("KEEL_TEST_FLIP", step))
        ((uint8_t *)bytes)[3] ^= 0x10;
    if (mine("KEEL_TEST_DIE", step))
        raise(SIGKILL);
    if (mine("KEEL_TEST_STOP", step))
        raise(SIGSTOP);
    if (mine("KEEL_TEST_FENCE", step))
        OK(keel_fence_all());
    if (mine("KEEL_TEST_ACC", step) || is_for_me("KEEL_TEST_NO_ACC", step, false))
        OK(keel_acc(segment, rank, 8 * 200, KEEL_INT64, NULL, &(int64_t){1}, 1));
    if (mine("KEEL_TEST_END", step)) {
        OK(keel_finalize());
        exit(0);
    }
    if (mine("KEEL_TEST_EXIT", step))
        exit(0);
}

static void look(size_t offset, int64_t value)
{
    int64_t got;
    OK(keel_get(segment, rank, offset, &got, sizeof got));
    CHECK(got == value);
}

static void test_puts(void)
{
    int left = (rank + size - 1) % size;
    int64_t word = 1000 + rank, other = 2000 + rank, rows[16];
    flip(1, &word);
    OK(keel_put(segment, right, 0, &word, sizeof word));
    flip_at_target(1, 0, 1000 + left);
    OK(keel_barrier());
    look(0, 1000 + left);
    keel_handle h = {{0}};
    flip(2, &other);
    OK(keel_put_nb(segment, right, 8, &other, sizeof other, &h));
    while (keel_test(&h) == KEEL_IN_PROGRESS)
        ;
    flip_at_target(2, 8, 2000 + left);
    OK(keel_fence(right));
    OK(keel_barrier());
    look(8, 2000 + left);
    for (int i = 0; i < 16; i++)
        rows[i] = 3000 + 100 * rank + i;
    flip(7, &rows[4]);
    const keel_strided shape = {.levels = 1, .count = {16, 8}, .global_stride = {32}, .local_stride = {16}};
    OK(keel_put_strided(segment, right, 1024, rows, &shape));
    flip_at_target(7, 1024 + 64, 3000 + 100 * left + 4);
    OK(keel_barrier());
    for (int i = 0; i < 8; i++)
        look(1024 + 32 * (size_t)i, 3000 + 100 * left + 2 * i);
    const keel_piece pieces[] = {{.offset = 1400, .local = &rows[1], .len = 16},
                                 {.offset = 1480, .local = &rows[9], .len = 8}};
    flip(9, &rows[9]);
    OK(keel_put_vector(segment, right, pieces, 2));
    flip_at_target(9, 1480, 3000 + 100 * left + 9);
    OK(keel_barrier());
    look(1408, 3000 + 100 * left + 2);
    look(1480, 3000 + 100 * left + 9);
}

static void test_many(void)
{
    int left = (rank + size - 1) % size, many = getenv("KEEL_TEST_FEW") ? FEW : MANY;
    for (int i = 0; i < many; i++) {
        int64_t word = 10000 * rank + i;
        if (i == 17)
            flip(8, &word);
        OK(keel_put(segment, right, 8 * (size_t)(i % 64 + 300), &word, sizeof word));
    }
    OK(keel_sync());
    look(8 * (300 + (size_t)(many - 1) % 64), 10000 * left + many - 1);
}

static void test_messages(void)
{
    int64_t word = 4000 + rank, got;
    size_t len;
    int from;
    flip(3, &word);
    OK(keel_message_send(right, 7, &word, sizeof word));
    OK(keel_message_receive(KEEL_ANY_RANK, 7, &got, sizeof got, &len, &from));
    CHECK(from == (rank + size - 1) % size && len == sizeof got && got == 4000 + from);
    OK(keel_barrier());
    for (int r = 0; rank == 0 && r < size - 1; r++) {
        while (keel_message_test(KEEL_ANY_RANK, 8, &len, &from) == KEEL_IN_PROGRESS)
            ;
        OK(keel_message_receive(from, 8, &got, sizeof got, NULL, NULL));
        CHECK(got == 50 + from);
    }
    word = 50 + rank;
    if (rank > 0)
        OK(keel_message_send(0, 8, &word, sizeof word));
}

static void test_collectives(void)
{
    double x = rank + 1.0, sum = 0;
    int64_t word = rank == 1 % size ? 77 : 0, all[64], own = 600000 + rank;
    flip(4, &x);
    OK(keel_allreduce_sum(&x, &sum, 1));
    CHECK(sum == size * (size + 1) / 2.0);
    OK(keel_bcast(1 % size, &word, sizeof word));
    CHECK(word == 77);
    flip(10, &own);
    OK(keel_group_allgather(keel_group_world(), &own, all, sizeof own));
    for (int r = 0; r < size; r++)
        CHECK(all[r] == 600000 + r);
    keel_group *half;
    OK(keel_group_split(keel_group_world(), rank % 2, -rank, &half));
    CHECK(keel_group_to_world(half, 0) % 2 == rank % 2 && keel_group_from_world(half, rank) == keel_group_rank(half));
    OK(keel_group_barrier(half));
    OK(keel_group_free(half));
    OK(keel_barrier_begin());
    uint64_t epoch;
    while (keel_barrier_test(&epoch) == KEEL_IN_PROGRESS)
        ;
}

static void test_signals(void)
{
    int64_t word = 5000 + rank, got;
    flip(5, &word);
    int64_t add = 1700001;
    flip(17, &add);
    OK(keel_put_signal(segment, right, 16, &word, sizeof word, SIGNAL_AT, add));
    OK(keel_wait_until(segment, SIGNAL_AT, KEEL_GE, 1, (rank + size - 1) % size, &got));
    CHECK(got == 1700001);
    look(16, 5000 + (rank + size - 1) % size);
    OK(keel_barrier());
}

static void test_atomics(void)
{
    int64_t old, got, word = 600001;

    OK(keel_fetch_add(segment, 0, COUNTER_AT, 1, &old));
    CHECK(old >= 0 && old < size);
    OK(keel_message_send((int)old, 9, &old, sizeof old)); /* differs in each run, and is the same in each set */
    OK(keel_message_receive(KEEL_ANY_RANK, 9, &got, sizeof got, NULL, NULL));
    CHECK(got == rank);
    flip(6, &word);
    OK(keel_acc(segment, right, SUM_AT, KEEL_INT64, NULL, &word, 1));

    OK(keel_barrier());
    look(SUM_AT, 600001);
}

static void test_accumulates(void)
{
    enum { ROWS_AT = 8 * 400, PIECES_AT = 8 * 440, WORDS_AT = 8 * 450 };
    int64_t rows[16], one = 1300001, scale = 1400001, two = 2, add = 1500001, old;
    for (int i = 0; i < 16; i++)
        rows[i] = 1100000 + i;
    flip(11, &rows[4]);
    const keel_strided shape = {.levels = 1, .count = {16, 8}, .global_stride = {32}, .local_stride = {16}};
    OK(keel_acc_strided(segment, right, ROWS_AT, KEEL_INT64, NULL, rows, &shape));
    const keel_piece pieces[] = {{.offset = PIECES_AT, .local = &rows[1], .len = 16},
                                 {.offset = PIECES_AT + 32, .local = &rows[9], .len = 8}};
    flip(12, &rows[9]);
    OK(keel_acc_vector(segment, right, KEEL_INT64, NULL, pieces, 2));
    flip(13, &one);
    OK(keel_acc_nb(segment, right, WORDS_AT, KEEL_INT64, NULL, &one, 1, NULL));
    OK(keel_fence(right));
    flip(14, &scale);
    OK(keel_acc(segment, right, WORDS_AT + 8, KEEL_INT64, &scale, &two, 1));
    flip(15, &add);
    OK(keel_fetch_add(segment, right, WORDS_AT + 16, add, &old));
    CHECK(old == 0);
    add = 1600001;
    flip(16, &add);
    OK(keel_compare_swap(segment, right, WORDS_AT + 24, 0, add, &old));
    CHECK(old == 0);
    OK(keel_barrier());
    for (int i = 0; i < 8; i++)
        look(ROWS_AT + 32 * (size_t)i, 1100000 + 2 * i);
    look(PIECES_AT + 8, 1100002);
    look(PIECES_AT + 32, 1100009);
    look(WORDS_AT, 1300001);
    look(WORDS_AT + 8, 2800002);
    look(WORDS_AT + 16, 1500001);
    look(WORDS_AT + 24, 1600001);
}

static void test_locks_and_tasks(void)
{
    keel_mutexes *m;
    keel_taskpool *pool;
    int64_t word, task, done = 0, all;
    OK(keel_mutexes_create(1, &m));
    for (int i = 0; i < 5; i++) {
        OK(keel_mutex_lock(m, 0, 0, NULL));
        OK(keel_get(segment, 0, 32, &word, sizeof word));
        word++;
        OK(keel_put(segment, 0, 32, &word, sizeof word));
        OK(keel_mutex_unlock(m, 0, 0));
    }
    OK(keel_barrier());
    OK(keel_get(segment, 0, 32, &word, sizeof word));
    CHECK(word == 5 * size);
    OK(keel_mutexes_free(m));
    OK(keel_taskpool_create(20, &pool));
    while (keel_task_next(pool, &task) == KEEL_OK && task >= 0) {
        int64_t one = task + 1;
        OK(keel_acc(segment, 0, 40, KEEL_INT64, NULL, &one, 1));
        OK(keel_task_commit(pool, task));
        done++;
    }
    OK(keel_barrier());
    OK(keel_get(segment, 0, 40, &word, sizeof word));
    CHECK(word == 210);
    const keel_combine sum = {.type = KEEL_INT64, .op = KEEL_SUM};
    OK(keel_group_allreduce(keel_group_world(), &done, &all, 1, &sum));
    CHECK(all == 20);
    OK(keel_taskpool_free(pool));
}

/* A version has the same bytes in all sets; others read it, and it can be gone back to. */
static void test_kept(void)
{
    int64_t kept[16], got;
    uint64_t version = 9, since = 9;
    OK(keel_keep_room(sizeof kept));
    OK(keel_keep("kept", kept, sizeof kept));
    OK(keel_keep_restore(&version, &since));
    CHECK(version == 0 && since == 0);
    for (int v = 1; v <= 3; v++) {
        for (int i = 0; i < 16; i++)
            kept[i] = 1800000 + 1000 * rank + 100 * v + i;
        if (v == 2)
            flip(18, &kept[7]);
        OK(keel_keep_commit((uint64_t)v));
        CHECK(kept[7] == 1800007 + 1000 * rank + 100 * v);
        OK(keel_keep_get(right, "kept", 56, &got, sizeof got, &version));
        CHECK(got == 1800007 + 1000 * right + 100 * v && version == (uint64_t)v);
        kept[7] = 0;
        OK(keel_keep_rollback(&version));
        CHECK(kept[7] == 1800007 + 1000 * rank + 100 * v && version == (uint64_t)v);
    }
    CHECK(keel_keep_commit(3) == KEEL_ERR_ARG);
}

static void test_questions(void)
{
    size_t count = 9;
    CHECK(keel_node_count() >= 1 && keel_rank_node(rank) < keel_node_count() && keel_rank_node(size) == -1);
    OK(keel_failures(0, NULL, 0, &count, NULL));
    CHECK(count == 0 && keel_rank_alive(right) && !keel_rank_alive(size));
    CHECK(keel_put(segment, size, 0, &count, 8) == KEEL_ERR_ARG);
    CHECK(keel_segment_bytes(segment, right) == 8 * WORDS && keel_segment_bytes(segment, size) == 0);
}

static void test_copies(const char *has)
{
    keel_segment *s;
    OK(keel_segment_alloc(8, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_redundancy(s) == (*has == '1' ? KEEL_REDUNDANCY_SHADOW : KEEL_REDUNDANCY_NONE));
    int64_t one = 1, got;
    OK(keel_put(s, right, 0, &one, sizeof one));
    OK(keel_barrier());
    OK(keel_get(s, rank, 0, &got, sizeof got));
    CHECK(got == one);
    OK(keel_segment_free(s));
}

/* What a put and its fence cost: into a file of each process, as they are not the same in each set. */
static void test_cost(const char *folder)
{
    enum { ROUNDS = 200 };
    static uint8_t bytes[COST_BYTES];
    char file[300];
    double best = 1e9;
    size_t messages = SIZE_MAX, all = SIZE_MAX; /* the least: who waits for long, as its peer gets no processor, asks */
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec begin, end;
        went_messages = went_bytes = 0;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        bytes[i] = (uint8_t)i;
        if (rank == 0)
            OK(keel_put(segment, right, 0, bytes, sizeof bytes));
        OK(keel_fence(right));
        clock_gettime(CLOCK_MONOTONIC, &end);
        double us = (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
        best = us < best ? us : best;
        messages = i > 0 && went_messages < messages ? went_messages : messages;
        all = i > 0 && went_bytes < all ? went_bytes : all;
    }
    OK(keel_barrier());
    if (rank != 0)
        return;
    snprintf(file, sizeof file, "%s/cost-%d", folder, (int)getpid());
    FILE *f = fopen(file, "w");
    CHECK(f && fprintf(f, "%zu %zu %g\n", messages, all, best) > 0 && fclose(f) == 0);
}

int main(void)
{
    OK(keel_init());
    rank = keel_rank();
    size = keel_size();
    right = (rank + 1) % size;
    OK(keel_segment_alloc(8 * WORDS, KEEL_REDUNDANCY_NONE, &segment));
    if (getenv("KEEL_TEST_COST")) {
        keel_segment *s = segment;
        OK(keel_segment_alloc(COST_BYTES, KEEL_REDUNDANCY_NONE, &segment));
        test_cost(getenv("KEEL_TEST_COST"));
        OK(keel_segment_free(segment));
        segment = s;
    }
    const char *copies = getenv("KEEL_TEST_COPIES");
    if (copies)
        test_copies(copies);
    test_questions();
    test_puts();
    test_many();
    test_messages();
    test_collectives();
    test_signals();
    test_atomics();
    test_accumulates();
    test_locks_and_tasks();
    test_kept();
    OK(keel_segment_free(segment));
    OK(keel_finalize());
    if (rank == 0)
        printf("all is as with one set\n");
    return 0;
}
