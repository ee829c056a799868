/* Segments of groups: the members alone make and free them; nobody else is asked.
 *
 * Those of all ranks get number and place by their order, which is the same everywhere. Groups have no common order, so a segment's
 * number is drawn from a counter of the whole job, and its place in the upper half of the address range is the lowest that is free at
 * all members: each says the lowest that is free at itself from the last proposal on, the greatest is the next proposal, until
 * nobody has to say another. What members agree on (engine_call AGREE) is the same for all that return, whoever dies. */
#include "collectives/group.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/protocol/system.h"

#include <stdlib.h>

static keel_status agree(struct keel_group *g, uint64_t value, uint64_t *greatest)
{
    struct engine_call call = {.kind = ENGINE_AGREE, .agree = ENGINE_MAX, .value = value};
    struct keel_request *r = NULL;
    keel_status status = coll_call(g, &call, NULL, &r);
    return status == KEEL_OK ? coll_wait(r, NULL, greatest) : status;
}

/* The worst of what became of it at the members; AGENT_GONE and the like end the call at once where they happen. */
static keel_status agree_status(struct keel_group *g, keel_status mine, keel_status *worst)
{
    uint64_t code = 0;
    keel_status status = agree(g, (uint64_t) - (int64_t)mine, &code);
    *worst = (keel_status) - (int64_t)code;
    return status;
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

/* The first member that lives draws a number; two may think that they are it, and the first may die: nobody else has the number
 * then. */
static keel_status draw_number(struct keel_group *g, uint32_t *index)
{
    struct client *c = g->client;
    uint64_t number = 0;
    keel_status status = KEEL_OK, worst = KEEL_OK;
    while (number == 0 && status == KEEL_OK && worst == KEEL_OK) {
        int64_t drawn = -1;
        keel_status mine = KEEL_OK;
        if (is_first(g))
            mine = rma_fetch_add(c, c->system, 0, SYSTEM_COUNTER_AT, 1, &drawn);
        FAULT_POINT("segment.group_number");
        status = agree_status(g, mine, &worst);
        if (status == KEEL_OK)
            status = agree(g, (uint64_t)(drawn + 1), &number);
    }
    if (number > UINT32_MAX - SEGMENT_GROUP_FIRST)
        return KEEL_ERR_LIMIT;
    *index = SEGMENT_GROUP_FIRST + (uint32_t)number - 1;
    return status != KEEL_OK ? status : worst;
}

/* 0 at the end: without addresses. */
static keel_status choose_place(struct keel_group *g, uint64_t bytes, uint64_t *place)
{
    const struct client *c = g->client;
    uint64_t proposal = 0, last;
    keel_status status;
    do {
        uint64_t mine = bytes ? range_above(&c->range, bytes, proposal) : 0;
        last = proposal;
        status = agree(g, mine ? mine : UINT64_MAX, &proposal);
    } while (status == KEEL_OK && proposal != last && proposal != UINT64_MAX);
    *place = proposal == UINT64_MAX ? 0 : proposal;
    return status;
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

/* Each member's agent makes its copies and tells the others'; what one cannot have, nobody gets. */
static keel_status make(struct keel_group *g, struct keel_segment *s, uint32_t index, keel_status able)
{
    struct client *c = g->client;
    struct control r = {.type = CONTROL_SEG_CREATE, .seg = index, .slot = 1};
    keel_status worst;
    if (able == KEEL_OK) {
        r.bytes = s->unit;
        r.redundancy = (uint32_t)s->redundancy;
        able = c->env.request(c->env.user, &r, NULL);
    }
    FAULT_POINT("segment.group_made");
    if (able == KEEL_ERR_AGENT_GONE || able == KEEL_ERR_FENCED)
        return able;
    keel_status status = agree_status(g, able, &worst);
    if (status == KEEL_OK)
        status = worst;
    if (status != KEEL_OK) {
        r = (struct control){.type = CONTROL_SEG_FREE, .seg = index, .a = (int64_t)status};
        (void)c->env.request(c->env.user, &r, NULL);
    }
    return status;
}

static keel_status together(struct keel_group *g, const struct segment_want *want, keel_status able, keel_segment **out)
{
    struct client *c = g->client;
    uint64_t mine = able == KEEL_OK ? segment_fingerprint(c, want) : 0, theirs, place;
    keel_status before = rma_fence(c, -1);
    uint32_t index = 0;
    struct keel_segment *s = NULL;
    FAULT_POINT("segment.group_entering");
    keel_status status = agree(g, mine, &theirs);
    if (status == KEEL_OK)
        status = draw_number(g, &index);
    if (status != KEEL_OK)
        return status;
    if (able == KEEL_OK)
        able = mine != theirs ? KEEL_ERR_MISMATCH : before;
    if (able == KEEL_OK && !(s = segment_new(c, index, want)))
        able = KEEL_ERR_NOMEM;
    status = choose_place(g, s ? segment_lay_out(s) : 0, &place);
    if (s && place && range_take_above(&c->range, place, segment_lay_out(s), s))
        s->base = place;
    FAULT_POINT("segment.group_placed");
    if (status == KEEL_OK)
        status = make(g, s, index, able);
    FAULT_POINT("segment.group_agreed");
    if (status != KEEL_OK && s)
        segment_release(s);
    if (status == KEEL_OK && s) {
        s->group = g;
        s->group_generation = g->generation;
        *out = s;
    }
    return status;
}

keel_status segment_alloc_group(struct keel_group *g, const size_t *bytes, keel_redundancy redundancy,
                                keel_segment **out)
{
    if (out)
        *out = NULL;
    size_t *parts = NULL;
    keel_status status = g ? coll_check(g->client, g) : KEEL_ERR_ARG;
    if (status != KEEL_OK)
        return status;
    status = sizes_of_ranks(g, bytes, &parts);
    if (status == KEEL_OK && (!out || (unsigned)redundancy >= CLASSES))
        status = KEEL_ERR_ARG;
    const struct segment_want want = {.parts = parts, .redundancy = redundancy};
    status = together(g, &want, status, out);
    free(parts);
    return status;
}

keel_status segment_free_group(struct client *c, struct keel_segment *segment)
{
    struct keel_group *g = segment->group;
    if (g->generation != segment->group_generation || g->freed)
        return KEEL_ERR_ARG;
    keel_status before = rma_fence(c, -1), worst;
    keel_status status = agree_status(g, before, &worst); /* nobody uses it any more */
    if (status != KEEL_OK)
        return status;
    struct control r = {.type = CONTROL_SEG_FREE, .seg = segment->index};
    status = c->env.request(c->env.user, &r, NULL);
    segment_release(segment);
    return status != KEEL_OK ? status : worst;
}
