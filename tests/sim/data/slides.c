/* Runs on a grid (scenario `slides`): beside the views the placement library is told of the same deaths, births and
 * ends of moves. At each view every rank is to go where the library has its slot, and at quiet moments it is there. */
#include "tests/sim/data/slides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/view/plan_int.h"
#include "runtime/wire/leave.h"
#include "tests/lib/topo/look.h"
#include "tests/sim/data/model.h"

enum { PLACES_MAX = NODES_MAX + DEAD_MAX };

struct slides {
    struct grid_state grid;
    int node_at[PLACES_MAX], at[NODES_MAX]; /* who has that place, which place somebody has (-1: none) */
    bool refuses[NODES_MAX];                /* that the library was told of */
};

bool slides_rule(const struct setup *s, struct grid_rule *rule)
{
    struct grid_choice said = {.moves = s->grid.moves,
                               .dead = (int *)s->grid.dead,
                               .ndead = s->grid.ndead,
                               .plans = (int *)s->grid.plans,
                               .nplans = s->grid.nplans};
    snprintf(said.grid, sizeof said.grid, "%s", s->grid.nodes);
    snprintf(said.spares, sizeof said.spares, "%s", s->grid.layout);
    snprintf(said.method, sizeof said.method, "%s", s->grid.method);
    return !rule_read(rule, &said);
}

bool slides_fit(const struct setup *s)
{
    struct grid_rule rule;
    struct grid_state grid;
    if (!slides_rule(s, &rule) || !grid_open(&grid, &rule, s->nodes))
        return false;
    bool fits = !grid.place.homeless;
    grid_close(&grid);
    return fits;
}

bool slides_init(struct world *w)
{
    struct model *m = w->model;
    struct grid_rule rule;
    if (!w->setup.grid.nodes)
        return true;
    struct slides *s = m->slides = sim_alloc(sizeof *s);
    if (!slides_rule(&w->setup, &rule) || !view_place(&m->view, &rule) || !grid_open(&s->grid, &rule, w->setup.nodes) ||
        grid_numbers(&s->grid, s->node_at) != w->setup.nodes + w->setup.spares)
        return false;
    for (int node = 0; node < NODES_MAX; node++)
        s->at[node] = -1;
    for (int32_t g = 0; g < rule.grid.nodes; g++)
        if (s->node_at[g] >= 0)
            s->at[s->node_at[g]] = g;
    s->grid.chooser.weigh.figures.link_rate = PLAN_RATE;
    s->grid.chooser.weigh.figures.begin_us = PLAN_BEGIN_US;
    return true;
}

static bool is_free(const struct slides *s, const struct view *v, int place)
{
    for (int m = 0; m < view_ids(v); m++)
        if (s->at[m] == place && v->alive[m])
            return false;
    return true;
}

/* docs/protocols/detection.md, J10. -1: none. */
static int place_of_birth(const struct slides *s, const struct view *v, const struct view_event *e)
{
    int named = e->d > 0 ? (int)e->d - 1 : e->c > 0 ? s->at[e->c - 1] : -1;
    if (named >= 0 && is_free(s, v, named))
        return named;
    for (int place = 0; e->d == 0 && place < s->grid.place.grid.nodes; place++)
        if (is_free(s, v, place))
            return place;
    return -1;
}

static int births(struct slides *s, const struct view *v, const struct command *c, int32_t *back)
{
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        const struct view_event *e = &c->event[i];
        if (e->type != VIEW_NODE_BORN || v->born_at[e->a] != v->epoch)
            continue;
        int place = place_of_birth(s, v, e), last = place >= 0 ? s->node_at[place] : -1;
        if (place < 0)
            continue;
        if (last >= 0)
            s->at[last] = -1;
        s->node_at[place] = (int)e->a;
        s->at[e->a] = place;
        back[n++] = place;
    }
    return n;
}

static bool is_run(const struct view *v, int slot)
{
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].slot == slot && v->rank[r].state == RANK_RUNNING)
            return true;
    return false;
}

/* A slot that nobody runs any more goes to the end of its way at once. */
static bool has_come(const struct view *v, int slot, int to)
{
    return view_slot_node(v, slot) == to || (!is_run(v, slot) && view_slot_node(v, slot) >= 0);
}

static void follow(struct slides *s, const struct view *v)
{
    for (bool any = true; any;) {
        any = false;
        for (int slot = 0; slot < v->nodes; slot++) {
            int32_t i = s->grid.transit.next[slot];
            if (i >= 0 && has_come(v, slot, s->node_at[s->grid.transit.lines.move[i].to]))
                any = transit_done(&s->grid.transit, slot, s->grid.transit.lines.move[i].to) == TRANSIT_OK || any;
        }
    }
}

/* Whom nobody runs, and who has no node, gets none any more. */
/* Who stands where and is to go where, as one number, which all who are in the same view have. */
static uint64_t digest_of(const struct view *v)
{
    return look_transit_digest(&v->sliding->grid.transit);
}

static void give_up(struct world *w, struct slides *s, const struct view *v)
{
    for (int slot = 0; slot < v->nodes; slot++)
        if (view_slot_node(v, slot) < 0 && !is_run(v, slot) && !transit_give_up(&s->grid.transit, slot))
            world_fail(w, "epoch %llu: slot %d is given up, and the library has a node for it",
                       (unsigned long long)v->epoch, slot);
}

/* Where the library has the slot's ranks begin next: -1: nowhere. */
static int wanted(const struct slides *s, int slot)
{
    int32_t i = s->grid.transit.next[slot], place = s->grid.place.node_of[slot];
    if (i >= 0)
        return s->node_at[s->grid.transit.lines.move[i].to];
    return s->grid.place.slot_at[place] == slot ? s->node_at[place] : -1;
}

/* The library is told of figures, questions and nodes that start no process, which are dead to it, in the order of the
 * view's events. Where copies are the view alone knows. */
static void follow_weighing(struct slides *s, const struct view *v, const struct command *c)
{
    bool asked = false;
    for (int i = 0; i < c->n; i++) {
        const struct view_event *e = &c->event[i];
        struct weigh *w = &s->grid.chooser.weigh;
        if (e->type == VIEW_FIGURE && s->grid.chooses)
            plan_take_figure(w, v->nodes, e);
        if (e->type == VIEW_REFUSED && e->c < (uint32_t)view_ids(v) && v->refuses[e->c] && !s->refuses[e->c]) {
            s->refuses[e->c] = true;
            if (s->at[e->c] >= 0)
                (void)transit_change(&s->grid.transit, &s->grid.method, &s->at[e->c], 1, NULL, 0);
        }
        if (e->type != VIEW_REBALANCE || asked || !s->grid.chooses)
            continue;
        asked = true;
        if (!s->grid.transit.pending && !s->grid.place.homeless && !v->stopped &&
            auto_rebalance(&s->grid.chooser, &s->grid.place, s->grid.method.moves, &s->grid.transit.plan))
            (void)transit_take(&s->grid.transit, &s->grid.transit.plan);
    }
}

void slides_committed(struct world *w, const struct command *c)
{
    const struct view *v = &w->model->view;
    struct slides *s = w->model->slides;
    int32_t dead[NODES_MAX], back[NODES_MAX];
    int ndead = 0;
    if (!s || !view_ranks_begin_again(v))
        return;
    for (int i = 0; i < c->n; i++) {
        int node = c->event[i].type == VIEW_NODE_DEAD ? (int)c->event[i].a : -1;
        bool first = node >= 0 && v->node_death[node].epoch == v->epoch && s->at[node] >= 0;
        for (int k = 0; k < ndead && first; k++)
            first = dead[k] != s->at[node];
        if (first)
            dead[ndead++] = s->at[node];
    }
    int nback = births(s, v, c, back);
    for (int m = 0; m < view_ids(v); m++)
        if (v->alive[m] && plan_place(v, m) != s->at[m])
            world_fail(w, "epoch %llu: node %d is on place %d of the grid, and is to be on %d",
                       (unsigned long long)v->epoch, m, plan_place(v, m), s->at[m]);
    if (plan_auto(v))
        memcpy(s->grid.chooser.weigh.made_from, plan_auto(v)->weigh.made_from,
               (size_t)v->nodes * sizeof *s->grid.chooser.weigh.made_from);
    if (ndead || nback)
        (void)transit_change(&s->grid.transit, &s->grid.method, dead, ndead, back, nback);
    follow_weighing(s, v, c);
    give_up(w, s, v);
    follow(s, v);
    if (digest_of(v) != look_transit_digest(&s->grid.transit))
        world_fail(w, "epoch %llu: the plan of the view is not the library's", (unsigned long long)v->epoch);
    for (int r = 0; r < v->ranks && !w->failed; r++) {
        const struct view_rank *k = &v->rank[r];
        int to = plan_of_rank(v, r), is = to >= 0 ? to : k->node, want = wanted(s, k->slot), given_up;
        if (plan_gave_up(v, k->slot, &given_up)) /* without memory there: the library does not know of it */
            want = v->refuses[view_slot_node(v, k->slot)] ? is : view_slot_node(v, k->slot);
        if (k->state == RANK_RUNNING && want >= 0 && is != want)
            world_fail(w, "epoch %llu: rank %d of slot %d is to be on node %d, and the library has %d",
                       (unsigned long long)v->epoch, r, k->slot, is, want);
    }
}

void slides_settled(struct world *w, const struct node *n)
{
    const struct view *v = &w->model->view;
    if (w->model->slides && n->agent.view.epoch == v->epoch && digest_of(&n->agent.view) != digest_of(v))
        world_fail(w, "epoch %llu: the plan of node %d is not that of the view", (unsigned long long)v->epoch, n->id);
    for (int m = 0; m < view_ids(v) && w->model->slides && n->agent.view.epoch == v->epoch; m++)
        if (plan_place(&n->agent.view, m) != plan_place(v, m))
            world_fail(w, "epoch %llu: node %d has node %d on another place than the view",
                       (unsigned long long)v->epoch, n->id, m);
}

/* Of those that went where they were first asked to each must have come to the same collective: who has come to fewer
 * would be waited for by one that waits for its part, which comes behind it. */
void slides_went(struct world *w, struct runner *r)
{
    const struct view *view = &w->model->view;
    const struct intent_page *page = r->intents;
    const uint64_t asked = atomic_load(&page->asked_ns);
    if (!atomic_load(&page->leave_at) || atomic_load(&page->move_points) != 1 ||
        w->sched.now >= asked + LEAVE_TOGETHER_NS)
        return;
    r->asked_ns = asked;
    r->went_at = 1 + atomic_load(&page->collectives);
    for (const struct runner *o = w->runners; o; o = o->next)
        if (o->went_at && o->node == r->node && view->rank[o->rank].slot == view->rank[r->rank].slot &&
            o->asked_ns == asked && o->went_at != r->went_at)
            world_fail(w, "rank %d goes behind collective %llu, and rank %d of its slot went behind %llu", r->rank,
                       (unsigned long long)r->went_at - 1, o->rank, (unsigned long long)o->went_at - 1);
}

bool slides_are_over(const struct world *w)
{
    const struct view *v = &w->model->view;
    for (int r = 0; r < v->ranks && w->model->slides && !v->stopped; r++)
        if (plan_of_rank(v, r) >= 0 && !v->rank[r].left)
            return false;
    return true;
}

void slides_check_quiet(struct world *w)
{
    const struct view *v = &w->model->view;
    const struct slides *s = w->model->slides;
    for (int slot = 0; slot < v->nodes && s && !w->failed; slot++) {
        bool left = false;
        for (int r = 0; r < v->ranks; r++)
            left = left || (v->rank[r].slot == slot && v->rank[r].left);
        if (left)
            continue;
        /* a move that is given up is not done, and who was lost is where it is to be and waits for that one */
        int to;
        bool given_up = plan_gave_up(v, slot, &to);
        if (s->grid.transit.next[slot] >= 0 && !given_up && view_slot_node(v, slot) != wanted(s, slot))
            world_fail(w, "quiet: slot %d has still to go from node %d to %d", slot, view_slot_node(v, slot),
                       wanted(s, slot));
        /* who was lost and has no node of its own may have begun beside another slot, and stays there */
        for (int k = 0; k < slot; k++)
            if (view_slot_node(v, k) >= 0 && view_slot_node(v, k) == view_slot_node(v, slot) && wanted(s, k) >= 0 &&
                wanted(s, slot) >= 0 && !given_up && !plan_gave_up(v, k, &to))
                world_fail(w, "quiet: slots %d and %d are both on node %d", k, slot, view_slot_node(v, k));
    }
}
