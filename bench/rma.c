/* One-sided operations beside the raw limits of the same run. Under keelrun with one rank a node:
 *   keelrun -n 1 --nodes 1 rma      same node
 *   keelrun -n 2 --nodes 2 rma      other node; shadow on the writer's node
 *   keelrun -n 3 --nodes 3 rma      other node; both copies on other nodes
 * Rank 0 measures; the others wait in a barrier, or compute (--target computing). With --target asleep a pause before
 * every operation lets the target's agent fall asleep. Batches of Keel and of the raw limit take turns, so that drift
 * of the machine hits both, with a pause between them that ends the agents' spinning: neither runs in the other's way.
 * Medians are printed, and the median of the ratios. With --target computing there is no raw limit beside it: the raw
 * target would fight with the computing rank for a processor, and milliseconds would be measured. */
#include <keel/keel.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/check.h"
#include "bench/rawlib.h"

enum {
    ROUNDS = 15,
    MEMORY = 8 << 20,
    OUTSTANDING = 64,
    SIZE_MAX_BYTES = 4 << 20,
    SETTLE_US = 3000, /* agents spin for less after their last request */
    WARM = 20,
    ASLEEP_ITERS = 20,
};

struct target {
    keel_segment *segment;
    int rank;
    size_t size;
};

typedef void operation(const struct target *t);

static uint8_t *buffer;
static bool asleep, computing; /* --target */

static void put(const struct target *t)
{
    CHECK(keel_put(t->segment, t->rank, 0, buffer, t->size));
}

static void get(const struct target *t)
{
    CHECK(keel_get(t->segment, t->rank, 0, buffer, t->size));
}

static void get_strong(const struct target *t)
{
    CHECK(keel_get_strong(t->segment, t->rank, 0, buffer, t->size));
}

static void accumulate(const struct target *t)
{
    CHECK(keel_acc_double(t->segment, t->rank, 0, 0.0, (const double *)(const void *)buffer, t->size / 8));
}

static void fetch_add(const struct target *t)
{
    int64_t old;
    CHECK(keel_fetch_add(t->segment, t->rank, 64, 1, &old));
}

/* Each operation meets an agent that sleeps. */
static double asleep_us(operation *op, const struct target *t)
{
    double us[ASLEEP_ITERS];
    for (int i = 0; i < ASLEEP_ITERS; i++) {
        usleep(SETTLE_US);
        double start = raw_now_us();
        op(t);
        us[i] = raw_now_us() - start;
    }
    return raw_median(us, ASLEEP_ITERS);
}

static double batch_us(operation *op, const struct target *t, int iters)
{
    if (asleep)
        return asleep_us(op, t);
    for (int i = 0; i < WARM && i < iters; i++)
        op(t);
    double start = raw_now_us();
    for (int i = 0; i < iters; i++)
        op(t);
    return (raw_now_us() - start) / iters;
}

static double put_rate_kops(const struct target *t, int iters)
{
    keel_handle handle[OUTSTANDING];
    for (int i = 0; i < WARM; i++)
        put(t);
    double start = raw_now_us();
    for (int i = 0; i < iters; i++) {
        keel_handle *h = &handle[i % OUTSTANDING];
        if (i >= OUTSTANDING)
            CHECK(keel_wait(h));
        CHECK(keel_put_nb(t->segment, t->rank, 8 * (size_t)(i % OUTSTANDING), buffer, 8, h));
    }
    for (int i = 0; i < OUTSTANDING; i++)
        CHECK(keel_wait(&handle[i]));
    return 1e3 * iters / (raw_now_us() - start);
}

/* The raw targets are paused while Keel runs, and Keel's agents sleep while the raw limit is measured. */
static void compare(struct raw *raw, const char *name, operation *op, const struct target *t, const char *raw_name,
                    double (*raw_batch)(struct raw *, size_t, int))
{
    double keel[ROUNDS], limit[ROUNDS], ratio[ROUNDS];
    if (computing)
        raw_batch = NULL;
    double first = batch_us(op, t, 20);
    int iters = raw_iters(first);
    for (int i = 0; i < ROUNDS; i++) {
        keel[i] = batch_us(op, t, iters);
        if (!raw_batch)
            continue;
        usleep(SETTLE_US);
        limit[i] = raw_batch(raw, t->size, iters);
        ratio[i] = keel[i] / limit[i];
    }
    double us = raw_median(keel, ROUNDS);
    printf("%-28s %8zu B %10.3f us %9.3f GB/s", name, t->size, us, (double)t->size / us / 1e3);
    if (raw_batch)
        printf("   %-12s %10.3f us   ratio %6.2f", raw_name, raw_median(limit, ROUNDS), raw_median(ratio, ROUNDS));
    putchar('\n');
    fflush(stdout);
}

static double raw_pair_batch_us(struct raw *raw, size_t size, int iters)
{
    return raw_pair_us(raw, size, iters / RAW_BATCHES + 1);
}

static double raw_small_write(struct raw *raw, size_t size, int iters)
{
    (void)size;
    return raw_write_batch_us(raw, 8, iters);
}

static void rate(struct raw *raw, const char *name, const struct target *t)
{
    double keel[ROUNDS], limit[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        keel[i] = put_rate_kops(t, 3000);
        if (computing)
            continue;
        usleep(SETTLE_US);
        limit[i] = raw_write_batch_kops(raw, 8, OUTSTANDING, 3000);
        ratio[i] = keel[i] / limit[i];
    }
    printf("%-28s %8d B %10.1f kops/s", name, 8, raw_median(keel, ROUNDS));
    if (!computing)
        printf("%18s %-12s %10.1f kops/s ratio %6.2f", "", "raw write", raw_median(limit, ROUNDS),
               raw_median(ratio, ROUNDS));
    putchar('\n');
}

static void same_node(keel_segment *none, keel_segment *shadow)
{
    static const size_t sizes[] = {8, 64, 1024, 65536, 1 << 20, 4 << 20};
    printf("call that stores 8 bytes %.2f ns, cache line there and back %.0f ns\n", raw_store_call_ns(),
           raw_pingpong_ns());
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct target t = {none, keel_rank(), sizes[i]};
        printf("memcpy %zu B %.1f ns\n", sizes[i], raw_memcpy_ns(sizes[i], false));
        compare(NULL, "same node put", put, &t, "", NULL);
        compare(NULL, "same node get", get, &t, "", NULL);
    }
    struct target t = {none, keel_rank(), 8};
    compare(NULL, "same node fetch-add", fetch_add, &t, "", NULL);
    compare(NULL, "same node accumulate", accumulate, &t, "", NULL);
    t.segment = shadow;
    compare(NULL, "same node put, shadowed", put, &t, "", NULL);
    compare(NULL, "same node get, shadowed", get, &t, "", NULL);
    compare(NULL, "same node fetch-add, shadowed", fetch_add, &t, "", NULL);
}

static void other_node(struct raw *raw, keel_segment *none, keel_segment *shadow)
{
    static const size_t sizes[] = {8, 256, 4096, 65536, 1 << 20, 4 << 20};
    bool three = keel_size() > 2;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct target t = {none, 1, sizes[i]};
        compare(raw, "put", put, &t, "raw write", raw_write_batch_us);
        compare(raw, "get", get, &t, "raw read", raw_read_batch_us);
        compare(raw, "accumulate", accumulate, &t, "raw write", raw_write_batch_us);
        t.segment = shadow;
        if (three)
            compare(raw, "put, shadowed", put, &t, "raw pair", raw_pair_batch_us);
        else
            compare(raw, "put, shadowed", put, &t, "raw write", raw_write_batch_us);
        if (sizes[i] == 8 || sizes[i] == 65536) {
            compare(raw, "get, shadowed", get, &t, "raw read", raw_read_batch_us);
            compare(raw, "get, shadowed, strong", get_strong, &t, "raw read", raw_read_batch_us);
        }
        compare(raw, "accumulate, shadowed", accumulate, &t, "raw write", raw_write_batch_us);
    }
    struct target t = {none, 1, 8};
    compare(raw, "fetch-add", fetch_add, &t, "raw write", raw_small_write);
    rate(raw, "put, 64 outstanding", &t);
    t.segment = shadow;
    compare(raw, "fetch-add, shadowed", fetch_add, &t, "raw write", raw_small_write);
    rate(raw, "put, shadowed, 64 outst.", &t);
}

static volatile double sink;

static void compute_until(keel_segment *flag)
{
    int64_t stop = 0;
    while (!stop) {
        for (int i = 0; i < 1000000; i++)
            sink = sink * 0.999 + i;
        CHECK(keel_get(flag, keel_rank(), 0, &stop, 8));
    }
}

int main(int argc, char **argv)
{
    const char *target = argc == 3 && strcmp(argv[1], "--target") == 0 ? argv[2] : argc == 1 ? "waiting" : "";
    computing = strcmp(target, "computing") == 0;
    asleep = strcmp(target, "asleep") == 0;
    if (!computing && !asleep && strcmp(target, "waiting") != 0) {
        fprintf(stderr, "usage: keelrun ... %s [--target waiting|computing|asleep]\n", argv[0]);
        return 2;
    }
    struct raw *raw = NULL;
    const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (rank && atoi(rank) == 0 && size && atoi(size) > 1) {
        raw = raw_start("127.0.0.1", "tcp", 2, MEMORY);
        if (!raw)
            return 1;
    }
    CHECK(keel_init());
    buffer = calloc(1, SIZE_MAX_BYTES);
    keel_segment *none, *shadow, *flag;
    CHECK(keel_segment_alloc(MEMORY, KEEL_REDUNDANCY_NONE, &none));
    CHECK(keel_segment_alloc(MEMORY, KEEL_REDUNDANCY_SHADOW, &shadow));
    CHECK(keel_segment_alloc(8, KEEL_REDUNDANCY_NONE, &flag));
    if (keel_rank() == 0) {
        if (keel_size() == 1)
            same_node(none, shadow);
        else
            other_node(raw, none, shadow);
        int64_t one = 1;
        for (int r = 1; r < keel_size(); r++)
            CHECK(keel_put(flag, r, 0, &one, 8));
    } else if (computing) {
        compute_until(flag);
    }
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    if (raw)
        raw_stop(raw);
    free(buffer);
    return 0;
}
