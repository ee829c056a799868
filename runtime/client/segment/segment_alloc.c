/* Allocations and frees are decisions of all live ranks, each with the next number. Before it says that it can a rank's
 * agent has made its copies, and told the others. What all have then counts as done, and is returned, when all agents
 * have said so; what was refused, or is freed, is returned as soon as the agent here was told, and counts when
 * all know that. So who joins where number n is the last that counts finds at its own agent what all up to n came
 * to, and takes part in what follows. */
#include <stdlib.h>

#include "runtime/base/fault.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment_group.h"
#include "runtime/client/segment/segment_int.h"
#include "runtime/client/segment/segment_part.h"
#include "runtime/client/threads.h"
#include "runtime/wire/system.h"

enum segment_call { CALL_ALLOC, CALL_FREE };

/* Said beside a status: this rank allocates. It takes a number, and those who made another call meanwhile have to
 * take it, too. */
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

static void keep_for_later(struct segments *all, struct unfinished u)
{
    all->unfinished = u;
    all->unfinished.under_way = true;
}

/* Every rank's agent makes its copies before, so that all are there afterwards. A rank that cannot, or whose
 * arguments differ, takes part all the same, so that everybody learns of it; then nothing is left. *made: what
 * became of it here. */
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
        keep_for_later(&c->segments,
                       (struct unfinished){.segment = s, .wanted = fingerprint, .said = *made, .met = before});
    else
        c->segments.unfinished.under_way = false;
    if (open)
        return agreed;
    if (agreed == KEEL_OK)
        agreed = status_in(worst);
    if (agreed != KEEL_OK) {
        segment_tell_end(c, r->seg, agreed);
        return agreed;
    }
    if (before != KEEL_OK)
        errors_keep(&c->ops.errors, c->rank, before); /* that a predecessor had no such error was told to the others */
    if (*made == KEEL_OK)
        agreed = segment_await_made(c, r);
    if (agreed == KEEL_OK)
        collective_decided(c);
    return agreed;
}

static bool others_have_it(const struct segments *all)
{
    return all->next < all->known; /* from before this process joined */
}

void *segment_zeroed(struct client *c, size_t n, size_t bytes)
{
    void *memory;
    while (!(memory = calloc(n, bytes)) && others_have_it(&c->segments))
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
    while (!*s && !(*s = segment_place(c, request.seg, want)))
        c->env.sleep(c->env.user, MEMORY_AGAIN_MS);
    request.bytes = (*s)->unit;
    return ask_again(c, &request, r);
}

static bool may_begin(const struct client *c, bool frees, const struct keel_segment *s)
{
    const struct unfinished *u = &c->segments.unfinished;
    return c->ready && !c->task_run.open && !c->coll.unfinished && !c->coll.split &&
           (!u->under_way || (u->frees == frees && (!frees || u->segment == s)));
}

static keel_status may_alloc(const struct client *c, const struct segment_want *want, uint64_t *fingerprint)
{
    const struct unfinished *u = &c->segments.unfinished;
    if (!may_begin(c, false, NULL))
        return KEEL_ERR_STATE;
    *fingerprint = segment_fingerprint(c, want);
    if (u->under_way && u->wanted != *fingerprint)
        return KEEL_ERR_STATE; /* another call */
    if (c->segments.next == SEGMENT_GROUP_FIRST)
        return KEEL_ERR_LIMIT;
    return collective_disagrees(c) ? KEEL_ERR_MISMATCH : KEEL_OK;
}

/* A rank whose own arguments are wrong takes part all the same: the others would wait for it. */
static keel_status alloc(struct client *c, keel_status able, const struct segment_want *want, keel_segment **out)
{
    if (out)
        *out = NULL;
    uint64_t fingerprint = 0;
    keel_status status = may_alloc(c, want, &fingerprint);
    bool again = c->segments.unfinished.under_way, exists = others_have_it(&c->segments);
    if (status == KEEL_OK && exists)
        status = segment_count_last(c);
    if (status != KEEL_OK)
        return status;
    if (able == KEEL_OK && (!out || (unsigned)want->redundancy >= CLASSES))
        able = KEEL_ERR_ARG;
    uint32_t index = c->segments.next;
    keel_status callers = able;
    struct keel_segment *s = again ? c->segments.unfinished.segment : segment_place(c, index, want);
    if (again)
        able = c->segments.unfinished.said;
    if (!again && !s && able == KEEL_OK && !exists)
        able = KEEL_ERR_NOMEM;
    struct control r = {.type = CONTROL_SEG_CREATE,
                        .seg = index,
                        .uneven = want->parts != NULL,
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
        keep_for_later(&c->segments, (struct unfinished){.segment = segment, .frees = true, .met = before});
    else
        c->segments.unfinished.under_way = false;
    if (*open)
        return status;
    if (status != KEEL_OK) {
        if (before != KEEL_OK)
            errors_keep(&c->ops.errors, c->rank, before); /* it is told by the next fence */
        if (value & ALLOCATES)
            segment_tell_end(c, c->segments.next++, status);
        else
            collective_decided(c);
        return status;
    }
    segment_tell_end(c, segment->index, KEEL_OK);
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
