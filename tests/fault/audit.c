/* audit MODE: programs that come to rest, so that their copies can be compared from outside (keelctl verify). What rank
 * 0 does in between depends on MODE; it says "rest" in the event log and goes on when its standard input ends.
 *   quiet          every rank has written its part of a shadowed and of a triple segment
 *   busy           and rank 0 goes on putting to rank 1's part, another value each time
 *   handles        rank 1 leaves by keel_finalize with a hundred puts under way; rank 0 finds them all
 *   exit           rank 1 exits with 0, without keel_finalize, in the middle of puts to all others
 *   threads        130 threads of rank 0 draw tickets from rank 2's part and accumulate there, until rank 2 has died
 *                  and for a
 *                  while longer: every ticket was drawn once, the sum is exact
 *   huge BYTES     rank 0 puts BYTES to its own part, again and again; rank 1 reads meanwhile, until rank 0 has died
 *                  and for a
 *                  while longer (rank 1 says "rest", and stays until it is told to end by rank 2's death)
 *   large BYTES    every rank has written BYTES to the next one's part of a shadowed segment; after the rest all read
 *                  all of it
 *   refused        after the rest all ranks are refused a further segment (KEEL_ERR_NOMEM), and go on
 * Exit code 1 if something is wrong. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PART = 600000, PUTS = 100, PUT_BYTES = 30000, THREADS = 130, ROUNDS_AFTER = 5, TICKETS_MAX = 4000000 };

#define CHECK(expression)                                                                                              \
    do {                                                                                                               \
        keel_status status_ = (expression);                                                                            \
        if (status_ != KEEL_OK)                                                                                        \
            fail(__LINE__, keel_status_name(status_));                                                                 \
    } while (0)

static _Noreturn void fail(int line, const char *what)
{
    fprintf(stderr, "audit: rank %d line %d: %s\n", keel_rank(), line, what);
    exit(1);
}

static keel_segment *shadow, *triple;

static void wait_for_death(int rank)
{
    while (keel_rank_alive(rank))
        usleep(1000);
}

static void rest(void)
{
    char line[64];
    CHECK(keel_event("rest", 0, NULL));
    while (read(0, line, sizeof line) > 0)
        ;
}

static void write_parts(void)
{
    static uint8_t mine[PART];
    int next = (keel_rank() + 1) % keel_size();
    memset(mine, 'a' + keel_rank(), sizeof mine);
    CHECK(keel_put(shadow, next, 0, mine, sizeof mine));
    CHECK(keel_put(triple, next, 0, mine, sizeof mine));
}

static void *keep_putting(void *stop)
{
    static uint8_t bytes[PUT_BYTES];
    while (!atomic_load((_Atomic bool *)stop)) {
        memset(bytes, bytes[0] + 1, sizeof bytes);
        CHECK(keel_put(shadow, 1, 0, bytes, sizeof bytes));
    }
    return NULL;
}

static void busy(void)
{
    _Atomic bool stop = false;
    pthread_t thread;
    pthread_create(&thread, NULL, keep_putting, &stop);
    rest();
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* Starts puts of rank 1 to the parts of all others, and does not wait for them. */
static void start_puts(void)
{
    static keel_handle handle[PUTS];
    static uint8_t bytes[PUTS][PUT_BYTES / 2];
    for (int i = 0; i < PUTS; i++) {
        memset(bytes[i], i + 1, sizeof bytes[i]);
        int to = i % 2 ? 0 : keel_size() - 1;
        CHECK(keel_put_nb(shadow, to, (size_t)(i % 20) * PUT_BYTES, bytes[i], sizeof bytes[i], &handle[i]));
    }
}

/* The last put to each place is there, whole. */
static void expect_puts(void)
{
    static uint8_t got[PUT_BYTES / 2];
    for (int i = PUTS - 20; i < PUTS; i++) {
        int to = i % 2 ? 0 : keel_size() - 1;
        CHECK(keel_get(shadow, to, (size_t)(i % 20) * PUT_BYTES, got, sizeof got));
        for (size_t k = 0; k < sizeof got; k++)
            if (got[k] != (uint8_t)(i + 1))
                fail(__LINE__, "a put that was under way when its rank left is not there");
    }
}

/* One after the other to the same place, so that the last one counts; all of a round at once. */
static void handles(void)
{
    static keel_handle handle[20];
    static uint8_t bytes[PUTS][PUT_BYTES / 2];
    for (int i = 0; i < PUTS; i++) {
        int k = i % 20;
        if (i >= 20)
            CHECK(keel_wait(&handle[k]));
        memset(bytes[i], i + 1, sizeof bytes[i]);
        int to = i % 2 ? 0 : keel_size() - 1;
        CHECK(keel_put_nb(shadow, to, (size_t)k * PUT_BYTES, bytes[i], sizeof bytes[i], &handle[k]));
    }
    CHECK(keel_finalize()); /* twenty are under way */
    exit(0);
}

/* ---- threads ---- */

static _Atomic int drawn[TICKETS_MAX];
static _Atomic long tickets;

static void *draw(void *unused)
{
    (void)unused;
    double one = 1;
    for (int after = 0; after < ROUNDS_AFTER; after += !keel_rank_alive(2)) {
        int64_t ticket;
        CHECK(keel_fetch_add(shadow, 2, 0, 1, &ticket));
        CHECK(keel_acc_double(shadow, 2, 8, 1, &one, 1));
        if (ticket < 0 || ticket >= TICKETS_MAX || atomic_fetch_add(&drawn[ticket], 1) != 0)
            fail(__LINE__, "a ticket was drawn twice");
        if (atomic_fetch_add(&tickets, 1) == 10L * THREADS)
            CHECK(keel_event("drawing", 0, NULL));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, draw, NULL) != 0)
            fail(__LINE__, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    struct {
        int64_t next;
        double sum;
    } got;
    CHECK(keel_get_strong(shadow, 2, 0, &got, sizeof got));
    if (got.next != tickets || got.sum != (double)tickets)
        fail(__LINE__, "tickets or accumulates are missing");
    printf("audit: %ld tickets, each once\n", (long)tickets);
    rest();
}

/* ---- a large put to the own node ---- */

static void huge(size_t bytes)
{
    keel_segment *s;
    CHECK(keel_segment_alloc(bytes, KEEL_REDUNDANCY_SHADOW, &s));
    if (keel_rank() == 0) {
        uint64_t *words = malloc(bytes);
        if (!words)
            fail(__LINE__, "no memory");
        for (uint64_t round = 1;; round++) {
            for (size_t i = 0; i < bytes / 8; i++)
                words[i] = round << 32 | i;
            CHECK(keel_put(s, 0, 0, words, bytes));
        }
    }
    if (keel_rank() == 1) {
        uint64_t word;
        for (size_t i = 0, after = 0; after < 2000; i++, after += !keel_rank_alive(0)) {
            size_t at = i * 7919 * 8 % bytes / 8;
            CHECK(keel_get(s, 0, 8 * at, &word, 8));
            if (word && (word & 0xffffffff) != at)
                fail(__LINE__, "a word of nobody's");
        }
        CHECK(keel_event("rest", 0, NULL));
    }
    wait_for_death(2);
}

/* ---- large copies ---- */

static void large(size_t bytes)
{
    keel_segment *s;
    CHECK(keel_segment_alloc(bytes, KEEL_REDUNDANCY_SHADOW, &s));
    uint8_t *part = malloc(bytes);
    if (!part)
        fail(__LINE__, "no memory");
    memset(part, 'a' + keel_rank(), bytes);
    CHECK(keel_put(s, (keel_rank() + 1) % keel_size(), 0, part, bytes));
    CHECK(keel_barrier());
    if (keel_rank() == 0)
        rest();
    CHECK(keel_barrier());
    for (int r = 0; r < keel_size(); r++) {
        CHECK(keel_get(s, (r + 1) % keel_size(), 0, part, bytes));
        for (size_t i = 0; i < bytes; i++)
            if (part[i] != 'a' + r)
                fail(__LINE__, "another byte than was written");
    }
    CHECK(keel_barrier());
    free(part);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    bool first = false;
    CHECK(keel_init());
    first = keel_rank() == 0;
    if (strcmp(mode, "huge") == 0 && argc == 3) {
        huge((size_t)atol(argv[2]));
        CHECK(keel_finalize());
        return 0;
    }
    if (strcmp(mode, "large") == 0 && argc == 3) {
        large((size_t)atol(argv[2]));
        CHECK(keel_finalize());
        return 0;
    }
    CHECK(keel_segment_alloc(PART, KEEL_REDUNDANCY_SHADOW, &shadow));
    CHECK(keel_segment_alloc(PART, KEEL_REDUNDANCY_TRIPLE, &triple));
    if (strcmp(mode, "threads") != 0)
        write_parts();
    CHECK(keel_barrier());
    if (keel_rank() == 1 && strcmp(mode, "handles") == 0)
        handles();
    if (keel_rank() == 1 && strcmp(mode, "exit") == 0) {
        start_puts();
        exit(0);
    }
    if (first && (strcmp(mode, "handles") == 0 || strcmp(mode, "exit") == 0))
        wait_for_death(1);
    if (first && strcmp(mode, "handles") == 0)
        expect_puts();
    if (first && strcmp(mode, "busy") == 0)
        busy();
    else if (first && strcmp(mode, "threads") == 0)
        threads();
    else if (first)
        rest();
    CHECK(keel_barrier());
    keel_segment *none;
    if (strcmp(mode, "refused") == 0 && keel_segment_alloc(PART, KEEL_REDUNDANCY_SHADOW, &none) != KEEL_ERR_NOMEM)
        fail(__LINE__, "a segment that is not refused, or otherwise");
    if (strcmp(mode, "refused") == 0)
        write_parts();
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    return 0;
}
