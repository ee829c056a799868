#include "runtime/view/view.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/signals.h"
#include "runtime/wire/control.h"
#include "runtime/view/plan.h"
#include "runtime/view/policy.h"
#include "runtime/view/view_int.h"

static int members(const struct view *v)
{
    return view_ids(v);
}

static int copysets(const struct view *v)
{
    return v->nodes * CLASSES;
}

int view_copy_at(const struct view_copyset *g, int node)
{
    for (int i = 0; i < g->copies; i++)
        if (g->copy[i].node == node)
            return i;
    return -1;
}

int view_whole_copies(const struct view_copyset *g)
{
    int n = 0;
    for (int i = 0; i < g->copies; i++)
        n += g->copy[i].whole;
    return n;
}

void copyset_set_mode(const struct view *v, struct view_copyset *g, enum copyset_mode mode)
{
    assert(g->copies >= 1 && g->copy[0].whole);
    assert(mode == COPYSET_REPAIR || (view_whole_copies(g) == g->copies && g->copies <= LEGS_MAX));
    g->mode = mode;
    g->generation = v->epoch;
}

bool copyset_add(struct view *v, int copyset, int node, bool whole)
{
    struct view_copyset *g = &v->copyset[copyset];
    if (node < 0)
        return false;
    g->copy[g->copies++] = (struct view_copy){.node = node, .whole = whole, .placed = v->epoch};
    copyset_set_mode(v, g, whole ? COPYSET_DIRECT : COPYSET_REPAIR);
    policy_count(v, copyset, node);
    return true;
}

void copyset_take_out(struct view *v, int copyset, int at)
{
    struct view_copyset *g = &v->copyset[copyset];
    policy_uncount(v, copyset, g->copy[at].node);
    memmove(&g->copy[at], &g->copy[at + 1], (size_t)(g->copies - at - 1) * sizeof g->copy[0]);
    g->copies--;
}

static bool copyset_lacks(const struct view *v, int copyset)
{
    return v->copyset[copyset].copies <= (int)copyset_class(copyset);
}

static void first_copies(struct view *v)
{
    for (int i = 0; i < copysets(v); i++) {
        v->copyset[i].copy[v->copyset[i].copies++] = (struct view_copy){.node = copyset_slot(i), .whole = true};
        copyset_set_mode(v, &v->copyset[i], COPYSET_DIRECT);
    }
    policy_begin(v);
    policy_look(v);
    for (int i = 0; i < copysets(v); i++)
        for (int k = 1; k <= (int)copyset_class(i); k++)
            copyset_add(v, i, policy_first_copy(v, i, k), true);
    policy_look(v);
    for (int i = 0; i < copysets(v); i++)
        while (copyset_lacks(v, i) && copyset_add(v, i, policy_copy(v, i), true))
            ;
}

/* The array becomes the view's. */
static bool take_rule(struct view *v, const struct copy_rule *copies)
{
    bool heeded = copies && copies->at != COPIES_AT_NEXT;
    size_t numbers = heeded ? (size_t)copies->levels * (size_t)members(v) : 0;
    v->copies = copies ? *copies : (struct copy_rule){.at = COPIES_AT_HALF};
    v->copies.domain = NULL;
    v->copies.levels = heeded ? copies->levels : 0;
    if (!numbers)
        return true;
    v->copies.domain = calloc(numbers, sizeof *v->copies.domain);
    if (v->copies.domain)
        memcpy(v->copies.domain, copies->domain, numbers * sizeof *v->copies.domain);
    return v->copies.domain != NULL;
}

bool view_init(struct view *v, enum view_policy policy, int nodes, int spares, int room, int ranks,
               const int *rank_node, const struct copy_rule *copies)
{
    memset(v, 0, sizeof *v);
    v->policy = policy;
    v->nodes = nodes;
    v->spares = spares;
    v->room = room;
    v->next_id = nodes + spares;
    v->ranks = ranks;
    v->alive = calloc((size_t)members(v), sizeof *v->alive);
    v->spare_free = calloc((size_t)members(v), sizeof *v->spare_free);
    v->full = calloc((size_t)members(v), sizeof *v->full);
    v->born_at = calloc((size_t)members(v), sizeof *v->born_at);
    v->node_death = calloc((size_t)members(v), sizeof *v->node_death);
    v->copyset = calloc((size_t)copysets(v), sizeof *v->copyset);
    v->home = calloc((size_t)nodes, sizeof *v->home);
    v->rank = calloc((size_t)ranks, sizeof *v->rank);
    v->slot_ranks = calloc((size_t)nodes, sizeof *v->slot_ranks);
    v->ring = calloc((size_t)nodes, sizeof *v->ring);
    v->load = calloc((size_t)members(v) * CLASSES, sizeof *v->load);
    v->live = calloc((size_t)members(v), sizeof *v->live);
    v->way = calloc((size_t)members(v), sizeof *v->way);
    v->queue = calloc((size_t)members(v), sizeof *v->queue);
    v->plan = calloc((size_t)nodes + (size_t)ranks, sizeof *v->plan); /* each node's slots, and those of its ranks */
    v->died = calloc((size_t)members(v), sizeof *v->died);
    v->births = calloc((size_t)members(v), sizeof *v->births);
    if (!take_rule(v, copies) || !v->alive || !v->spare_free || !v->full || !v->born_at || !v->node_death ||
        !v->copyset || !v->home || !v->rank || !v->slot_ranks || !v->ring || !v->load || !v->live || !v->way ||
        !v->queue || !v->plan || !v->died || !v->births) {
        view_fini(v);
        return false;
    }
    for (int m = 0; m < v->next_id; m++) {
        v->alive[m] = true;
        v->spare_free[m] = m >= nodes;
    }
    for (int r = 0; r < ranks; r++) {
        struct view_rank *k = &v->rank[r];
        k->slot = k->node = rank_node[r];
        k->index = v->slot_ranks[k->slot]++;
    }
    for (int s = 0; s < nodes; s++)
        v->home[s] = s;
    first_copies(v);
    return true;
}

void view_fini(struct view *v)
{
    free(v->alive);
    free(v->spare_free);
    free(v->full);
    free(v->born_at);
    free(v->node_death);
    free(v->copyset);
    free(v->home);
    free(v->rank);
    free(v->slot_ranks);
    free(v->copies.domain);
    free(v->ring);
    free(v->load);
    free(v->live);
    free(v->way);
    free(v->queue);
    plan_fini(v);
    free(v->plan);
    free(v->died);
    free(v->births);
    memset(v, 0, sizeof *v);
}

__attribute__((format(printf, 3, 4))) static void stop(struct view *v, int code, const char *fmt, ...)
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

/* Take dead nodes out of the copyset. The first whole copy that is left becomes the primary; if there is none nothing
 * is left. True if a copy died. */
static bool copyset_drop_dead(const struct view *v, struct view_copyset *g)
{
    int kept = 0, before = g->copies;
    for (int i = 0; i < before; i++)
        if (v->alive[g->copy[i].node])
            g->copy[kept++] = g->copy[i];
    if (kept == before)
        return false;
    g->copies = kept;
    for (int i = 0; i < kept; i++)
        if (g->copy[i].whole) {
            struct view_copy primary = g->copy[i];
            memmove(&g->copy[1], &g->copy[0], (size_t)i * sizeof primary);
            g->copy[0] = primary;
            return true;
        }
    g->copies = 0; /* what was being filled has nothing to be filled from */
    return true;
}

/* Nothing is left of the copyset: it starts again, and what it held is lost. */
static void copyset_start_again(struct view *v, int copyset)
{
    if (copyset_add(v, copyset, policy_copy(v, copyset), true)) /* else no node lives: nobody reads this */
        v->copyset[copyset].lost_at = v->epoch;
}

/* Place what is missing. */
static void copyset_fill(struct view *v, int copyset)
{
    while (v->copyset[copyset].copies >= 1 && copyset_lacks(v, copyset) &&
           copyset_add(v, copyset, policy_copy(v, copyset), false))
        ;
}

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

/* Its next process: on that node. */
static void rank_begins(const struct view *v, struct view_rank *k, int node)
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
    return to < 0 && view_ranks_begin_again(v) && home >= 0 && v->alive[home] ? home : to;
}

/* Give the ranks that ran on a dead node another one, or none. */
static void ranks_of_dead_node(struct view *v, int node)
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
            rank_begins(v, k, to);
    }
    for (int i = 0; i < v->nodes; i++) {
        int now = v->home[i] == node ? plan_target(v, i, node) : v->home[i], of_ranks = node_of_ranks(v, i);
        follow_slot(v, i, of_ranks >= 0 ? of_ranks : now);
    }
    if (any && v->policy == VIEW_ABORT)
        stop(v, 137, "node %d died", node);
}

/* The node that was where this one is, -1: none. */
static int was_before(const struct view_event *e)
{
    return e->c > 0 && e->c <= e->a ? (int)e->c - 1 : -1;
}

static struct plan_birth birth_of(const struct view_event *e)
{
    return (struct plan_birth){(int)e->a, was_before(e), e->d > 0 && e->d <= INT32_MAX ? (int32_t)e->d - 1 : -1};
}

/* A spare like any other from now on. False: it was there already, or is none. */
static bool node_born(struct view *v, const struct view_event *e)
{
    if (e->a != (uint32_t)v->next_id || v->next_id == members(v))
        return false;
    v->alive[v->next_id] = v->spare_free[v->next_id] = true;
    v->born_at[v->next_id] = v->epoch;
    for (int level = 0; level < v->copies.levels && e->c > 0 && e->c <= e->a; level++) {
        int *domain = &v->copies.domain[level * members(v)];
        domain[v->next_id] = domain[e->c - 1];
    }
    v->next_id++;
    return true;
}

static bool is_current(const struct view *v, const struct view_event *e)
{
    return e->a < (uint32_t)v->ranks && v->rank[e->a].state == RANK_RUNNING &&
           life_equal(view_life(v, (int)e->a), view_event_life(e));
}

static void rank_dead(struct view *v, const struct view_event *e)
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
        stop(v, signal_code(signal), "rank %d %s", (int)e->a, signal_did(signal, did, sizeof did));
    if (view_ranks_begin_again(v) && k->restarts < VIEW_MAX_RESTARTS) {
        k->restarts++;
        rank_begins(v, k, k->node);
    } else {
        rank_leave(k, RANK_DEAD);
        slot_follows(v, k->slot);
    }
}

static void rank_moved(struct view *v, const struct view_event *e)
{
    if (!is_current(v, e))
        return;
    struct view_rank *k = &v->rank[e->a];
    if (k->left || !view_ranks_begin_again(v)) {
        rank_dead(v, &(struct view_event){.type = VIEW_RANK_DEAD, .a = e->a, .b = e->b});
        return;
    }
    bool may = e->c < (uint32_t)members(v) && v->alive[e->c] && plan_allows(v, k->slot, (int)e->c);
    int from = k->node, to = may ? (int)e->c : from;
    rank_begins(v, k, to);
    if (to == from)
        return;
    k->moved = (struct view_moved){k->moved.times + 1, v->epoch, from, view_moved_order(e->d)};
    v->spare_free[to] = false;
    slot_follows(v, k->slot);
    v->spare_free[from] = !is_anybodys(v, from);
}

static void rank_done(struct view *v, const struct view_event *e)
{
    if (!is_current(v, e))
        return;
    int node = v->rank[e->a].node;
    rank_leave(&v->rank[e->a], RANK_DONE);
    slot_follows(v, v->rank[e->a].slot);
    if (e->c != 0 && sets_are_used(v))
        sets_rank_ended(v, (int)e->a, node, (int)e->c);
    else if (e->c != 0)
        stop(v, (int)e->c, "rank %d ended with exit code %d", (int)e->a, (int)e->c);
}

static void stop_asked(struct view *v, const struct view_event *e)
{
    int rank = (int)e->b - 1;
    if (e->b && sets_are_used(v) && rank >= 0 && rank < v->ranks && e->a)
        sets_rank_ended(v, rank, v->rank[rank].node, (int)e->a);
    else if (e->b)
        stop(v, (int)e->a, "rank %u ended the job with code %u", e->b - 1, e->a);
    else
        stop(v, (int)e->a, "the job was stopped");
}

/* The primary says that all copies are whole and equal. The slot's ranks' node becomes the primary, so that data are
 * local to their ranks; the old primary executes nothing from the submission of this event on. */
static void restored(struct view *v, const struct view_event *e)
{
    if (e->a >= (uint32_t)copysets(v))
        return;
    struct view_copyset *g = &v->copyset[e->a];
    if (g->copies == 0 || g->mode != COPYSET_REPAIR || g->generation != e->d)
        return;
    for (int i = 0; i < g->copies; i++)
        g->copy[i].whole = true;
    int home = view_slot_node(v, copyset_slot((int)e->a)), at = home >= 0 ? view_copy_at(g, home) : -1;
    if (at > 0) {
        struct view_copy c = g->copy[at];
        memmove(&g->copy[1], &g->copy[0], (size_t)at * sizeof c);
        g->copy[0] = c;
    }
    follow_equal(v, (int)e->a);
    copyset_set_mode(v, g, COPYSET_DIRECT);
}

/* What is to be found out is found out where nobody writes but through the primary. */
static void suspect(const struct view *v, const struct view_event *e)
{
    struct view_copyset *g = e->a < (uint32_t)copysets(v) ? &v->copyset[e->a] : NULL;
    if (g && g->copies > 1 && g->mode == COPYSET_DIRECT && g->generation == e->d)
        copyset_set_mode(v, g, COPYSET_REPAIR);
}

/* What was being filled there is filled elsewhere, or missing. */
static void declined(struct view *v, const struct view_event *e)
{
    if (e->a >= (uint32_t)members(v))
        return;
    v->full[e->a] = true;
    for (int i = 0; i < copysets(v); i++) {
        struct view_copyset *g = &v->copyset[i];
        int at = view_copy_at(g, (int)e->a);
        if (at < 0 || g->copy[at].whole)
            continue;
        copyset_take_out(v, i, at);
        copyset_set_mode(v, g, COPYSET_REPAIR);
    }
}

/* Also where the death came first, so that it does not matter when the program says what it is. */
static void check_needed(struct view *v)
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
        stop(v, 1, "process %d %s on node %d; the program has not called keel_survive and ends", r,
             signal_did(d->signal, did, sizeof did), d->node);
    else
        stop(v, 1, "process %d died with its node %d; the program has not called keel_survive and ends", r, d->node);
}

static void check_finished(struct view *v)
{
    int done = 0; /* ranks that ended by themselves */
    if (sets_are_used(v)) {
        int code;
        char why[sizeof v->why];
        if (sets_are_finished(v, &code, why, sizeof why))
            stop(v, code, "%s", why);
        return;
    }
    for (int r = 0; r < v->ranks; r++) {
        if (v->rank[r].state == RANK_RUNNING)
            return;
        done += v->rank[r].state == RANK_DONE;
    }
    if (done)
        stop(v, 0, "%s", "");
    else
        stop(v, 137, "all %d ranks died", v->ranks);
}

bool view_event_doubts(const struct view_event *e, struct life writer)
{
    return (e->type == VIEW_RANK_DEAD || (e->type == VIEW_RANK_DOUBT && !e->d) || (e->type == VIEW_RANK_DONE && e->d) ||
            (e->type == VIEW_RANK_MOVED && !view_moved_complete(e->d))) &&
           life_equal(view_event_life(e), writer);
}

bool view_event_fences(const struct view_event *e, struct life writer)
{
    return view_event_doubts(e, writer) ||
           ((e->type == VIEW_RANK_DOUBT || e->type == VIEW_RANK_MOVED) && life_equal(view_event_life(e), writer));
}

/* A writer died: what it was writing may be in one copy and not in the others. */
static void doubt_copies(struct view *v)
{
    for (int i = 0; i < copysets(v); i++) {
        struct view_copyset *g = &v->copyset[i];
        g->doubted_at = v->epoch;
        if (g->copies > 1)
            copyset_set_mode(v, g, COPYSET_REPAIR);
    }
}

static void apply_one(struct view *v, const struct view_event *e)
{
    switch (e->type) {
    case VIEW_RANK_DEAD:
        rank_dead(v, e);
        break;
    case VIEW_RANK_DONE:
        rank_done(v, e);
        break;
    case VIEW_RANK_MOVED:
        rank_moved(v, e);
        break;
    case VIEW_RANK_LEFT:
        if (is_current(v, e))
            v->rank[e->a].left = true;
        break;
    case VIEW_RANK_DOUBT:
        if (is_current(v, e))
            v->rank[e->a].doubted += 1 + e->c;
        break;
    case VIEW_RESTORED:
        restored(v, e);
        break;
    case VIEW_SUSPECT:
        suspect(v, e);
        break;
    case VIEW_DECLINED:
        declined(v, e);
        break;
    case VIEW_NEEDS:
        v->needs_all = v->needs_all || e->a == NEEDS_ALL;
        v->survives = v->survives || e->a == NEEDS_NONE;
        break;
    case VIEW_STOP:
        stop_asked(v, e);
        break;
    case VIEW_FIGURE:
        plan_figure(v, e);
        break;
    case VIEW_REBALANCE:
        plan_rebalance(v, e);
        break;
    default:
        break;
    }
}

static bool ends_a_writer(const struct view_event *e)
{
    return e->type == VIEW_NODE_DEAD || view_event_doubts(e, view_event_life(e));
}

void view_apply(struct view *v, uint64_t epoch, const struct view_event *events, int n)
{
    int dead = 0, births = 0;
    v->epoch = epoch;
    bool writer_died = false;
    /* Births before deaths: who is born takes the place of who dies in the same view. */
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_BORN && node_born(v, &events[i]))
            v->births[births++] = birth_of(&events[i]);
    /* Deaths before the rest and all together: a copy on a node that died in the same view saves nothing. */
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_DEAD && events[i].a < (uint32_t)members(v) && v->alive[events[i].a]) {
            v->alive[events[i].a] = false;
            v->died[dead++] = (int)events[i].a;
            v->node_death[events[i].a] = (struct view_node_death){.epoch = epoch, .evidence = events[i].b};
        }
    if (dead || births)
        policy_plan(v, v->died, dead, v->births, births);
    for (int i = 0; i < dead; i++)
        ranks_of_dead_node(v, v->died[i]);
    policy_look(v);
    for (int i = 0; i < copysets(v); i++)
        if (copyset_drop_dead(v, &v->copyset[i])) {
            if (v->copyset[i].copies == 0)
                copyset_start_again(v, i);
            else
                copyset_set_mode(v, &v->copyset[i],
                                 view_whole_copies(&v->copyset[i]) == v->copyset[i].copies ? v->copyset[i].mode
                                                                                           : COPYSET_REPAIR);
        }
    for (int i = 0; i < n; i++) {
        writer_died = writer_died || ends_a_writer(&events[i]);
        apply_one(v, &events[i]);
    }
    plan_follow(v);
    if (writer_died)
        doubt_copies(v);
    plan_weigh(v);
    policy_look(v);
    for (int i = 0; i < copysets(v); i++)
        follow_trim(v, i);
    for (int i = 0; i < copysets(v); i++) {
        follow_place(v, i);
        copyset_fill(v, i);
    }
    policy_even(v);
    sets_look(v);
    check_needed(v);
    check_finished(v);
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
    for (int copyset = 0; copyset < v->nodes * CLASSES; copyset++) {
        const struct view_copyset *g = &v->copyset[copyset];
        for (int i = 0; i < g->copies && used >> copyset_class(copyset) & 1; i++)
            if (g->copy[i].node == node && g->copy[i].whole && view_whole_copies(g) == 1)
                return STAKE_DATA;
    }
    return STAKE_NONE;
}
