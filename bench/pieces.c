/* Strided puts, gets and accumulates of pieces of one size, beside the same bytes by an operation of each piece and by
 * one contiguous operation, and beside what plain sockets do with pieces (rawlib.h): keelrun -n 2 --nodes 2 pieces
 * [BYTES...]. Rank 0 measures; they take turns, medians are printed. */
#include <keel/keel.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/rawlib.h"

enum { ROUNDS = 9, TIMES = 4, PIECES_MAX = 4096, BYTES = 1 << 20, MEMORY = 4 << 20 };

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

static struct raw_pieces *raw;

static double rate(void (*run)(const struct job *, enum what), const struct job *j, enum what what)
{
    run(j, what);
    double start = raw_now_us();
    for (int i = 0; i < TIMES; i++)
        run(j, what);
    return (double)(j->len * j->n) * TIMES / 1e3 / (raw_now_us() - start);
}

static void limits(const struct job *j)
{
    double us[RAW_WAYS][ROUNDS], over[RAW_WAYS][ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        for (int way = RAW_WHOLE; way < RAW_WAYS; way++) {
            us[way][i] = raw_pieces_us(raw, (enum raw_way)way, j->len, j->n, TIMES);
            over[way][i] = us[RAW_WHOLE][i] / us[way][i];
        }
    double kb = (double)(j->len * j->n) / 1e3;
    printf("plain sockets       %6zu B x %5zu: copied  %7.3f GB/s, scattered by the kernel %7.3f, contiguous %7.3f; "
           "copied over contiguous %5.2f, "
           "scattered %5.2f\n",
           j->len, j->n, kb / raw_median(us[RAW_COPIED], ROUNDS), kb / raw_median(us[RAW_SCATTERED], ROUNDS),
           kb / raw_median(us[RAW_WHOLE], ROUNDS), raw_median(over[RAW_COPIED], ROUNDS),
           raw_median(over[RAW_SCATTERED], ROUNDS));
    fflush(stdout);
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
    /* before any thread: of both ranks, as nobody knows its number yet */
    if (!(raw = raw_pieces_start(BYTES))) {
        fprintf(stderr, "plain sockets: %s\n", strerror(errno));
        return 2;
    }
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
        limits(&(struct job){none, sizes[i], n});
        for (int what = PUT; what <= ACC; what++) {
            compare("none", &(struct job){none, sizes[i], n}, (enum what)what);
            compare("shadow", &(struct job){shadow, sizes[i], n}, (enum what)what);
        }
    }
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    raw_pieces_stop(raw);
    free(buffer);
    return 0;
}
