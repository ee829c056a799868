/* Sets that begin anew (docs/adr/0198). Pure.
 *
 *             a rank is lost                         VIEW_SET_BEGINS                        VIEW_SET_JOINS
 *   WHOLE ─────────────────────► RETIRED ─────────────────────────────────► COMING ─────────────────────────► WHOLE
 *                                   ▲                                          │
 *                                   └──────────────────────────────────────────┘
 *                                     a rank of it has no process, or has ended; or the program does what such a set
 *                                     cannot take over (NEEDS_ITS)
 *
 * A coming set has a process for each rank, on the nodes of the set that live and on a spare for each that does not. To
 * all others it is as one that is retired: its output, its answers and its end count for nothing. Each time that it
 * begins is an *attempt* with a number of its own, from 1, by which events and processes say which one they mean. */
#include "runtime/view/policy.h"
#include "runtime/view/view_int.h"

#include <string.h>

static bool is_of(const struct view *v, int native, int set)
{
    return replica_of(v->replicas, native).set == set;
}

bool view_set_is_coming(const struct view *v, int set)
{
    return v->replicas && v->loss[set].coming != 0;
}

uint32_t view_set_attempt(const struct view *v, int set)
{
    return v->renewal[set].attempt;
}

/* Has the last process of the set ended? Nobody of it writes any more, then. */
static bool is_over(const struct view *v, int set)
{
    for (int r = 0; r < v->ranks; r++)
        if (is_of(v, r, set) && v->rank[r].state == RANK_RUNNING)
            return false;
    return true;
}

/* Does the set have all its ranks, none of which has come near its end? */
static bool goes_on(const struct view *v, int set)
{
    for (int r = 0; r < v->ranks; r++)
        if (is_of(v, r, set) && !view_rank_takes_part(v, r))
            return false;
    return true;
}

/* Is there somebody to begin from? */
static bool any_goes_on(const struct view *v)
{
    for (int s = 0; s < v->replicas->replicas; s++)
        if (view_set_is_whole(v, s) && goes_on(v, s))
            return true;
    return false;
}

static bool has_ranks_of(const struct view *v, int slot, int set)
{
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].slot == slot && is_of(v, r, set))
            return true;
    return false;
}

static bool has_node(const struct view *v, int slot)
{
    return v->home[slot] >= 0 && view_node_starts(v, v->home[slot]);
}

/* Nodes of the set that do not live or start no process, less the spares that there are. */
static int spares_missing(const struct view *v, int set)
{
    int missing = 0;
    for (int slot = 0; slot < v->nodes; slot++)
        missing += has_ranks_of(v, slot, set) && !has_node(v, slot);
    for (int m = 0; m < view_ids(v); m++)
        missing -= view_is_spare(v, m);
    return missing;
}

/* A spare runs the ranks of one slot, as the node did that it replaces: sets stay alike. */
static void give_node(struct view *v, int slot)
{
    int before = v->ring[slot], spare = policy_spare(v, before);
    v->spare_free[spare] = false;
    if (!view_node_starts(v, before))
        policy_replace(v, before, spare);
    follow_slot(v, slot, spare);
}

static void begin(struct view *v, int set)
{
    for (int slot = 0; slot < v->nodes; slot++) {
        if (!has_ranks_of(v, slot, set))
            continue;
        if (!has_node(v, slot))
            give_node(v, slot);
        v->began[slot] = v->home[slot];
    }
    for (int r = 0; r < v->ranks; r++)
        if (is_of(v, r, set)) {
            v->rank[r].state = RANK_RUNNING;
            v->rank[r].left = false;
            view_rank_begins(v, &v->rank[r], v->home[v->rank[r].slot]);
        }
}

/* A set that is there, of this attempt. */
static bool is_meant(const struct view *v, const struct view_event *e)
{
    return v->replicas && e->a < (uint32_t)v->replicas->replicas && e->b == v->renewal[e->a].attempt;
}

bool view_set_may_begin(const struct view *v, int set)
{
    if (!v->replicas || view_set_is_whole(v, set) || v->loss[set].coming || v->stopped || v->needs_all || v->stays)
        return false;
    return v->renewal[set].in_vain < VIEW_MAX_RESTARTS && is_over(v, set) && any_goes_on(v) &&
           spares_missing(v, set) <= 0;
}

void set_begins(struct view *v, const struct view_event *e)
{
    if (!is_meant(v, e) || !view_set_may_begin(v, (int)e->a))
        return;
    struct view_renewal *n = &v->renewal[e->a];
    v->loss[e->a].coming = ++n->attempt;
    n->in_vain++;
    begin(v, (int)e->a);
}

bool view_set_is_at_home(const struct view *v, int set)
{
    for (int i = 0; v->replicas && i < view_copysets(v); i++) {
        const struct view_copyset *g = &v->copyset[i];
        int slot = copyset_slot(i);
        if (has_ranks_of(v, slot, set) && (g->copies == 0 || g->copy[0].node != v->began[slot]))
            return false;
    }
    return true;
}

/* What its ranks said is there was theirs: one that has ended since has ended for all. */
void set_joins(struct view *v, const struct view_event *e)
{
    if (!is_meant(v, e) || !v->loss[e->a].coming || v->stays || !goes_on(v, (int)e->a) ||
        !view_set_is_at_home(v, (int)e->a))
        return;
    v->joined = v->epoch;
    v->renewal[e->a].in_vain = 0;
    memset(&v->loss[e->a], 0, sizeof v->loss[e->a]);
}

void set_lost_guest(struct view *v, int native, int node, int code)
{
    int set = replica_of(v->replicas, native).set;
    struct replica_loss *last = &v->renewal[set].last;
    if (v->loss[set].coming && !(last->retired && last->epoch == v->epoch))
        *last = (struct replica_loss){.retired = true, .native = native, .node = node, .code = code, .epoch = v->epoch};
}

/* Whom it has lost; who has died comes before who has ended, as that may have come of it. */
static struct replica_loss first_lost(const struct view *v, int set)
{
    struct replica_loss lost = {.retired = false};
    for (int r = 0; r < v->ranks; r++) {
        const struct view_rank *k = &v->rank[r];
        if (!is_of(v, r, set) || view_rank_takes_part(v, r) || (lost.retired && k->state != RANK_DEAD))
            continue;
        lost = (struct replica_loss){.retired = true, .native = r, .node = -1, .epoch = v->epoch};
        if (k->state == RANK_DEAD) {
            lost.node = k->death.node;
            lost.signal = k->death.signal;
            return lost;
        }
    }
    return lost;
}

void sets_look_at_coming(struct view *v)
{
    for (int s = 0; v->replicas && s < v->replicas->replicas; s++)
        if (v->loss[s].coming && (v->stays || !goes_on(v, s))) {
            v->loss[s].coming = 0;
            if (!v->renewal[s].last.retired || v->renewal[s].last.epoch != v->epoch)
                v->renewal[s].last = first_lost(v, s);
        }
}

const struct replica_loss *view_set_in_vain(const struct view *v, int set)
{
    const struct view_renewal *n = &v->renewal[set];
    bool over = v->replicas && v->loss[set].retired && !v->loss[set].coming && n->in_vain >= VIEW_MAX_RESTARTS;
    return over && n->last.retired ? &n->last : NULL;
}
