#include "collectives/group.h"
#include "runtime/client/group/coll_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/group/behind.h"
#include "runtime/client/stream/mail.h"

bool coll_init(struct client *c)
{
    struct coll *k = &c->coll;
    size_t ranks = (size_t)c->size;
    *k = (struct coll){.at = UINT64_MAX, .strays_tail = &k->strays};
    k->life = calloc(ranks, sizeof *k->life);
    k->stream = calloc(ranks, sizeof *k->stream);
    if (!k->life || !k->stream || !courier_put_by(c) || !mail_init(c))
        return false;
    for (int r = 0; r < c->size; r++)
        courier_reset(c, r);
    coll_read_lives(c);
    return coll_first_groups(c);
}

static void free_list(struct keel_group *g)
{
    while (g) {
        struct keel_group *next = g->next;
        free(g);
        g = next;
    }
}

void coll_free(struct client *c)
{
    struct coll *k = &c->coll;
    while (k->groups)
        coll_group_destroy(k->groups);
    coll_room_free(c, k->room);
    free_list(k->idle);
    free_list(k->spent);
    for (struct stray *s = k->strays, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    courier_free(c);
    mail_free(c);
    free(k->life);
    free(k->made);
    *k = (struct coll){0};
}

bool coll_member_lives(const struct keel_group *g, int member)
{
    const struct known_life *l = &g->client->coll.life[group_rank(g->ranks, member)];
    return l->life && l->joined < g->birth;
}

static bool on_send(void *user, int member, uint64_t seq, const void *head, size_t head_len, const void *data,
                    size_t len)
{
    struct keel_group *g = user;
    if (!coll_member_lives(g, member))
        return true;
    struct parcel_tag tag = {.kind = PARCEL_ENGINE, .creating = g->creation, .group = seq ? g : NULL, .seq = seq};
    return courier_send(g->client, group_rank(g->ranks, member), &tag, head, head_len, data, len);
}

/* Its result is made of what all give. */
static bool gathers(enum wait_call call)
{
    return call == WAIT_ALLREDUCE || (call >= WAIT_GROUP_FIRST && call <= WAIT_GROUP_LAST &&
                                      call != (enum wait_call)(WAIT_GROUP_FIRST + SCHEDULE_BCAST) &&
                                      call != (enum wait_call)(WAIT_GROUP_FIRST + SCHEDULE_SCATTER));
}

static void on_done(void *user, uint64_t seq, const struct engine_result *result)
{
    struct keel_group *g = user;
    struct keel_request *r = g->requests;
    while (r && r->seq != seq)
        r = r->next;
    if (!r)
        r = g->starting;
    if (!r && (seq == g->closing || g->closing == CLOSING_BEGINS)) {
        g->closing = 0;
        g->client->coll.gone = true;
        coll_wake_at(g->client, 0);
    }
    if (!r || r->done)
        return;
    r->done = true;
    r->status = coll_status_of(g, result->status);
    if (result->status == ENGINE_OK && result->members && gathers(r->call) &&
        behind_lacks(g, engine_number(seq), result->members))
        r->status = KEEL_ERR_RANK_DEAD;
    r->value = result->value;
    r->epoch = result->epoch;
    if (result->members)
        r->covered = roster_ref((struct roster *)(uintptr_t)result->members);
    if (r->own) {
        g->gone = g->client->coll.gone = true;
        coll_wake_at(g->client, 0);
    }
}

static void on_keep(void *user, uint64_t seq)
{
    struct keel_group *g = user;
    courier_keep(g->client, g, seq, g->client->env.now(g->client->env.user));
}

static void on_arrived(void *user, uint64_t seq)
{
    struct keel_group *g = user;
    courier_arrived(g->client, g, seq, g->client->env.now(g->client->env.user));
}

static void on_useless(void *user, uint64_t seq)
{
    struct keel_group *g = user;
    courier_drop(g->client, g, seq, g->client->env.now(g->client->env.user));
}

static void on_misfit(void *user, int member)
{
    const struct keel_group *g = user;
    bool allocates = g->of_segments;
    log_error("rank %d %s, and this rank is in %s: they do not make the same calls", group_rank(g->ranks, member),
              allocates ? "allocates or frees memory of all ranks" : "is in a collective of all ranks",
              allocates ? "a collective of all ranks" : "an allocation or a free");
}

bool coll_start_engine(struct keel_group *g)
{
    struct engine_ops ops = {g, on_send, on_done, on_keep, on_arrived, on_useless, on_misfit};
    int self = group_member_of(g->ranks, g->client->rank);
    struct engine *room = g->engine;
    struct roster *r = g->first;
    bool ok = coll_fill_roster(g, r);
    g->engine = NULL;
    g->first = NULL;
    if (self >= 0 && roster_has(r, self)) {
        engine_init(room, group_id(g->ranks), self, r, g->node, &ops);
        g->engine = room;
    } else {
        engine_destroy(room);
    }
    roster_unref(r);
    return ok;
}

void coll_wake_at(struct client *c, uint64_t at)
{
    if (at < c->coll.at)
        c->coll.at = at;
}

void coll_delivered(struct client *c, struct keel_group *g, uint64_t seq, int rank, uint64_t now)
{
    engine_sent(g->engine, group_member_of(g->ranks, rank), seq, now);
    coll_wake_at(c, engine_deadline(g->engine));
}

void coll_lost(struct client *c, int rank, bool no_memory, uint64_t now)
{
    for (struct keel_group *g = c->coll.groups; g; g = g->next) {
        int member = g->engine ? group_member_of(g->ranks, rank) : -1;
        if (member < 0 || !coll_member_lives(g, member))
            continue;
        if (no_memory)
            engine_unsent(g->engine, member, now);
        else
            engine_lost(g->engine, member, now);
        coll_wake_at(c, engine_deadline(g->engine));
    }
}

/* What a PARCEL_LOST or _GONE says, of which group; GONE: of its calls up to that one. */
struct note {
    uint64_t group, number;
};

bool coll_note(struct client *c, int rank, enum parcel_kind kind, uint64_t group, uint64_t number)
{
    struct parcel_tag tag = {.kind = kind};
    struct note note = {group, number};
    return courier_offer(c, rank, &tag, &note, sizeof note, NULL, 0);
}

/* All have freed it, or are through with a creation, or made it without us. */
static void gone(struct client *c, struct keel_group *g, uint64_t number)
{
    bool over = g->freed || (g->closing && engine_number(g->closing) <= number);
    for (struct keel_request *r = g->requests; r && (g->freed || g->creation); r = r->next) {
        if (!g->freed && engine_number(r->seq) > number)
            continue;
        r->status = r->done ? r->status : KEEL_ERR_STATE;
        r->done = true;
    }
    if (!over)
        return;
    g->gone = g->gone || g->freed;
    g->closing = 0;
    c->coll.gone = true;
    coll_wake_at(c, 0);
}

static void noted(struct client *c, int from, uint32_t kind, const void *data, uint64_t now)
{
    struct note note;
    memcpy(&note, data, sizeof note);
    struct keel_group *g = coll_group_find(c, note.group);
    if (!g || !g->engine)
        return;
    if (kind == PARCEL_GONE) {
        gone(c, g, note.number);
        return;
    }
    engine_lost(g->engine, group_member_of(g->ranks, from), now);
    coll_wake_at(c, engine_deadline(g->engine));
}

void coll_received(struct client *c, int from, uint32_t kind, bool creating, const void *data, size_t len, uint64_t now)
{
    uint64_t id;
    if (kind == PARCEL_SIGNAL) {
        c->signals++;
        return;
    }
    if (kind == PARCEL_WHERE) {
        direct_told(c, from, data, len, now);
        return;
    }
    if (kind == PARCEL_LOST || kind == PARCEL_GONE) {
        if (len == sizeof(struct note))
            noted(c, from, kind, data, now);
        return;
    }
    if (mail_has(kind) || kind == PARCEL_MAIL_TAKEN) {
        mail_received(c, from, kind, data, len);
        return;
    }
    if (kind != PARCEL_ENGINE || !engine_peek(data, len, &id))
        return;
    struct keel_group *g = coll_group_find(c, id);
    if (!g) {
        coll_stray(c, id, from, creating, data, len);
        return;
    }
    int member = group_member_of(g->ranks, from);
    if (!g->engine || member < 0 || !coll_member_lives(g, member))
        return;
    bool revoked = engine_revoked(g->engine);
    engine_receive(g->engine, member, data, len, now);
    if (engine_revoked(g->engine) && !revoked)
        courier_keep(c, g, 0, now);
    coll_wake_at(c, engine_deadline(g->engine));
}

bool coll_place(struct client *c, int from, const void *head, size_t total, size_t at, const void *data, size_t len,
                uint64_t now)
{
    uint64_t id;
    struct keel_group *g = engine_peek(head, ENGINE_HEAD, &id) ? coll_group_find(c, id) : NULL;
    int member = g && g->engine ? group_member_of(g->ranks, from) : -1;
    if (member < 0 || !coll_member_lives(g, member))
        return at > 0;
    bool taken = engine_place(g->engine, member, head, total, at, data, len, now);
    coll_wake_at(c, engine_deadline(g->engine));
    return taken;
}

bool coll_starved(struct client *c, int from, uint32_t kind, const void *head, size_t len, uint64_t now)
{
    uint64_t id;
    if (mail_has(kind))
        mail_starved(c);
    struct keel_group *g = kind == PARCEL_ENGINE && engine_peek(head, len, &id) ? coll_group_find(c, id) : NULL;
    int member = g && g->engine ? group_member_of(g->ranks, from) : -1;
    if (member < 0 || !coll_member_lives(g, member))
        return false;
    engine_starved(g->engine, member, head, len, now);
    coll_wake_at(c, engine_deadline(g->engine));
    return true;
}

void coll_tick(struct client *c, uint64_t now)
{
    c->coll.at = UINT64_MAX;
    if (c->coll.broken != KEEL_OK)
        return;
    coll_see_views(c, now);
    coll_strays_told(c, now);
    if (c->coll.gone)
        coll_collect(c);
    for (struct keel_group *g = c->coll.groups; g; g = g->next) {
        if (!g->engine)
            continue;
        bool due = engine_deadline(g->engine) <= now;
        if (due)
            engine_tick(g->engine, now);
        coll_ask_about(g, due, now);
        coll_wake_at(c, engine_deadline(g->engine));
    }
    coll_look_after_receivers(c, now);
    coll_wake_at(c, courier_tick(c, now));
    coll_wake_at(c, direct_tick(c, now));
}

bool coll_is_used(const struct client *c)
{
    for (const struct keel_group *g = c->coll.groups; g; g = g->next)
        for (const struct keel_request *r = g->requests; r; r = r->next)
            if (!r->own)
                return true;
    return false;
}

void coll_break(struct client *c, keel_status status)
{
    if (c->coll.broken == KEEL_OK)
        log_error("collectives end here: %s", keel_status_name(status));
    coll_end(c, status);
}

void coll_end(struct client *c, keel_status status)
{
    if (c->coll.broken != KEEL_OK)
        return;
    c->coll.broken = status;
    for (struct keel_group *g = c->coll.groups; g; g = g->next)
        for (struct keel_request *r = g->requests; r; r = r->next) {
            r->status = r->done ? r->status : status;
            r->done = true;
        }
}
