/* Segments of groups: the members alone make and free them; nobody else is asked.
 *
 * Those of all ranks get number and place by their order, which is the same everywhere. Groups have no common order, so
 * a segment's number is drawn from a counter of the whole job, and its place in the upper half of the address range is
 * the lowest that is free at all members: each says the lowest that is free at itself from the last proposal on, the
 * greatest is the next proposal, until nobody has to say another. What members agree on (engine_call AGREE) is the
 * same for all that return, whoever dies. */
#include "collectives/group.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"
#include "runtime/client/segment/segment_group.h"
#include "runtime/wire/system.h"

#include <stdlib.h>

/* Of the segments' own: no other agreement of the group goes together with one of these, or on with it, and no free
 * with another or with an allocation. */
enum { AGREE_TO_ALLOCATE = 1, AGREE_TO_FREE };

/* One that ended by its time-out stays the group's unfinished one, and this goes on with it. */
static keel_status agree(struct keel_group *g, uint64_t what, uint64_t value, uint64_t *greatest)
{
    struct engine_call call = {.kind = ENGINE_AGREE, .agree = ENGINE_MAX, .value = value, .arguments = what};
    return coll_run(g, &call, greatest);
}

/* The greatest of these is the worst. */
static uint64_t as_value(keel_status status)
{
    return (uint64_t) - (int64_t)status;
}

static keel_status as_status(uint64_t value)
{
    return (keel_status) - (int64_t)value;
}

static bool is_first(struct keel_group *g)
{
    struct client *c = g->client;
    int first = 0;
    client_lock(c);
    coll_see_views(c, c->env.now(c->env.user));
    while (first < group_size(g->ranks) && !coll_member_lives(g, first))
        first++;
    pthread_mutex_unlock(&c->lock);
    return group_rank(g->ranks, first) == c->rank;
}

/* ---- steps: each ends with a value that is to be agreed on next (KEEL_IN_PROGRESS), or with the call ---- */

static keel_status next(struct segment_of_group *o, enum segment_step step, uint64_t value)
{
    o->step = step;
    o->value = value;
    return KEEL_IN_PROGRESS;
}

/* The first member that lives draws a number; two may think that they are it, and the first may die: nobody else has
 * the number then. */
static keel_status draw_number(struct keel_group *g)
{
    struct client *c = g->client;
    keel_status met = KEEL_OK;
    g->segments.drawn = -1;
    if (is_first(g))
        met = rma_fetch_add(c, c->segments.system, 0, SYSTEM_COUNTER_AT, 1, &g->segments.drawn);
    FAULT_POINT("segment.group_number");
    return next(&g->segments, SEGMENT_DRAWN, as_value(met));
}

static keel_status propose_place(struct keel_group *g, uint64_t from)
{
    struct client *c = g->client;
    struct segment_of_group *o = &g->segments;
    uint64_t bytes = o->segment ? segment_lay_out(o->segment) : 0;
    uint64_t place = bytes ? range_above(&c->segments.range, bytes, from) : 0;
    o->place = from;
    return next(o, SEGMENT_PLACE, place ? place : UINT64_MAX);
}

static keel_status have_number(struct keel_group *g, uint64_t number)
{
    struct client *c = g->client;
    struct segment_of_group *o = &g->segments;
    const struct segment_want want = {.parts = o->parts, .redundancy = o->redundancy};
    if (number == 0)
        return draw_number(g);
    if (number > UINT32_MAX - SEGMENT_GROUP_FIRST)
        return KEEL_ERR_LIMIT;
    o->index = SEGMENT_GROUP_FIRST + (uint32_t)number - 1;
    if (o->able == KEEL_OK && !(o->segment = segment_new(c, o->index, &want)))
        o->able = KEEL_ERR_NOMEM;
    return propose_place(g, 0);
}

/* Each member's agent makes its copies and tells the others'; what one cannot have, nobody gets. Place 0: without
 * addresses. */
static keel_status make(struct keel_group *g, uint64_t place)
{
    struct client *c = g->client;
    struct segment_of_group *o = &g->segments;
    struct keel_segment *s = o->segment;
    if (s && place && range_take_above(&c->segments.range, place, segment_lay_out(s), s))
        s->base = place;
    FAULT_POINT("segment.group_placed");
    if (o->able == KEEL_OK && s) {
        struct control r = {.type = CONTROL_SEG_CREATE,
                            .seg = o->index,
                            .uneven = 1,
                            .bytes = s->unit,
                            .redundancy = (uint32_t)s->redundancy};
        o->able = c->env.request(c->env.user, &r, NULL);
    }
    FAULT_POINT("segment.group_made");
    if (o->able == KEEL_ERR_AGENT_GONE || o->able == KEEL_ERR_FENCED)
        return o->able;
    return next(o, SEGMENT_MADE, as_value(o->able));
}

static keel_status after(struct keel_group *g, uint64_t agreed)
{
    struct segment_of_group *o = &g->segments;
    switch (o->step) {
    case SEGMENT_WANTED:
        if (o->able == KEEL_OK)
            o->able = o->fingerprint != agreed ? KEEL_ERR_MISMATCH : o->before;
        return draw_number(g);
    case SEGMENT_DRAWN:
        return agreed ? as_status(agreed) : next(o, SEGMENT_NUMBER, (uint64_t)(o->drawn + 1));
    case SEGMENT_NUMBER:
        return have_number(g, agreed);
    case SEGMENT_PLACE:
        if (agreed == UINT64_MAX || agreed == o->place)
            return make(g, agreed == UINT64_MAX ? 0 : agreed);
        return propose_place(g, agreed);
    default:
        return as_status(agreed);
    }
}

/* Is it to be gone on with by the same call? A member is stopped, or there was no memory to begin it. */
static bool is_open(const struct keel_group *g, keel_status status)
{
    return g->unfinished || status == KEEL_ERR_LIMIT;
}

/* False: it is open. */
static bool go_on(struct keel_group *g, keel_status *status)
{
    do {
        uint64_t agreed = 0;
        *status = agree(g, AGREE_TO_ALLOCATE, g->segments.value, &agreed);
        if (is_open(g, *status))
            return false;
        if (*status == KEEL_OK)
            *status = after(g, agreed);
    } while (*status == KEEL_IN_PROGRESS);
    return true;
}

static void end(struct keel_group *g, keel_status status, keel_segment **out)
{
    struct client *c = g->client;
    struct segment_of_group o = g->segments;
    g->segments = (struct segment_of_group){0};
    free(o.parts);
    if (o.step == SEGMENT_MADE && status != KEEL_OK) {
        struct control r = {.type = CONTROL_SEG_FREE, .seg = o.index, .a = (int64_t)status};
        (void)c->env.request(c->env.user, &r, NULL);
    }
    if (o.step == SEGMENT_MADE)
        FAULT_POINT("segment.group_agreed");
    if (status == KEEL_OK && out && o.segment) { /* who has none of these has refused */
        o.segment->group = g;
        o.segment->group_generation = g->generation;
        *out = o.segment;
    } else if (o.segment) {
        segment_release(o.segment);
    }
}

static keel_status sizes_of_ranks(const struct keel_group *g, const size_t *bytes, size_t **parts)
{
    const struct client *c = g->client;
    *parts = calloc((size_t)c->size, sizeof **parts);
    if (!bytes || !*parts)
        return bytes ? KEEL_ERR_NOMEM : KEEL_ERR_ARG;
    for (int m = 0; m < group_size(g->ranks); m++)
        (*parts)[group_rank(g->ranks, m)] = bytes[m];
    return KEEL_OK;
}

/* A member whose arguments are wrong takes part all the same: the others would wait for it. */
static void begin(struct keel_group *g, const size_t *bytes, keel_redundancy redundancy, bool wanted)
{
    struct client *c = g->client;
    struct segment_of_group *o = &g->segments;
    *o = (struct segment_of_group){.redundancy = redundancy};
    o->able = sizes_of_ranks(g, bytes, &o->parts);
    if (o->able == KEEL_OK && (!wanted || (unsigned)redundancy >= CLASSES))
        o->able = KEEL_ERR_ARG;
    const struct segment_want want = {.parts = o->parts, .redundancy = redundancy};
    o->fingerprint = o->able == KEEL_OK ? segment_fingerprint(c, &want) : 0;
    o->before = rma_fence(c, -1);
    FAULT_POINT("segment.group_entering");
    (void)next(o, SEGMENT_WANTED, o->fingerprint);
}

/* Is it the call that has begun? Of one for whose sizes there was no memory nothing is known. */
static bool is_same(const struct keel_group *g, const size_t *bytes, keel_redundancy redundancy)
{
    const struct segment_of_group *o = &g->segments;
    bool same = o->redundancy == redundancy;
    for (int m = 0; o->parts && m < group_size(g->ranks) && same; m++)
        same = o->parts[group_rank(g->ranks, m)] == (bytes ? bytes[m] : 0);
    return same;
}

keel_status segment_alloc_group(struct keel_group *g, const size_t *bytes, keel_redundancy redundancy,
                                keel_segment **out)
{
    if (out)
        *out = NULL;
    keel_status status = g ? coll_check(g->client, g) : KEEL_ERR_ARG;
    if (status != KEEL_OK)
        return status;
    bool again = g->segments.step != SEGMENT_NONE;
    if (again ? g->segments.step == SEGMENT_FREED : g->unfinished != NULL)
        return KEEL_ERR_STATE;
    if (again && !out)
        return KEEL_ERR_ARG;
    if (again && !is_same(g, bytes, redundancy))
        return KEEL_ERR_STATE;
    if (!again)
        begin(g, bytes, redundancy, out != NULL);
    if (go_on(g, &status))
        end(g, status, out);
    return status;
}

keel_status segment_free_group(struct client *c, struct keel_segment *segment)
{
    struct keel_group *g = segment->group;
    if (g->generation != segment->group_generation || g->freed)
        return KEEL_ERR_ARG;
    struct segment_of_group *o = &g->segments;
    bool again = o->step == SEGMENT_FREED && o->segment == segment;
    if (!again && (o->step != SEGMENT_NONE || g->unfinished))
        return KEEL_ERR_STATE;
    if (!again) {
        *o = (struct segment_of_group){.segment = segment};
        (void)next(o, SEGMENT_FREED, as_value(rma_fence(c, -1))); /* nobody uses it any more */
    }
    uint64_t worst = 0, met = o->value;
    keel_status status = agree(g, AGREE_TO_FREE + (uint64_t)segment->index, met, &worst);
    if (is_open(g, status))
        return status;
    *o = (struct segment_of_group){0};
    if (status != KEEL_OK) {
        if (as_status(met) != KEEL_OK)
            errors_keep(&c->ops.errors, c->rank, as_status(met)); /* it is told by the next fence */
        return status;
    }
    struct control r = {.type = CONTROL_SEG_FREE, .seg = segment->index};
    status = c->env.request(c->env.user, &r, NULL);
    segment_release(segment);
    return status != KEEL_OK ? status : as_status(worst);
}
