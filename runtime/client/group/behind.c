/* Leaving without who is stopped. Who leaves waits for the others, so that all who live are told the same of each call;
 * but for one whose process is stopped not for long. That one could find, when it goes on, that those who have left are
 * no members any more, and complete a call without them: over other data than they have returned. So its agent is told
 * before they leave (note.h: behind), and it gets an error where a call would not have what they gave. */
#include <string.h>

#include "collectives/group.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/progress.h"
#include "runtime/client/group/behind.h"

enum { AGAIN_NS = 200000000 };

/* ---- who leaves ---- */

static bool has_stalled(const struct keel_group *g, int member)
{
    for (const struct keel_request *r = g->requests; r; r = r->next)
        if (r->stalled && r->blamed == member)
            return true;
    return false;
}

/* Which member of the group it is; -1: none that is left. */
static int left_member(const struct keel_group *g, int rank, bool given_up)
{
    int member = g->engine ? group_member_of(g->ranks, rank) : -1;
    return member >= 0 && coll_member_lives(g, member) && (given_up || has_stalled(g, member)) ? member : -1;
}

/* True: there is something to tell. */
static bool tell_of(struct client *c, int rank, uint64_t now)
{
    bool any = false, given_up = courier_has_given_up(c, rank);
    for (struct keel_group *g = c->coll.groups; g; g = g->next) {
        struct control r = {.type = CONTROL_BEHIND, .rank = rank, .b = (int64_t)now};
        struct behind_told t = {.group = group_id(g->ranks)};
        if ((!given_up && !g->requests) || left_member(g, rank, given_up) < 0)
            continue;
        engine_calls(g->engine, &t.returned, &t.begun);
        t.begun = engine_revoked(g->engine) ? BEHIND_REVOKED : t.begun;
        memcpy(r.text, &t, sizeof t);
        (void)c->env.tell(c->env.user, &r); /* told again, if it was lost */
        any = true;
    }
    return any;
}

struct telling {
    struct client *c;
    uint64_t asked_at, again_at;
    int waits_for; /* rank, -1: none */
};

/* An agent has written it down when it answers, and the last question's answer comes last. */
static bool have_answered(void *arg)
{
    struct telling *t = arg;
    const struct client *c = t->c;
    t->waits_for = -1;
    for (int rank = 0; rank < c->size && t->waits_for < 0; rank++)
        if (c->coll.stream[rank].behind && c->coll.life[rank].life &&
            atomic_load_explicit(&page_rank(c->page, rank)->looked, memory_order_acquire) < t->asked_at)
            t->waits_for = rank;
    return t->waits_for < 0 || c->coll.broken != KEEL_OK || c->env.now(c->env.user) >= t->again_at;
}

static void whom(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct telling *t = arg;
    uint64_t where = t->waits_for < 0 ? UINT64_MAX : atomic_load(&page_rank(c->page, t->waits_for)->where);
    out->node = (int)(int32_t)(where >> 32);
    out->whom = out->node < 0 ? WAIT_FOR_VIEW : WAIT_FOR_NODE;
}

void behind_tell(struct client *c)
{
    struct telling t = {.c = c, .waits_for = -1};
    struct wait wait = {.call = WAIT_FINALIZE, .whom = whom, .arg = &t, .keeps = true};
    uint64_t now = c->env.now(c->env.user), until = now + c->timeout_ns;
    bool going = true;
    do {
        t.asked_at = now;
        t.again_at = now + AGAIN_NS;
        for (int rank = 0; rank < c->size; rank++)
            c->coll.stream[rank].behind = rank != c->rank && c->coll.life[rank].life && tell_of(c, rank, now);
        going = client_wait(c, have_answered, &t, &wait) && c->coll.broken == KEEL_OK;
        now = c->env.now(c->env.user);
    } while (going && t.waits_for >= 0 && now < until);
    waits_over(c, &wait);
    if (going && t.waits_for >= 0)
        log_warn("rank %d is stopped, and its node could not be told that this rank leaves without it", t.waits_for);
}

/* ---- who is left ---- */

void behind_see(struct client *c, uint64_t now)
{
    uint32_t n = atomic_load_explicit(&c->intents->behinds, memory_order_acquire);
    if (n == c->coll.behinds)
        return;
    c->coll.behinds = n;
    for (uint32_t i = 0; i < n && i < BEHIND_MAX; i++) {
        const struct behind *b = &c->intents->behind[i];
        struct keel_group *g = coll_group_find(c, atomic_load_explicit(&b->group, memory_order_relaxed));
        bool revoked = atomic_load_explicit(&b->begun, memory_order_relaxed) == BEHIND_REVOKED;
        if (g && g->engine && revoked && !engine_revoked(g->engine))
            engine_revoke_for(g->engine, group_member_of(g->ranks, c->rank), now);
    }
}

static bool lacks_who_left(const struct keel_group *g, const struct roster *covered)
{
    const struct client *c = g->client;
    for (int m = 0; m < group_size(g->ranks); m++)
        if (!roster_has(covered, m) && !coll_member_lives(g, m) &&
            atomic_load_explicit(&page_rank(c->page, group_rank(g->ranks, m))->done, memory_order_relaxed))
            return true;
    return false;
}

bool behind_lacks(const struct keel_group *g, uint64_t number, const struct roster *covered)
{
    const struct intent_page *p = g->client->intents;
    uint32_t n = atomic_load_explicit(&p->behinds, memory_order_acquire);
    if (n == 0 || !lacks_who_left(g, covered))
        return false;
    for (uint32_t i = 0; i < n && i < BEHIND_MAX; i++) {
        const struct behind *b = &p->behind[i];
        if (atomic_load_explicit(&b->group, memory_order_relaxed) != group_id(g->ranks))
            continue;
        return number <= atomic_load_explicit(&b->returned, memory_order_relaxed) ||
               (number <= atomic_load_explicit(&b->begun, memory_order_relaxed) && roster_live(covered) == 1);
    }
    return n > BEHIND_MAX;
}
