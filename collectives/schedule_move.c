/* Broadcast, gather, scatter, allgather, alltoall: what moves bytes without looking at them. */
#include "collectives/schedule_int.h"

enum { PIPELINE_CHUNK = 64 * 1024 };

/* ------------------------------------------------------------------------------------------------ broadcast */

/* Binomial tree: member i has its data from i without its lowest bit, and passes it on, the farthest first. */
void part_bcast(struct schedule *s, const struct team *t, struct schedule_region data, size_t len)
{
    int mask = 1;
    while (mask < t->n && !(t->me & mask))
        mask <<= 1;
    if (t->me)
        add_recv(s, t, t->me - mask, 0, data, len);
    for (mask >>= 1; mask; mask >>= 1)
        if (t->me + mask < t->n)
            add_send(s, t, t->me + mask, 0, data, len);
}

static int at_most(int a, int b)
{
    return a < b ? a : b;
}

/* The bytes of chunks lo..hi-1 of n */
static struct schedule_block chunks(size_t len, int n, int lo, int hi)
{
    struct schedule_block first = chunk_of(len, 1, n, lo), last = chunk_of(len, 1, n, hi - 1);
    return (struct schedule_block){first.at, last.at + last.len - first.at};
}

/* Each gets its chunk over the binomial tree, then all pass chunks round: two lengths of bytes through everybody, at
 * any n. */
static void scatter_ring(struct schedule *s, const struct team *t, struct schedule_region data, size_t len)
{
    int mask = 1;
    while (mask < t->n && !(t->me & mask))
        mask <<= 1;
    struct schedule_block b = chunks(len, t->n, t->me, at_most(t->me + mask, t->n));
    if (t->me)
        add_recv(s, t, t->me - mask, 0, offset(data, b.at), b.len);
    for (mask >>= 1; mask; mask >>= 1) {
        if (t->me + mask >= t->n)
            continue;
        b = chunks(len, t->n, t->me + mask, at_most(t->me + 2 * mask, t->n));
        add_send(s, t, t->me + mask, 0, offset(data, b.at), b.len);
    }
    struct team ring = *t;
    ring.tag += PART;
    part_ring_allgather(s, &ring, data, len, 1);
}

void part_ring_allgather(struct schedule *s, const struct team *t, struct schedule_region data, size_t len, size_t unit)
{
    int n = t->n;
    for (int k = 0; k < n - 1; k++) {
        struct schedule_block b = chunk_of(len, unit, n, (t->me - k + n) % n);
        add_send(s, t, (t->me + 1) % n, (uint32_t)k, offset(data, b.at), b.len);
        b = chunk_of(len, unit, n, (t->me - k - 1 + n) % n);
        add_recv(s, t, (t->me - 1 + n) % n, (uint32_t)k, offset(data, b.at), b.len);
    }
}

/* A chain: while one chunk is received, the one before is on its way to the next. */
static void pipeline(struct schedule *s, const struct team *t, struct schedule_region data, size_t len)
{
    uint32_t tag = 0;
    for (size_t at = 0; at < len; at += PIPELINE_CHUNK, tag++) {
        size_t n = len - at < PIPELINE_CHUNK ? len - at : PIPELINE_CHUNK;
        if (t->me)
            add_recv(s, t, t->me - 1, tag, offset(data, at), n);
        if (t->me + 1 < t->n)
            add_send(s, t, t->me + 1, tag, offset(data, at), n);
    }
}

void build_bcast(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    struct team t = team_all(shape, shape->root, 0);
    struct schedule_region data = region(SCHEDULE_OUT, 0);
    if (a == SCHEDULE_SCATTER_RING)
        scatter_ring(s, &t, data, shape->len);
    else if (a == SCHEDULE_PIPELINE)
        pipeline(s, &t, data, shape->len);
    else
        part_bcast(s, &t, data, shape->len);
}

/* ------------------------------------------------------------------------------------------------ gather, scatter */

/* Blocks of their own lengths: each side has its own idea of the length, so what has none is sent, too. Otherwise one
 * would wait for what the other does not send. */
static void send_block(struct schedule *s, const struct team *t, const struct schedule_shape *shape, int to,
                       struct schedule_region from, size_t len)
{
    if (shape->uniform)
        add_send(s, t, to, 0, from, len);
    else
        add_send_always(s, t, to, 0, from, len);
}

static void recv_block(struct schedule *s, const struct team *t, const struct schedule_shape *shape, int from,
                       struct schedule_region to, size_t len)
{
    if (shape->uniform)
        add_recv(s, t, from, 0, to, len);
    else
        add_recv_always(s, t, from, 0, to, len);
}

static void gather_linear(struct schedule *s, const struct team *t, const struct schedule_shape *shape)
{
    if (t->me) {
        send_block(s, t, shape, 0, region(SCHEDULE_IN, 0), shape->mine);
        return;
    }
    for (int i = 0; i < t->n; i++) {
        const struct schedule_block *b = &shape->out[(i + shape->root) % t->n];
        if (i)
            recv_block(s, t, shape, i, region(SCHEDULE_OUT, b->at), b->len);
        else
            add_copy(s, region(SCHEDULE_OUT, b->at), region(SCHEDULE_IN, 0), b->len);
    }
}

/* How many members are in the binomial subtree below me, myself included, and the bit that leads to my parent. */
static int subtree(const struct team *t, int *mask)
{
    *mask = 1;
    while (*mask < t->n && !(t->me & *mask))
        *mask <<= 1;
    return at_most(*mask, t->n - t->me);
}

void build_gather(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    struct team t = team_all(shape, shape->root, 0);
    if (a == SCHEDULE_LINEAR) {
        gather_linear(s, &t, shape);
        return;
    }
    int up, below = subtree(&t, &up);
    size_t b = shape->mine;
    struct schedule_region tmp = add_tmp(s, b * (size_t)below);
    add_copy(s, tmp, region(SCHEDULE_IN, 0), b);
    for (int mask = 1; mask < up && t.me + mask < t.n; mask <<= 1)
        add_recv(s, &t, t.me + mask, 0, offset(tmp, (size_t)mask * b), b * (size_t)at_most(mask, t.n - t.me - mask));
    if (t.me)
        add_send(s, &t, t.me - up, 0, tmp, b * (size_t)below);
    for (int i = 0; i < t.n && !t.me; i++)
        add_copy(s, region(SCHEDULE_OUT, shape->out[(i + shape->root) % t.n].at), offset(tmp, (size_t)i * b), b);
}

static void scatter_linear(struct schedule *s, const struct team *t, const struct schedule_shape *shape)
{
    if (t->me) {
        recv_block(s, t, shape, 0, region(SCHEDULE_OUT, 0), shape->mine);
        return;
    }
    for (int i = 1; i <= t->n; i++) {
        const struct schedule_block *b = &shape->in[(i + shape->root) % t->n];
        if (i < t->n)
            send_block(s, t, shape, i, region(SCHEDULE_IN, b->at), b->len);
        else
            add_copy(s, region(SCHEDULE_OUT, 0), region(SCHEDULE_IN, b->at), b->len);
    }
}

void build_scatter(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    struct team t = team_all(shape, shape->root, 0);
    if (a == SCHEDULE_LINEAR) {
        scatter_linear(s, &t, shape);
        return;
    }
    int up, below = subtree(&t, &up);
    size_t b = shape->mine;
    struct schedule_region tmp = add_tmp(s, b * (size_t)below);
    for (int i = 0; i < t.n && !t.me; i++)
        add_copy(s, offset(tmp, (size_t)i * b), region(SCHEDULE_IN, shape->in[(i + shape->root) % t.n].at), b);
    if (t.me)
        add_recv(s, &t, t.me - up, 0, tmp, b * (size_t)below);
    for (int mask = up >> 1; mask; mask >>= 1)
        if (t.me + mask < t.n)
            add_send(s, &t, t.me + mask, 0, offset(tmp, (size_t)mask * b),
                     b * (size_t)at_most(mask, t.n - t.me - mask));
    add_copy(s, region(SCHEDULE_OUT, 0), tmp, b);
}

/* ------------------------------------------------------------------------------------------------ allgather */

/* After step k each has the blocks of 2^(k+1) members from itself on, itself first. Any number of members. */
static void allgather_bruck(struct schedule *s, const struct team *t, const struct schedule_shape *shape)
{
    int n = t->n;
    size_t b = shape->mine;
    struct schedule_region tmp = add_tmp(s, b * (size_t)n);
    add_copy(s, tmp, region(SCHEDULE_IN, 0), b);
    uint32_t tag = 0;
    for (int have = 1; have < n; have *= 2, tag++) {
        size_t len = b * (size_t)at_most(have, n - have);
        add_send(s, t, (t->me - have + n) % n, tag, tmp, len);
        add_recv(s, t, (t->me + have) % n, tag, offset(tmp, (size_t)have * b), len);
    }
    for (int i = 0; i < n; i++)
        add_copy(s, region(SCHEDULE_OUT, shape->out[(t->me + i) % n].at), offset(tmp, (size_t)i * b), b);
}

void build_allgather(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    struct team t = team_all(shape, 0, 0);
    int n = t.n;
    if (a == SCHEDULE_BRUCK) {
        allgather_bruck(s, &t, shape);
        return;
    }
    add_copy(s, region(SCHEDULE_OUT, shape->out[t.me].at), region(SCHEDULE_IN, 0), shape->mine);
    for (int k = 0; k < n - 1; k++) {
        const struct schedule_block *b = &shape->out[(t.me - k + n) % n];
        add_send(s, &t, (t.me + 1) % n, (uint32_t)k, region(SCHEDULE_OUT, b->at), b->len);
        b = &shape->out[(t.me - k - 1 + n) % n];
        add_recv(s, &t, (t.me - 1 + n) % n, (uint32_t)k, region(SCHEDULE_OUT, b->at), b->len);
    }
}

/* ------------------------------------------------------------------------------------------------ alltoall */

/* Block i of the rotated vector has i places to go; in step k those go on whose number has bit k. log2 n steps, each
 * with half of all bytes: good for small blocks. */
static void alltoall_bruck(struct schedule *s, const struct team *t, const struct schedule_shape *shape)
{
    int n = t->n;
    size_t b = shape->in[0].len;
    struct schedule_region blocks = add_tmp(s, b * (size_t)n), packed = add_tmp(s, b * (size_t)n),
                           arrived = add_tmp(s, b * (size_t)n);
    for (int i = 0; i < n; i++)
        add_copy(s, offset(blocks, (size_t)i * b), region(SCHEDULE_IN, shape->in[(t->me + i) % n].at), b);
    uint32_t tag = 0;
    for (int bit = 1; bit < n; bit *= 2, tag++) {
        size_t k = 0;
        for (int i = bit; i < n; i++)
            if (i & bit)
                add_copy(s, offset(packed, k++ * b), offset(blocks, (size_t)i * b), b);
        add_send(s, t, (t->me + bit) % n, tag, packed, k * b);
        add_recv(s, t, (t->me - bit + n) % n, tag, arrived, k * b);
        k = 0;
        for (int i = bit; i < n; i++)
            if (i & bit)
                add_copy(s, offset(blocks, (size_t)i * b), offset(arrived, k++ * b), b);
    }
    for (int i = 0; i < n; i++)
        add_copy(s, region(SCHEDULE_OUT, shape->out[(t->me - i + n) % n].at), offset(blocks, (size_t)i * b), b);
}

void build_alltoall(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    struct team t = team_all(shape, 0, 0);
    int n = t.n;
    if (a == SCHEDULE_BRUCK) {
        alltoall_bruck(s, &t, shape);
        return;
    }
    const struct schedule_block *in = shape->in, *out = shape->out;
    size_t own = in[t.me].len < out[t.me].len ? in[t.me].len : out[t.me].len;
    add_copy(s, region(SCHEDULE_OUT, out[t.me].at), region(SCHEDULE_IN, in[t.me].at), own);
    for (int k = 1; k < n; k++) {
        int to = (t.me + k) % n, from = (t.me - k + n) % n;
        send_block(s, &t, shape, to, region(SCHEDULE_IN, in[to].at), in[to].len);
        recv_block(s, &t, shape, from, region(SCHEDULE_OUT, out[from].at), out[from].len);
    }
}
