/* anew STEPS [NAP_US [mutex|message|file|allocate|never]]: each rank turns over an array that it keeps, by its left
 * neighbour's last word and by what has been added to its own, in each step, and draws numbers. Every tenth step rank 0
 * prints a line, with the clock, random bytes and environment as it sees them, and in the end one number that each word
 * of each step has gone into. With more, it does in step 3 what a set that begins anew cannot take over; or it never
 * calls keel_keep_restore ("never"). */
#include <keel/keel.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { WORDS = 5000, WINDOW = 300, PARITY = 0, ADDED = 2, DRAWN = 3, LAST = 4, PLACES = 8 };

struct kept {
    uint64_t field[WORDS], trace, drawn;
};

static uint64_t turn(uint64_t x, uint64_t by)
{
    x = (x ^ by) * 0x9e3779b97f4a7c15u + 1;
    return x ^ x >> 31;
}

static int64_t read_word(keel_segment *s, int rank, int place)
{
    int64_t word;
    CHECK(keel_get(s, rank, (size_t)place * sizeof word, &word, sizeof word));
    return word;
}

static void step(keel_segment *s, struct kept *k, uint64_t at)
{
    const int me = keel_rank(), n = keel_size();
    uint64_t left = (uint64_t)read_word(s, (me + n - 1) % n, PARITY + (int)((at - 1) % 2));
    uint64_t added = (uint64_t)read_word(s, me, ADDED);
    for (size_t i = 0; i < WINDOW; i++) {
        size_t at_word = (size_t)(at * 977 + i * 3) % WORDS;
        k->field[at_word] = turn(k->field[at_word] + at_word, left + added);
    }
    k->trace = turn(k->trace, k->field[at % WORDS] + left);
    CHECK(keel_put(s, me, (PARITY + at % 2) * sizeof k->trace, &k->trace, sizeof k->trace));
    CHECK(keel_barrier()); /* all have read what was added */
    const int64_t add = (int64_t)(k->trace & 0xffff), one = 1;
    for (int r = 0; r < n; r++)
        CHECK(keel_acc(s, r, ADDED * sizeof add, KEEL_INT64, &one, &add, 1));
    int64_t old;
    CHECK(keel_fetch_add(s, (int)(at % (uint64_t)n), DRAWN * sizeof old, 1, &old));
    k->drawn += (uint64_t)old;
}

/* The same in all sets. */
static void say(uint64_t at)
{
    uint32_t random;
    struct timespec now;
    EXPECT(getentropy(&random, sizeof random) == 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("step %" PRIu64 ": %" PRIu32 " at %lld.%09ld, %s of %s", at, random, (long long)now.tv_sec, now.tv_nsec,
           getenv("MPI_LOCALRANKID"), getenv("MPI_LOCALNRANKS")); /* the line ends in the next step */
}

static void does(const char *what)
{
    keel_mutexes *m;
    keel_segment *s;
    if (strcmp(what, "mutex") == 0)
        CHECK(keel_mutexes_create(1, &m));
    if (strcmp(what, "message") == 0 && keel_rank() == 0) {
        char c = 'x';
        CHECK(keel_message_send(0, 1, &c, 1));
        CHECK(keel_message_receive(0, 1, &c, 1, NULL, NULL));
    }
    if (strcmp(what, "file") == 0 && keel_rank() == 0) {
        FILE *f = fopen("anew.out", "w");
        EXPECT(f && fputs("written\n", f) >= 0 && fclose(f) == 0);
    }
    if (strcmp(what, "allocate") == 0)
        CHECK(keel_segment_alloc(8, KEEL_REDUNDANCY_SHADOW, &s));
}

int main(int argc, char **argv)
{
    const uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    const useconds_t nap = argc > 2 ? (useconds_t)atoi(argv[2]) : 0;
    keel_segment *s;
    uint64_t at, since;
    CHECK(keel_init());
    const int me = keel_rank(), n = keel_size();
    struct kept *k = calloc(1, sizeof *k);
    EXPECT(k && !keel_restarted());
    CHECK(keel_segment_alloc(PLACES * sizeof(uint64_t), KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_keep_room(sizeof *k + 64));
    CHECK(keel_keep("all", k, sizeof *k));
    if (me == 0)
        printf("begins\n");
    at = since = 0;
    if (argc <= 3 || strcmp(argv[3], "never") != 0)
        CHECK(keel_keep_restore(&at, &since));
    EXPECT(since == 0);
    while (at++ < steps) {
        step(s, k, at);
        if (argc > 3 && at == 3)
            does(argv[3]);
        if (me == 0 && at % 10 == 0)
            say(at);
        if (me == 0 && at % 10 == 1 && at > 1)
            printf("\n");
        if (nap)
            usleep(nap);
        CHECK(keel_keep_commit(at));
    }
    for (size_t i = 0; i < WORDS; i++)
        k->trace = turn(k->trace, k->field[i]);
    const double mine = (double)k->drawn;
    double drawn;
    CHECK(keel_allreduce_sum(&mine, &drawn, 1));
    k->trace = turn(turn(k->trace, (uint64_t)read_word(s, me, ADDED)), (uint64_t)drawn);
    CHECK(keel_put(s, me, LAST * sizeof k->trace, &k->trace, sizeof k->trace));
    CHECK(keel_barrier());
    uint64_t all = 0;
    for (int r = 0; r < n && me == 0; r++)
        all = turn(all, (uint64_t)read_word(s, r, LAST));
    if (me == 0)
        printf("\nanew: %016" PRIx64 "\n", all);
    CHECK(keel_finalize());
    free(k);
    return 0;
}
