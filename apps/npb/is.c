/* IS: the rank of each of many small integers in their order. Keys that lie near each other are gathered in buckets;
 * each rank gets a run of buckets, into which all ranks put what they have, and counts. */
#include "apps/npb/kernel.h"
#include "apps/npb/random.h"
#include "apps/npb/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 10, PROBES = 5, BUCKETS_MAX = 1 << 10 };

/* Where the published ranks are: key number `index` has `rank` in the first iteration's order but for a shift by the
 * iteration, upwards for the first `rising` ones. */
static const struct {
    int log_keys, log_values, log_buckets;
    int index[PROBES], rank[PROBES];
    int rising, up, down; /* shifts: iteration + up, -(iteration + down) */
} classes[CLASSES] = {
    [CLASS_S] = {16, 11, 9, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, 3, 0, 0},
    [CLASS_W] =
        {20, 16, 10, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}, 2, -2, 0},
    [CLASS_A] =
        {23, 19, 10, {2112377, 662041, 5336171, 3642833, 4250760}, {104, 17523, 123928, 8288932, 8388264}, 3, -1, -1},
};

struct is {
    struct npb *npb;
    int buckets, values, shift; /* bucket of a key: key >> shift */
    struct share mine;          /* keys that this rank has from the start */
    int32_t *keys, *sorted;     /* those, and the same by buckets */
    size_t room;                /* keys that a rank can be put */
    struct window window;       /* lane r: of rank r */
    int32_t total[BUCKETS_MAX + PROBES], held[BUCKETS_MAX],
        before[BUCKETS_MAX]; /* keys: of all, this rank, lower ranks */
    int *first;              /* [size + 1] first bucket of each rank */
    size_t lesser;           /* keys in the buckets of lower ranks */
    size_t received;         /* keys that this rank was put */
    int32_t *ranks;          /* [values + 1] of this rank's keys: how many are less than the value */
    int right;               /* published ranks that came out */
};

static void make_keys(struct is *is)
{
    struct random random = random_at(RANDOM_SEED, 4 * is->mine.first);
    int quarter = is->values / 4;
    for (size_t i = 0; i < is->mine.count; i++) {
        double sum = 0;
        for (int j = 0; j < 4; j++)
            sum += random_next(&random);
        is->keys[i] = (int32_t)(quarter * sum);
    }
}

static bool owns(const struct is *is, size_t index)
{
    return index >= is->mine.first && index < is->mine.first + is->mine.count;
}

/* Two keys are others in each iteration, so that none can be left out. */
static void change_keys(struct is *is, int iteration)
{
    size_t low = (size_t)iteration, high = (size_t)iteration + ITERATIONS;
    if (owns(is, low))
        is->keys[low - is->mine.first] = iteration;
    if (owns(is, high))
        is->keys[high - is->mine.first] = is->values - iteration;
}

/* How many keys of each bucket there are: here, on lower ranks, on all; and, behind those, the keys whose ranks are
 * published. */
static void count_buckets(struct is *is, const int *probes)
{
    static const keel_combine add = {.type = KEEL_INT32, .op = KEEL_SUM};
    size_t n = (size_t)is->buckets;
    memset(is->held, 0, sizeof is->held);
    memset(is->before, 0, sizeof is->before);
    for (size_t i = 0; i < is->mine.count; i++)
        is->held[is->keys[i] >> is->shift]++;
    memcpy(is->total, is->held, n * sizeof is->total[0]);
    for (size_t i = 0; i < PROBES; i++)
        is->total[n + i] = owns(is, (size_t)probes[i]) ? is->keys[(size_t)probes[i] - is->mine.first] : 0;
    npb_sum_int(is->npb, is->total, n + PROBES);
    is->npb->sums++;
    must(keel_group_exscan(keel_group_world(), is->held, is->before, n, &add), "keys of lower ranks");
}

/* Buckets are dealt out in order: a rank's run ends where the ranks up to it have their part of the keys. */
static void deal_buckets(struct is *is)
{
    size_t keys = 0, all = (size_t)1 << classes[is->npb->class].log_keys;
    int bucket = 0;
    for (int r = 0; r < is->npb->size; r++) {
        is->first[r] = bucket;
        if (r == is->npb->rank)
            is->lesser = keys;
        size_t until = all * ((size_t)r + 1) / (size_t)is->npb->size;
        while (bucket < is->buckets && keys < until)
            keys += (size_t)is->total[bucket++];
        if (r == is->npb->rank)
            is->received = keys - is->lesser;
    }
    is->first[is->npb->size] = is->buckets;
}

static void sort_by_bucket(struct is *is)
{
    int32_t at[BUCKETS_MAX], sum = 0;
    for (int b = 0; b < is->buckets; b++) {
        at[b] = sum;
        sum += is->held[b];
    }
    for (size_t i = 0; i < is->mine.count; i++)
        is->sorted[at[is->keys[i] >> is->shift]++] = is->keys[i];
}

/* Each rank's keys of another's buckets lie there behind those of the ranks before it. */
static void send_keys(struct is *is)
{
    size_t from = 0;
    for (int r = 0; r < is->npb->size; r++) {
        size_t count = 0, at = 0;
        for (int b = is->first[r]; b < is->first[r + 1]; b++) {
            count += (size_t)is->held[b];
            at += (size_t)is->before[b];
        }
        if (at + count > is->room)
            must(KEEL_ERR_LIMIT, "keys for one rank");
        window_put(&is->window, r, is->npb->rank, at * sizeof(int32_t), is->sorted + from, count * sizeof(int32_t));
        from += count;
    }
    window_wait_all(&is->window);
}

/* Ranks of the values in this rank's buckets, from `low` on. */
static void rank_keys(struct is *is, int low, int high)
{
    const int32_t *keys = is->window.received;
    int32_t sum = 0;
    memset(is->ranks, 0, (size_t)(high - low + 1) * sizeof *is->ranks);
    for (size_t i = 0; i < is->received; i++)
        is->ranks[keys[i] - low]++;
    for (int v = 0; v <= high - low; v++) {
        int32_t count = is->ranks[v];
        is->ranks[v] = sum;
        sum += count;
    }
}

static void compare(struct is *is, int iteration, int low, int high)
{
    for (int i = 0; i < PROBES; i++) {
        int key = is->total[is->buckets + i];
        if (key < low || key >= high)
            continue;
        int shift = i < classes[is->npb->class].rising ? iteration + classes[is->npb->class].up
                                                       : -(iteration + classes[is->npb->class].down);
        is->right += is->ranks[key - low] + (int)is->lesser == classes[is->npb->class].rank[i] + shift;
    }
}

static void iterate(struct is *is, int iteration)
{
    keel_timestep((uint64_t)iteration);
    change_keys(is, iteration);
    count_buckets(is, classes[is->npb->class].index); /* its sum: all have read what they were put before */
    deal_buckets(is);
    sort_by_bucket(is);
    send_keys(is);
    int low = is->first[is->npb->rank] << is->shift, high = is->first[is->npb->rank + 1] << is->shift;
    rank_keys(is, low, high);
    compare(is, iteration, low, high);
}

/* What a rank's last keys are after they were brought into order by their ranks. */
struct order {
    int64_t count, sum, sent; /* sums of what it was put, and of what it had */
    int32_t least, most;
    int32_t wrong; /* neighbours of which the first is larger */
};

static void put_in_order(struct is *is, struct order *out)
{
    const int32_t *keys = is->window.received;
    int32_t *sorted = reserve(is->received, sizeof *sorted);
    int low = is->first[is->npb->rank] << is->shift;
    *out = (struct order){.count = (int64_t)is->received};
    for (size_t i = 0; i < is->received; i++)
        sorted[is->ranks[keys[i] - low]++] = keys[i];
    for (size_t i = 0; i < is->received; i++) {
        out->sum += sorted[i];
        out->wrong += i > 0 && sorted[i - 1] > sorted[i];
    }
    for (size_t i = 0; i < is->mine.count; i++)
        out->sent += is->keys[i];
    if (is->received > 0) {
        out->least = sorted[0];
        out->most = sorted[is->received - 1];
    }
    keel_local_free(sorted);
}

/* Keys of all ranks that are at their places: all of them, if no two neighbours are in the wrong order and the sum
 * is what it was. */
static int64_t full_order(struct is *is)
{
    struct order mine, *all = reserve((size_t)is->npb->size, sizeof *all);
    int64_t count = 0, sum = 0, sent = 0, wrong = 0;
    int32_t most = 0;
    put_in_order(is, &mine);
    npb_gather(is->npb, &mine, all, sizeof mine);
    for (int r = 0; r < is->npb->size; r++) {
        count += all[r].count;
        sum += all[r].sum;
        sent += all[r].sent;
        wrong += all[r].wrong + (all[r].count > 0 && all[r].least < most);
        most = all[r].count > 0 ? all[r].most : most;
    }
    keel_local_free(all);
    return sum == sent ? count - wrong : -1;
}

/* A rank gets fewer keys than its part and one bucket more: that is the room of a window. Each iteration changes two
 * keys. */
static size_t room_for(struct is *is)
{
    int32_t largest = 0;
    count_buckets(is, classes[is->npb->class].index);
    for (int b = 0; b < is->buckets; b++)
        largest = is->total[b] > largest ? is->total[b] : largest;
    size_t all = (size_t)1 << classes[is->npb->class].log_keys;
    return all / (size_t)is->npb->size + 1 + (size_t)largest + 2 * (ITERATIONS + 1);
}

static void prepare(struct npb *npb, struct is *is)
{
    *is = (struct is){.npb = npb,
                      .buckets = 1 << classes[npb->class].log_buckets,
                      .values = 1 << classes[npb->class].log_values,
                      .shift = classes[npb->class].log_values - classes[npb->class].log_buckets,
                      .mine = share_of((size_t)1 << classes[npb->class].log_keys, npb->size, npb->rank)};
    is->keys = reserve(is->mine.count, sizeof *is->keys);
    is->sorted = reserve(is->mine.count, sizeof *is->sorted);
    is->ranks = reserve((size_t)is->values + 1, sizeof *is->ranks);
    is->first = reserve((size_t)npb->size + 1, sizeof *is->first);
    make_keys(is);
    is->room = room_for(is);
    window_open(npb, npb->size, is->room * sizeof(int32_t), &is->window);
}

static void discard(struct is *is)
{
    window_close(&is->window);
    keel_local_free(is->keys);
    keel_local_free(is->sorted);
    keel_local_free(is->ranks);
    keel_local_free(is->first);
}

static bool fits(const struct npb *npb, struct npb_complaint *why)
{
    int most = 1 << classes[npb->class].log_buckets;
    return npb->size <= most || npb_complain(why, "class %c of IS has %d buckets of keys: not for %d ranks",
                                             npb_class_names[npb->class], most, npb->size);
}

static void run(struct npb *npb, struct outcome *out)
{
    struct is *is = reserve(1, sizeof *is);
    double all = (double)(1 << classes[npb->class].log_keys);
    prepare(npb, is);
    iterate(is, 1); /* whose time does not count */
    is->right = 0;
    npb_start(npb);
    for (int iteration = 1; iteration <= ITERATIONS; iteration++)
        iterate(is, iteration);
    npb_stop(npb, out);
    double ordered = (double)full_order(is), right = is->right;
    npb_sum(npb, &right, 1);
    discard(is);
    keel_local_free(is);

    snprintf(out->size, sizeof out->size, "%.0f keys", all);
    out->iterations = ITERATIONS;
    out->mops = 1e-6 * ITERATIONS * all / out->seconds;
    outcome_add(out, "right ranks", right, ITERATIONS * PROBES, 0);
    outcome_add(out, "in order", ordered, all, 0);
}

const struct npb_kernel npb_is = {"is", fits, run};
