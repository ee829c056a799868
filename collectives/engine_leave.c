/* Before a member leaves, which is no death: what it has returned early is sent round (instance_settle), and of what
 * the others could not find out without it - that a reduction or gathering whose root it is came to its end, that a
 * call failed for a reason of its own - it makes sure that each of them has heard; and so of a revocation, without
 * which they might come to another end of a call from which this one has returned. */
#include <string.h>

#include "collectives/engine_int.h"
#include "runtime/base/bitset.h"

#define ASK_MIN_NS (20ull * 1000 * 1000)
#define ASK_MAX_NS (640ull * 1000 * 1000)

enum { REVOCATION = -2 }; /* as the name of a call, of the ordinary stream */

static struct record *bound(const struct engine *e)
{
    struct record *r = e->leaves && !e->revoked ? e->records : NULL;
    while (r && !r->binds)
        r = r->next;
    return r;
}

/* What all are to hear now; 0: nothing. */
static uint64_t owed(const struct engine *e)
{
    if (e->leaves && e->revoked)
        return e->leaving.revoked ? (uint64_t)REVOCATION : 0;
    const struct record *r = bound(e);
    return r ? r->seq : 0;
}

/* The first other one that lives and has not said that it has it, from that one on; -1: all have. */
static int unheard(const struct engine *e, int from)
{
    int m = roster_next(engine_roster(e), from);
    while (m >= 0 && (m == e->self || bitset_has(e->leaving.heard, m)))
        m = roster_next(engine_roster(e), m + 1);
    return m;
}

static void ask(struct engine *e)
{
    const struct record *r = bound(e);
    for (int m = unheard(e, 0); m >= 0; m = unheard(e, m + 1)) {
        if (r)
            engine_send_decision(e, m, r->seq, &r->decision);
        else
            engine_send_revoked(e, m);
        engine_ask_whether_over(e, m, e->leaving.seq); /* who knows of the revocation says so instead */
    }
    e->leaving.at = e->now + e->leaving.rto;
    e->leaving.rto = 2 * e->leaving.rto < ASK_MAX_NS ? 2 * e->leaving.rto : ASK_MAX_NS;
}

static void all_have_heard(struct engine *e)
{
    if (e->revoked)
        e->leaving.revoked = false;
    else
        bound(e)->binds = false;
}

static void forget_heard(struct engine *e)
{
    memset(e->leaving.heard, 0, BITSET_WORDS(e->n) * sizeof *e->leaving.heard);
}

void engine_go_on_leaving(struct engine *e)
{
    uint64_t seq;
    for (; (seq = owed(e)); all_have_heard(e)) {
        if (e->leaving.seq != seq) {
            if (!e->revoked)
                forget_heard(e);
            e->leaving.seq = seq;
            e->leaving.rto = ASK_MIN_NS;
            e->leaving.at = 0;
        }
        if (unheard(e, 0) >= 0)
            break;
    }
    if (seq && e->now >= e->leaving.at)
        ask(e);
}

uint64_t engine_leaving_deadline(const struct engine *e)
{
    uint64_t seq = owed(e);
    if (!seq)
        return UINT64_MAX;
    return e->leaving.seq == seq ? e->leaving.at : 0;
}

void engine_heard_over(struct engine *e, int from, uint64_t seq)
{
    if (owed(e) == seq && e->leaving.seq == seq)
        bitset_add(e->leaving.heard, from);
}

void engine_owes_revocation(struct engine *e)
{
    e->leaving.revoked = e->stream[STREAM_ORDINARY].started > e->stream[STREAM_ORDINARY].everywhere;
    forget_heard(e);
}

void engine_heard_revoked(struct engine *e, int from)
{
    bitset_add(e->leaving.heard, from);
    engine_go_on_leaving(e);
}

/* Others may have returned, if the root has said that it has got everything; whether it has, only it knows. */
static bool may_have_ended(const struct engine *e, const struct instance *i)
{
    return i->state == INSTANCE_MEETING && i->finished && engine_is_sink(e, i);
}

uint64_t engine_unsettled(const struct engine *e)
{
    for (const struct instance *i = e->instances; i; i = i->next)
        if (i->told || may_have_ended(e, i))
            return i->seq;
    return owed(e);
}

bool engine_settled(const struct engine *e)
{
    return !engine_unsettled(e);
}

int engine_leaving_waits_for(const struct engine *e, uint64_t seq)
{
    return owed(e) == seq && e->leaving.seq == seq ? unheard(e, 0) : -1;
}
