/* Reductions. Operands are combined left with right in the order of team members wherever it says so; the same list of
 * members gives the same tree of operations, and so the same bits. */
#include "collectives/schedule_int.h"

static int power_of_two_below(int n)
{
    int p = 1;
    while (2 * p <= n)
        p *= 2;
    return p;
}

/* ------------------------------------------------------------------------------------------------ parts */

/* Binomial tree to member 0, in order: member i collects from i + 1, i + 2, i + 4, ... what those have collected. */
void part_reduce(struct schedule *s, const struct team *t, struct schedule_region data, size_t len)
{
    bool collects = !(t->me & 1) && t->me + 1 < t->n;
    struct schedule_region tmp = add_tmp(s, collects ? len : 0);
    int mask;
    for (mask = 1; mask < t->n && !(t->me & mask); mask <<= 1) {
        if (t->me + mask >= t->n)
            continue;
        add_recv(s, t, t->me + mask, 0, tmp, len);
        add_combine(s, data, tmp, false, len);
    }
    if (t->me)
        add_send(s, t, t->me - mask, 0, data, len);
}

/* Where a team is no power of two: the first 2 * rest members fold in pairs, the odd ones go on. Member of the power of
 * two, or -1. */
static int fold(struct schedule *s, const struct team *t, struct schedule_region data, struct schedule_region tmp,
                size_t len)
{
    int rest = t->n - power_of_two_below(t->n);
    if (t->me >= 2 * rest)
        return t->me - rest;
    if (!(t->me & 1)) {
        add_send(s, t, t->me + 1, 0, data, len);
        return -1;
    }
    add_recv(s, t, t->me - 1, 0, tmp, len);
    add_combine(s, data, tmp, true, len);
    return t->me / 2;
}

static int unfolded(const struct team *t, int folded)
{
    int rest = t->n - power_of_two_below(t->n);
    return folded < rest ? 2 * folded + 1 : folded + rest;
}

static void unfold(struct schedule *s, const struct team *t, struct schedule_region data, size_t len)
{
    int rest = t->n - power_of_two_below(t->n);
    if (t->me >= 2 * rest)
        return;
    if (t->me & 1)
        add_send(s, t, t->me - 1, 1, data, len);
    else
        add_recv(s, t, t->me + 1, 1, data, len);
}

enum { STEP_TAGS = 2 }; /* 0 and 1 are the fold's */

/* Recursive doubling. Both sides of an exchange compute (lower, upper), so the bits are the same everywhere. */
void part_allreduce(struct schedule *s, const struct team *t, struct schedule_region data, size_t len)
{
    if (t->n == 1)
        return;
    struct schedule_region tmp = add_tmp(s, len);
    int me = fold(s, t, data, tmp, len), p = power_of_two_below(t->n);
    uint32_t tag = STEP_TAGS;
    for (int mask = 1; me >= 0 && mask < p; mask <<= 1, tag++) {
        int peer = unfolded(t, me ^ mask);
        add_send(s, t, peer, tag, data, len);
        add_recv(s, t, peer, tag, tmp, len);
        add_combine(s, data, tmp, me & mask, len);
    }
    unfold(s, t, data, len);
}

/* The bytes of chunks lo..hi-1 of p */
static struct schedule_block span(const struct schedule_shape *shape, int p, int lo, int hi)
{
    struct schedule_block a = chunk_of(shape->len, shape->unit, p, lo),
                          z = chunk_of(shape->len, shape->unit, p, hi - 1);
    return (struct schedule_block){a.at, z.at + z.len - a.at};
}

/* Rabenseifner: halve the vector with each exchange until everybody has the sum of its chunk, then collect the chunks
 * the other way round. Twice log2 n steps, two lengths of bytes. Neighbours exchange first, which keeps the order. */
static void rabenseifner(struct schedule *s, const struct team *t, const struct schedule_shape *shape)
{
    struct schedule_region data = region(SCHEDULE_OUT, 0), tmp = add_tmp(s, shape->len);
    int p = power_of_two_below(t->n), lo = 0, hi = p;
    if (p < t->n || t->n == 1)
        add_copy(s, data, region(SCHEDULE_IN, 0), shape->len);
    int me = fold(s, t, data, tmp, shape->len);
    int lows[32] = {0}, highs[32] = {0}, depth = 0;
    uint32_t tag = STEP_TAGS;
    bool whole = p < t->n; /* else only what is kept is copied, while the rest is on its way */
    for (int mask = 1; me >= 0 && mask < p; mask <<= 1, tag++) {
        int peer = unfolded(t, me ^ mask), mid = (lo + hi) / 2;
        bool upper = me & mask;
        struct schedule_block low = span(shape, p, lo, mid), high = span(shape, p, mid, hi);
        struct schedule_block give = upper ? low : high, keep = upper ? high : low;
        lows[depth] = lo;
        highs[depth++] = hi;
        lo = upper ? mid : lo;
        hi = upper ? hi : mid;
        bool first = mask == 1 && !whole;
        add_send(s, t, peer, tag, first ? region(SCHEDULE_IN, give.at) : offset(data, give.at), give.len);
        if (first)
            add_copy(s, offset(data, keep.at), region(SCHEDULE_IN, keep.at), keep.len);
        add_recv(s, t, peer, tag, offset(tmp, keep.at), keep.len);
        add_combine(s, offset(data, keep.at), offset(tmp, keep.at), upper, keep.len);
    }
    for (int mask = p / 2; me >= 0 && mask; mask >>= 1, tag++) {
        int peer = unfolded(t, me ^ mask);
        int from = lows[--depth], to = highs[depth];
        struct schedule_block have = span(shape, p, lo, hi);
        struct schedule_block get = lo == from ? span(shape, p, hi, to) : span(shape, p, from, lo);
        add_send(s, t, peer, tag, offset(data, have.at), have.len);
        add_recv(s, t, peer, tag, offset(data, get.at), get.len);
        lo = from;
        hi = to;
    }
    unfold(s, t, data, shape->len);
}

/* Ring: chunk c starts at member c + 1 - shift and is whole after n - 1 steps at member c - shift. data holds the
 * sums. */
static void ring_reduce_scatter(struct schedule *s, const struct team *t, const struct schedule_shape *shape)
{
    int n = t->n;
    struct schedule_region data = region(SCHEDULE_OUT, 0),
                           tmp = add_tmp(s, chunk_of(shape->len, shape->unit, n, 0).len);
    for (int k = 0; k < n - 1; k++) {
        struct schedule_block b = chunk_of(shape->len, shape->unit, n, (t->me - k - 1 + n) % n);
        add_send(s, t, (t->me + 1) % n, (uint32_t)k, offset(data, b.at), b.len);
        b = chunk_of(shape->len, shape->unit, n, (t->me - k - 2 + 2 * n) % n);
        add_recv(s, t, (t->me - 1 + n) % n, (uint32_t)k, tmp, b.len);
        add_combine(s, offset(data, b.at), tmp, true, b.len);
    }
}

/* ------------------------------------------------------------------------------------------------ kinds */

void build_reduce(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    struct schedule_region data = region(SCHEDULE_OUT, 0);
    struct team t = team_all(shape, shape->ordered ? 0 : shape->root, 0);
    add_copy(s, data, region(SCHEDULE_IN, 0), shape->len);
    if (a == SCHEDULE_RING) { /* chunks are summed round the ring, then sent to the root */
        ring_reduce_scatter(s, &t, shape);
        t.tag += PART;
        for (int i = 0; i < t.n; i++) {
            struct schedule_block b = chunk_of(shape->len, shape->unit, t.n, i);
            if (!t.me && i)
                add_recv(s, &t, i, 0, offset(data, b.at), b.len);
            else if (t.me && i == t.me)
                add_send(s, &t, 0, 0, offset(data, b.at), b.len);
        }
        return;
    }
    part_reduce(s, &t, data, shape->len);
    if (t.first != shape->root) { /* kept in order up to place 0 */
        if (!t.me)
            add_send(s, &t, shape->root, PART, data, shape->len);
        else if (shape->me == shape->root)
            add_recv(s, &t, 0, PART, data, shape->len);
    }
}

void build_allreduce(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    struct schedule_region data = region(SCHEDULE_OUT, 0);
    struct team t = team_all(shape, 0, 0);
    if (a != SCHEDULE_RABENSEIFNER)
        add_copy(s, data, region(SCHEDULE_IN, 0), shape->len);
    if (a == SCHEDULE_RABENSEIFNER) {
        rabenseifner(s, &t, shape);
    } else if (a == SCHEDULE_RING) {
        ring_reduce_scatter(s, &t, shape);
        t.tag += PART;
        part_ring_allgather(s, &t, data, shape->len, shape->unit);
    } else {
        part_allreduce(s, &t, data, shape->len);
    }
}

/* The partial sum of a chunk travels round; each adds its own. Two chunks of memory, whatever the number of members. */
static void reduce_scatter_ring(struct schedule *s, const struct team *t, const struct schedule_shape *shape)
{
    int n = t->n;
    size_t longest = 0;
    for (int i = 0; i < n; i++)
        longest = shape->in[i].len > longest ? shape->in[i].len : longest;
    struct schedule_region part[2] = {add_tmp(s, longest), add_tmp(s, longest)};
    const struct schedule_block *b = &shape->in[(t->me - 1 + n) % n];
    add_copy(s, part[0], region(SCHEDULE_IN, b->at), b->len);
    for (int k = 0; k < n - 1; k++) {
        add_send(s, t, (t->me + 1) % n, (uint32_t)k, part[k & 1], b->len);
        b = &shape->in[(t->me - k - 2 + 2 * n) % n];
        add_recv(s, t, (t->me - 1 + n) % n, (uint32_t)k, part[~k & 1], b->len);
        add_combine(s, part[~k & 1], region(SCHEDULE_IN, b->at), false, b->len);
    }
    add_copy(s, region(SCHEDULE_OUT, 0), part[(n - 1) & 1], shape->in[t->me].len);
}

void build_reduce_scatter(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    struct team t = team_all(shape, 0, 0);
    if (a == SCHEDULE_RING) {
        reduce_scatter_ring(s, &t, shape);
        return;
    }
    struct schedule_region all = add_tmp(s, shape->len);
    add_copy(s, all, region(SCHEDULE_IN, 0), shape->len);
    part_allreduce(s, &t, all, shape->len);
    add_copy(s, region(SCHEDULE_OUT, 0), offset(all, shape->in[t.me].at), shape->in[t.me].len);
}

/* Recursive doubling: `part` is the sum of the own block of 2^k places, OUT the sum of those of the block before us. */
void build_scan(struct schedule *s, const struct schedule_shape *shape)
{
    struct team t = team_all(shape, 0, 0);
    struct schedule_region out = region(SCHEDULE_OUT, 0), in = region(SCHEDULE_IN, 0);
    struct schedule_region part = add_tmp(s, shape->len), got = add_tmp(s, shape->len);
    bool written = shape->kind == SCHEDULE_SCAN;
    add_copy(s, part, in, shape->len);
    if (written)
        add_copy(s, out, in, shape->len);
    uint32_t tag = 0;
    for (int mask = 1; mask < t.n; mask <<= 1, tag++) {
        int peer = t.me ^ mask;
        if (peer >= t.n)
            continue;
        add_send(s, &t, peer, tag, part, shape->len);
        add_recv(s, &t, peer, tag, got, shape->len);
        add_combine(s, part, got, peer < t.me, shape->len);
        if (peer > t.me)
            continue;
        if (written)
            add_combine(s, out, got, true, shape->len);
        else
            add_copy(s, out, got, shape->len);
        written = true;
    }
}
