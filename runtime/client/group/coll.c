#include "collectives/group.h"
#include "runtime/client/group/coll.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/message.h"
#include "runtime/base/bitset.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/group/behind.h"
#include "runtime/client/group/quick.h"
#include "runtime/client/stream/link.h"
#include "runtime/client/stream/mail.h"
#include "runtime/wire/complete.h"

/* ---- lives ---- */

static bool is_consistent(const struct page *p, uint64_t before)
{
    atomic_thread_fence(memory_order_acquire);
    return !(before & 1) && atomic_load_explicit(&p->showing, memory_order_relaxed) == before;
}

static void read_lives(struct client *c)
{
    const struct page *p = c->page;
    uint64_t before;
    do {
        before = atomic_load_explicit(&p->showing, memory_order_acquire);
        c->coll.changes = atomic_load_explicit(&p->changes, memory_order_relaxed);
        for (int r = 0; r < c->size; r++) {
            const struct page_rank *k = page_rank(p, r);
            struct known_life *l = &c->coll.life[r];
            l->life = l->newest = atomic_load_explicit(&k->life, memory_order_relaxed);
            l->joined = atomic_load_explicit(&k->joined, memory_order_relaxed);
            l->changed = atomic_load_explicit(&k->changed, memory_order_relaxed);
            l->after = atomic_load_explicit(&k->after, memory_order_relaxed);
        }
    } while (!is_consistent(p, before));
}

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
    read_lives(c);
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

bool coll_is_of_all(const struct keel_group *g)
{
    return g->birth == UINT64_MAX && !g->creation;
}

uint64_t coll_epoch(uint64_t of_roster)
{
    return of_roster ? of_roster - 1 : 0; /* rosters count from 1 */
}

/* When each of them joined. */
static bool add_after(const struct keel_group *g, struct roster *r)
{
    int n = group_size(g->ranks);
    uint64_t *after = malloc((size_t)n * sizeof *after);
    for (int m = 0; after && m < n; m++) {
        uint64_t complete = g->client->coll.life[group_rank(g->ranks, m)].after;
        after[m] = g->of_segments ? complete_segments(complete) : complete_collectives(complete);
    }
    bool ok = after && roster_set_after(r, after);
    free(after);
    return ok;
}

/* Who lives of the group, as of the last view that changed anything of its ranks. False: there is no memory for those of the groups of whoever lives. */
static bool fill_roster(const struct keel_group *g, struct roster *room)
{
    int n = group_size(g->ranks);
    uint64_t epoch = 0;
    for (int m = 0; m < n; m++) {
        const struct known_life *l = &g->client->coll.life[group_rank(g->ranks, m)];
        epoch = l->changed > epoch ? l->changed : epoch;
        if (coll_member_lives(g, m))
            bitset_add(roster_room_bits(room), m);
    }
    roster_fill(room, n, epoch + 1);
    return !coll_is_of_all(g) || add_after(g, room);
}

/* NULL: there is no memory. */
static struct roster *roster_now(const struct keel_group *g)
{
    struct roster *r = roster_room(group_size(g->ranks));
    if (!r || fill_roster(g, r))
        return r;
    roster_unref(r);
    return NULL;
}

static void group_view(struct keel_group *g, uint64_t now)
{
    int self = group_member_of(g->ranks, g->client->rank);
    g->view_missed = false;
    if (!g->engine || !coll_member_lives(g, self)) /* this process has left the job */
        return;
    struct roster *r = roster_now(g);
    quick_view(g);
    if (!r || !engine_view(g->engine, r, now))
        g->view_missed = g->client->coll.view_missed = true;
    else
        coll_wake_at(g->client, engine_deadline(g->engine));
    roster_unref(r);
}

/* The groups that had no memory for the last view. False: some still have none. */
static bool missed_view(struct client *c, uint64_t now)
{
    c->coll.view_missed = false;
    for (struct keel_group *g = c->coll.groups; g; g = g->next)
        if (g->view_missed)
            group_view(g, now);
    if (c->coll.view_missed)
        coll_wake_at(c, now + COLL_MISSED_NS);
    return !c->coll.view_missed;
}

/* The changes of one view; n of them. */
static void apply(struct client *c, const struct page_change *change, size_t n, uint64_t now)
{
    for (size_t i = 0; i < n; i++) {
        struct known_life *l = &c->coll.life[change[i].rank];
        bool joins = change[i].life > l->newest;
        l->life = change[i].life;
        l->newest = joins ? l->life : l->newest;
        l->joined = joins ? change[i].epoch : l->joined;
        l->changed = change[i].epoch;
        l->after = change[i].after;
        direct_reset(c, (int)change[i].rank); /* first: nothing for the next life goes to the last one */
        courier_reset(c, (int)change[i].rank);
        mail_reset(c, (int)change[i].rank);
    }
    coll_strays_view(c);
    for (struct keel_group *g = c->coll.groups; g; g = g->next)
        for (size_t i = 0; i < n; i++)
            if (group_member_of(g->ranks, (int)change[i].rank) >= 0) {
                group_view(g, now);
                break;
            }
}

void coll_see_views(struct client *c, uint64_t now)
{
    const struct page *p = c->page;
    behind_see(c, now);
    uint64_t seen = c->coll.changes, n = atomic_load_explicit(&p->changes, memory_order_acquire) - seen;
    if ((n == 0 && !c->coll.view_missed) || c->coll.broken != KEEL_OK)
        return;
    if ((c->coll.view_missed && !missed_view(c, now)) || n == 0)
        return;
    struct page_change *change = calloc(n > PAGE_CHANGES ? 1 : n, sizeof *change);
    for (uint64_t i = 0; change && n <= PAGE_CHANGES && i < n; i++)
        change[i] = p->change[(seen + i) % PAGE_CHANGES];
    atomic_thread_fence(memory_order_acquire);
    bool writing = atomic_load_explicit(&p->showing, memory_order_relaxed) & 1;
    uint64_t after = atomic_load_explicit(&p->changes, memory_order_relaxed) - seen;
    if (!change) {
        coll_wake_at(c, now + COLL_MISSED_NS);
        return;
    }
    if (after + (writing ? p->ranks : 0) > PAGE_CHANGES) {
        coll_break(c, KEEL_ERR_LIMIT);
        free(change);
        return;
    }
    for (uint64_t from = 0, to; from < n && !c->coll.view_missed; from = to) {
        for (to = from + 1; to < n && change[to].epoch == change[from].epoch;)
            to++;
        c->coll.changes = seen + to;
        apply(c, change + from, to - from, now);
    }
    if (c->coll.view_missed)
        coll_wake_at(c, now + COLL_MISSED_NS);
    free(change);
    FAULT_POINT("coll.view_seen");
}

/* ---- engines ---- */

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
    bool ok = fill_roster(g, r);
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
    if (kind == PARCEL_MAIL || kind == PARCEL_MAIL_TAKEN) {
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
    if (kind == PARCEL_MAIL)
        mail_starved(c);
    struct keel_group *g = kind == PARCEL_ENGINE && engine_peek(head, len, &id) ? coll_group_find(c, id) : NULL;
    int member = g && g->engine ? group_member_of(g->ranks, from) : -1;
    if (member < 0 || !coll_member_lives(g, member))
        return false;
    engine_starved(g->engine, member, head, len, now);
    coll_wake_at(c, engine_deadline(g->engine));
    return true;
}

/* ---- time ---- */

static int node_of(const struct client *c, int rank)
{
    return (int)(int32_t)(atomic_load_explicit(&page_rank(c->page, rank)->where, memory_order_acquire) >> 32);
}

/* A process that the call needs is stopped, and does not go on. Ordinary calls of a group are given up: whoever leaves lets the
 * others go. The collectives of all live ranks, and what finds out who lives (agree, shrink), end here, and go on when they
 * are called again. */
static void give_up(struct keel_group *g, struct keel_request *r, int member, uint64_t now)
{
    struct client *c = g->client;
    int rank = group_rank(g->ranks, member);
    log_error("rank %d on node %d is stopped, %s has waited for it for %llu ms", rank, node_of(c, rank),
              r->settles ? "keel_finalize"
              : r->own   ? "keel_group_free"
                         : wait_call_name(r->call),
              (unsigned long long)((now - r->look.stopped_since) / KEEL_NS_PER_MS));
    if (g->patient) {
        look_again(&r->look, now); /* and said again */
        return;
    }
    if (!coll_is_of_all(g) && engine_is_ordinary(r->seq)) {
        engine_revoke_for(g->engine, member, now);
        courier_keep(c, g, 0, now);
        r->status = KEEL_ERR_TIMEOUT;
        look_forget(&r->look); /* of who leaves: another one may be, too */
    } else if (r->own) {
        look_again(&r->look, now); /* no caller waits; it is said again */
    } else {
        r->stalled = true;
        r->blamed = member;
        look_forget(&r->look); /* who calls again waits as long again */
    }
}

static void ask_process(struct client *c, int rank, uint64_t now)
{
    struct control ask = {.type = CONTROL_STATUS, .slot = node_of(c, rank), .a = rank, .b = (int64_t)now};
    if (ask.slot >= 0 && rank != c->rank)
        (void)c->env.tell(c->env.user, &ask); /* asked again, if it was lost */
}

static struct look_member look_at(const void *group, int member)
{
    const struct keel_group *g = group;
    const struct client *c = g->client;
    int rank = group_rank(g->ranks, member);
    const struct page_rank *k = page_rank(c->page, rank);
    struct look_member m = {.lives = rank != c->rank && coll_member_lives(g, member)};
    m.answered = atomic_load_explicit(&k->looked, memory_order_acquire);
    m.stopped = atomic_load_explicit(&k->process, memory_order_relaxed) == PAGE_PROCESS_STOPPED;
    return m;
}

static void look_after(struct keel_group *g, struct keel_request *r, int waits, bool due, uint64_t now)
{
    struct client *c = g->client;
    int member = look_turn(&r->look, group_size(g->ranks), waits, due, look_at, g, c->timeout_ns, now);
    if (member >= 0)
        ask_process(c, group_rank(g->ranks, member), now);
    if (look_found(&r->look))
        give_up(g, r, r->look.stopped, now);
    coll_wake_at(c, r->look.next);
}

/* A call is complete, but there is no room for what the rank is to get: is it stopped? Then nobody waits for that. */
static void look_after_receiver(struct client *c, int rank, uint64_t now)
{
    struct stream *s = &c->coll.stream[rank];
    const struct page_rank *k = page_rank(c->page, rank);
    bool stopped = atomic_load_explicit(&k->process, memory_order_relaxed) == PAGE_PROCESS_STOPPED;
    if (s->asked_at && atomic_load_explicit(&k->looked, memory_order_acquire) >= s->asked_at)
        s->stopped_since = !stopped ? 0 : s->stopped_since ? s->stopped_since : now;
    s->given_up = s->stopped_since && now - s->stopped_since > c->timeout_ns;
    if (s->given_up)
        log_error("rank %d is stopped, what it is to get of a collective has waited for it for %llu ms", rank,
                  (unsigned long long)((now - s->stopped_since) / KEEL_NS_PER_MS));
    s->asked_at = now;
    ask_process(c, rank, now);
}

/* A call of it is complete, and does not wait for who is stopped. */
static bool has_completed(const struct keel_group *g, const void *arg)
{
    (void)arg;
    const struct keel_request *r = g->patient ? NULL : g->requests;
    while (r && !r->done)
        r = r->next;
    return r;
}

static void look_after_receivers(struct client *c, uint64_t now)
{
    const struct keel_group *any = c->coll.groups;
    while (any && !(any->engine && has_completed(any, NULL)))
        any = any->next;
    for (int rank = 0; any && rank < c->size; rank++) {
        if (!courier_has_engine_of(c, rank, has_completed, NULL))
            continue;
        if (now >= c->coll.stream[rank].asked_at + LOOK_NS)
            look_after_receiver(c, rank, now);
        coll_wake_at(c, now + LOOK_NS);
    }
}

/* Who is waited for for long: does its node live, does its process run? due: for as long again as when that was asked last. */
static void ask_about(struct keel_group *g, bool due, uint64_t now)
{
    struct client *c = g->client;
    for (struct keel_request *r = g->requests, *next; r; r = next) {
        next = r->next;
        if (!due && now < r->look.next) {
            coll_wake_at(c, r->look.next);
            continue;
        }
        if (r->settles)
            r->seq = engine_unsettled(g->engine);
        int member = r->done ? -1 : engine_waits_for(g->engine, r->seq);
        int node = member < 0 ? -1 : node_of(c, group_rank(g->ranks, member));
        if (node >= 0 && due)
            link_ask_agent(c, node, now);
        if (member >= 0 && !r->stalled)
            look_after(g, r, member, due, now);
    }
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
        ask_about(g, due, now);
        coll_wake_at(c, engine_deadline(g->engine));
    }
    look_after_receivers(c, now);
    coll_wake_at(c, courier_tick(c, now));
    coll_wake_at(c, direct_tick(c, now));
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
