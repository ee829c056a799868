#include "runtime/core/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int members(const struct view *v)
{
    return v->nodes + v->spares;
}

bool view_init(struct view *v, enum view_policy policy, int nodes, int spares, int ranks, const int *rank_node)
{
    memset(v, 0, sizeof *v);
    v->policy = policy;
    v->nodes = nodes;
    v->spares = spares;
    v->ranks = ranks;
    v->alive = calloc((size_t)members(v), sizeof *v->alive);
    v->spare_free = calloc((size_t)members(v), sizeof *v->spare_free);
    v->slot = calloc((size_t)nodes, sizeof *v->slot);
    v->rank = calloc((size_t)ranks, sizeof *v->rank);
    v->slot_ranks = calloc((size_t)nodes, sizeof *v->slot_ranks);
    if (!v->alive || !v->spare_free || !v->slot || !v->rank || !v->slot_ranks) {
        view_fini(v);
        return false;
    }
    for (int m = 0; m < members(v); m++) {
        v->alive[m] = true;
        v->spare_free[m] = m >= nodes;
    }
    for (int r = 0; r < ranks; r++) {
        struct view_rank *k = &v->rank[r];
        k->slot = k->node = rank_node[r];
        k->index = v->slot_ranks[k->slot]++;
    }
    for (int s = 0; s < nodes; s++) {
        struct view_slot *slot = &v->slot[s];
        slot->primary = slot->home = s;
        /* A single computing node keeps its shadows on a spare, if there is one. */
        slot->shadow = nodes > 1 ? (s + 1) % nodes : spares > 0 ? 1 : -1;
        slot->mode = slot->shadow >= 0 ? SLOT_PAIR : SLOT_ALONE;
    }
    return true;
}

void view_fini(struct view *v)
{
    free(v->alive);
    free(v->spare_free);
    free(v->slot);
    free(v->rank);
    free(v->slot_ranks);
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

/* The lowest live spare that holds no rank and has not been taken. */
static int take_spare(struct view *v)
{
    for (int m = v->nodes; m < members(v); m++)
        if (v->spare_free[m] && v->alive[m]) {
            v->spare_free[m] = false;
            return m;
        }
    return -1;
}

/* Take dead nodes out of the slot; promote the shadow if it is whole. */
static void slot_drop_dead(struct view *v, struct view_slot *s)
{
    if (s->mode == SLOT_LOST)
        return;
    bool primary_dead = !v->alive[s->primary];
    bool shadow_dead = s->shadow >= 0 && !v->alive[s->shadow];
    if (!primary_dead && !shadow_dead)
        return;
    s->changed = v->epoch;
    if (primary_dead)
        s->lost_at = v->epoch;
    bool shadow_whole = s->mode == SLOT_PAIR || s->mode == SLOT_SYNC;
    if (primary_dead && (!shadow_whole || shadow_dead)) {
        s->primary = s->shadow = -1;
        s->mode = SLOT_LOST;
        return;
    }
    if (primary_dead)
        s->primary = s->shadow;
    s->shadow = -1;
    s->mode = SLOT_ALONE;
}

static int copies_on(const struct view *v, int node)
{
    int n = 0;
    for (int i = 0; i < v->nodes; i++)
        n += v->slot[i].primary == node || v->slot[i].shadow == node;
    return n;
}

/* Where a slot's missing copy goes: to its ranks' node, else to the computing node with the fewest copies (the first one
 * after the primary among equals), else to an idle spare. */
static int place_shadow(const struct view *v, const struct view_slot *s)
{
    if (s->home >= 0 && s->home != s->primary && v->alive[s->home])
        return s->home;
    int best = -1, best_cost = 0;
    for (int k = 1; k < members(v); k++) {
        int m = (s->primary + k) % members(v);
        if (!v->alive[m])
            continue;
        int cost = copies_on(v, m) + (v->spare_free[m] ? 4 * v->nodes : 0);
        if (best < 0 || cost < best_cost) {
            best = m;
            best_cost = cost;
        }
    }
    return best;
}

static void place_missing_shadows(struct view *v)
{
    for (int i = 0; i < v->nodes; i++) {
        struct view_slot *s = &v->slot[i];
        if (s->mode != SLOT_ALONE)
            continue;
        int m = place_shadow(v, s);
        if (m < 0)
            continue;
        s->shadow = m;
        s->mode = SLOT_REBUILD;
        s->changed = v->epoch;
    }
}

static void rank_leave(struct view_rank *k, enum rank_state state)
{
    k->state = state;
    k->node = -1;
}

/* Give the ranks that ran on a dead node another one, or none. */
static void ranks_of_dead_node(struct view *v, int node)
{
    bool any = view_node_takes_part(v, node);
    int spare = any && v->policy == VIEW_SUBSTITUTE ? take_spare(v) : -1;
    for (int i = 0; i < v->nodes; i++)
        if (v->slot[i].home == node)
            v->slot[i].home = spare;
    for (int r = 0; r < v->ranks; r++) {
        struct view_rank *k = &v->rank[r];
        if (k->node != node || k->state != RANK_RUNNING)
            continue;
        if (k->left || spare < 0) {
            rank_leave(k, k->left ? RANK_DONE : RANK_DEAD);
        } else {
            k->node = spare;
            k->incarnation++;
            k->joined = v->epoch;
        }
    }
    if (any && v->policy == VIEW_ABORT)
        stop(v, 137, "node %d died", node);
}

static bool is_current(const struct view *v, const struct view_event *e)
{
    return e->a < (uint32_t)v->ranks && v->rank[e->a].state == RANK_RUNNING && v->rank[e->a].incarnation == e->b;
}

static void rank_dead(struct view *v, const struct view_event *e)
{
    if (!is_current(v, e))
        return;
    struct view_rank *k = &v->rank[e->a];
    if (k->left) {
        rank_leave(k, RANK_DONE);
        return;
    }
    if (v->policy == VIEW_ABORT)
        stop(v, 128 + (int)e->c, "rank %d was killed by signal %d", (int)e->a, (int)e->c);
    if (v->policy == VIEW_SUBSTITUTE && k->restarts < VIEW_MAX_RESTARTS) {
        k->restarts++;
        k->incarnation++;
        k->joined = v->epoch;
    } else {
        rank_leave(k, RANK_DEAD);
    }
}

static void rank_done(struct view *v, const struct view_event *e)
{
    if (!is_current(v, e))
        return;
    rank_leave(&v->rank[e->a], RANK_DONE);
    if (e->c != 0)
        stop(v, (int)e->c, "rank %d ended with exit code %d", (int)e->a, (int)e->c);
}

static void stop_asked(struct view *v, const struct view_event *e)
{
    if (e->b)
        stop(v, (int)e->a, "rank %u ended the job with code %u", e->b - 1, e->a);
    else
        stop(v, (int)e->a, "the job was stopped");
}

static void restored(struct view *v, const struct view_event *e)
{
    if (e->a >= (uint32_t)v->nodes)
        return;
    struct view_slot *s = &v->slot[e->a];
    if ((s->mode != SLOT_REBUILD && s->mode != SLOT_SYNC) || s->shadow != (int)e->b || s->changed != e->d)
        return;
    s->mode = SLOT_PAIR;
    s->changed = v->epoch;
    if (s->home == s->shadow) {
        s->shadow = s->primary;
        s->primary = s->home;
    }
}

static void check_finished(struct view *v)
{
    int done = 0; /* ranks that ended by themselves */
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

/* A writer died: what it was writing may be in one copy and not in the other. */
static void doubt_pairs(struct view *v)
{
    for (int i = 0; i < v->nodes; i++)
        if (v->slot[i].mode == SLOT_PAIR || v->slot[i].mode == SLOT_SYNC) {
            v->slot[i].mode = SLOT_SYNC;
            v->slot[i].changed = v->epoch;
        }
}

void view_apply(struct view *v, uint64_t epoch, const struct view_event *events, int n)
{
    v->epoch = epoch;
    bool writer_died = false;
    /* Deaths first and all together: a copy on a node that died in the same view saves nothing. */
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_DEAD && events[i].a < (uint32_t)members(v))
            v->alive[events[i].a] = false;
    for (int i = 0; i < v->nodes; i++)
        slot_drop_dead(v, &v->slot[i]);
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_DEAD && events[i].a < (uint32_t)members(v))
            ranks_of_dead_node(v, (int)events[i].a);
    for (int i = 0; i < n; i++) {
        writer_died = writer_died || events[i].type == VIEW_RANK_DEAD || events[i].type == VIEW_NODE_DEAD;
        if (events[i].type == VIEW_RANK_DEAD)
            rank_dead(v, &events[i]);
        else if (events[i].type == VIEW_RANK_DONE)
            rank_done(v, &events[i]);
        else if (events[i].type == VIEW_RANK_LEFT && is_current(v, &events[i]))
            v->rank[events[i].a].left = true;
        else if (events[i].type == VIEW_RESTORED)
            restored(v, &events[i]);
        else if (events[i].type == VIEW_STOP)
            stop_asked(v, &events[i]);
    }
    if (writer_died)
        doubt_pairs(v);
    place_missing_shadows(v);
    check_finished(v);
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

bool view_redundancy_whole(const struct view *v)
{
    for (int i = 0; i < v->nodes; i++)
        if (v->slot[i].mode == SLOT_REBUILD || v->slot[i].mode == SLOT_SYNC)
            return false;
    return true;
}
