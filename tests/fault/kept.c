/* kept STEPS [barrier|last|save FOLDER]: each rank turns over an array of its own memory, of a size of its own, a part
 * of it in each step and by its left neighbour's last word, and keeps it; with `barrier` there is one in the middle of
 * each step, with `save` each third version is saved. Rank 0 prints one number, which each word of each step of each
 * rank has gone into. */
#include <keel/keel.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { WORDS = 20000, MORE = 3000, WINDOW = 700 };

static uint64_t turn(uint64_t x, uint64_t by)
{
    x = (x ^ by) * 0x9e3779b97f4a7c15u + 1;
    return x ^ x >> 31;
}

static void step(uint64_t *field, size_t words, uint64_t at, uint64_t left, uint64_t *trace)
{
    for (size_t i = 0; i < WINDOW; i++) {
        size_t k = (size_t)(at * 977 + i * 3) % words;
        field[k] = turn(field[k] + k, left);
    }
    field[words - 1] = turn(field[words - 1], left + at);
    *trace = turn(*trace, field[words - 1]);
}

/* Rank r's word of step `at`: who does a step again reads the one before it, which is still there. */
static uint64_t word_of(keel_segment *s, int rank, uint64_t at)
{
    uint64_t word;
    CHECK(keel_get(s, rank, (at % 2) * sizeof word, &word, sizeof word));
    return word;
}

static void tell_word(keel_segment *s, uint64_t at, uint64_t word)
{
    CHECK(keel_put(s, keel_rank(), (at % 2) * sizeof word, &word, sizeof word));
}

/* The version is committed, whether or not it could be saved. */
static void expect_saved(keel_status status, uint64_t version)
{
    if (keel_rank() == 0)
        printf("version %" PRIu64 ": %s\n", version, keel_status_name(status));
    fflush(stdout);
    EXPECT(status == KEEL_OK || status == KEEL_ERR_RANK_DEAD || status == KEEL_ERR_SYSTEM);
}

int main(int argc, char **argv)
{
    const uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    const int barriers = argc > 2 && strcmp(argv[2], "barrier") == 0;
    const char *folder = argc > 3 && strcmp(argv[2], "save") == 0 ? argv[3] : NULL;
    keel_segment *s;
    uint64_t at, behind, trace = 7;
    CHECK(keel_init());
    const int me = keel_rank(), n = keel_size();
    const size_t words = WORDS + MORE * (size_t)me;
    uint64_t *field = calloc(words, sizeof *field);
    EXPECT(field);
    CHECK(keel_segment_alloc(3 * sizeof(uint64_t), KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_keep_room((WORDS + MORE * (size_t)n) * sizeof *field));
    CHECK(keel_keep("field", field, words * sizeof *field));
    CHECK(keel_keep("trace", &trace, sizeof trace));
    CHECK(keel_keep_restore(&at, &behind));
    printf("rank %d begins behind %" PRIu64 "\n", me, at);
    fflush(stdout);
    EXPECT(behind <= 1 && (at == 0 || keel_restarted() || getenv("KEEL_RESTORE")));
    while (at++ < steps) {
        uint64_t left = word_of(s, (me + n - 1) % n, at - 1);
        step(field, words, at, left, &trace);
        tell_word(s, at, field[words - 1]);
        if (barriers && !behind)
            CHECK(keel_barrier());
        if (barriers)
            trace = turn(trace, word_of(s, (me + 1) % n, at));
        behind = 0;
        if (folder && at % 3 == 0)
            expect_saved(keel_keep_save(at, folder), at);
        else
            CHECK(keel_keep_commit(at));
    }
    if (argc > 2 && strcmp(argv[2], "last") == 0 && me == 0) { /* also of one that died and that nobody runs */
        uint64_t version, other;
        CHECK(keel_keep_get(1, "trace", 0, &other, sizeof other, &version));
        printf("rank 1 has kept version %" PRIu64 ": %016" PRIx64 "\n", version, other);
    }
    for (size_t i = 0; i < words; i++)
        trace = turn(trace, field[i]);
    CHECK(keel_put(s, me, 2 * sizeof trace, &trace, sizeof trace));
    if (!behind)
        CHECK(keel_barrier());
    for (int r = 0; r < n && me == 0; r++) {
        uint64_t word;
        CHECK(keel_get(s, r, 2 * sizeof word, &word, sizeof word));
        trace = r ? turn(trace, word) : word;
    }
    if (me == 0)
        printf("kept: %016" PRIx64 "\n", trace);
    fflush(stdout);
    CHECK(keel_finalize());
    free(field);
    return 0;
}
