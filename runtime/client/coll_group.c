/* Groups: from creation to the moment when nobody asks about them any more.
 *
 * Creation by a list: an engine whose identity is that of list and tag finds out who lives of the listed (a shrink); these, and
 * the number of that shrink, are the group. Who has not called yet keeps what the others send (strays).
 * A message of an unknown group while something is being created here may be of that; else the group was freed here:
 *
 *   freed ── a shrink of the group among those who live ──► gone: all have freed it, so all have completed what came before
 *
 * and who is still in that last shrink hears so from whoever is through with it (PARCEL_GONE). */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "collectives/message.h"
#include "runtime/base/bitset.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = a * 0x9e3779b97f4a7c15ull ^ (b + 0x7f4a7c159e3779b9ull + (a << 6) + (a >> 2));
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    return h ^ (h >> 27);
}

enum { NUMBER_NODE = 1, NUMBER_CREATE = 2, NUMBER_AMONG = 3, NUMBER_SPLIT = 4, NUMBER_SHRINK = 5, NUMBER_LIVING = 6 };

/* ---- handles ---- */

struct keel_group *coll_group_find(const struct client *c, uint64_t id)
{
    struct keel_group *g = c->coll.by_id[id % COLL_BUCKETS];
    while (g && group_id(g->ranks) != id)
        g = g->next_of_id;
    return g;
}

/* The slot of a rank, where it started: the same for all, whatever happened since. */
static bool set_nodes(struct keel_group *g)
{
    int n = group_size(g->ranks);
    g->node = malloc((size_t)(n ? n : 1) * sizeof *g->node);
    for (int m = 0; g->node && m < n; m++)
        g->node[m] = (int)page_rank(g->client->page, group_rank(g->ranks, m))->slot;
    return g->node != NULL;
}

struct keel_group *coll_group_new(struct client *c, struct group *ranks, uint64_t birth, bool creation)
{
    struct keel_group *g = c->coll.idle;
    uint16_t generation = g ? (uint16_t)(g->generation + 1) : 0;
    if (g)
        c->coll.idle = g->next;
    else
        g = malloc(sizeof *g);
    if (!g) {
        group_unref(ranks);
        return NULL;
    }
    *g = (struct keel_group){.client = c,
                             .generation = generation,
                             .ranks = ranks,
                             .birth = birth,
                             .creation = creation,
                             .next = c->coll.groups};
    c->coll.groups = g;
    struct keel_group **bucket = &c->coll.by_id[group_id(ranks) % COLL_BUCKETS];
    g->next_of_id = *bucket;
    *bucket = g;
    g->put_by = calloc(1, sizeof *g->put_by);
    if (g->put_by && set_nodes(g) && coll_start_engine(g))
        return g;
    coll_group_destroy(g);
    return NULL;
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
    free(g->put_by);
    engine_destroy(g->engine);
    group_unref(g->ranks);
    free(g->node);
    *g = (struct keel_group){.client = c, .generation = g->generation, .freed = true};
    if (g->generation ==
        UINT16_MAX) { /* handles of all its groups may be about: it is kept for them, and not used again */
        g->next = c->coll.spent;
        c->coll.spent = g;
        return;
    }
    g->next = c->coll.idle;
    c->coll.idle = g;
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
    bool done = creating && message_head_read(data, len, &h) && h.seq / 2 <= made_number(c, group);
    if (done || (!creating && !c->coll.creating)) {
        (void)coll_note(c, from, PARCEL_GONE, group); /* memory for it is reserved, here and below */
        return;
    }
    struct stray *s = c->coll.stray_bytes + len <= STRAY_BYTES_MAX ? malloc(sizeof *s + len) : NULL;
    if (!s) { /* the sender's timers and attempts make it good */
        (void)coll_note(c, from, PARCEL_LOST, group);
        return;
    }
    *s =
        (struct stray){.group = group, .from = from, .life = c->coll.life[from].life, .creating = creating, .len = len};
    memcpy(s->data, data, len);
    *c->coll.strays_tail = s;
    c->coll.strays_tail = &s->next;
    c->coll.stray_bytes += len;
}

void coll_strays_of(struct client *c, struct keel_group *g, uint64_t now)
{
    for (struct stray **link = &c->coll.strays; *link;) {
        struct stray *s = *link;
        int member = group_member(g->ranks, s->from);
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
        if (!coll_note(c, (*link)->from, PARCEL_GONE, (*link)->group)) {
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

bool coll_first_groups(struct client *c)
{
    struct group *ranks;
    int *list = malloc((size_t)c->size * sizeof *list), n = 0;
    for (int r = 0; list && r < c->size; r++)
        list[r] = r;
    if (list && group_list(c->size, list, c->size, NUMBER_LIVING, &ranks) == GROUP_OK)
        c->coll.living = coll_group_new(c, ranks, UINT64_MAX, false);
    if (c->coll.living && c->coll.living->engine)
        engine_join(c->coll.living->engine, c->collectives);
    for (int r = 0; list && r < c->size; r++)
        if (page_rank(c->page, r)->slot == page_rank(c->page, c->rank)->slot)
            list[n++] = r;
    if (list && group_world(c->size, &ranks) == GROUP_OK)
        c->coll.world = coll_group_new(c, ranks, 1, false);
    if (list && group_list(c->size, list, n, NUMBER_NODE, &ranks) == GROUP_OK)
        c->coll.node = coll_group_new(c, ranks, 1, false);
    free(list);
    return c->coll.world && c->coll.node && c->coll.living;
}

/* ---- creation ---- */

static keel_status from_group(enum group_status s)
{
    return s == GROUP_OK ? KEEL_OK : s == GROUP_BAD ? KEEL_ERR_ARG : KEEL_ERR_NOMEM;
}

/* The new group of the members in the set of old. */
static keel_status make(struct client *c, struct group *ranks, uint64_t birth, struct keel_group *creator,
                        keel_group **out)
{
    if (coll_group_find(c, group_id(ranks))) {
        group_unref(ranks);
        return KEEL_ERR_STATE;
    }
    struct keel_group *g = coll_group_new(c, ranks, birth, false);
    if (!g)
        return KEEL_ERR_NOMEM;
    g->creator = creator;
    if (creator)
        creator->made++;
    coll_strays_of(c, g, c->env.now(c->env.user));
    *out = g;
    return KEEL_OK;
}

static keel_status creator_of(struct client *c, struct group *ranks, uint64_t birth, struct keel_group **out)
{
    *out = coll_group_find(c, group_id(ranks));
    if (*out) {
        group_unref(ranks);
        return KEEL_OK;
    }
    uint64_t id = group_id(ranks);
    *out = coll_group_new(c, ranks, birth, true);
    if (!*out)
        return KEEL_ERR_NOMEM;
    if (!(*out)->engine) {
        coll_group_destroy(*out);
        return KEEL_ERR_STATE;
    }
    engine_skip_repairs((*out)->engine, made_number(c, id));
    return KEEL_OK;
}

/* Takes ranks over. Lock held. */
static keel_status create(struct client *c, struct group *ranks, uint64_t birth, keel_group **out)
{
    struct keel_group *creator;
    struct keel_request *r = NULL;
    struct engine_call call = {.kind = ENGINE_SHRINK};
    keel_status status = creator_of(c, ranks, birth, &creator);
    if (status != KEEL_OK)
        return status;
    if (!creator->unfinished) {
        creator->made++;
        c->coll.creating++;
    }
    coll_strays_of(c, creator, c->env.now(c->env.user));
    FAULT_POINT("group.creating");
    status = coll_finish(creator, &call, &r);
    FAULT_POINT("group.created");
    if (creator->unfinished)
        return status;
    if (status == KEEL_OK) {
        struct group *group;
        uint64_t number = mix(mix(group_id(creator->ranks), r->seq), NUMBER_CREATE), epoch = roster_epoch(r->covered);
        status = from_group(group_keep(creator->ranks, roster_bits(r->covered), number, &group));
        if (status == KEEL_OK)
            status = make(c, group, birth == UINT64_MAX ? epoch : birth, creator, out);
    }
    if (r)
        coll_request_free(creator, r);
    creator->made--;
    if (!creator->made) {
        c->coll.gone = true;
        coll_wake_at(c, 0);
    }
    created(c);
    return status;
}

keel_status coll_create(struct client *c, const int *list, int n, uint64_t tag, keel_group **out)
{
    struct group *ranks;
    *out = NULL;
    if (!c->ready || c->in_task)
        return KEEL_ERR_STATE;
    if (n <= 0 || !list)
        return KEEL_ERR_ARG;
    keel_status status = from_group(group_list(c->size, list, n, mix(tag, NUMBER_CREATE), &ranks));
    if (status != KEEL_OK)
        return status;
    if (group_member(ranks, c->rank) < 0) {
        group_unref(ranks);
        return KEEL_ERR_ARG;
    }
    pthread_mutex_lock(&c->lock);
    coll_see_views(c, c->env.now(c->env.user));
    status = create(c, ranks, UINT64_MAX, out);
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
    struct group *ranks;
    if (n <= 0 || !members)
        return KEEL_ERR_ARG;
    pthread_mutex_lock(&c->lock);
    status = from_group(group_include(g->ranks, members, n, mix(group_id(g->ranks), NUMBER_AMONG), &ranks));
    if (status == KEEL_OK && group_member(ranks, c->rank) < 0) {
        group_unref(ranks);
        status = KEEL_ERR_ARG;
    }
    coll_see_views(c, c->env.now(c->env.user));
    if (status == KEEL_OK)
        status = create(c, ranks, g->birth, out);
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status coll_shrink(struct keel_group *g, keel_group **out)
{
    *out = NULL;
    keel_status status = coll_check(g->client, g);
    if (status != KEEL_OK)
        return status;
    struct client *c = g->client;
    struct engine_call call = {.kind = ENGINE_SHRINK};
    struct keel_request *r = NULL;
    pthread_mutex_lock(&c->lock);
    bool other = g->unfinished; /* its own, or one that is in the way */
    c->coll.creating += !other;
    status = coll_finish(g, &call, &r);
    if (g->unfinished) {
        c->coll.creating -= !other && g->unfinished_call.kind != ENGINE_SHRINK;
        pthread_mutex_unlock(&c->lock);
        return status;
    }
    if (status == KEEL_OK) {
        struct group *group;
        uint64_t number = mix(mix(group_id(g->ranks), r->seq), NUMBER_SHRINK);
        status = from_group(group_keep(g->ranks, roster_bits(r->covered), number, &group));
        if (status == KEEL_OK)
            status = make(c, group, g->birth, NULL, out);
    }
    if (r)
        coll_request_free(g, r);
    created(c);
    pthread_mutex_unlock(&c->lock);
    return status;
}

struct wish {
    int32_t colour, key;
};

/* What the covered members wish for becomes the caller's group. */
static keel_status split(struct keel_group *g, const struct keel_request *r, const struct wish *wish, int colour,
                         keel_group **out)
{
    int n = group_size(g->ranks);
    int *colours = calloc((size_t)n, sizeof *colours), *keys = calloc((size_t)n, sizeof *keys);
    keel_status status = colours && keys ? KEEL_OK : KEEL_ERR_NOMEM;
    for (int m = 0; status == KEEL_OK && m < n; m++) {
        colours[m] = roster_has(r->covered, m) ? wish[m].colour : -1;
        keys[m] = wish[m].key;
    }
    struct group *group;
    if (status == KEEL_OK && colour >= 0) {
        uint64_t number = mix(mix(group_id(g->ranks), r->seq), NUMBER_SPLIT);
        status = from_group(group_split(g->ranks, colours, keys, colour, number, &group));
        if (status == KEEL_OK)
            status = make(g->client, group, g->birth, NULL, out);
    }
    free(colours);
    free(keys);
    return status;
}

keel_status coll_split(struct keel_group *g, int colour, int key, keel_group **out)
{
    *out = NULL;
    keel_status status = coll_check(g->client, g);
    if (status != KEEL_OK)
        return status;
    struct client *c = g->client;
    struct wish mine = {colour, key}, *all = calloc((size_t)group_size(g->ranks), sizeof *all);
    struct engine_call call = {
        .kind = ENGINE_MOVE, .move = SCHEDULE_ALLGATHER, .in = &mine, .out = all, .len = sizeof mine, .refuses = !all};
    struct keel_request *r = NULL;
    pthread_mutex_lock(&c->lock);
    c->coll.creating++;
    status = coll_finish(g, &call, &r);
    if (status == KEEL_OK)
        status = all ? split(g, r, all, colour, out) : KEEL_ERR_NOMEM; /* without it the call has ended so for all */
    if (r)
        coll_request_free(g, r);
    created(c);
    pthread_mutex_unlock(&c->lock);
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
    pthread_mutex_lock(&c->lock);
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
    if (g->freed || g == c->coll.world || g == c->coll.node)
        return KEEL_ERR_ARG;
    if (!c->ready || c->in_task)
        return KEEL_ERR_STATE;
    pthread_mutex_lock(&c->lock);
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

/* Destroy what nobody asks about any more. */
void coll_collect(struct client *c)
{
    c->coll.gone = false;
    for (struct keel_group *g = c->coll.groups, *next; g; g = next) {
        next = g->next; /* a group's creator was made before it, and comes behind it */
        if (!g->gone &&
            (!g->creation || g->made || !remember_made(c, group_id(g->ranks), engine_repairs_started(g->engine))))
            continue;
        if (g->creator)
            g->creator->made--;
        quick_forget(g);
        coll_group_destroy(g);
    }
}
