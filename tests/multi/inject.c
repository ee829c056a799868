/* A program for wrong bits on purpose (inject.py): in each of its steps a rank writes words to the next one, of which
 * the sum is printed at the end. What it does is told by its arguments:
 *   put, put_nb, strided, vector, acc, acc_nb, acc_strided, acc_vector, message, bcast, gather, allgather,
 *   allgather_begin, allreduce
 *           how words go; empty: puts of no bytes; none: they do not; rest: as messages, and what came in the first
 *           step stays
 *   STEPS   how many steps */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <keel/keel.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        keel_status must = (call);                                                                                     \
        if (must != KEEL_OK) {                                                                                         \
            fprintf(stderr, "%s: %s\n", #call, keel_status_text(must));                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { WORDS = 64, BYTES = WORDS * sizeof(uint64_t) };

static uint64_t mine[WORDS];

static const keel_strided shape = {.levels = 1, .count = {16, BYTES / 16}, .global_stride = {16}, .local_stride = {16}};

static size_t in_pieces(keel_piece pieces[2])
{
    pieces[0] = (keel_piece){.offset = BYTES / 2, .local = mine, .len = BYTES / 2};
    pieces[1] = (keel_piece){.offset = 0, .local = mine + WORDS / 2, .len = BYTES / 2};
    return 2;
}

static void put(const char *how, keel_segment *s, int to)
{
    keel_piece pieces[2];
    if (strcmp(how, "put") == 0)
        MUST(keel_put(s, to, 0, mine, sizeof mine));
    else if (strcmp(how, "put_nb") == 0)
        MUST(keel_put_nb(s, to, 0, mine, sizeof mine, NULL));
    else if (strcmp(how, "strided") == 0)
        MUST(keel_put_strided(s, to, 0, mine, &shape));
    else
        MUST(keel_put_vector(s, to, pieces, in_pieces(pieces)));
}

/* To zeros, in a place of each step. */
static void accumulate(const char *how, keel_segment *s, int to, size_t at)
{
    keel_piece pieces[2];
    in_pieces(pieces);
    pieces[0].offset += at;
    pieces[1].offset += at;
    if (strcmp(how, "acc") == 0)
        MUST(keel_acc(s, to, at, KEEL_INT64, NULL, mine, WORDS));
    else if (strcmp(how, "acc_nb") == 0)
        MUST(keel_acc_nb(s, to, at, KEEL_INT64, NULL, mine, WORDS, NULL));
    else if (strcmp(how, "acc_strided") == 0)
        MUST(keel_acc_strided(s, to, at, KEEL_INT64, NULL, mine, &shape));
    else
        MUST(keel_acc_vector(s, to, KEEL_INT64, NULL, pieces, 2));
}

static void pass_message(const char *how, keel_segment *s, int to, int from, int step)
{
    uint64_t got[WORDS];
    size_t len;
    MUST(keel_message_send(to, 1, mine, sizeof mine));
    MUST(keel_message_receive(from, 1, got, sizeof got, &len, NULL));
    if (strcmp(how, "rest") != 0 || step == 0)
        MUST(keel_put(s, keel_rank(), 0, got, sizeof got));
}

/* To all, or to the next one; of a sum what the others have given, which are one. */
static void contribute(const char *how, keel_segment *s, int from)
{
    static uint64_t all[8 * WORDS];
    const keel_combine sum = {.type = KEEL_UINT64, .op = KEEL_SUM};
    keel_group *g = keel_group_world();
    keel_request *request;
    int rank = keel_rank(), n = keel_size();
    const uint64_t *got = all + (size_t)from * WORDS;
    if (strcmp(how, "allgather") == 0) {
        MUST(keel_group_allgather(g, mine, all, sizeof mine));
    } else if (strcmp(how, "allgather_begin") == 0) {
        MUST(keel_group_allgather_begin(g, mine, all, sizeof mine, &request));
        MUST(keel_request_wait(request, NULL));
    } else if (strcmp(how, "allreduce") == 0) {
        MUST(keel_group_allreduce(g, mine, all, WORDS, &sum));
        for (int i = 0; i < WORDS; i++)
            all[i] -= mine[i];
        got = all;
    }
    for (int root = 0; root < n && strcmp(how, "gather") == 0; root++)
        MUST(keel_group_gather(g, root, mine, root == rank ? all : NULL, sizeof mine));
    for (int root = 0; root < n && strcmp(how, "bcast") == 0; root++)
        MUST(keel_group_bcast(g, root, root == rank ? mine : all + (size_t)root * WORDS, sizeof mine));
    MUST(keel_put(s, rank, 0, got, sizeof mine));
}

static bool is_collective(const char *how)
{
    return strncmp(how, "all", 3) == 0 || strcmp(how, "bcast") == 0 || strcmp(how, "gather") == 0;
}

static void send(const char *how, keel_segment *s, int to, int from, int step)
{
    if (is_collective(how))
        contribute(how, s, from);
    else if (strcmp(how, "empty") == 0)
        MUST(keel_put(s, to, 0, mine, 0));
    else if (strcmp(how, "message") == 0 || strcmp(how, "rest") == 0)
        pass_message(how, s, to, from, step);
    else if (strncmp(how, "acc", 3) == 0)
        accumulate(how, s, to, (size_t)step * BYTES);
    else if (strcmp(how, "none") != 0)
        put(how, s, to);
    MUST(keel_fence_all());
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "put";
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    keel_segment *s;
    MUST(keel_init());
    int rank = keel_rank(), n = keel_size(), to = (rank + 1) % n, from = (rank + n - 1) % n;
    bool adds = strncmp(how, "acc", 3) == 0;
    MUST(keel_segment_alloc(adds ? (size_t)steps * BYTES : BYTES, KEEL_REDUNDANCY_NONE, &s));
    double sum = 0;
    for (int step = 0; step < steps; step++) {
        uint64_t got[WORDS];
        for (int i = 0; i < WORDS; i++)
            mine[i] = (uint64_t)(rank + 1); /* each step anew: a wrong bit lives for one step */
        keel_timestep((uint64_t)step);
        send(how, s, to, from, step);
        MUST(keel_barrier());
        MUST(keel_get(s, rank, adds ? (size_t)step * BYTES : 0, got, sizeof got));
        for (int i = 0; i < WORDS; i++)
            sum += (double)(got[i] != (uint64_t)(from + 1));
        MUST(keel_barrier());
    }
    double in = sum, all = 0;
    MUST(keel_allreduce_sum(&in, &all, 1));
    if (rank == 0)
        printf("%.0f wrong words\n", all);
    MUST(keel_segment_free(s));
    MUST(keel_finalize());
    return 0;
}
