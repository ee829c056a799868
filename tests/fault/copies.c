/* copies BYTES TARGET: rank 0 writes BYTES to the part of rank TARGET again and again, all words 1, then all 2, and so
 * on, until it is killed. Then rank 2 reads the part, says that it has ("read"), and when TARGET's node has died as
 * well reads it again, from the other copy. The copies must hold the same words, and words of two neighbouring writes
 * at most. Exit code 1 if not. On four nodes, two ranks each, the writer has neither copy (TARGET 4), the shadow (6)
 * or the primary (1) on its node. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WRITER = 0, READER = 2 };

static int target;

static void expect_ok(keel_status status, const char *what)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "copies: rank %d: %s: %s\n", keel_rank(), what, keel_status_text(status));
    exit(4);
}

static void write_until_killed(keel_segment *segment, uint64_t *words, size_t n)
{
    for (uint64_t value = 2;; value++) {
        for (size_t i = 0; i < n; i++)
            words[i] = value;
        expect_ok(keel_put(segment, target, 0, words, n * sizeof *words), "put");
        if (value == 3)
            expect_ok(keel_event("writing", 0, NULL), "event");
    }
}

static void wait_for_death(int rank)
{
    while (keel_rank_alive(rank))
        usleep(1000);
}

static void wrong(const char *what, size_t at, uint64_t is, uint64_t was)
{
    fprintf(stderr, "copies: WRONG: %s: word %zu is %llu, not %llu\n", what, at, (unsigned long long)is,
            (unsigned long long)was);
    exit(1);
}

static void compare(keel_segment *segment, uint64_t *before, uint64_t *after, size_t n)
{
    expect_ok(keel_get(segment, target, 0, before, n * sizeof *before), "get");
    uint64_t newest = 0;
    for (size_t i = 0; i < n; i++)
        newest = before[i] > newest ? before[i] : newest;
    for (size_t i = 0; i < n; i++)
        if (before[i] + 1 < newest)
            wrong("torn", i, before[i], newest);
    expect_ok(keel_event("read", (int64_t)newest, NULL), "event");
    wait_for_death(target);
    expect_ok(keel_get(segment, target, 0, after, n * sizeof *after), "get");
    for (size_t i = 0; i < n; i++)
        if (after[i] != before[i])
            wrong("the copies differ", i, after[i], before[i]);
    printf("copies: equal\n");
}

int main(int argc, char **argv)
{
    size_t bytes = argc == 3 ? (size_t)atol(argv[1]) : 0, n = bytes / sizeof(uint64_t);
    if (n == 0) {
        fprintf(stderr, "usage: copies BYTES TARGET\n");
        return 2;
    }
    target = atoi(argv[2]);
    keel_segment *segment;
    expect_ok(keel_init(), "init");
    expect_ok(keel_segment_alloc(bytes, KEEL_REDUNDANCY_SHADOW, &segment), "alloc");
    uint64_t *words = malloc(bytes), *again = malloc(bytes);
    if (!words || !again)
        exit(4);
    for (size_t i = 0; i < n; i++)
        words[i] = 1;
    if (keel_rank() == WRITER)
        expect_ok(keel_put(segment, target, 0, words, bytes), "put");
    expect_ok(keel_barrier(), "barrier");
    if (keel_rank() == WRITER)
        write_until_killed(segment, words, n);
    wait_for_death(WRITER);
    if (keel_rank() == READER)
        compare(segment, words, again, n);
    expect_ok(keel_barrier(), "barrier");
    expect_ok(keel_finalize(), "finalize");
    free(words);
    free(again);
    return 0;
}
