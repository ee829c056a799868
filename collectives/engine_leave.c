/* Before a member leaves, which is no death: what it has returned early is sent round (instance_settle), and of what the others could not find
 * out without it - that a reduction or gathering whose root it is came to its end, that a call failed for a reason of its own -
 * it makes sure that each of them has heard. */
#include <stdlib.h>

#include "collectives/engine_int.h"
#include "runtime/base/bitset.h"

#define ASK_MIN_NS (20ull * 1000 * 1000)
#define ASK_MAX_NS (640ull * 1000 * 1000)

static struct record *bound(const struct engine *e)
{
    struct record *r = e->leaves && !e->revoked ? e->records : NULL;
    while (r && !r->binds)
        r = r->next;
    return r;
}

/* The first other one that lives and has not said that it has it, from that one on; -1: all have. */
static int unheard(const struct engine *e, int from)
{
    int m = roster_next(engine_roster(e), from);
    while (m >= 0 && (m == e->self || bitset_has(e->leaving.heard, m)))
        m = roster_next(engine_roster(e), m + 1);
    return m;
}

static void ask(struct engine *e, const struct record *r)
{
    for (int m = unheard(e, 0); m >= 0; m = unheard(e, m + 1)) {
        engine_send_decision(e, m, r->seq, &r->decision);
        engine_ask_whether_over(e, m, r->seq);
    }
    e->leaving.at = e->now + e->leaving.rto;
    e->leaving.rto = 2 * e->leaving.rto < ASK_MAX_NS ? 2 * e->leaving.rto : ASK_MAX_NS;
}

void engine_go_on_leaving(struct engine *e)
{
    struct record *r;
    for (; (r = bound(e)); r->binds = false) {
        if (e->leaving.seq != r->seq) {
            free(e->leaving.heard);
            e->leaving.heard = calloc(BITSET_WORDS(e->n), sizeof *e->leaving.heard);
            if (!e->leaving.heard) /* as for a record that could not be made */
                continue;
            e->leaving.seq = r->seq;
            e->leaving.rto = ASK_MIN_NS;
            e->leaving.at = 0;
        }
        if (unheard(e, 0) >= 0)
            break;
    }
    if (r && e->now >= e->leaving.at)
        ask(e, r);
}

uint64_t engine_leaving_deadline(const struct engine *e)
{
    const struct record *r = bound(e);
    if (!r)
        return UINT64_MAX;
    return e->leaving.seq == r->seq ? e->leaving.at : 0;
}

void engine_heard_over(struct engine *e, int from, uint64_t seq)
{
    const struct record *r = bound(e);
    if (r && r->seq == seq && e->leaving.seq == seq)
        bitset_add(e->leaving.heard, from);
}

uint64_t engine_unsettled(const struct engine *e)
{
    for (const struct instance *i = e->instances; i; i = i->next)
        if (i->told)
            return i->seq;
    const struct record *r = bound(e);
    return r ? r->seq : 0;
}

bool engine_settled(const struct engine *e)
{
    return !engine_unsettled(e);
}

int engine_leaving_waits_for(const struct engine *e, uint64_t seq)
{
    const struct record *r = bound(e);
    return r && r->seq == seq && e->leaving.seq == seq ? unheard(e, 0) : -1;
}
