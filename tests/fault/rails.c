/* rails: every rank puts into all others and adds to all others, round after round, until line by line "stop" comes on
 * rank 0's standard input; then each looks whether it has what the others say they have sent. Prints the longest time
 * that an operation took, from line to line ("mark"). Exit code 1: something is wrong. */
#include <keel/keel.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RANKS_MAX = 64, BIG = 64 * 1024 };

/* What a rank has of the others. */
struct board {
    uint64_t put[RANKS_MAX];
    double added;
    uint64_t stop;
    uint8_t big[RANKS_MAX][BIG / RANKS_MAX];
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void expect_ok(keel_status status, const char *what, int of)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "rails: rank %d: %s of rank %d: %s\n", keel_rank(), what, of, keel_status_text(status));
    fflush(NULL);
    _exit(1);
}

static double longest;

static void timed(keel_status status, const char *what, int of, double since)
{
    double took = now_s() - since;
    expect_ok(status, what, of);
    if (took > longest)
        longest = took;
}

/* One round: a word, an addition, and some more bytes to each of the others. */
static void send_to_all(keel_segment *boards, uint64_t round)
{
    uint8_t some[BIG / RANKS_MAX];
    int me = keel_rank();
    double one = 1;
    memset(some, (int)(round & 0xff), sizeof some);
    for (int r = 0; r < keel_size(); r++) {
        if (r == me)
            continue;
        double t = now_s();
        timed(keel_put(boards, r, offsetof(struct board, put) + 8 * (size_t)me, &round, 8), "put", r, t);
        t = now_s();
        timed(keel_acc_double(boards, r, offsetof(struct board, added), 1.0, &one, 1), "acc", r, t);
        t = now_s();
        timed(keel_put(boards, r, offsetof(struct board, big) + (size_t)me * sizeof some, some, sizeof some), "put", r,
              t);
        uint64_t back = 0;
        t = now_s();
        timed(keel_get(boards, r, offsetof(struct board, put) + 8 * (size_t)me, &back, 8), "get", r, t);
        if (back != round) {
            fprintf(stderr, "rails: rank %d: WRONG: rank %d has %llu, not %llu\n", me, r, (unsigned long long)back,
                    (unsigned long long)round);
            _exit(1);
        }
    }
}

/* Rank 0: have lines come? True: stop. */
static bool is_told_to_stop(void)
{
    char text[64];
    ssize_t n = read(0, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = 0;
    return strstr(text, "stop") != NULL;
}

static void check(const struct board *b, uint64_t rounds)
{
    double added = (double)rounds * (keel_size() - 1);
    bool right = b->added == added;
    for (int r = 0; r < keel_size(); r++)
        if (r != keel_rank()) {
            right &= b->put[r] == rounds;
            for (size_t i = 0; i < sizeof b->big[r]; i++)
                right &= b->big[r][i] == (uint8_t)(rounds & 0xff);
        }
    if (!right) {
        fprintf(stderr, "rails: rank %d: WRONG after %llu rounds: %.0f added, not %.0f\n", keel_rank(),
                (unsigned long long)rounds, b->added, added);
        _exit(1);
    }
}

int main(void)
{
    keel_segment *boards;
    struct board mine;
    uint64_t round = 0, stop = 1;
    double told = 0;
    expect_ok(keel_init(), "init", -1);
    expect_ok(keel_segment_alloc(sizeof(struct board), KEEL_REDUNDANCY_SHADOW, &boards), "alloc", -1);
    if (keel_rank() == 0)
        fcntl(0, F_SETFL, O_NONBLOCK);
    expect_ok(keel_barrier(), "barrier", -1);
    do {
        round++;
        send_to_all(boards, round);
        if (keel_rank() == 0 && is_told_to_stop())
            for (int r = 0; r < keel_size(); r++)
                expect_ok(keel_put(boards, r, offsetof(struct board, stop), &stop, 8), "put", r);
        double t = now_s();
        timed(keel_barrier(), "barrier", -1, t);
        expect_ok(keel_get(boards, keel_rank(), 0, &mine, sizeof mine), "get", keel_rank());
        check(&mine, round);
        if (now_s() - told > 0.25) {
            printf("rank %d: %llu rounds, %.0f ms\n", keel_rank(), (unsigned long long)round, longest * 1000);
            fflush(stdout);
            told = now_s();
            longest = 0;
        }
        expect_ok(keel_barrier(), "barrier", -1); /* nobody goes on before all have looked */
    } while (!mine.stop);
    printf("rank %d: right\n", keel_rank());
    expect_ok(keel_finalize(), "finalize", -1);
    return 0;
}
