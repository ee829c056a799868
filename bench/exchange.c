/* The exchange of a stencil code on a grid of ranks, one a node: bench/grid.py runs it on the grid bed, where messages
 * of different ranks meet on links. exchange GRID PATTERN BYTES TIMES: each rank puts BYTES to each of its neighbours
 * at once, signals each, and waits for theirs; then the same number of barriers and of sums. PATTERN is 5p (2D:
 * along the dimensions; in 3D the 7 points) or 9p (with the diagonals; 27 points). Nobody's neighbours are beyond the
 * grid's ends. Rank 0 prints "exchange|barrier|sum MEDIAN LEAST MOST" in milliseconds, where a time is that of the
 * rank that took longest. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <keel/keel.h>

enum { DIMS = 3, NEIGHBOURS = 26, TIMES_MAX = 1000 };

static int size[DIMS] = {1, 1, 1};
static int neighbour[NEIGHBOURS], mine[NEIGHBOURS], neighbours; /* their ranks, and which of theirs I am */
static keel_segment *segment;
static size_t bytes;
static char *data;

static void must(keel_status status, const char *what)
{
    if (status != KEEL_OK) {
        fprintf(stderr, "exchange: %s: %s\n", what, keel_status_text(status));
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Which place in a list of all 26 the offset has; its opposite has the place counted from the end. */
static int place_of(int dx, int dy, int dz)
{
    int n = (dz + 1) * 9 + (dy + 1) * 3 + dx + 1;
    return n > 13 ? n - 1 : n;
}

static void find_neighbours(int rank, int diagonals)
{
    int x = rank % size[0], y = rank / size[0] % size[1], z = rank / size[0] / size[1];
    for (int n = 0; n < 27; n++) {
        int dx = n % 3 - 1, dy = n / 3 % 3 - 1, dz = n / 9 - 1;
        int far = abs(dx) + abs(dy) + abs(dz);
        int to[DIMS] = {x + dx, y + dy, z + dz}, inside = 1;
        for (int d = 0; d < DIMS; d++)
            inside = inside && to[d] >= 0 && to[d] < size[d];
        if (far == 0 || (far > 1 && !diagonals) || !inside)
            continue;
        neighbour[neighbours] = to[0] + size[0] * (to[1] + size[1] * to[2]);
        mine[neighbours++] = place_of(-dx, -dy, -dz);
    }
}

/* Signals stand in front of the data: word k counts what came from the neighbour at place k. */
static void exchange(int64_t step)
{
    keel_handle handle[NEIGHBOURS];
    for (int i = 0; i < neighbours; i++)
        must(keel_put_nb(segment, neighbour[i], (size_t)NEIGHBOURS * 8 + (size_t)mine[i] * bytes, data, bytes,
                         &handle[i]),
             "keel_put_nb");
    for (int i = 0; i < neighbours; i++) {
        must(keel_wait(&handle[i]), "keel_wait");
        must(keel_signal(segment, neighbour[i], (size_t)mine[i] * 8, 1), "keel_signal");
    }
    for (int i = 0; i < neighbours; i++)
        must(keel_wait_until(segment, (size_t)(NEIGHBOURS - 1 - mine[i]) * 8, KEEL_GE, step, neighbour[i], NULL),
             "keel_wait_until");
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The time of the rank that took longest, at rank 0. */
static double longest(double took)
{
    static double all[4096], sum[4096];
    memset(all, 0, sizeof all);
    all[keel_rank()] = took;
    must(keel_allreduce_sum(all, sum, (size_t)keel_size()), "keel_allreduce_sum");
    double most = 0;
    for (int i = 0; i < keel_size(); i++)
        most = sum[i] > most ? sum[i] : most;
    return most;
}

static void measure(const char *what, int times)
{
    static double took[TIMES_MAX];
    double one = 1, sum;
    for (int i = 0; i < times + 1; i++) { /* the first one makes connections */
        must(keel_barrier(), "keel_barrier");
        double begin = now();
        if (what[0] == 'e')
            exchange(i + 1);
        else if (what[0] == 'b')
            must(keel_barrier(), "keel_barrier");
        else
            must(keel_allreduce_sum(&one, &sum, 1), "keel_allreduce_sum");
        double t = longest(now() - begin);
        if (i > 0)
            took[i - 1] = t;
    }
    qsort(took, (size_t)times, sizeof took[0], by_size);
    if (keel_rank() == 0)
        printf("%s %.3f %.3f %.3f\n", what, took[times / 2], took[0], took[times - 1]);
}

int main(int argc, char **argv)
{
    if (argc != 5 || sscanf(argv[1], "%dx%dx%d", &size[0], &size[1], &size[2]) < 1) {
        fprintf(stderr, "exchange GRID 5p|9p BYTES TIMES\n");
        return 2;
    }
    bytes = (size_t)atol(argv[3]);
    int times = atoi(argv[4]);
    must(keel_init(), "keel_init");
    if (size[0] * size[1] * size[2] != keel_size() || keel_size() > 4096 || times < 1 || times > TIMES_MAX) {
        fprintf(stderr, "exchange: %s is not a grid of %d ranks, or %d times are not 1 to %d\n", argv[1], keel_size(),
                times, TIMES_MAX);
        return 2;
    }
    find_neighbours(keel_rank(), strcmp(argv[2], "9p") == 0);
    must(keel_segment_alloc((size_t)NEIGHBOURS * (8 + bytes), KEEL_REDUNDANCY_NONE, &segment), "keel_segment_alloc");
    data = calloc(1, bytes + 1);
    measure("exchange", times);
    measure("barrier", times);
    measure("sum", times);
    free(data);
    return keel_finalize() != KEEL_OK;
}
