/* Groups: from creation to the moment when nobody asks about them any more.
 *
 * Creation by a list: an engine whose identity is that of list and tag finds out who lives of the listed (a shrink); these, and
 * the number of that shrink, are the group. Who has not called yet keeps what the others send (strays).
 * A message of an unknown group while something is being created here may be of that; else the group was freed here:
 *
 *   freed ── a shrink of the group among those who live ──► gone: all have freed it, so all have completed what came before
 *
 * and who is still in that last shrink hears so from whoever is through with it (PARCEL_GONE). A creation of which nothing came, as some had
 * no memory, ends so, too. */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "collectives/message.h"
#include "runtime/base/bitset.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/group/quick.h"
#include "runtime/client/progress.h"
#include "runtime/client/threads.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = a * 0x9e3779b97f4a7c15ull ^ (b + 0x7f4a7c159e3779b9ull + (a << 6) + (a >> 2));
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    return h ^ (h >> 27);
}

enum {
    NUMBER_NODE = 1,
    NUMBER_CREATE = 2,
    NUMBER_AMONG = 3,
    NUMBER_SPLIT = 4,
    NUMBER_SHRINK = 5,
    NUMBER_LIVING = 6,
    NUMBER_SEGMENTS = 7
};

/* ---- memory ---- */

struct keel_group *coll_group_find(const struct client *c, uint64_t id)
{
    struct keel_group *g = c->coll.by_id[id % COLL_BUCKETS];
    while (g && group_id(g->ranks) != id)
        g = g->next_of_id;
    return g;
}

static struct keel_group *take_memory(struct client *c)
{
    struct keel_group *g = c->coll.idle;
    uint16_t generation = g ? (uint16_t)(g->generation + 1) : 0;
    if (g)
        c->coll.idle = g->next;
    else
        g = malloc(sizeof *g);
    if (g)
        *g = (struct keel_group){.client = c, .generation = generation};
    return g;
}

static void give_memory(struct client *c, struct keel_group *g)
{
    free(g->put_by);
    free(g->segments.parts);
    engine_destroy(g->engine);
    roster_unref(g->first);
    group_unref(g->ranks);
    free(g->node);
    *g = (struct keel_group){.client = c, .generation = g->generation, .freed = true};
    if (g->generation ==
        UINT16_MAX) { /* segments of all its groups may be about: it is kept for them, and not used again */
        g->next = c->coll.spent;
        c->coll.spent = g;
        return;
    }
    g->next = c->coll.idle;
    c->coll.idle = g;
}

/* All memory for a group of at most n members. NULL: there is not so much. */
static struct keel_group *coll_room_new(struct client *c, int n)
{
    struct keel_group *g = take_memory(c);
    if (!g)
        return NULL;
    g->put_by = calloc(1, sizeof *g->put_by);
    g->node = malloc((size_t)(n ? n : 1) * sizeof *g->node);
    g->engine = engine_room(n);
    g->first = roster_room(n);
    g->ranks = group_room(n);
    if (g->put_by && g->node && g->engine && g->first && g->ranks)
        return g;
    give_memory(c, g);
    return NULL;
}

void coll_room_free(struct client *c, struct keel_group *room)
{
    if (room)
        give_memory(c, room);
}

/* The slot of a rank, where it started: the same for all, whatever happened since. */
static void set_nodes(struct keel_group *g)
{
    int n = group_size(g->ranks);
    int *less = realloc(g->node, (size_t)(n ? n : 1) * sizeof *g->node);
    g->node = less ? less : g->node;
    for (int m = 0; m < n; m++)
        g->node[m] = (int)page_rank(g->client->page, group_rank(g->ranks, m))->slot;
}

/* The room, whose ranks are known, becomes a group. False (coll_start_engine): it is gone. */
static bool open_group(struct keel_group *g, uint64_t birth, bool creation)
{
    struct client *c = g->client;
    g->birth = birth;
    g->creation = creation;
    g->next = c->coll.groups;
    c->coll.groups = g;
    struct keel_group **bucket = &c->coll.by_id[group_id(g->ranks) % COLL_BUCKETS];
    g->next_of_id = *bucket;
    *bucket = g;
    set_nodes(g);
    if (coll_start_engine(g))
        return true;
    coll_group_destroy(g);
    return false;
}

void coll_group_destroy(struct keel_group *g)
{
    struct client *c = g->client;
    struct keel_group **link = &c->coll.groups;
    while (*link != g)
        link = &(*link)->next;
    *link = g->next;
    link = &c->coll.by_id[group_id(g->ranks) % COLL_BUCKETS];
    while (*link != g)
        link = &(*link)->next_of_id;
    *link = g->next_of_id;
    while (g->requests)
        coll_request_free(g, g->requests);
    coll_room_free(c, g->room);
    give_memory(c, g);
}

/* ---- messages of unknown groups ---- */

static uint64_t made_number(const struct client *c, uint64_t id)
{
    for (size_t i = 0; i < c->coll.n_made; i++)
        if (c->coll.made[i].id == id)
            return c->coll.made[i].number;
    return 0;
}

static bool remember_made(struct client *c, uint64_t id, uint64_t number)
{
    struct coll *k = &c->coll;
    for (size_t i = 0; i < k->n_made; i++)
        if (k->made[i].id == id) {
            k->made[i].number = number;
            return true;
        }
    if (k->n_made == k->cap_made) {
        size_t cap = k->cap_made ? 2 * k->cap_made : 16;
        struct made_count *more = realloc(k->made, cap * sizeof *more);
        if (!more)
            return false;
        k->made = more;
        k->cap_made = cap;
    }
    k->made[k->n_made++] = (struct made_count){id, number};
    return true;
}

static void drop_stray(struct client *c, struct stray **link)
{
    struct stray *s = *link;
    *link = s->next;
    if (!*link)
        c->coll.strays_tail = link;
    c->coll.stray_bytes -= s->len;
    free(s);
}

void coll_stray(struct client *c, uint64_t group, int from, bool creating, const void *data, size_t len)
{
    struct message_head h;
    uint64_t made = creating ? made_number(c, group) : UINT64_MAX;
    bool done = creating && message_head_read(data, len, &h) && engine_number(h.seq) <= made;
    if (done || (!creating && !c->coll.creating)) {
        (void)coll_note(c, from, PARCEL_GONE, group, made); /* memory for it is reserved, here and below */
        return;
    }
    struct stray *s = c->coll.stray_bytes + len <= STRAY_BYTES_MAX ? malloc(sizeof *s + len) : NULL;
    if (!s) { /* the sender's timers and attempts make it good */
        (void)coll_note(c, from, PARCEL_LOST, group, 0);
        return;
    }
    *s =
        (struct stray){.group = group, .from = from, .life = c->coll.life[from].life, .creating = creating, .len = len};
    memcpy(s->data, data, len);
    *c->coll.strays_tail = s;
    c->coll.strays_tail = &s->next;
    c->coll.stray_bytes += len;
}

static void coll_strays_of(struct client *c, struct keel_group *g, uint64_t now)
{
    for (struct stray **link = &c->coll.strays; *link;) {
        struct stray *s = *link;
        int member = group_member_of(g->ranks, s->from);
        if (s->group != group_id(g->ranks)) {
            link = &s->next;
            continue;
        }
        if (g->engine && member >= 0 && coll_member_lives(g, member))
            engine_receive(g->engine, member, s->data, s->len, now);
        drop_stray(c, link);
    }
    if (g->engine)
        coll_wake_at(c, engine_deadline(g->engine));
}

/* The senders that have died say nothing any more. */
void coll_strays_view(struct client *c)
{
    for (struct stray **link = &c->coll.strays; *link;) {
        if ((*link)->life == c->coll.life[(*link)->from].life)
            link = &(*link)->next;
        else
            drop_stray(c, link);
    }
}

void coll_strays_told(struct client *c, uint64_t now)
{
    if (!c->coll.strays_left || c->coll.creating)
        return;
    c->coll.strays_left = false;
    for (struct stray **link = &c->coll.strays; *link;) {
        if ((*link)->creating) {
            link = &(*link)->next;
            continue;
        }
        if (!coll_note(c, (*link)->from, PARCEL_GONE, (*link)->group, UINT64_MAX)) {
            c->coll.strays_left = true;
            coll_wake_at(c, now + COLL_MISSED_NS);
            return;
        }
        drop_stray(c, link);
    }
}

/* Nothing is being created any more: what is left is of groups that were freed here. */
static void created(struct client *c)
{
    if (--c->coll.creating)
        return;
    c->coll.strays_left = true;
    coll_strays_told(c, c->env.now(c->env.user));
}

/* ---- those that are always there ---- */

static struct keel_group *first_group(struct client *c, const int *list, int n, uint64_t number, uint64_t birth)
{
    struct keel_group *g = coll_room_new(c, n);
    if (!g)
        return NULL;
    (void)group_list_in(g->ranks, c->size, list, n, number); /* a right one */
    g->of_segments = number == NUMBER_SEGMENTS;
    return open_group(g, birth, false) ? g : NULL;
}

bool coll_first_groups(struct client *c)
{
    struct coll *k = &c->coll;
    int *list = malloc((size_t)c->size * sizeof *list), n = 0;
    if (!list)
        return false;
    for (int r = 0; r < c->size; r++)
        list[r] = r;
    k->living = first_group(c, list, c->size, NUMBER_LIVING, UINT64_MAX);
    k->segments = first_group(c, list, c->size, NUMBER_SEGMENTS, UINT64_MAX);
    bool joined = k->living && (!k->living->engine || engine_join(k->living->engine, c->collectives)) && k->segments &&
                  (!k->segments->engine || engine_join(k->segments->engine, c->segments.instance));
    if (joined && k->living->engine && k->segments->engine)
        engine_pair(k->living->engine, k->segments->engine);
    k->world = first_group(c, list, c->size, 0, 1);
    for (int r = 0; r < c->size; r++)
        if (page_rank(c->page, r)->slot == page_rank(c->page, c->rank)->slot)
            list[n++] = r;
    k->node = first_group(c, list, n, NUMBER_NODE, 1);
    k->room = coll_room_new(c, c->size);
    free(list);
    return k->world && k->node && joined && k->room;
}

/* ---- creation ----
 *
 * All memory is taken before the call that finds out who is in the group. Who has none takes part all the same, and all are told (engine_call.refuses). */

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
    (void)open_group(room, birth, false);
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
    (void)open_group(room, birth, true);
    if (!room->engine) {
        coll_group_destroy(room);
        return KEEL_ERR_STATE;
    }
    engine_skip_repairs(room->engine, made_number(c, id));
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

/* A call on the creator has come to nothing on all members. Who has not heard may ask, until all have begun one more. False: there is no memory for it. */
static bool close_creation(struct client *c, struct keel_group *creator)
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
    if (status == KEEL_OK && creator->owes && !close_creation(c, creator))
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
        (void)close_creation(c, creator); /* else it is owed */
    creator->made--;
    if (!creator->made) {
        c->coll.gone = true;
        coll_wake_at(c, 0);
    }
    created(c);
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
    created(c);
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
    created(c);
    pthread_mutex_unlock(&c->lock);
    free(both);
    free(all);
    return status;
}

/* ---- the end ---- */

keel_status coll_revoke(struct keel_group *g)
{
    keel_status status = coll_check(g->client, g);
    if (status != KEEL_OK)
        return status;
    struct client *c = g->client;
    client_lock(c);
    uint64_t now = c->env.now(c->env.user);
    engine_revoke(g->engine, now);
    courier_keep(c, g, 0, now);
    coll_wake_at(c, engine_deadline(g->engine));
    pthread_mutex_unlock(&c->lock);
    return KEEL_OK;
}

keel_status coll_group_free(struct keel_group *g)
{
    struct client *c = g->client;
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (g->freed || g == c->coll.world || g == c->coll.node)
        return KEEL_ERR_ARG;
    if (c->task_run.open)
        return KEEL_ERR_STATE;
    client_lock(c);
    keel_status status = g->requests ? KEEL_ERR_STATE : KEEL_OK;
    struct engine_call call = {.kind = ENGINE_SHRINK};
    struct keel_request *r = NULL;
    if (status == KEEL_OK)
        status = coll_request_new(g, &r);
    if (status == KEEL_OK) {
        r->own = true;
        status = coll_begin(g, &call, r);
        g->freed = status == KEEL_OK;
    }
    if (c->coll.gone)
        coll_collect(c);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Others are at the next creation already, and what they have sent for it came here. */
static bool has_early(const struct keel_group *g)
{
    return g->engine && engine_has_early(g->engine);
}

/* Destroy what nobody asks about any more. */
void coll_collect(struct client *c)
{
    c->coll.gone = false;
    for (struct keel_group *g = c->coll.groups, *next; g; g = next) {
        next = g->next; /* a group's creator was made before it, and comes behind it */
        if (!g->gone && (!g->creation || g->made || g->closing || has_early(g)))
            continue;
        if (g->owes && close_creation(c, g) && g->closing)
            continue;
        if (g->owes || (g->creation && !remember_made(c, group_id(g->ranks), engine_repairs_started(g->engine)))) {
            c->coll.gone = true;
            coll_wake_at(c, c->env.now(c->env.user) + COLL_MISSED_NS);
            continue;
        }
        if (g->creator)
            g->creator->made--;
        quick_forget(g);
        coll_group_destroy(g);
    }
    if (!c->coll.room)
        c->coll.room = coll_room_new(c, c->size); /* there is memory again, it may be */
}
