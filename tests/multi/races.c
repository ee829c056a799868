/* A program in which ranks race for the same words: what it is told and what is in memory depends on who comes first.
 * Sets of replicas must have the same at each barrier all the same, which their comparison says; that nothing is lost
 * or counted twice is looked at here. KEEL_TEST_ROUNDS: how many rounds; KEEL_TEST_LOG: a file, to which each rank of
 * each set adds a byte a round, so that a test knows how far they are; KEEL_TEST_SHADOWS: parts have a second copy.
 * KEEL_TEST_ASK: it makes a mistake. */
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <keel/keel.h>

#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            fprintf(stderr, "rank %d: %s:%d: %s\n", keel_rank(), __FILE__, __LINE__, #x);                              \
            keel_abort(3, "a wrong number");                                                                           \
        }                                                                                                              \
    } while (0)
#define OK(x) CHECK((x) == KEEL_OK)

enum {
    SUMS = 32, /* doubles that all add to, in each part */
    SUM_AT = 0,
    COUNT_AT = 8 * SUMS, /* of additions, as integers */
    DRAWN_AT = COUNT_AT + 8,
    RACE_AT = DRAWN_AT + 8,
    SWAP_AT = RACE_AT + 8,
    LOCKED_AT = SWAP_AT + 8,
    BELL_AT = LOCKED_AT + 8, /* that ranks signal to, and nothing else */
    TOLD_AT = BELL_AT + 8,   /* digest of what the rank was told, and of its part */
    PART = TOLD_AT + 16,
    ADDS = 40,   /* of a rank in a round, of each kind */
    LONG = 3000, /* elements of one that goes out in several messages */
    TASKS = 12,
};

static int rank, size;
static keel_segment *segment, *field;
static uint64_t told, state;
static int64_t added[64]; /* to each rank's counter, by this one */

static uint64_t random_word(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 11;
}

static double some_number(void)
{
    return ldexp((double)(random_word() % 1000003) - 500000, (int)(random_word() % 80) - 40);
}

static void hear(uint64_t word)
{
    told = (told ^ word) * 0x9e3779b97f4a7c15u;
    told ^= told >> 31;
}

static void count(int to)
{
    int64_t one = 1;
    OK(keel_acc_nb(segment, to, COUNT_AT, KEEL_INT64, NULL, &one, 1, NULL));
    added[to]++;
    OK(keel_fence(to)); /* `one` is on the stack */
}

static void add(void)
{
    static double numbers[ADDS][4];
    const keel_strided shape = {.levels = 1, .count = {8, 3}, .global_stride = {24}, .local_stride = {8}};
    for (int i = 0; i < ADDS; i++) {
        int to = (int)(random_word() % (uint64_t)size);
        size_t at = SUM_AT + 8 * (random_word() % (SUMS - 9));
        double scale = some_number();
        for (int k = 0; k < 4; k++)
            numbers[i][k] = some_number();
        switch (random_word() % 4) {
        case 0:
            OK(keel_acc_double(segment, to, at, 1.0, numbers[i], 4));
            break;
        case 1:
            OK(keel_acc_nb(segment, to, at, KEEL_DOUBLE, NULL, numbers[i], 3, NULL));
            break;
        case 2:
            OK(keel_acc_strided(segment, to, at, KEEL_DOUBLE, &scale, numbers[i], &shape));
            break;
        default:
            count(to);
        }
    }
    OK(keel_fence_all());
}

static void add_long(void)
{
    static double numbers[LONG];
    for (int i = 0; i < LONG; i++)
        numbers[i] = some_number();
    OK(keel_acc_double(field, (int)(random_word() % (uint64_t)size), 0, 1.0, numbers, LONG));
}

static void draw(void)
{
    for (int i = 0; i < ADDS; i++) {
        int64_t old = 0, mine = (int64_t)random_word();
        OK(keel_fetch_add(segment, 0, DRAWN_AT, 1, &old));
        hear((uint64_t)old);
        OK(keel_rmw(segment, size - 1, SWAP_AT, KEEL_INT64, KEEL_RMW_SWAP, &mine, NULL, &old));
        hear((uint64_t)old);
        OK(keel_signal(segment, (rank + i) % size, BELL_AT, 1)); /* has no place among these */
    }
}

static void race(void)
{
    int64_t seen = 0, old;
    for (int i = 0; i < ADDS; i++) {
        OK(keel_compare_swap(segment, 1 % size, RACE_AT, seen, seen + rank + 1, &old));
        hear((uint64_t)old);
        seen = old == seen ? seen + rank + 1 : old;
    }
}

static void lock(keel_mutexes *m)
{
    int64_t word;
    keel_status status;
    for (int i = 0; i < 4; i++) {
        if (i % 2)
            while ((status = keel_mutex_try(m, 0, 1, NULL)) == KEEL_IN_PROGRESS)
                usleep(200);
        else
            status = keel_mutex_lock(m, 0, 1, NULL);
        OK(status);
        OK(keel_get(segment, 0, LOCKED_AT, &word, sizeof word));
        hear((uint64_t)word);
        word = (int64_t)(3 * (uint64_t)word + (uint64_t)rank); /* wraps */
        OK(keel_put(segment, 0, LOCKED_AT, &word, sizeof word));
        OK(keel_mutex_unlock(m, 0, 1));
    }
    CHECK(keel_mutex_unlock(m, 0, 1) == KEEL_ERR_STATE);
}

static void tasks(keel_taskpool *pool, int round)
{
    int64_t task, one = 1;
    double number;
    if (round > 0)
        OK(keel_taskpool_reset(pool));
    for (;;) {
        OK(keel_task_next(pool, &task));
        if (task < 0)
            return;
        hear((uint64_t)task);
        number = ldexp((double)task + 1.3, (int)task % 7 * 9);
        OK(keel_acc_double(segment, 0, SUM_AT, number, &number, 1));
        OK(keel_acc(segment, 0, COUNT_AT, KEEL_INT64, NULL, &one, 1));
        OK(keel_task_commit(pool, task));
    }
}

/* What each has been told, and what is in its part, is put, and so compared. */
static void tell(void)
{
    uint64_t words[2] = {told, 0}, part[TOLD_AT / 8];
    OK(keel_get(segment, rank, 0, part, sizeof part));
    for (size_t i = 0; i < TOLD_AT / 8; i++)
        words[1] = (words[1] ^ part[i]) * 0x9e3779b97f4a7c15u;
    double *long_part = malloc(8 * LONG);
    CHECK(long_part);
    OK(keel_get(field, rank, 0, long_part, 8 * LONG));
    for (size_t i = 0; i < LONG; i++) {
        uint64_t bits;
        memcpy(&bits, &long_part[i], 8);
        words[1] = (words[1] ^ bits) * 0x9e3779b97f4a7c15u;
    }
    free(long_part);
    OK(keel_put(segment, rank, TOLD_AT, words, sizeof words));
    OK(keel_barrier());
}

static void look(int rounds)
{
    double mine[64] = {0}, all[64];
    int64_t word;
    for (int r = 0; r < size; r++)
        mine[r] = (double)added[r];
    OK(keel_allreduce_sum(mine, all, (size_t)size));
    OK(keel_get(segment, rank, COUNT_AT, &word, sizeof word));
    CHECK(word == (int64_t)all[rank] + (rank == 0 ? (int64_t)rounds * TASKS : 0));
    OK(keel_get(segment, 0, DRAWN_AT, &word, sizeof word));
    CHECK(word == (int64_t)rounds * size * ADDS);
    OK(keel_wait_until(segment, BELL_AT, KEEL_NE, 0, KEEL_ANY_RANK, &word));
    CHECK(word == (int64_t)rounds * ADDS); /* whoever is signalled by whom: one at a time */
}

/* A word that one rank signals, and that another one asks for meanwhile by an atomic: the program's mistake. */
static void ask_for_a_signal(void)
{
    int64_t word = 0;
    if (rank == 1)
        OK(keel_signal(segment, 0, BELL_AT, 1));
    for (int ms = 0; rank == 0 && word == 0 && ms < 1000; ms++) {
        usleep(1000);
        OK(keel_get(segment, 0, BELL_AT, &word, sizeof word));
    }
    if (rank == 0)
        OK(keel_fetch_add(segment, 0, BELL_AT, 0, &word));
    OK(keel_barrier());
}

int main(void)
{
    const char *text = getenv("KEEL_TEST_ROUNDS"), *log = getenv("KEEL_TEST_LOG");
    int rounds = text ? atoi(text) : 3, fd = log ? open(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600) : -1;
    keel_mutexes *m;
    keel_taskpool *pool;
    uint64_t words[2];
    OK(keel_init());
    rank = keel_rank();
    size = keel_size();
    state = (uint64_t)rank + 1;
    keel_redundancy copies = getenv("KEEL_TEST_SHADOWS") ? KEEL_REDUNDANCY_SHADOW : KEEL_REDUNDANCY_NONE;
    OK(keel_segment_alloc(PART, copies, &segment));
    if (getenv("KEEL_TEST_ASK"))
        ask_for_a_signal();
    OK(keel_segment_alloc(8 * LONG, copies, &field));
    OK(keel_mutexes_create(2, &m));
    OK(keel_taskpool_create(TASKS, &pool));
    for (int round = 0; round < rounds; round++) {
        add();
        draw();
        race();
        add_long();
        lock(m);
        tasks(pool, round);
        OK(keel_barrier());
        tell();
        if (fd >= 0)
            (void)!write(fd, ".", 1);
    }
    look(rounds);
    OK(keel_get(segment, 0, TOLD_AT, words, sizeof words));
    if (rank == 0)
        printf("done %016llx\n", (unsigned long long)words[0]);
    OK(keel_taskpool_free(pool));
    OK(keel_mutexes_free(m));
    OK(keel_segment_free(field));
    OK(keel_segment_free(segment));
    OK(keel_finalize());
    return 0;
}
