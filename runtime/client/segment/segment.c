/* Segments: collective allocation, and the mappings of this node's copies. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/segment_group.h"
#include "runtime/client/segment/segment_part.h"
#include "runtime/client/threads.h"
#include "runtime/wire/system.h"

enum {
    RETIRED_MIN = 1024, /* segments that were freed and stay what they are */
    MEMORY_AGAIN_MS = 1,
};

#define SLOT_BYTES_MAX (SIZE_MAX / 4)

static size_t part_of(const struct segment_want *want, uint32_t rank)
{
    return want->parts ? want->parts[rank] : (size_t)want->bytes;
}

/* Parts that differ lie one behind the other in their slot's copy, in the order of their ranks. The agents make all copies for
 * parts of one size: for one with which the fullest slot has room, or, where that is beyond what can be counted, for one that none
 * of them makes. */
static void lay_out_parts(struct keel_segment *s, const struct segment_want *want)
{
    const struct page *page = s->client->page;
    uint64_t *used = s->slot_at; /* so far; laid out later */
    bool countable = true;
    for (uint32_t r = 0; r < page->ranks; r++) {
        const struct page_rank *k = page_rank(page, (int)r);
        size_t bytes = part_of(want, r);
        s->part_bytes[r] = bytes;
        s->part_at[r] = want->parts ? used[k->slot] : (uint64_t)k->index * layout_stride(bytes);
        countable = countable && bytes <= SLOT_BYTES_MAX && used[k->slot] <= SLOT_BYTES_MAX - bytes;
        used[k->slot] += layout_stride(bytes);
        s->largest = bytes > s->largest ? bytes : s->largest;
    }
    s->unit = want->parts ? 0 : want->bytes;
    for (uint32_t slot = 0; want->parts && slot < page->nodes; slot++) {
        uint64_t ranks = 0;
        for (uint32_t r = 0; r < page->ranks; r++)
            ranks += page_rank(page, (int)r)->slot == slot;
        uint64_t unit = ranks ? (used[slot] + ranks - 1) / ranks : 0;
        s->unit = unit > s->unit ? unit : s->unit;
    }
    if (want->parts && !countable)
        s->unit = UINT64_MAX;
}

uint64_t segment_lay_out(struct keel_segment *s)
{
    const struct client *c = s->client;
    uint64_t at = 0, ranks;
    if (s->unit > c->segments.range.bytes)
        return 0;
    memset(s->slot_at, 0, c->page->nodes * sizeof *s->slot_at);
    for (uint32_t r = 0; r < c->page->ranks; r++)
        s->slot_at[page_rank(c->page, (int)r)->slot]++;
    for (uint32_t slot = 0; slot < c->page->nodes; slot++) {
        ranks = s->slot_at[slot];
        s->slot_at[slot] = at;
        at += layout_memory_bytes(layout_copy_bytes(s->unit, ranks));
        if (at > c->segments.range.bytes)
            return 0;
    }
    return at;
}

uint64_t segment_fingerprint(const struct client *c, const struct segment_want *want)
{
    uint64_t hash = 0xcbf29ce484222325u ^ want->redundancy ^ want->what << 8;
    for (uint32_t r = 0; r < c->page->ranks; r++)
        hash = (hash ^ part_of(want, r)) * 0x100000001b3u;
    return hash;
}

static void unmap_all(struct keel_segment *s)
{
    struct client *c = s->client;
    for (uint32_t slot = 0; s->map && slot < c->page->nodes; slot++) {
        uint8_t *base = atomic_load(&s->map[slot]);
        if (base)
            c->env.unmap(c->env.user, base, layout_memory_bytes(s->map_bytes[slot]));
    }
    if (s->view)
        c->env.unmap(c->env.user, s->view, layout_memory_bytes(s->map_bytes[s->view_slot]));
    if (s->base)
        range_give(&c->segments.range, s->base);
}

static void destroy(struct keel_segment *s)
{
    free(s->slot_at);
    free((void *)s->map);
    free(s->map_bytes);
    free((void *)s->shared);
    free(s->near);
    free(s->part_bytes);
    free(s->part_at);
    free(s);
}

/* What the program still has is a pointer to it: it stays what it is, a segment without bytes, until others have been freed after it; then it becomes
 * another segment. */
static void retire(struct keel_segment *s)
{
    struct client *c = s->client;
    memset(s->part_bytes, 0, c->page->ranks * sizeof *s->part_bytes);
    struct near *fresh = calloc(c->page->ranks, sizeof *fresh); /* most of it was never touched */
    if (fresh) {
        free(s->near);
        s->near = fresh;
    } else {
        memset((void *)s->near, 0, c->page->ranks * sizeof *s->near);
    }
    memset((void *)s->map, 0, c->page->nodes * sizeof *s->map);
    s->largest = s->base = 0;
    s->view = NULL;
    s->group = NULL;
    s->next = NULL;
    s->retired = true;
    if (c->segments.retired)
        c->segments.retired_last->next = s;
    else
        c->segments.retired = s;
    c->segments.retired_last = s;
    c->segments.retired_n++;
}

static struct keel_segment *come_back(struct client *c)
{
    struct keel_segment *s = c->segments.retired;
    if (c->segments.retired_n < RETIRED_MIN)
        return NULL;
    c->segments.retired = s->next;
    c->segments.retired_n--;
    return s;
}

void segment_release(struct keel_segment *s)
{
    struct client *c = s->client;
    for (struct keel_segment **link = &c->segments.first; *link; link = &(*link)->next)
        if (*link == s) {
            *link = s->next;
            break;
        }
    if (c->env.leaving)
        c->env.leaving(c->env.user, s);
    unmap_all(s);
    if (s->map && s->near && s->part_bytes)
        retire(s);
    else
        destroy(s);
}

void segment_forget_all(struct client *c)
{
    while (c->segments.first)
        segment_release(c->segments.first);
    for (struct keel_segment *s = c->segments.retired, *next; s; s = next) {
        next = s->next;
        destroy(s);
    }
    c->segments.retired = NULL;
    c->segments.retired_n = 0;
}

/* Zeroed, but for what one that was retired keeps. NULL: out of memory. */
static struct keel_segment *make(struct client *c)
{
    struct keel_segment *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->client = c;
    s->slot_at = calloc(c->page->nodes, sizeof *s->slot_at);
    s->map = calloc(c->page->nodes, sizeof *s->map);
    s->map_bytes = calloc(c->page->nodes, sizeof *s->map_bytes);
    s->shared = calloc(c->page->nodes, sizeof *s->shared);
    s->near = calloc(c->page->ranks, sizeof *s->near);
    s->part_bytes = calloc(c->page->ranks, sizeof *s->part_bytes);
    s->part_at = calloc(c->page->ranks, sizeof *s->part_at);
    if (!s->map || !s->map_bytes || !s->shared || !s->near || !s->slot_at || !s->part_bytes || !s->part_at) {
        destroy(s);
        return NULL;
    }
    return s;
}

static void clear(struct keel_segment *s)
{
    const struct page *page = s->client->page;
    struct keel_segment kept = *s;
    *s = (struct keel_segment){.client = kept.client,
                               .slot_at = kept.slot_at,
                               .map = kept.map,
                               .map_bytes = kept.map_bytes,
                               .shared = kept.shared,
                               .near = kept.near,
                               .part_bytes = kept.part_bytes,
                               .part_at = kept.part_at};
    memset(s->slot_at, 0, page->nodes * sizeof *s->slot_at);
    memset(s->map_bytes, 0, page->nodes * sizeof *s->map_bytes);
    memset((void *)s->shared, 0, page->nodes * sizeof *s->shared);
}

struct keel_segment *segment_new(struct client *c, uint32_t index, const struct segment_want *want)
{
    struct keel_segment *s = come_back(c);
    if (s)
        clear(s);
    else if (!(s = make(c)))
        return NULL;
    s->index = index;
    s->redundancy = want->redundancy;
    s->what = want->what;
    lay_out_parts(s, want);
    s->next = c->segments.first;
    c->segments.first = s;
    return s;
}

static struct keel_segment *attach(struct client *c, uint32_t index, const struct segment_want *want)
{
    struct keel_segment *s = segment_new(c, index, want);
    uint64_t bytes = s ? segment_lay_out(s) : 0;
    if (bytes)
        s->base = range_take(&c->segments.range, bytes, s);
    return s;
}

struct keel_segment *segment_attach(struct client *c, uint32_t index, uint64_t bytes_per_rank,
                                    keel_redundancy redundancy)
{
    const struct segment_want want = {.bytes = bytes_per_rank, .redundancy = redundancy};
    return attach(c, index, &want);
}

uint8_t *segment_map(struct keel_segment *s, int slot, keel_status *status)
{
    struct client *c = s->client;
    *status = KEEL_OK;
    uint8_t *base = atomic_load_explicit(&s->map[slot], memory_order_acquire);
    if (base)
        return base;
    struct control r = {.type = CONTROL_SEG_MAP, .seg = s->index, .slot = slot};
    void *m = s->base ? (void *)(uintptr_t)(s->base + s->slot_at[slot]) : NULL; // NOLINT(performance-no-int-to-ptr)
    *status = c->env.request(c->env.user, &r, &m);
    if (*status != KEEL_OK)
        return NULL;
    uint8_t *expected = NULL;
    __atomic_store_n(&s->map_bytes[slot], r.bytes, __ATOMIC_RELAXED); /* always the same */
    if (!atomic_compare_exchange_strong(&s->map[slot], &expected, m)) {
        if (m != expected)
            c->env.unmap(c->env.user, m, layout_memory_bytes(r.bytes)); /* another thread was first */
        return expected;
    }
    return m;
}

uint8_t *segment_map_whole(struct keel_segment *s, int slot, keel_status *status)
{
    enum { LOOK_AGAIN_MS = 1 };
    struct client *c = s->client;
    uint8_t *base;
    while (!(base = segment_map(s, slot, status)) && *status == KEEL_IN_PROGRESS)
        c->env.sleep(c->env.user, LOOK_AGAIN_MS);
    return base;
}

static bool is_home(const struct client *c, int copyset)
{
    struct route route;
    return page_route_read(c->page, copyset, &route) &&
           (route.lost || (route.node[0] == c->node && route_mode(route.tag) == ROUTE_DIRECT));
}

uint8_t *segment_map_home(struct keel_segment *s, keel_status *status)
{
    enum { LOOK_AGAIN_MS = 1 };
    struct client *c = s->client;
    int slot = (int)page_rank(c->page, c->rank)->slot;
    for (;;) {
        uint8_t *base = segment_map_whole(s, slot, status);
        if (!base || s->redundancy == KEEL_REDUNDANCY_NONE || is_home(c, copyset_of(slot, s->redundancy)))
            return base;
        client_lock(c);
        client_progress(c);
        *status = c->fatal;
        pthread_mutex_unlock(&c->lock);
        if (*status != KEEL_OK)
            return NULL;
        c->env.sleep(c->env.user, LOOK_AGAIN_MS);
    }
}

bool segment_stores_rest(const struct client *c)
{
    unsigned stores = atomic_load_explicit(&c->segments.stores, memory_order_relaxed);
    for (unsigned class = 0; stores >> class; class ++) {
        struct route route;
        if (stores >> class & 1 &&
            !(page_route_read(c->page, copyset_of((int)page_rank(c->page, c->rank)->slot, class), &route) &&
              (route.lost || route.node[0] != c->node || route_mode(route.tag) == ROUTE_DIRECT)))
            return false;
    }
    return true;
}

static bool stores_rest(void *arg)
{
    return segment_stores_rest(arg);
}

void segment_await_rest(struct client *c)
{
    if (!segment_stores_rest(c))
        (void)client_wait(c, stores_rest, c, &(struct wait){.call = WAIT_BARRIER}); /* for copies */
}

keel_status segment_map_twice(struct keel_segment *s, int rank, uint8_t **view)
{
    struct client *c = s->client;
    int slot = (int)page_rank(c->page, rank)->slot;
    keel_status status;
    *view = s->view ? s->view : segment_map_home(s, &status);
    if (s->view || !*view)
        return s->view ? KEEL_OK : status;
    struct control r = {.type = CONTROL_SEG_MAP, .seg = s->index, .slot = slot, .a = 1};
    void *m = NULL;
    status = c->env.request(c->env.user, &r, &m);
    if (status != KEEL_OK)
        return status;
    s->view = *view;
    s->view_slot = slot;
    atomic_store(&s->map[slot], (uint8_t *)m);
    for (int other = 0; other < c->size; other++) /* none of them points to the old place */
        if ((int)page_rank(c->page, other)->slot == slot)
            memset((void *)&s->near[other], 0, sizeof s->near[other]);
    return KEEL_OK;
}

/* ---- together ----
 *
 * Allocations and frees are decisions of all live ranks, each with the next number. Before it says that it can a rank's agent has made its copies, and told
 * the others. What all have then counts as done, and is returned, when all agents have acknowledged it; what was refused, or is freed, is returned as soon as
 * the agent here was told, and counts when all know that. So who joins where number n is the last that counts finds at its own agent what all up to n came
 * to, and takes part in what follows. */

enum segment_call { CALL_ALLOC, CALL_FREE };

/* Said beside a status: this rank allocates. It takes a number, and those who made another call meanwhile have to take it, too. */
#define ALLOCATES ((uint64_t)1 << 32)

static keel_status status_in(uint64_t said)
{
    return (keel_status) - (int64_t)(said & (ALLOCATES - 1));
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static struct engine_call decision(enum segment_call what, uint32_t seg, uint64_t fingerprint, uint64_t place,
                                   keel_status said)
{
    uint64_t arguments = mix(mix(mix(0, what), seg), fingerprint);
    return (struct engine_call){.kind = ENGINE_DECIDE,
                                .agree = ENGINE_MAX,
                                .value = (uint64_t) - (int64_t)said | (what == CALL_ALLOC ? ALLOCATES : 0),
                                .arguments = arguments,
                                .place = place};
}

static void keep_for_later(struct client *c, struct unfinished u)
{
    c->segments.unfinished = u;
    c->segments.unfinished.under_way = true;
}

static bool is_known(const struct client *c, uint64_t what)
{
    return atomic_load_explicit(&c->intents->known, memory_order_acquire) >= what;
}

static struct control end_of(const struct client *c, const struct uncounted *u)
{
    return (struct control){
        .type = CONTROL_SEG_FREE, .seg = u->seg, .a = (int64_t)u->agreed, .b = (int64_t)c->segments.instance + 1};
}

/* Of the call that was decided: nobody waits for it here, as nothing can be done with the segment any more. */
static void tell_end(struct client *c, uint32_t seg, keel_status agreed)
{
    c->segments.uncounted = (struct uncounted){.any = true, .seg = seg, .agreed = agreed};
    struct control r = end_of(c, &c->segments.uncounted);
    if (!c->env.tell(c->env.user, &r))
        (void)segment_count_last(c); /* what cannot be told now is asked for; lost with the agent, if at all */
    FAULT_POINT("segment.told");
}

keel_status segment_count_last(struct client *c)
{
    struct control r;
    keel_status status = KEEL_OK;
    if (!c->segments.uncounted.any)
        return KEEL_OK;
    if (!is_known(c, KNOWN_ENDED(c->segments.instance + 1)))
        do { /* as long as a node neither answers nor is dead */
            r = end_of(c, &c->segments.uncounted);
            status = c->env.request(c->env.user, &r, NULL);
        } while (status == KEEL_ERR_TIMEOUT);
    if (status != KEEL_OK)
        return status;
    c->segments.uncounted.any = false;
    collective_decided(c);
    FAULT_POINT("segment.counted");
    return KEEL_OK;
}

/* All agents have the segment that was agreed on, most often since the ranks met. */
static keel_status await_made(const struct client *c, const struct control *r)
{
    struct control again;
    keel_status status = KEEL_OK;
    if (is_known(c, KNOWN_MADE(c->segments.instance + 1)))
        return KEEL_OK;
    do {
        if (status == KEEL_ERR_NOMEM) /* for the question */
            c->env.sleep(c->env.user, MEMORY_AGAIN_MS);
        again = *r;
        again.a = 0;
        status = c->env.request(c->env.user, &again, NULL);
    } while (status == KEEL_ERR_TIMEOUT || status == KEEL_ERR_NOMEM);
    return status;
}

/* Every rank's agent makes its copies before, so that all are there afterwards. A rank that cannot, or whose
 * arguments differ, takes part all the same, so that everybody learns of it; then nothing is left. *made: what became of it here. */
static keel_status alloc_together(struct client *c, struct keel_segment *s, const struct control *r,
                                  uint64_t fingerprint, keel_status *made)
{
    uint64_t worst = 0;
    keel_status before = c->segments.unfinished.met;
    if (!c->segments.unfinished.under_way) {
        struct control request = *r;
        request.a = 1;             /* all agents need not have it before it counts */
        before = rma_fence(c, -1); /* what an earlier operation of this rank met is everybody's error, too */
        if (*made == KEEL_OK)
            *made = before;
        if (*made == KEEL_OK)
            *made = c->env.request(c->env.user, &request, NULL);
        if (*made == KEEL_ERR_AGENT_GONE || *made == KEEL_ERR_FENCED)
            return *made;
        FAULT_POINT("segment.made");
        keel_status counted = segment_count_last(c); /* the answer came when that was known */
        if (counted != KEEL_OK)
            return counted;
    }
    struct engine_call call = decision(CALL_ALLOC, r->seg, fingerprint, s ? s->base : 0, *made);
    bool open;
    keel_status agreed = collective_decide(c, &call, &worst, &open);
    if (c->coll.deciding)
        keep_for_later(c, (struct unfinished){.segment = s, .wanted = fingerprint, .said = *made, .met = before});
    else
        c->segments.unfinished.under_way = false;
    if (open)
        return agreed;
    if (agreed == KEEL_OK)
        agreed = status_in(worst);
    if (agreed != KEEL_OK) {
        tell_end(c, r->seg, agreed);
        return agreed;
    }
    if (before != KEEL_OK)
        errors_keep(&c->ops.errors, c->rank, before); /* that a predecessor had no such error was told to the others */
    if (*made == KEEL_OK)
        agreed = await_made(c, r);
    if (agreed == KEEL_OK)
        collective_decided(c);
    return agreed;
}

static bool others_have_it(const struct client *c)
{
    return c->segments.next < c->segments.known; /* from before this process joined */
}

void *segment_zeroed(struct client *c, size_t n, size_t bytes)
{
    void *memory;
    while (!(memory = calloc(n, bytes)) && others_have_it(c))
        c->env.sleep(c->env.user, MEMORY_AGAIN_MS);
    return memory;
}

/* The others have it, and nobody could tell them that here is no memory for it: there will be. */
static keel_status ask_again(struct client *c, const struct control *request, struct control *answer)
{
    for (;;) {
        *answer = *request;
        keel_status status = c->env.request(c->env.user, answer, NULL);
        if (status != KEEL_ERR_NOMEM || answer->a == 1) /* 1: it was freed, or came to nothing */
            return status;
        c->env.sleep(c->env.user, MEMORY_AGAIN_MS);
    }
}

static keel_status allocate_again(struct client *c, struct keel_segment **s, struct control *r,
                                  const struct segment_want *want)
{
    struct control request = *r;
    while (!*s && !(*s = attach(c, request.seg, want)))
        c->env.sleep(c->env.user, MEMORY_AGAIN_MS);
    request.bytes = (*s)->unit;
    return ask_again(c, &request, r);
}

/* The segment that an allocation which ended by its time-out is for. */
static struct keel_segment *go_on(struct client *c, keel_status *said)
{
    *said = c->segments.unfinished.said;
    return c->segments.unfinished.segment;
}

static bool may_begin(const struct client *c, bool frees, const struct keel_segment *s)
{
    const struct unfinished *u = &c->segments.unfinished;
    return c->ready && !c->task_run.open && !c->coll.unfinished &&
           (!u->under_way || (u->frees == frees && (!frees || u->segment == s)));
}

/* A rank whose own arguments are wrong takes part all the same: the others would wait for it. */
static keel_status alloc(struct client *c, keel_status able, const struct segment_want *want, keel_segment **out)
{
    if (out)
        *out = NULL;
    if (!may_begin(c, false, NULL))
        return KEEL_ERR_STATE;
    bool again = c->segments.unfinished.under_way;
    uint64_t fingerprint = segment_fingerprint(c, want);
    if (again && c->segments.unfinished.wanted != fingerprint)
        return KEEL_ERR_STATE; /* another call */
    if (c->segments.next == SEGMENT_GROUP_FIRST)
        return KEEL_ERR_LIMIT;
    if (collective_disagrees(c))
        return KEEL_ERR_MISMATCH;
    bool exists = others_have_it(c);
    keel_status status = exists ? segment_count_last(c) : KEEL_OK;
    if (status != KEEL_OK)
        return status;
    if (able == KEEL_OK && (!out || (unsigned)want->redundancy >= CLASSES))
        able = KEEL_ERR_ARG;
    uint32_t index = c->segments.next;
    keel_status callers = able;
    struct keel_segment *s = again ? go_on(c, &able) : attach(c, index, want);
    if (!again && !s && able == KEEL_OK && !exists)
        able = KEEL_ERR_NOMEM;
    struct control r = {.type = CONTROL_SEG_CREATE,
                        .seg = index,
                        .slot = want->parts != NULL,
                        .bytes = s ? s->unit : want->bytes,
                        .redundancy = (uint32_t)want->redundancy,
                        .b = (int64_t)c->segments.instance + 1 + c->segments.uncounted.any};
    status = able;
    if (!exists) {
        status = alloc_together(c, s, &r, fingerprint, &able);
        if (c->coll.deciding)
            return status;
    }
    /* Told so though it could not: the others had it before this process joined. */
    if (able == KEEL_OK ? exists : !exists && status == KEEL_OK)
        status = allocate_again(c, &s, &r, want);
    status = status == KEEL_OK ? callers : status; /* what the caller has no memory for, it has not */
    c->segments.next++;
    if (status != KEEL_OK || !s || !out) {
        if (s)
            segment_release(s);
        return status == KEEL_OK ? KEEL_ERR_NOMEM : status;
    }
    if (want->redundancy > c->segments.most_copies)
        c->segments.most_copies = want->redundancy;
    s->freed =
        exists && r.a == 1 && (uint64_t)r.b <= c->segments.instance; /* else the call that freed it is to come here */
    *out = s;
    return KEEL_OK;
}

keel_status segment_alloc_for(struct client *c, keel_status able, uint64_t what, size_t bytes_per_rank,
                              keel_segment **out)
{
    const keel_redundancy redundancy =
        c->segments.most_copies > KEEL_REDUNDANCY_SHADOW ? c->segments.most_copies : KEEL_REDUNDANCY_SHADOW;
    const struct segment_want want = {.bytes = bytes_per_rank, .redundancy = redundancy, .what = what};
    return alloc(c, able, &want, out);
}

keel_status segment_alloc(struct client *c, size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out)
{
    const struct segment_want want = {.bytes = bytes_per_rank, .redundancy = redundancy};
    return alloc(c, KEEL_OK, &want, out);
}

keel_status segment_alloc_parts(struct client *c, const size_t *bytes, keel_redundancy redundancy, keel_segment **out)
{
    const struct segment_want want = {.parts = bytes, .redundancy = redundancy};
    return alloc(c, bytes ? KEEL_OK : KEEL_ERR_ARG, &want, out);
}

keel_status segment_copies(const keel_segment *s, int rank, int *nodes, int *n)
{
    struct route route;
    if (!s || s->retired || rank < 0 || rank >= s->client->size || !nodes || !n)
        return KEEL_ERR_ARG;
    const struct page *page = s->client->page;
    while (!page_route_read(page, copyset_of((int)page_rank(page, rank)->slot, s->redundancy), &route)) {
        if (s->client->env.agent_is_gone(s->client->env.user))
            return KEEL_ERR_AGENT_GONE;
        s->client->env.yield(s->client->env.user); /* a view is being made */
    }
    *n = route.lost ? 0 : route.copies;
    for (int i = 0; i < *n; i++)
        nodes[i] = route.node[i];
    return KEEL_OK;
}

/* ---- addresses ---- */

static uint64_t address_of(const keel_segment *s, int rank)
{
    const struct page_rank *r = page_rank(s->client->page, rank);
    return s->base + s->slot_at[r->slot] + s->part_at[rank];
}

void *segment_address(keel_segment *s, int rank)
{
    if (!s || !s->client->ready || s->retired || rank < 0 || rank >= s->client->size)
        return NULL;
    const struct page_rank *r = page_rank(s->client->page, rank);
    keel_status status = KEEL_OK;
    bool viewed = s->view && s->view_slot == (int)r->slot;
    uint8_t *copy = viewed ? s->view : segment_map_whole(s, (int)r->slot, &status);
    if (copy)
        return copy + s->part_at[rank];
    if (status == KEEL_ERR_NOMEM) /* it is here, and cannot be mapped */
        return NULL;
    return s->base ? (void *)(uintptr_t)address_of(s, rank) : NULL; // NOLINT(performance-no-int-to-ptr)
}

keel_status segment_locate(struct client *c, int rank, const void *address, keel_segment **segment, size_t *offset)
{
    uint64_t at = (uintptr_t)address;
    keel_segment *s = c->ready && rank >= 0 && rank < c->size ? range_find(&c->segments.range, at) : NULL;
    if (!segment || !offset)
        return KEEL_ERR_ARG;
    *segment = NULL;
    *offset = 0;
    if (!s || s == c->segments.system || s->what || at < address_of(s, rank) ||
        at - address_of(s, rank) >= s->part_bytes[rank])
        return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    *segment = s;
    *offset = (size_t)(at - address_of(s, rank));
    return KEEL_OK;
}

struct use {
    const struct client *c;
    const struct keel_segment *segment;
};

static bool none_uses(void *arg)
{
    const struct use *u = arg;
    for (const struct op *op = u->c->ops.active; op; op = op->next)
        if (op->segment == u->segment)
            return false;
    return true;
}

/* What is under way to it, with a handle, too, comes to its end: it loads and stores where nothing will be mapped. */
static void await_operations(struct client *c, const struct keel_segment *segment)
{
    struct use u = {c, segment};
    client_lock(c);
    client_wait(c, none_uses, &u, &(struct wait){.call = WAIT_ALLOC, .whom = waits_for_any_op});
    while (!none_uses(&u))
        client_progress(c); /* the job is lost */
    pthread_mutex_unlock(&c->lock);
}

/* Nobody uses it any more. */
static keel_status free_together(struct client *c, struct keel_segment *segment, bool *open)
{
    uint64_t value = 0;
    keel_status status = segment_count_last(c);
    *open = true;
    if (status != KEEL_OK)
        return status;
    keel_status before = c->segments.unfinished.under_way ? c->segments.unfinished.met : rma_fence(c, -1);
    struct engine_call call = decision(CALL_FREE, segment->index, 0, 0, KEEL_OK);
    status = collective_decide(c, &call, &value, open);
    if (c->coll.deciding)
        keep_for_later(c, (struct unfinished){.segment = segment, .frees = true, .met = before});
    else
        c->segments.unfinished.under_way = false;
    if (*open)
        return status;
    if (status != KEEL_OK) {
        if (before != KEEL_OK)
            errors_keep(&c->ops.errors, c->rank, before); /* it is told by the next fence */
        if (value & ALLOCATES)
            tell_end(c, c->segments.next++, status);
        else
            collective_decided(c);
        return status;
    }
    tell_end(c, segment->index, KEEL_OK);
    return before;
}

keel_status segment_free(struct client *c, struct keel_segment *segment)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (!segment)
        return KEEL_OK;
    if (segment->retired)
        return KEEL_ERR_ARG; /* it was freed */
    await_operations(c, segment);
    if (segment->attached)
        return segment_detach(c, segment);
    if (segment->group)
        return segment_free_group(c, segment);
    if (!may_begin(c, true, segment))
        return KEEL_ERR_STATE;
    if (collective_disagrees(c))
        return KEEL_ERR_MISMATCH;
    keel_status status = KEEL_OK;
    if (!segment->freed) { /* else the others freed it before this process joined */
        bool open;
        status = free_together(c, segment, &open);
        if (open || status == KEEL_ERR_MISMATCH)
            return status;
    }
    segment_release(segment);
    return status;
}
