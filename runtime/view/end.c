/* The end of the job: who asks for it, what brings it about, and what it would take. Pure. */
#include "runtime/view/view_int.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/signals.h"
#include "runtime/view/policy.h"

void view_stop(struct view *v, int code, const char *fmt, ...)
{
    if (v->stopped)
        return;
    v->stopped = true;
    v->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v->why, sizeof v->why, fmt, ap);
    va_end(ap);
}

void view_end_asked(struct view *v, const struct view_event *e)
{
    int rank = (int)e->b - 1;
    if (e->b && sets_are_used(v) && rank >= 0 && rank < v->ranks && e->a)
        sets_rank_ended(v, rank, v->rank[rank].node, (int)e->a);
    else if (e->b)
        view_stop(v, (int)e->a, "rank %u ended the job with code %u", e->b - 1, e->a);
    else
        view_stop(v, (int)e->a, "the job was stopped");
}

void view_end_if_needed(struct view *v)
{
    char did[SIGNAL_DID];
    int r = 0;
    while (r < v->ranks && !v->rank[r].death.times)
        r++;
    if (v->stopped || !v->needs_all || v->survives || r == v->ranks || sets_are_used(v))
        return;
    const struct view_death *d = &v->rank[r].death;
    v->by_loss = true;
    if (d->signal)
        view_stop(v, 1, "process %d %s on node %d; the program has not called keel_survive and ends", r,
                  signal_did(d->signal, did, sizeof did), d->node);
    else
        view_stop(v, 1, "process %d died with its node %d; the program has not called keel_survive and ends", r,
                  d->node);
}

void view_end_if_finished(struct view *v)
{
    int done = 0; /* ranks that ended by themselves */
    if (sets_are_used(v)) {
        int code;
        char why[sizeof v->why];
        if (sets_are_finished(v, &code, why, sizeof why))
            view_stop(v, code, "%s", why);
        return;
    }
    for (int r = 0; r < v->ranks; r++) {
        if (v->rank[r].state == RANK_RUNNING)
            return;
        done += v->rank[r].state == RANK_DONE;
    }
    if (done)
        view_stop(v, 0, "%s", "");
    else
        view_stop(v, 137, "all %d ranks died", v->ranks);
}

/* Would the job end with it? */
static bool ends_job(const struct view *v, int node)
{
    if (!view_node_takes_part(v, node))
        return false;
    if (sets_are_used(v))
        return sets_end_with(v, node);
    bool others = false;
    for (int r = 0; r < v->ranks && !others; r++)
        others = v->rank[r].state == RANK_RUNNING && v->rank[r].node != node;
    return v->policy == VIEW_ABORT || (v->needs_all && !v->survives) ||
           (!others && !(view_ranks_begin_again(v) && policy_spare(v, node) >= 0));
}

enum view_stake view_stake(const struct view *v, int node, unsigned used)
{
    if (!v->alive[node])
        return STAKE_NONE;
    if (ends_job(v, node))
        return STAKE_JOB;
    for (int copyset = 0; copyset < view_copysets(v); copyset++) {
        const struct view_copyset *g = &v->copyset[copyset];
        for (int i = 0; i < g->copies && used >> copyset_class(copyset) & 1; i++)
            if (g->copy[i].node == node && g->copy[i].whole && view_whole_copies(g) == 1)
                return STAKE_DATA;
    }
    return STAKE_NONE;
}
