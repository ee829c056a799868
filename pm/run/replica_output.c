#include "pm/run/replica_output_int.h"

#include <stdlib.h>
#include <string.h>

struct replica_output *replica_output_create(const struct replica_map *map, const struct replica_output_events *events,
                                             size_t kept_max)
{
    struct replica_output *o = pm_alloc(sizeof *o);
    *o = (struct replica_output){.map = map,
                                 .events = *events,
                                 .stream = pm_alloc((size_t)map->ranks * 2 * sizeof *o->stream),
                                 .kept_max = kept_max};
    for (int i = 0; i < 2 * map->ranks; i++)
        o->stream[i].lives = (1U << map->replicas) - 1;
    return o;
}

void replica_output_destroy(struct replica_output *o)
{
    if (!o)
        return;
    for (int i = 0; i < 2 * o->map->ranks; i++) {
        bytes_free(&o->stream[i].kept);
        for (int s = 0; s < REPLICAS_MAX; s++)
            bytes_free(&o->stream[i].early[s]);
    }
    free(o->stream);
    free(o);
}

static bool counts(const struct stream *k, int set)
{
    return k->lives >> set & 1;
}

static int leading(const struct stream *k)
{
    return __builtin_ctz(k->lives);
}

static uint64_t end_of(const struct stream *k)
{
    return k->base + k->kept.len;
}

static void drop(struct replica_output *o, struct stream *k, size_t len)
{
    bytes_drop(&k->kept, len);
    k->base += len;
    o->kept -= len;
}

/* Nobody comes there any more. */
static void trim(struct replica_output *o, struct stream *k)
{
    uint64_t lowest = UINT64_MAX;
    for (int s = 0; s < o->map->replicas; s++)
        if (counts(k, s) && k->at[s] < lowest)
            lowest = k->at[s];
    if (lowest > k->base)
        drop(o, k, lowest < end_of(k) ? (size_t)(lowest - k->base) : k->kept.len);
}

static void compare(struct replica_output *o, struct stream *k, int rank, int stream, int set, const uint8_t *data,
                    size_t len)
{
    uint64_t from = k->at[set] > k->base ? k->at[set] : k->base, to = k->at[set] + len;
    to = to < end_of(k) ? to : end_of(k);
    if (k->differs || from >= to)
        return;
    const uint8_t *there = k->kept.data + (from - k->base), *here = data + (from - k->at[set]);
    size_t i = 0, n = (size_t)(to - from);
    if (memcmp(there, here, n) == 0)
        return;
    while (there[i] == here[i])
        i++;
    k->differs = true;
    o->events.differs(o->events.user, rank, stream, set, from + i);
}

/* The bytes of who leads are those that count. */
static void overwrite(struct stream *k, uint64_t at, const uint8_t *data, size_t len)
{
    uint64_t from = at > k->base ? at : k->base, to = at + len < end_of(k) ? at + len : end_of(k);
    if (from < to)
        memcpy(k->kept.data + (from - k->base), data + (from - at), (size_t)(to - from));
}

static void keep(struct replica_output *o, struct stream *k, uint64_t at, const uint8_t *data, size_t len)
{
    uint64_t end = end_of(k);
    if (at + len <= end)
        return;
    size_t skip = end > at ? (size_t)(end - at) : 0, more = len - skip;
    if (o->kept + more > o->kept_max) {
        drop(o, k, k->kept.len);
        k->base = at + len;
        return;
    }
    bytes_append(&k->kept, data + skip, more);
    o->kept += more;
}

static void take(struct replica_output *o, struct stream *k, int rank, int stream, int set, const uint8_t *data,
                 size_t len)
{
    uint64_t at = k->at[set];
    compare(o, k, rank, stream, set, data, len);
    if (set == leading(k))
        overwrite(k, at, data, len);
    keep(o, k, at, data, len);
    k->at[set] = at + len;
    if (set == leading(k) && at + len > k->shown) {
        size_t skip = (size_t)(k->shown - at);
        k->shown = at + len;
        o->events.show(o->events.user, rank, stream, data + skip, len - skip);
    }
    trim(o, k);
}

/* What is not shown yet of what the leading set has written. */
static void catch_up(struct replica_output *o, struct stream *k, int rank, int stream)
{
    uint64_t to = k->at[leading(k)];
    if (k->shown < k->base && k->shown < to) {
        uint64_t known = k->base < to ? k->base : to;
        o->events.lost(o->events.user, rank, stream, k->shown, known - k->shown);
        k->shown = known;
    }
    if (k->shown < to) {
        const uint8_t *from = k->kept.data + (k->shown - k->base);
        size_t len = (size_t)(to - k->shown);
        k->shown = to;
        o->events.show(o->events.user, rank, stream, from, len);
    }
}

/* ---- sets that join ---- */

/* Nobody will bring what lies between. */
static void begin_behind(struct replica_output *o, struct stream *k, int rank, int stream, uint64_t at)
{
    drop(o, k, k->kept.len);
    k->base = at;
    if (at > k->shown)
        o->events.lost(o->events.user, rank, stream, k->shown, at - k->shown);
    k->shown = at > k->shown ? at : k->shown;
}

static void join(struct replica_output *o, struct stream *k, int rank, int stream, int set)
{
    struct bytes early = k->early[set];
    k->early[set] = (struct bytes){0};
    k->joins &= ~(1U << set);
    k->lives = (k->lives & ~o->retired) | 1U << set;
    if (k->at[set] > end_of(k))
        begin_behind(o, k, rank, stream, k->at[set]);
    catch_up(o, k, rank, stream);
    if (early.len)
        take(o, k, rank, stream, set, early.data, early.len);
    bytes_free(&early);
}

/* Who begins where another one has come to. What one that is retired had written is still on its way: it is waited for,
 * to the end of the job, or until there is too much to keep. */
static void let_join(struct replica_output *o, struct stream *k, int rank, int stream, bool all)
{
    for (int s = 0; s < o->map->replicas; s++)
        if (k->joins >> s & 1 && (all || k->at[s] <= end_of(k) || k->early[s].len > o->kept_max))
            join(o, k, rank, stream, s);
}

void replica_output_take(struct replica_output *o, int native, int stream, const uint8_t *data, size_t len)
{
    struct replica who = replica_of(o->map, native);
    struct stream *k = &o->stream[2 * who.rank + stream];
    if (k->joins >> who.set & 1)
        bytes_append(&k->early[who.set], data, len);
    if (!counts(k, who.set))
        return;
    take(o, k, who.rank, stream, who.set, data, len);
    let_join(o, k, who.rank, stream, false);
}

void replica_output_join(struct replica_output *o, int native, int stream, uint64_t at)
{
    struct replica who = replica_of(o->map, native);
    struct stream *k = &o->stream[2 * who.rank + stream];
    o->retired &= ~(1U << who.set);
    k->lives &= ~(1U << who.set); /* where the last bytes were those of the process before */
    k->joins |= 1U << who.set;
    k->at[who.set] = at;
    let_join(o, k, who.rank, stream, false);
}

/* The last one of a rank stays. */
static void leave_out(struct replica_output *o, int rank, int set)
{
    for (int stream = 0; stream < 2; stream++) {
        struct stream *k = &o->stream[2 * rank + stream];
        k->joins &= ~(1U << set);
        bytes_free(&k->early[set]);
        let_join(o, k, rank, stream, false);
        if (!counts(k, set) || !(k->lives & ~(1U << set)))
            continue;
        k->lives &= ~(1U << set);
        catch_up(o, k, rank, stream);
        trim(o, k);
    }
}

void replica_output_retire(struct replica_output *o, int set)
{
    o->retired |= 1U << set;
    for (int rank = 0; rank < o->map->ranks; rank++)
        leave_out(o, rank, set);
}

void replica_output_lose(struct replica_output *o, int native)
{
    struct replica who = replica_of(o->map, native);
    leave_out(o, who.rank, who.set);
}

void replica_output_settle(struct replica_output *o)
{
    for (int i = 0; i < 2 * o->map->ranks; i++)
        let_join(o, &o->stream[i], i / 2, i % 2, true);
}

void replica_output_finish(struct replica_output *o)
{
    for (int i = 0; i < 2 * o->map->ranks; i++) {
        struct stream *k = &o->stream[i];
        int lead = leading(k);
        for (int s = lead + 1; s < o->map->replicas && !k->differs; s++)
            if (counts(k, s) && k->at[s] != k->at[lead]) {
                k->differs = true;
                o->events.differs(o->events.user, i / 2, i % 2, s, k->at[s] < k->at[lead] ? k->at[s] : k->at[lead]);
            }
    }
}
