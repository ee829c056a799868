#include "runtime/view/plan_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/view/policy.h"
#include "runtime/view/view_int.h"

static bool has_ranks(const struct view *v, int slot)
{
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].slot == slot && v->rank[r].state == RANK_RUNNING)
            return true;
    return false;
}

static bool has_ranks_on(const struct view *v, int slot, int node)
{
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].slot == slot && v->rank[r].node == node && v->rank[r].state == RANK_RUNNING)
            return true;
    return false;
}

/* ---- on a grid ---- */

static void sliding_free(struct sliding *s)
{
    if (!s)
        return;
    grid_close(&s->grid);
    free(s->node_at);
    free(s->at);
    free(s->dead);
    free(s->back);
    free(s->kept);
    free(s->stays);
    free(s);
}

/* returns   do as many have a place as there are? */
static bool take_places(const struct view *v, struct sliding *s)
{
    memset(s->at, -1, (size_t)view_ids(v) * sizeof *s->at);
    if (s->grid.place.homeless || grid_numbers(&s->grid, s->node_at) != v->nodes + v->spares)
        return false;
    for (int32_t g = 0; g < s->grid.place.grid.nodes; g++)
        if (s->node_at[g] >= 0)
            s->at[s->node_at[g]] = g;
    return true;
}

static bool sliding_init(struct sliding *s, const struct view *v, const struct grid_rule *rule)
{
    size_t nodes = (size_t)rule->grid.nodes;
    s->node_at = calloc(nodes, sizeof *s->node_at);
    s->at = calloc((size_t)view_ids(v), sizeof *s->at);
    s->dead = calloc(nodes, sizeof *s->dead);
    s->back = calloc(nodes, sizeof *s->back);
    s->kept = calloc((size_t)v->nodes, sizeof *s->kept);
    s->stays = calloc((size_t)v->nodes, sizeof *s->stays);
    return s->node_at && s->at && s->dead && s->back && s->kept && s->stays && grid_open(&s->grid, rule, v->nodes) &&
           take_places(v, s);
}

bool view_place(struct view *v, const struct grid_rule *rule)
{
    if (rule->grid.nodes != v->nodes + v->spares + rule->ndead || v->sliding)
        return false;
    struct sliding *s = calloc(1, sizeof *s);
    struct view_move *plan = NULL;
    if (s && sliding_init(s, v, rule))
        plan = calloc((size_t)s->grid.transit.lines.cap + (size_t)v->nodes, sizeof *plan);
    if (!plan) {
        sliding_free(s);
        return false;
    }
    s->grid.chooser.weigh.figures.link_rate = PLAN_RATE;
    s->grid.chooser.weigh.figures.begin_us = PLAN_BEGIN_US;
    auto_forget(&s->grid.chooser); /* who was not there from the start is nobody's news */
    free(v->plan);
    v->plan = plan;
    v->sliding = s;
    return true;
}

const struct place *plan_grid(const struct view *v)
{
    return v->sliding ? &v->sliding->grid.place : NULL;
}

int plan_place(const struct view *v, int node)
{
    return v->sliding ? v->sliding->at[node] : -1;
}

void plan_fini(struct view *v)
{
    sliding_free(v->sliding);
    v->sliding = NULL;
}

/* Its node has died, or it had none from the start. */
static bool is_free(const struct view *v, const struct sliding *s, int32_t place)
{
    return s->node_at[place] < 0 || !v->alive[s->node_at[place]];
}

/* The place that it names, and no other; or else that of the node that was there before, or the first one that is free.
 * -1: none. */
static int32_t place_of_birth(const struct view *v, const struct sliding *s, const struct plan_birth *b)
{
    int32_t places = s->grid.place.grid.nodes, place = b->place >= 0 ? b->place : b->was >= 0 ? s->at[b->was] : -1;
    if (place >= 0 && place < places && is_free(v, s, place))
        return place;
    for (place = 0; b->place < 0 && place < places; place++)
        if (is_free(v, s, place))
            return place;
    return -1;
}

/* Nobody who is born has the place of one who lives. */
static int places_back(const struct view *v, struct sliding *s, const struct plan_birth *born, int nborn)
{
    int n = 0;
    for (int i = 0; i < nborn; i++) {
        int32_t place = place_of_birth(v, s, &born[i]);
        int last = place >= 0 ? s->node_at[place] : -1;
        if (place < 0)
            continue;
        if (last >= 0)
            s->at[last] = -1;
        s->node_at[place] = born[i].node;
        s->at[born[i].node] = place;
        s->back[n++] = place;
    }
    return n;
}

/* Where the slot is in the view: it may have begun beside one that is to go, and then transit has it still where it
 * was. */
static int node_of_move(const struct view *v, const struct sliding *s, int32_t i)
{
    const struct place_move *m = &s->grid.transit.lines.move[i];
    int now = view_slot_node(v, m->slot);
    if (s->grid.transit.next[m->slot] == i && now >= 0)
        return now;
    return s->node_at[m->from >= 0 ? m->from : s->grid.transit.lost_on[m->slot]];
}

/* The slot's next move; NULL: none. */
static const struct place_move *next_of(const struct sliding *s, int slot)
{
    int32_t i = s->grid.transit.next[slot];
    return i < 0 ? NULL : &s->grid.transit.lines.move[i];
}

/* Where the slot is to be in the end; -1: there is no node for it. */
static int aim_of(const struct sliding *s, int slot)
{
    int32_t place = s->grid.place.node_of[slot];
    return s->grid.place.slot_at[place] == slot ? s->node_at[place] : -1;
}

static void add_move(struct view *v, int slot, int from, int to)
{
    if (from != to)
        v->plan[v->planned++] = (struct view_move){slot, from, to};
}

void plan_list(struct view *v)
{
    const struct sliding *s = v->sliding;
    const struct transit *t = &s->grid.transit;
    for (int32_t i = 0; i < t->lines.count; i++)
        add_move(v, t->lines.move[i].slot, node_of_move(v, s, i), s->node_at[t->lines.move[i].to]);
}

static void change_plan(struct view *v, const int32_t *dead, int ndead, const int32_t *back, int nback)
{
    struct sliding *s = v->sliding;
    plan_begin_to_weigh(v);
    (void)transit_change(&s->grid.transit, &s->grid.method, dead, ndead, back, nback);
    plan_list(v);
    for (int slot = 0; slot < v->nodes; slot++) /* who has begun where it is not to be any more goes back */
        if (!next_of(s, slot) && aim_of(s, slot) >= 0 && view_slot_node(v, slot) >= 0)
            add_move(v, slot, view_slot_node(v, slot), aim_of(s, slot));
}

static void plan_slides(struct view *v, const int *dead, int ndead, const struct plan_birth *born, int nborn)
{
    struct sliding *s = v->sliding;
    int n = 0;
    for (int i = 0; i < ndead; i++)
        if (s->at[dead[i]] >= 0)
            s->dead[n++] = s->at[dead[i]];
    int nback = places_back(v, s, born, nborn);
    if (!view_ranks_begin_again(v))
        return;
    change_plan(v, s->dead, n, s->back, nback);
}

void plan_refuse(struct view *v, int node)
{
    struct sliding *s = v->sliding;
    if (!s || s->at[node] < 0 || !view_ranks_begin_again(v))
        return;
    v->planned = 0;
    change_plan(v, &s->at[node], 1, s->back, 0);
}

/* ---- 0D ---- */

static void plan_spares(struct view *v, const int *dead, int ndead)
{
    for (int i = 0; i < ndead; i++) {
        int spare = view_node_takes_part(v, dead[i]) ? policy_spare(v, dead[i]) : -1;
        if (spare < 0)
            continue;
        v->spare_free[spare] = false; /* and not for the next one */
        for (int s = 0; s < v->nodes; s++)
            if (view_slot_node(v, s) == dead[i] || has_ranks_on(v, s, dead[i]))
                v->plan[v->planned++] = (struct view_move){s, dead[i], spare};
    }
}

/* ---- the plan ---- */

void policy_plan(struct view *v, const int *dead, int ndead, const struct plan_birth *born, int nborn)
{
    v->planned = 0;
    if (v->sliding)
        plan_slides(v, dead, ndead, born, nborn);
    else if (view_ranks_begin_again(v))
        plan_spares(v, dead, ndead);
}

int plan_target(const struct view *v, int slot, int dead)
{
    for (int i = v->planned - 1; i >= 0; i--) /* a slot that steps aside goes on */
        if (v->plan[i].slot == slot && v->plan[i].from == dead)
            return v->plan[i].to;
    return v->sliding && view_ranks_begin_again(v) ? aim_of(v->sliding, slot) : -1;
}

/* Where the slot is to go next, on a grid, or is. */
static int planned_node(const struct view *v, int slot)
{
    const struct place_move *next = next_of(v->sliding, slot);
    int to = next ? v->sliding->node_at[next->to] : aim_of(v->sliding, slot);
    return to >= 0 ? to : view_slot_node(v, slot);
}

/* Where ranks of the slot are to begin, on a grid. */
static int next_node(const struct view *v, int slot)
{
    return v->sliding->stays[slot] ? view_slot_node(v, slot) : planned_node(v, slot);
}

int plan_next(const struct view *v, int slot)
{
    return v->sliding && view_ranks_begin_again(v) ? next_node(v, slot) : -1;
}

int plan_slot_target(const struct view *v, int slot)
{
    int home = view_slot_node(v, slot), to = v->sliding && home >= 0 ? next_node(v, slot) : home;
    return to != home && view_ranks_begin_again(v) ? to : -1;
}

uint64_t plan_gave_up(const struct view *v, int slot, int *to)
{
    if (!v->sliding || !v->sliding->stays[slot])
        return 0;
    *to = planned_node(v, slot);
    return v->sliding->stays[slot];
}

int plan_free_nodes(const struct view *v)
{
    return v->sliding && view_ranks_begin_again(v) ? v->sliding->grid.place.nfree : 0;
}

static bool is_waiting(const struct view *v, int slot, enum plan_waiting why)
{
    const struct sliding *s = v->sliding;
    bool lost = s->grid.place.given_up[slot];
    switch (why) {
    case PLAN_LOST:
        return v->home[slot] < 0 && lost;
    case PLAN_NO_NODE:
        return v->home[slot] < 0;
    case PLAN_NO_PLACE:
        return aim_of(s, slot) < 0;
    case PLAN_STAYS:
        return s->stays[slot];
    default:
        return planned_node(v, slot) != v->home[slot];
    }
}

int plan_waits_for(const struct view *v, enum plan_waiting *why, int *node, int *to)
{
    for (*why = PLAN_LOST; !plan_is_quiet(v) && *why <= PLAN_GOES; (*why)++)
        for (int slot = 0; slot < v->nodes; slot++)
            if (is_waiting(v, slot, *why)) {
                *node = view_slot_node(v, slot);
                *to = *node >= 0 && *why != PLAN_NO_PLACE ? planned_node(v, slot) : -1;
                return slot;
            }
    return -1;
}

/* Is somebody there who stays? */
static bool is_kept(const struct view *v, int node)
{
    for (int s = 0; s < v->nodes; s++)
        if (v->home[s] == node && v->sliding->kept[s])
            return true;
    return false;
}

void plan_weigh(struct view *v)
{
    struct sliding *s = v->sliding;
    if (!s)
        return;
    memset(s->kept, 0, (size_t)v->nodes * sizeof *s->kept);
    for (bool any = true; any;) { /* from the end of a line to its beginning */
        any = false;
        for (int slot = 0; slot < v->nodes; slot++) {
            int to = planned_node(v, slot);
            if (s->kept[slot] || v->home[slot] < 0 || to == v->home[slot] || (!v->full[to] && !is_kept(v, to)))
                continue;
            s->kept[slot] = 1;
            any = true;
        }
    }
    for (int slot = 0; slot < v->nodes; slot++)
        s->stays[slot] = !s->kept[slot] ? 0 : s->stays[slot] ? s->stays[slot] : v->epoch;
}

bool plan_allows(const struct view *v, int slot, int node)
{
    return !v->sliding || node == view_slot_node(v, slot) || node == next_node(v, slot);
}

int plan_of_rank(const struct view *v, int rank)
{
    const struct view_rank *k = &v->rank[rank];
    if (!v->sliding || !view_ranks_begin_again(v) || k->state != RANK_RUNNING)
        return -1;
    int to = next_node(v, k->slot); /* perhaps where others of its slot live, and none begins any more */
    return to != k->node && !v->refuses[to] ? to : -1;
}

uint32_t plan_order(const struct view *v, int slot)
{
    int32_t next = v->sliding ? v->sliding->grid.transit.next[slot] : -1;
    return next >= 0 ? (uint32_t)next : 0;
}

/* A slot that nobody runs any more is where it is to be. */
static bool is_there(struct view *v, int slot, int to)
{
    if (v->home[slot] >= 0 && !has_ranks(v, slot))
        follow_slot(v, slot, to);
    return v->home[slot] == to;
}

/* Slots that no node was found for, so that their ranks were left dead: none is kept for them later. */
static void give_up(struct view *v)
{
    for (int slot = 0; slot < v->nodes; slot++)
        if (v->home[slot] < 0 && !has_ranks(v, slot))
            (void)transit_give_up(&v->sliding->grid.transit, slot);
}

void plan_follow(struct view *v)
{
    struct sliding *s = v->sliding;
    if (s)
        give_up(v);
    for (bool any = s != NULL; any;) { /* who waits for another one in its line is there perhaps already */
        any = false;
        for (int slot = 0; slot < v->nodes; slot++) {
            const struct place_move *next = next_of(s, slot);
            if (next && is_there(v, slot, s->node_at[next->to]))
                any = transit_done(&s->grid.transit, slot, next->to) == TRANSIT_OK || any;
        }
    }
}
