/* All memory is taken before the call that finds out who is in the group. Who has none takes part all the same, and
 * all are told (engine_call.refuses). */
#include <stdlib.h>

#include "collectives/group.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/group/coll_int.h"
#include "runtime/client/threads.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = a * 0x9e3779b97f4a7c15ull ^ (b + 0x7f4a7c159e3779b9ull + (a << 6) + (a >> 2));
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    return h ^ (h >> 27);
}

static keel_status from_group(enum group_status s)
{
    return s == GROUP_OK ? KEEL_OK : s == GROUP_BAD ? KEEL_ERR_ARG : KEEL_ERR_NOMEM;
}

/* The room, whose ranks are known, becomes the new group. */
static keel_status make(struct keel_group *room, uint64_t birth, struct keel_group *creator, keel_group **out)
{
    struct client *c = room->client;
    if (coll_group_find(c, group_id(room->ranks))) {
        coll_room_free(c, room);
        return KEEL_ERR_STATE;
    }
    (void)coll_open_group(room, birth, false);
    room->creator = creator;
    if (creator)
        creator->made++;
    coll_strays_of(c, room, c->env.now(c->env.user));
    *out = room;
    return KEEL_OK;
}

/* The same as the caller's: there is one under way. Else the room becomes it. */
static keel_status creator_of(struct client *c, struct keel_group *room, uint64_t birth, struct keel_group **out)
{
    uint64_t id = group_id(room->ranks);
    *out = coll_group_find(c, id);
    if (*out) {
        coll_room_free(c, room);
        return KEEL_OK;
    }
    *out = room;
    (void)coll_open_group(room, birth, true);
    if (!room->engine) {
        coll_group_destroy(room);
        return KEEL_ERR_STATE;
    }
    engine_skip_agreements(room->engine, coll_made_number(c, id));
    return KEEL_OK;
}

/* For the creator, from what is put by if there is no memory. */
static keel_status room_of_creator(struct client *c, int n, struct keel_group **room)
{
    if (!c->coll.room)
        coll_collect(c);
    *room = coll_room_new(c, n);
    if (*room)
        return KEEL_OK;
    *room = c->coll.room;
    c->coll.room = NULL;
    return *room ? KEEL_OK : KEEL_ERR_LIMIT;
}

bool coll_close_creation(struct client *c, struct keel_group *creator)
{
    struct engine_call call = {.kind = ENGINE_SHRINK};
    uint64_t seq;
    creator->closing = CLOSING_BEGINS;
    creator->owes = engine_start(creator->engine, &call, c->env.now(c->env.user), &seq) != ENGINE_OK;
    if (creator->closing == CLOSING_BEGINS)
        creator->closing = creator->owes ? 0 : seq;
    coll_wake_at(c, engine_deadline(creator->engine));
    return !creator->owes;
}

/* Takes the creator's room over. Lock held. */
static keel_status create(struct client *c, struct keel_group *room, uint64_t birth, keel_group **out)
{
    struct keel_group *creator;
    struct keel_request *r = NULL;
    keel_status status = creator_of(c, room, birth, &creator);
    if (status == KEEL_OK && creator->owes && !coll_close_creation(c, creator))
        status = KEEL_ERR_LIMIT;
    if (status != KEEL_OK)
        return status;
    if (!creator->unfinished) {
        creator->made++;
        c->coll.creating++;
        creator->room = coll_room_new(c, group_size(creator->ranks));
    }
    struct engine_call call = {.kind = ENGINE_SHRINK, .refuses = !creator->room};
    coll_strays_of(c, creator, c->env.now(c->env.user));
    FAULT_POINT("group.creating");
    status = coll_finish(creator, &call, &r);
    FAULT_POINT("group.created");
    if (creator->unfinished)
        return status;
    room = creator->room;
    creator->room = NULL;
    if (status == KEEL_OK && room) { /* it is OK nowhere if somebody has none */
        uint64_t number = mix(mix(group_id(creator->ranks), r->seq), NUMBER_CREATE), epoch = roster_epoch(r->covered);
        group_keep_in(room->ranks, creator->ranks, roster_bits(r->covered), number);
        status = make(room, birth == UINT64_MAX ? epoch : birth, creator, out);
    } else {
        coll_room_free(c, room);
    }
    if (r)
        coll_request_free(creator, r);
    if (status == KEEL_ERR_NOMEM)
        (void)coll_close_creation(c, creator); /* else it is owed */
    creator->made--;
    if (!creator->made) {
        c->coll.gone = true;
        coll_wake_at(c, 0);
    }
    coll_created(c);
    return status;
}

/* Lock held. among: the group whose members are listed; NULL: they are ranks. */
static keel_status create_of(struct client *c, const struct keel_group *among, const int *list, int n, uint64_t number,
                             keel_group **out)
{
    struct keel_group *room;
    if (n > (among ? group_size(among->ranks) : c->size))
        return KEEL_ERR_ARG;
    keel_status status = room_of_creator(c, n, &room);
    if (status != KEEL_OK)
        return status;
    status = from_group(among ? group_include_in(room->ranks, among->ranks, list, n, number)
                              : group_list_in(room->ranks, c->size, list, n, number));
    if (status == KEEL_OK && group_member_of(room->ranks, c->rank) < 0)
        status = KEEL_ERR_ARG;
    if (status != KEEL_OK) {
        coll_room_free(c, room);
        return status;
    }
    coll_see_views(c, c->env.now(c->env.user));
    return create(c, room, among ? among->birth : UINT64_MAX, out);
}

keel_status coll_create(struct client *c, const int *list, int n, uint64_t tag, keel_group **out)
{
    *out = NULL;
    if (!c->ready || c->task_run.open)
        return KEEL_ERR_STATE;
    if (n <= 0 || !list)
        return KEEL_ERR_ARG;
    client_lock(c);
    keel_status status = create_of(c, NULL, list, n, mix(tag, NUMBER_CREATE), out);
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status coll_shrink_among(struct keel_group *g, const int *members, int n, keel_group **out)
{
    *out = NULL;
    keel_status status = coll_check(g->client, g);
    if (status != KEEL_OK)
        return status;
    struct client *c = g->client;
    if (n <= 0 || !members)
        return KEEL_ERR_ARG;
    client_lock(c);
    status = create_of(c, g, members, n, mix(group_id(g->ranks), NUMBER_AMONG), out);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Lock held. */
static keel_status shrink(struct keel_group *g, keel_group **out)
{
    struct client *c = g->client;
    struct keel_request *r = NULL;
    bool other = g->unfinished; /* its own, or one that is in the way */
    c->coll.creating += !other;
    if (!other)
        g->room = coll_room_new(c, group_size(g->ranks));
    struct engine_call call = {.kind = ENGINE_SHRINK, .refuses = !g->room};
    keel_status status = coll_finish(g, &call, &r);
    if (g->unfinished) {
        c->coll.creating -= !other && g->unfinished_call.kind != ENGINE_SHRINK;
        return status;
    }
    struct keel_group *room = g->room;
    g->room = NULL;
    if (status == KEEL_OK && room) {
        uint64_t number = mix(mix(group_id(g->ranks), r->seq), NUMBER_SHRINK);
        group_keep_in(room->ranks, g->ranks, roster_bits(r->covered), number);
        status = make(room, g->birth, NULL, out);
    } else {
        coll_room_free(c, room);
    }
    if (r)
        coll_request_free(g, r);
    coll_created(c);
    return status;
}

keel_status coll_shrink(struct keel_group *g, keel_group **out)
{
    *out = NULL;
    keel_status status = coll_check(g->client, g);
    if (status != KEEL_OK)
        return status;
    client_lock(g->client);
    status = shrink(g, out);
    pthread_mutex_unlock(&g->client->lock);
    return status;
}

struct wish {
    int32_t colour, key;
};

/* What they wish for becomes the caller's group; wish, and colours and keys, have an entry for each member. */
static keel_status split(struct keel_group *g, const struct keel_request *r, const struct wish *wish, int *colours,
                         int colour, struct keel_group *room, keel_group **out)
{
    int n = group_size(g->ranks), *keys = colours + n;
    if (colour < 0) {
        coll_room_free(g->client, room);
        return KEEL_OK;
    }
    for (int m = 0; m < n; m++) {
        colours[m] = roster_has(r->covered, m) ? wish[m].colour : -1;
        keys[m] = wish[m].key;
    }
    group_split_in(room->ranks, g->ranks, colours, keys, colour, mix(mix(group_id(g->ranks), r->seq), NUMBER_SPLIT));
    return make(room, g->birth, NULL, out);
}

keel_status coll_split(struct keel_group *g, int colour, int key, keel_group **out)
{
    *out = NULL;
    keel_status status = coll_check(g->client, g);
    if (status != KEEL_OK)
        return status;
    struct client *c = g->client;
    size_t n = (size_t)group_size(g->ranks);
    struct wish mine = {colour, key}, *all = calloc(n, sizeof *all);
    int *both = malloc(2 * n * sizeof *both);
    struct keel_request *r = NULL;
    client_lock(c);
    struct keel_group *room = coll_room_new(c, (int)n);
    struct engine_call call = {.kind = ENGINE_MOVE,
                               .move = SCHEDULE_ALLGATHER,
                               .in = &mine,
                               .out = all,
                               .len = sizeof mine,
                               .refuses = !all || !both || !room};
    c->coll.creating++;
    status = coll_finish(g, &call, &r);
    if (status == KEEL_OK && all && both && room) /* it is OK nowhere if somebody has not got them */
        status = split(g, r, all, both, colour, room, out);
    else
        coll_room_free(c, room);
    if (r)
        coll_request_free(g, r);
    coll_created(c);
    pthread_mutex_unlock(&c->lock);
    free(both);
    free(all);
    return status;
}
