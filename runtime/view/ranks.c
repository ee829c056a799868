/* Ranks: the lives that end and begin, on which nodes, and the slots that go where their ranks are. Pure. */
#include "runtime/view/view_int.h"

#include "runtime/base/signals.h"
#include "runtime/view/plan.h"
#include "runtime/view/policy.h"

static void rank_leave(struct view_rank *k, enum rank_state state)
{
    k->state = state;
    k->node = -1;
}

/* Its process died, whoever takes its place; one that had left, or ended by itself, did not. */
static void rank_died(const struct view *v, struct view_rank *k, int signal)
{
    k->death = (struct view_death){.times = k->death.times + 1, .epoch = v->epoch, .node = k->node, .signal = signal};
}

void view_rank_begins(const struct view *v, struct view_rank *k, int node)
{
    k->node = node;
    k->incarnation++;
    k->joined = v->epoch;
    k->doubted = 0;
}

bool view_ranks_begin_again(const struct view *v)
{
    return v->policy == VIEW_SUBSTITUTE && !v->needs_all;
}

/* One of the nodes that run ranks of the slot, -1: none does. Its own, if that is one. */
static int node_of_ranks(const struct view *v, int slot)
{
    int first = -1;
    for (int r = 0; r < v->ranks; r++) {
        const struct view_rank *k = &v->rank[r];
        if (k->slot != slot || k->state != RANK_RUNNING)
            continue;
        if (k->node == v->home[slot])
            return k->node;
        first = first < 0 ? k->node : first;
    }
    return first;
}

static bool is_anybodys(const struct view *v, int node)
{
    for (int s = 0; s < v->nodes; s++)
        if (v->home[s] == node)
            return true;
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].state == RANK_RUNNING && v->rank[r].node == node)
            return true;
    return false;
}

/* The slot goes where ranks of it run, when the last has left its node. */
static void slot_follows(struct view *v, int slot)
{
    int before = v->home[slot], now = node_of_ranks(v, slot);
    if (now < 0 || now == before)
        return;
    follow_slot(v, slot, now);
    if (!is_anybodys(v, before))
        policy_replace(v, before, now);
}

/* Where a rank goes whose node died; -1: nowhere. Its slot may be elsewhere. */
static int rank_target(const struct view *v, const struct view_rank *k, int node)
{
    int to = plan_target(v, k->slot, node), home = v->home[k->slot];
    return to < 0 && view_ranks_begin_again(v) && home >= 0 && view_node_starts(v, home) ? home : to;
}

void view_ranks_lose_node(struct view *v, int node)
{
    bool any = view_node_takes_part(v, node);
    for (int i = 0; i < v->planned; i++)
        if (v->plan[i].from == node) {
            v->spare_free[v->plan[i].to] = false;
            policy_replace(v, node, v->plan[i].to);
        }
    for (int r = 0; r < v->ranks; r++) {
        struct view_rank *k = &v->rank[r];
        if (k->node != node || k->state != RANK_RUNNING)
            continue;
        int to = rank_target(v, k, node);
        if (!k->left)
            rank_died(v, k, 0);
        if (k->left || to < 0)
            rank_leave(k, k->left ? RANK_DONE : RANK_DEAD);
        else
            view_rank_begins(v, k, to);
    }
    for (int i = 0; i < v->nodes; i++) {
        int now = v->home[i] == node ? plan_target(v, i, node) : v->home[i], of_ranks = node_of_ranks(v, i);
        follow_slot(v, i, of_ranks >= 0 ? of_ranks : now);
    }
    if (any && v->policy == VIEW_ABORT)
        view_stop(v, 137, "node %d died", node);
}

/* Where a rank goes whose node lives and starts no process; -1: nowhere. */
static int rank_elsewhere(const struct view *v, const struct view_rank *k)
{
    int to = plan_next(v, k->slot);
    for (int r = 0; r < v->ranks && to < 0; r++) /* where others of its slot have gone before */
        if (v->rank[r].slot == k->slot && v->rank[r].state == RANK_RUNNING && view_node_starts(v, v->rank[r].node))
            to = v->rank[r].node;
    to = to < 0 && !plan_grid(v) ? policy_spare(v, k->node) : to;
    return to >= 0 && view_node_starts(v, to) && view_ranks_begin_again(v) ? to : -1;
}

/* The next process of a rank that was on a live node: there, if that starts processes. */
static void begin_again(struct view *v, struct view_rank *k)
{
    int from = k->node, to = v->refuses[from] ? rank_elsewhere(v, k) : from;
    if (to < 0)
        rank_leave(k, RANK_DEAD);
    else
        view_rank_begins(v, k, to);
    if (to == from)
        return;
    if (to >= 0)
        v->spare_free[to] = false;
    slot_follows(v, k->slot);
    v->spare_free[from] = !is_anybodys(v, from);
}

static bool is_current(const struct view *v, const struct view_event *e)
{
    return e->a < (uint32_t)v->ranks && v->rank[e->a].state == RANK_RUNNING &&
           life_equal(view_life(v, (int)e->a), view_event_life(e));
}

void view_rank_dead(struct view *v, const struct view_event *e)
{
    if (!is_current(v, e))
        return;
    struct view_rank *k = &v->rank[e->a];
    if (k->left) {
        rank_leave(k, RANK_DONE);
        slot_follows(v, k->slot);
        return;
    }
    int signal = e->c ? (int)e->c : SIGNAL_HIDDEN;
    rank_died(v, k, signal);
    char did[SIGNAL_DID];
    if (v->policy == VIEW_ABORT)
        view_stop(v, signal_code(signal), "rank %d %s", (int)e->a, signal_did(signal, did, sizeof did));
    if (view_ranks_begin_again(v) && k->restarts < VIEW_MAX_RESTARTS) {
        k->restarts++;
        begin_again(v, k);
    } else {
        rank_leave(k, RANK_DEAD);
        slot_follows(v, k->slot);
    }
}

void view_rank_refused(struct view *v, const struct view_event *e)
{
    if (!is_current(v, e) || v->rank[e->a].node != (int)e->c)
        return;
    struct view_rank *k = &v->rank[e->a];
    if (!v->refuses[k->node]) {
        v->refuses[k->node] = true;
        plan_refuse(v, k->node);
    }
    if (!view_ranks_begin_again(v))
        rank_died(v, k, 0);
    begin_again(v, k);
}

void view_rank_moved(struct view *v, const struct view_event *e)
{
    if (!is_current(v, e))
        return;
    struct view_rank *k = &v->rank[e->a];
    if (k->left || !view_ranks_begin_again(v)) {
        view_rank_dead(v, &(struct view_event){.type = VIEW_RANK_DEAD, .a = e->a, .b = e->b});
        return;
    }
    bool may = e->c < (uint32_t)view_ids(v) && view_node_starts(v, (int)e->c) && plan_allows(v, k->slot, (int)e->c);
    int from = k->node, to = (int)e->c;
    if (!may || to == from) {
        begin_again(v, k);
        return;
    }
    view_rank_begins(v, k, to);
    k->moved = (struct view_moved){k->moved.times + 1, v->epoch, from, view_moved_order(e->d)};
    v->spare_free[to] = false;
    slot_follows(v, k->slot);
    v->spare_free[from] = !is_anybodys(v, from);
}

void view_rank_done(struct view *v, const struct view_event *e)
{
    if (!is_current(v, e))
        return;
    int node = v->rank[e->a].node;
    rank_leave(&v->rank[e->a], RANK_DONE);
    slot_follows(v, v->rank[e->a].slot);
    if (e->c != 0 && sets_are_used(v))
        sets_rank_ended(v, (int)e->a, node, (int)e->c);
    else if (e->c != 0)
        view_stop(v, (int)e->c, "rank %d ended with exit code %d", (int)e->a, (int)e->c);
}

void view_rank_left(struct view *v, const struct view_event *e)
{
    if (is_current(v, e))
        v->rank[e->a].left = true;
}

void view_rank_doubted(struct view *v, const struct view_event *e)
{
    if (is_current(v, e))
        v->rank[e->a].doubted += 1 + e->c;
}

int view_slot_node(const struct view *v, int slot)
{
    return v->home[slot];
}

bool view_rank_takes_part(const struct view *v, int rank)
{
    return v->rank[rank].state == RANK_RUNNING && !v->rank[rank].left;
}

bool view_node_takes_part(const struct view *v, int node)
{
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].node == node && view_rank_takes_part(v, r))
            return true;
    return false;
}
