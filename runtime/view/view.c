#include "runtime/view/view.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/wire/control.h"
#include "runtime/view/plan.h"
#include "runtime/view/policy.h"
#include "runtime/view/view_int.h"

/* The array becomes the view's. */
static bool take_rule(struct view *v, const struct copy_rule *copies)
{
    bool heeded = copies && copies->at != COPIES_AT_NEXT;
    size_t numbers = heeded ? (size_t)copies->levels * (size_t)view_ids(v) : 0;
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
    v->alive = calloc((size_t)view_ids(v), sizeof *v->alive);
    v->spare_free = calloc((size_t)view_ids(v), sizeof *v->spare_free);
    v->full = calloc((size_t)view_ids(v), sizeof *v->full);
    v->refuses = calloc((size_t)view_ids(v), sizeof *v->refuses);
    v->born_at = calloc((size_t)view_ids(v), sizeof *v->born_at);
    v->node_death = calloc((size_t)view_ids(v), sizeof *v->node_death);
    v->copyset = calloc((size_t)view_copysets(v), sizeof *v->copyset);
    v->home = calloc((size_t)nodes, sizeof *v->home);
    v->began = calloc((size_t)nodes, sizeof *v->began);
    v->rank = calloc((size_t)ranks, sizeof *v->rank);
    v->slot_ranks = calloc((size_t)nodes, sizeof *v->slot_ranks);
    v->ring = calloc((size_t)nodes, sizeof *v->ring);
    v->load = calloc((size_t)view_ids(v) * CLASSES, sizeof *v->load);
    v->live = calloc((size_t)view_ids(v), sizeof *v->live);
    v->way = calloc((size_t)view_ids(v), sizeof *v->way);
    v->queue = calloc((size_t)view_ids(v), sizeof *v->queue);
    v->plan = calloc((size_t)nodes + (size_t)ranks, sizeof *v->plan); /* each node's slots, and those of its ranks */
    v->died = calloc((size_t)view_ids(v), sizeof *v->died);
    v->births = calloc((size_t)view_ids(v), sizeof *v->births);
    if (!take_rule(v, copies) || !v->alive || !v->spare_free || !v->full || !v->refuses || !v->born_at ||
        !v->node_death || !v->copyset || !v->home || !v->began || !v->rank || !v->slot_ranks || !v->ring || !v->load ||
        !v->live || !v->way || !v->queue || !v->plan || !v->died || !v->births) {
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
        v->home[s] = v->began[s] = s;
    copysets_begin(v);
    return true;
}

void view_fini(struct view *v)
{
    free(v->alive);
    free(v->spare_free);
    free(v->full);
    free(v->refuses);
    free(v->born_at);
    free(v->node_death);
    free(v->copyset);
    free(v->home);
    free(v->began);
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
    if (e->a != (uint32_t)v->next_id || v->next_id == view_ids(v))
        return false;
    v->alive[v->next_id] = v->spare_free[v->next_id] = true;
    v->born_at[v->next_id] = v->epoch;
    for (int level = 0; level < v->copies.levels && e->c > 0 && e->c <= e->a; level++) {
        int *domain = &v->copies.domain[level * view_ids(v)];
        domain[v->next_id] = domain[e->c - 1];
    }
    v->next_id++;
    return true;
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

static void apply_one(struct view *v, const struct view_event *e)
{
    switch (e->type) {
    case VIEW_RANK_DEAD:
        view_rank_dead(v, e);
        break;
    case VIEW_RANK_DONE:
        view_rank_done(v, e);
        break;
    case VIEW_RANK_MOVED:
        view_rank_moved(v, e);
        break;
    case VIEW_REFUSED:
        view_rank_refused(v, e);
        break;
    case VIEW_RANK_LEFT:
        view_rank_left(v, e);
        break;
    case VIEW_RANK_DOUBT:
        view_rank_doubted(v, e);
        break;
    case VIEW_RESTORED:
        copyset_restored(v, e);
        break;
    case VIEW_SUSPECT:
        copyset_suspected(v, e);
        break;
    case VIEW_SET_BEGINS:
        set_begins(v, e);
        break;
    case VIEW_SET_JOINS:
        set_joins(v, e);
        break;
    case VIEW_DECLINED:
        copysets_declined(v, e);
        break;
    case VIEW_NEEDS:
        v->needs_all = v->needs_all || e->a == NEEDS_ALL;
        v->survives = v->survives || e->a == NEEDS_NONE;
        v->partners = v->partners && e->a != NEEDS_SETS;
        v->keeps = v->keeps || e->a == NEEDS_KEPT;
        v->stays = v->stays || e->a == NEEDS_ITS;
        if (e->a == NEEDS_FILES && e->b < (uint32_t)v->ranks)
            v->rank[e->b].writes = true;
        break;
    case VIEW_STOP:
        view_end_asked(v, e);
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
        if (events[i].type == VIEW_NODE_DEAD && events[i].a < (uint32_t)view_ids(v) && v->alive[events[i].a]) {
            v->alive[events[i].a] = false;
            v->died[dead++] = (int)events[i].a;
            v->node_death[events[i].a] = (struct view_node_death){.epoch = epoch, .evidence = events[i].b};
        }
    if (dead || births)
        policy_plan(v, v->died, dead, v->births, births);
    for (int i = 0; i < dead; i++)
        view_ranks_lose_node(v, v->died[i]);
    policy_look(v);
    copysets_lose_dead(v);
    for (int i = 0; i < n; i++) {
        writer_died = writer_died || ends_a_writer(&events[i]);
        apply_one(v, &events[i]);
    }
    plan_follow(v);
    if (writer_died)
        copysets_doubt(v);
    plan_weigh(v);
    policy_look(v);
    for (int i = 0; i < view_copysets(v); i++)
        follow_trim(v, i);
    for (int i = 0; i < view_copysets(v); i++) {
        follow_place(v, i);
        copyset_fill(v, i);
    }
    policy_even(v);
    sets_look(v);
    sets_look_at_coming(v);
    view_end_if_needed(v);
    view_end_if_finished(v);
}
