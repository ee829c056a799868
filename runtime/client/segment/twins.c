#include "runtime/client/segment/twins.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/client/op/near.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/shaped.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/marks.h"

/* Of a flush: runs and bytes of a put, puts on their way, and their bytes: each is to be over within the client's
 * time-out, also where others wait for the same agents, and there is no end to what a program may have stored. */
enum { BATCH = 1024, RUN_BYTES = 65536, PUT_BYTES = 1 << 20, UNDER_WAY_MAX = 64, UNDER_WAY_BYTES = 8 << 20 };
enum { CLEAN, TAKING, DIRTY, FLUSHING, LEFT }; /* LEFT: as FLUSHING, but for what living neighbours are bringing */

/* What the other copies depended on when a granule's twin was taken. */
struct since {
    uint64_t tag; /* of the route */
    uint32_t mark;
    bool alone; /* nobody else had stored there what only this copy has */
};

/* Runs of words of one rank's part go together: many of them are short. */
struct flush {
    keel_handle handle;
    int begun;        /* puts of the handle, */
    size_t under_way; /* and their bytes */
    keel_status status;
    int rank;        /* whose the pieces are */
    bool neighbours; /* brings what was stored into the parts of living ranks, too */
    uint64_t dead;   /* bits of those of the slot whom nobody runs, as in holders */
    size_t n, bytes;
    keel_piece piece[BATCH];
};

keel_status twins_init(struct twins *t, struct client *c, keel_segment *s, uint8_t *own, uint8_t *twin)
{
    int slot = (int)page_rank(c->page, c->rank)->slot;
    size_t bytes = s->map_bytes[slot];
    *t = (struct twins){.client = c,
                        .segment = s,
                        .copyset = copyset_of(slot, s->redundancy),
                        .index = page_rank(c->page, c->rank)->index,
                        .bytes = bytes,
                        .granule = layout_piece_bytes(bytes),
                        .granules = layout_pieces(bytes),
                        .own = own,
                        .twin = twin};
    atomic_fetch_or(&c->segments.stores, 1u << s->redundancy);
    t->state = calloc(t->granules, sizeof *t->state);
    t->since = calloc(t->granules, sizeof *t->since);
    t->flush = malloc(sizeof *t->flush);
    return t->state && t->since && t->flush ? KEEL_OK : KEEL_ERR_NOMEM;
}

void twins_fini(struct twins *t)
{
    free((void *)t->state);
    free(t->since);
    free(t->flush);
    t->state = NULL;
    t->since = NULL;
    t->flush = NULL;
    t->segment = NULL;
}

static size_t granule_bytes(const struct twins *t, size_t g)
{
    return t->bytes - g * t->granule < t->granule ? t->bytes - g * t->granule : t->granule;
}

static bool protect(const struct twins *t, size_t g, bool on)
{
    return !t->protect || t->protect(t->user, g * t->granule, granule_bytes(t, g), on);
}

static struct since since_now(const struct twins *t, size_t g)
{
    return (struct since){.tag = page_tag(t->client->page, t->copyset),
                          .mark = atomic_load(&marks_of(t->own, t->bytes)[g])};
}

/* The other copies hold what the twin does. */
static bool twin_holds(const struct twins *t, size_t g)
{
    struct since now = since_now(t, g), then = t->since[g];
    return then.alone && then.tag == now.tag && then.mark == now.mark && route_mode(now.tag) == ROUTE_DIRECT;
}

bool twins_take(struct twins *t, size_t at)
{
    size_t g = at / t->granule;
    uint8_t was = CLEAN;
    if (!atomic_compare_exchange_strong(&t->state[g], &was, TAKING))
        return true;
    t->since[g] = since_now(t, g); /* before the bytes are read */
    t->since[g].alone = holders_add(&holders_of(t->own, t->bytes)[g], t->index);
    memcpy(t->twin + g * t->granule, t->own + g * t->granule, granule_bytes(t, g));
    bool good = protect(t, g, false);
    atomic_store(&t->state[g], DIRTY);
    return good;
}

bool twins_clean(const struct twins *t)
{
    for (size_t g = 0; g < t->granules; g++)
        if (atomic_load(&t->state[g]) != CLEAN)
            return false;
    return true;
}

/* ---- flush ---- */

static void flush_wait(struct twins *t)
{
    struct flush *f = t->flush;
    keel_status status = f->begun ? rma_wait(t->client, &f->handle) : KEEL_OK;
    if (f->status == KEEL_OK)
        f->status = status;
    f->begun = 0;
    f->under_way = 0;
}

static void flush_pieces(struct twins *t)
{
    struct flush *f = t->flush;
    if (!f->n)
        return;
    const struct shaped how = {.kind = OP_PUT, .handle = &f->handle};
    keel_status status = f->begun ? KEEL_OK : rma_aggregate(t->client, &f->handle);
    if (status == KEEL_OK)
        status = shaped_vector(t->client, &how, t->segment, f->rank, f->piece, f->n);
    if (status == KEEL_OK)
        f->begun++;
    else if (f->status == KEEL_OK)
        f->status = status;
    f->under_way += f->bytes;
    f->n = f->bytes = 0;
    if (f->begun == UNDER_WAY_MAX || f->under_way >= UNDER_WAY_BYTES)
        flush_wait(t);
}

/* Bytes of the copy, in the part of the rank. */
static void flush_put(struct twins *t, int rank, size_t from, size_t to)
{
    struct flush *f = t->flush;
    if (f->n == BATCH || f->bytes >= PUT_BYTES || f->rank != rank)
        flush_pieces(t);
    f->rank = rank;
    f->bytes += to - from;
    f->piece[f->n++] = (keel_piece){from - (size_t)t->segment->part_at[rank], t->own + from, to - from};
}

static uint64_t word_at(const uint8_t *p)
{
    return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_RELAXED);
}

/* Words from `at` on that are all to be put, or differ from their twins, in runs. */
static void flush_words(struct twins *t, int rank, size_t at, size_t end, bool all)
{
    while (at < end) {
        if (!all && word_at(t->own + at) == word_at(t->twin + at)) {
            at += 8;
            continue;
        }
        size_t from = at;
        while (at < end && at - from < RUN_BYTES && (all || word_at(t->own + at) != word_at(t->twin + at)))
            at += 8;
        flush_put(t, rank, from, at < end ? at : end); /* the last word of a part may be shorter */
    }
}

static bool is_dead(const struct twins *t, int rank)
{
    return (int32_t)(atomic_load(&page_rank(t->client->page, rank)->where) >> 32) < 0;
}

/* What a living neighbour stores now, into its part of the granule, would be overwritten unseen in the copy here by
 * what was put for it: it brings its part itself, unless the caller says that none of them stores. For who is dead
 * nobody else does. */
static bool flush_brings(const struct twins *t, int rank)
{
    bool here = page_rank(t->client->page, rank)->slot == page_rank(t->client->page, t->client->rank)->slot;
    return rank == t->client->rank || (here && (is_dead(t, rank) || t->flush->neighbours));
}

/* It has stored into the granule, and has not brought its part of it yet. */
static bool neighbour_holds(const struct twins *t, size_t g, int rank)
{
    uint32_t index = page_rank(t->client->page, rank)->index;
    return rank != t->client->rank && index < HOLDERS_LAST && !is_dead(t, rank) &&
           atomic_load(&holders_of(t->own, t->bytes)[g]) >> index & 1;
}

/* How much of the granule is in the rank's part: [*from, *to). */
static bool share_of(const struct twins *t, size_t g, int rank, size_t *from, size_t *to)
{
    size_t part = (size_t)t->segment->part_at[rank], end = part + (size_t)t->segment->part_bytes[rank];
    *from = g * t->granule > part ? g * t->granule : part;
    *to = g * t->granule + granule_bytes(t, g) < end ? g * t->granule + granule_bytes(t, g) : end;
    return *from < *to;
}

/* The words of a granule that other copies may not have. Copies are whole pages, and parts begin with a word: so do
 * granules. Where all flush at once, a neighbour that has stored there brings its part, with what others stored
 * there. */
static void flush_granule(struct twins *t, size_t g)
{
    bool all = !twin_holds(t, g);
    size_t from, to;
    for (int r = 0; r < t->client->size; r++) {
        if (!share_of(t, g, r, &from, &to) || !flush_brings(t, r))
            continue;
        if (t->flush->neighbours && neighbour_holds(t, g, r))
            atomic_store(&t->state[g], LEFT);
        else
            flush_words(t, r, from, to, all);
    }
}

/* What was left to neighbours, where they have not brought it in a while, or have died. */
static void flush_left(struct twins *t, size_t g)
{
    enum { TURNS = 2000 }; /* of the processor's others: they are at it, and the caller would wait for them anyhow */
    size_t from, to;
    for (int r = 0; r < t->client->size; r++) {
        if (r == t->client->rank || !share_of(t, g, r, &from, &to) || !flush_brings(t, r))
            continue;
        for (int i = 0; i < TURNS && neighbour_holds(t, g, r); i++)
            sched_yield();
        if (is_dead(t, r) || neighbour_holds(t, g, r))
            flush_words(t, r, from, to, true);
    }
}

/* Where another thread's store has just made it writable a third one's may be there already: it is dirty in a
 * moment. */
static bool flush_takes(struct twins *t, size_t g)
{
    uint8_t was = DIRTY;
    while (!atomic_compare_exchange_strong(&t->state[g], &was, FLUSHING)) {
        if (was != TAKING)
            return false;
        sched_yield();
        was = DIRTY;
    }
    return true;
}

static void flush_ended(struct twins *t, size_t g)
{
    size_t at = g * t->granule, bytes = granule_bytes(t, g);
    if (t->flush->status == KEEL_OK) {
        holders_remove(&holders_of(t->own, t->bytes)[g], t->index);
        if (t->flush->neighbours) /* all parts of the granule are in the copies */
            (void)atomic_fetch_and(&holders_of(t->own, t->bytes)[g], ~t->flush->dead);
        if (t->unused)
            t->unused(t->user, at, bytes);
    } else {
        marks_set(t->own, t->bytes, at, bytes); /* some copies may have got some of it */
        (void)holders_add(&holders_of(t->own, t->bytes)[g], t->index);
        (void)protect(t, g, false);
    }
    atomic_store(&t->state[g], t->flush->status == KEEL_OK ? CLEAN : DIRTY);
}

/* *first: no other living rank of the slot who surely flushes this segment, as it has a part of it, is before the
 * caller. */
static uint64_t dead_of_slot(const struct twins *t, bool *first)
{
    const struct client *c = t->client;
    uint64_t dead = 0;
    *first = true;
    for (int r = 0; r < c->size; r++) {
        const struct page_rank *k = page_rank(c->page, r);
        if (k->slot != page_rank(c->page, c->rank)->slot)
            continue;
        if (!is_dead(t, r))
            *first = *first && (r >= c->rank || !t->segment->part_bytes[r]);
        else if (k->index < HOLDERS_LAST)
            dead |= (uint64_t)1 << k->index;
    }
    return dead;
}

/* What the dead of the slot had stored, into whosever part, and not brought: where all meet, the first who lives takes
 * it up, so that it is in the copies behind the meeting, as what the living have stored is. */
static void flush_adopts(struct twins *t)
{
    bool first;
    t->flush->dead = dead_of_slot(t, &first);
    for (size_t g = 0; first && t->flush->dead && g < t->granules; g++)
        if (atomic_load(&holders_of(t->own, t->bytes)[g]) & t->flush->dead && !twins_take(t, g * t->granule))
            t->flush->status = KEEL_ERR_SYSTEM;
}

/* The own part has been brought, which others may be waiting for: they hear of it before anything is waited for. */
static void flush_all_left(struct twins *t)
{
    for (size_t g = 0; g < t->granules; g++)
        if (atomic_load(&t->state[g]) == LEFT)
            holders_remove(&holders_of(t->own, t->bytes)[g], t->index);
    for (size_t g = 0; g < t->granules; g++)
        if (atomic_load(&t->state[g]) == LEFT)
            flush_left(t, g);
    flush_pieces(t);
    flush_wait(t);
}

/* What is dirty is protected first: a store after that waits, and is the next flush's. */
keel_status twins_flush(struct twins *t, bool neighbours)
{
    struct flush *f = t->flush;
    f->neighbours = neighbours;
    f->dead = 0;
    f->handle = (keel_handle){{0}};
    f->begun = f->rank = 0;
    f->n = f->bytes = f->under_way = 0;
    f->status = KEEL_OK;
    if (neighbours)
        flush_adopts(t);
    for (size_t g = 0; g < t->granules; g++) {
        if (!flush_takes(t, g))
            continue;
        if (!protect(t, g, true))
            f->status = KEEL_ERR_SYSTEM;
        flush_granule(t, g);
    }
    flush_pieces(t);
    flush_wait(t);
    if (neighbours && f->status == KEEL_OK)
        flush_all_left(t);
    bool first;
    f->dead &= dead_of_slot(t, &first); /* no bit is another process's by now */
    for (size_t g = 0; g < t->granules; g++)
        if (atomic_load(&t->state[g]) >= FLUSHING)
            flush_ended(t, g);
    return f->status;
}
