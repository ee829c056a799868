/* A program for wrong bits on purpose (inject.py): in each of its steps a rank writes words to the next one, of which
 * the sum is printed at the end. What it does is told by its arguments:
 *   put, put_nb, strided, acc, message   how words go; rest: as messages, and what came in the first step stays
 *   STEPS                                     how many steps */
#include <inttypes.h>
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

static void send(const char *how, keel_segment *s, int to, int from, int step)
{
    static const double zeros[WORDS];
    if (strcmp(how, "put") == 0) {
        MUST(keel_put(s, to, 0, mine, sizeof mine));
    } else if (strcmp(how, "put_nb") == 0) {
        MUST(keel_put_nb(s, to, 0, mine, sizeof mine, NULL));
    } else if (strcmp(how, "strided") == 0) {
        const keel_strided shape = {
            .levels = 1, .count = {16, BYTES / 16}, .global_stride = {16}, .local_stride = {16}};
        MUST(keel_put_strided(s, to, 0, mine, &shape));
    } else if (strcmp(how, "acc") == 0) {
        MUST(keel_put(s, keel_rank(), 0, zeros, sizeof zeros)); /* a constant: nobody can make a bit of it wrong */
        MUST(keel_fence_all());
        MUST(keel_barrier());
        MUST(keel_acc(s, to, 0, KEEL_INT64, NULL, mine, WORDS));
    } else {
        uint64_t got[WORDS];
        size_t len;
        MUST(keel_message_send(to, 1, mine, sizeof mine));
        MUST(keel_message_receive(from, 1, got, sizeof got, &len, NULL));
        if (strcmp(how, "rest") != 0 || step == 0)
            MUST(keel_put(s, keel_rank(), 0, got, sizeof got));
    }
    MUST(keel_fence_all());
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "put";
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    keel_segment *s;
    MUST(keel_init());
    int rank = keel_rank(), n = keel_size(), to = (rank + 1) % n, from = (rank + n - 1) % n;
    MUST(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_NONE, &s));
    double sum = 0;
    for (int step = 0; step < steps; step++) {
        uint64_t got[WORDS];
        for (int i = 0; i < WORDS; i++)
            mine[i] = (uint64_t)(rank + 1); /* each step anew: a wrong bit lives for one step */
        keel_timestep((uint64_t)step);
        send(how, s, to, from, step);
        MUST(keel_barrier());
        MUST(keel_get(s, rank, 0, got, sizeof got));
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
