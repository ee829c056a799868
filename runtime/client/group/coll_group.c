/* Groups: from creation to the moment when nobody asks about them any more.
 *
 * Creation by a list: an engine whose identity is that of list and tag finds out who lives of the listed (a shrink);
 * these, and the number of that shrink, are the group. Who has not called yet keeps what the others send (strays).
 * A message of an unknown group while something is being created here may be of that; else the group was freed here:
 *
 *   freed ── a shrink of the group among those who live ──► gone: all have freed it, so all have completed what came
 *   before
 *
 * and who is still in that last shrink hears so from whoever is through with it (PARCEL_GONE). A creation of which
 * nothing came, as some had no memory, ends so, too. */
#include <stdlib.h>

#include "collectives/group.h"
#include "runtime/client/client.h"
#include "runtime/client/group/coll_int.h"
#include "runtime/client/group/quick.h"
#include "runtime/client/threads.h"

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

struct keel_group *coll_room_new(struct client *c, int n)
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

bool coll_open_group(struct keel_group *g, uint64_t birth, bool creation)
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

static struct keel_group *first_group(struct client *c, const int *list, int n, uint64_t number, uint64_t birth)
{
    struct keel_group *g = coll_room_new(c, n);
    if (!g)
        return NULL;
    (void)group_list_in(g->ranks, c->size, list, n, number); /* a right one */
    g->of_segments = number == NUMBER_SEGMENTS;
    return coll_open_group(g, birth, false) ? g : NULL;
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
        if (g->owes && coll_close_creation(c, g) && g->closing)
            continue;
        if (g->owes ||
            (g->creation && !coll_remember_made(c, group_id(g->ranks), engine_agreements_started(g->engine)))) {
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
