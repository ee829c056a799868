/* What comes to all instances of an engine: views, losses, time, revocation, and that it leaves. */
#include "collectives/engine_int.h"

#include <assert.h>
#include <stdlib.h>

bool engine_view(struct engine *e, struct roster *roster, uint64_t now)
{
    assert(roster_epoch(roster) > roster_epoch(engine_roster(e)));
    e->now = now;
    if (e->n_rosters == e->cap_rosters) {
        int cap = 2 * e->cap_rosters;
        struct roster **more = realloc(e->rosters, (size_t)cap * sizeof(struct roster *));
        if (!more)
            return false;
        e->rosters = more;
        e->cap_rosters = cap;
    }
    bool admitted = engine_admit(e, roster);
    e->rosters[e->n_rosters] = roster_ref(roster);
    e->n_rosters += admitted;
    if (!admitted) {
        roster_unref(roster);
        engine_forget_smaller(e, false);
        return false;
    }
    engine_forget_rosters(e);
    if (e->revoked)
        engine_tell_revoked(e);
    for (const struct record *r = e->records; r; r = r->next)
        engine_tell_all(e, r->seq, &r->decision);
    for (struct instance *i = engine_after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (i->state != INSTANCE_COMPLETE)
            instance_view(e, i);
        i = engine_after(e, seq);
    }
    engine_go_on_leaving(e);
    return true;
}

void engine_lost(struct engine *e, int member, uint64_t now)
{
    e->now = now;
    for (struct instance *i = engine_after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (i->state != INSTANCE_COMPLETE)
            instance_lost(e, i, member);
        i = engine_after(e, seq);
    }
}

void engine_unsent(struct engine *e, int member, uint64_t now)
{
    e->now = now;
    for (struct instance *i = engine_after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (i->state != INSTANCE_COMPLETE)
            instance_unsent(e, i, member);
        i = engine_after(e, seq);
    }
}

void engine_tick(struct engine *e, uint64_t now)
{
    e->now = now;
    for (struct instance *i = engine_after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (now >= i->resend_at && i->state != INSTANCE_COMPLETE) {
            instance_tick(e, i);
        } else if (now >= i->resend_at) {
            i->resend_at = now + ENGINE_KEEP_AFTER_NS; /* again, if there was no memory */
            e->ops.keep(e->ops.user, seq);
        }
        i = engine_after(e, seq);
    }
    engine_go_on_leaving(e);
}

uint64_t engine_deadline(const struct engine *e)
{
    uint64_t first = engine_leaving_deadline(e);
    for (const struct instance *i = e->instances; i; i = i->next)
        first = i->resend_at < first ? i->resend_at : first;
    return first;
}

void engine_revoke_for(struct engine *e, int member, uint64_t now)
{
    if (!e->revoked)
        e->blamed = member;
    engine_revoke(e, now);
    if (member >= 0)
        engine_heard_revoked(e, member);
}

void engine_revoke(struct engine *e, uint64_t now)
{
    static const struct engine_result revoked = {.status = ENGINE_REVOKED};
    e->now = now;
    if (e->revoked)
        return;
    e->revoked = true;
    engine_owes_revocation(e);
    engine_tell_revoked(e);
    for (struct instance *i = engine_after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (seq_stream(seq) == STREAM_ORDINARY && i->state != INSTANCE_COMPLETE) {
            i->last.made = false;
            engine_complete(e, i, &revoked);
        }
        i = engine_after(e, seq);
    }
    if (e->pair)
        engine_revoke(e->pair, now);
}

void engine_settle(struct engine *e, uint64_t now)
{
    e->now = now;
    e->leaves = true;
    engine_forget_returned(e);
    for (struct instance *i = engine_after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (i->state == INSTANCE_LINGERING)
            instance_settle(e, i);
        i = engine_after(e, seq);
    }
    engine_forget_returned(e);
    engine_go_on_leaving(e);
}
