/* Strided puts, gets and accumulates of pieces of one size, beside the same bytes by an operation of each piece and by one contiguous
 * operation: keelrun -n 2 --nodes 2 pieces [BYTES...]. Rank 0 measures; the three take turns, medians are printed. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>

#include "bench/check.h"
#include "bench/rawlib.h"

enum { ROUNDS = 9, PIECES_MAX = 4096, BYTES = 1 << 20, MEMORY = 4 << 20 };

struct job {
    keel_segment *segment;
    size_t len, n; /* of a piece; pieces, with gaps of their length between them */
};

static char *buffer;
static keel_handle handle[PIECES_MAX];

enum what { PUT, GET, ACC };
static const char *const names[] = {"put", "get", "accumulate"};

static void strided(const struct job *j, enum what what)
{
    keel_strided d = {.levels = 1, .count = {j->len, j->n}, .global_stride = {2 * j->len}, .local_stride = {j->len}};
    if (what == PUT)
        CHECK(keel_put_strided(j->segment, 1, 0, buffer, &d));
    else if (what == GET)
        CHECK(keel_get_strided(j->segment, 1, 0, buffer, &d));
    else
        CHECK(keel_acc_strided(j->segment, 1, 0, KEEL_DOUBLE, NULL, buffer, &d));
}

static void one_by_one(const struct job *j, enum what what)
{
    for (size_t i = 0; i < j->n; i++) {
        size_t at = 2 * i * j->len;
        char *local = buffer + i * j->len;
        if (what == PUT)
            CHECK(keel_put_nb(j->segment, 1, at, local, j->len, &handle[i]));
        else if (what == GET)
            CHECK(keel_get_nb(j->segment, 1, at, local, j->len, &handle[i]));
        else
            CHECK(keel_acc_nb(j->segment, 1, at, KEEL_DOUBLE, NULL, local, j->len / 8, &handle[i]));
    }
    CHECK(keel_wait_all(handle, j->n));
}

static void contiguous(const struct job *j, enum what what)
{
    size_t len = j->len * j->n;
    if (what == PUT)
        CHECK(keel_put(j->segment, 1, 0, buffer, len));
    else if (what == GET)
        CHECK(keel_get(j->segment, 1, 0, buffer, len));
    else
        CHECK(keel_acc(j->segment, 1, 0, KEEL_DOUBLE, NULL, buffer, len / 8));
}

static double rate(void (*run)(const struct job *, enum what), const struct job *j, enum what what)
{
    enum { TIMES = 4 };
    run(j, what);
    double start = raw_now_us();
    for (int i = 0; i < TIMES; i++)
        run(j, what);
    return (double)(j->len * j->n) * TIMES / 1e3 / (raw_now_us() - start);
}

static void compare(const char *copies, const struct job *j, enum what what)
{
    double s[ROUNDS], o[ROUNDS], c[ROUNDS], to_one[ROUNDS], to_whole[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        s[i] = rate(strided, j, what);
        o[i] = rate(one_by_one, j, what);
        c[i] = rate(contiguous, j, what);
        to_one[i] = s[i] / o[i];
        to_whole[i] = s[i] / c[i];
    }
    printf("%-10s %-8s %6zu B x %5zu: strided %7.3f GB/s, each by itself %7.3f, contiguous %7.3f; over each %6.2f, "
           "over contiguous %5.2f\n",
           names[what], copies, j->len, j->n, raw_median(s, ROUNDS), raw_median(o, ROUNDS), raw_median(c, ROUNDS),
           raw_median(to_one, ROUNDS), raw_median(to_whole, ROUNDS));
    fflush(stdout);
}

static size_t sizes[] = {8, 64, 256, 1024, 4096, 16384, 65536};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

int main(int argc, char **argv)
{
    size_t n_sizes = argc > 1 && argc - 1 < SIZES ? (size_t)argc - 1 : SIZES;
    for (int i = 1; i < argc && i <= SIZES; i++)
        sizes[i - 1] = strtoul(argv[i], NULL, 10);
    CHECK(keel_init());
    if (keel_size() < 2) {
        fprintf(stderr, "two ranks are needed\n");
        return 2;
    }
    buffer = calloc(1, BYTES);
    keel_segment *none, *shadow;
    CHECK(keel_segment_alloc(MEMORY, KEEL_REDUNDANCY_NONE, &none));
    CHECK(keel_segment_alloc(MEMORY, KEEL_REDUNDANCY_SHADOW, &shadow));
    for (size_t i = 0; keel_rank() == 0 && i < n_sizes; i++) {
        size_t n = BYTES / sizes[i] < PIECES_MAX ? BYTES / sizes[i] : PIECES_MAX;
        for (int what = PUT; what <= ACC; what++) {
            compare("none", &(struct job){none, sizes[i], n}, (enum what)what);
            compare("shadow", &(struct job){shadow, sizes[i], n}, (enum what)what);
        }
    }
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    free(buffer);
    return 0;
}
