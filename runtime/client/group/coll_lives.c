/* Whose lives the members of groups are, and the views in which they end. */
#include "collectives/group.h"
#include "runtime/client/group/coll_int.h"

#include <stdlib.h>

#include "runtime/base/bitset.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/group/behind.h"
#include "runtime/client/group/quick.h"
#include "runtime/client/stream/mail.h"
#include "runtime/wire/complete.h"

static bool is_consistent(const struct page *p, uint64_t before)
{
    atomic_thread_fence(memory_order_acquire);
    return !(before & 1) && atomic_load_explicit(&p->showing, memory_order_relaxed) == before;
}

void coll_read_lives(struct client *c)
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

bool coll_is_alone(const struct client *c)
{
    int set = replica_of(&c->replicas, c->rank).set;
    for (int r = 0; r < c->size; r++)
        if (r != c->rank && c->coll.life[r].life && replica_of(&c->replicas, r).set == set)
            return false;
    return true;
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

bool coll_fill_roster(const struct keel_group *g, struct roster *room)
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
    if (!r || coll_fill_roster(g, r))
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
