#include "runtime/view/plan_int.h"
#include "runtime/view/view_int.h"

/* The place of a node that lives and has a whole copy of what the slot has; -1: none. Deaths of this view have not gone
 * through the copysets yet. */
static int32_t place_of_copy(const struct view *v, int slot)
{
    for (unsigned c = 1; c < CLASSES; c++) {
        const struct view_copyset *g = &v->copyset[copyset_of(slot, c)];
        for (int i = 0; i < g->copies; i++)
            if (g->copy[i].whole && v->alive[g->copy[i].node])
                return v->sliding->at[g->copy[i].node];
    }
    return -1;
}

void plan_begin_to_weigh(struct view *v)
{
    struct sliding *s = v->sliding;
    if (!s->grid.chooses)
        return;
    if (s->decided_at != v->epoch)
        auto_forget(&s->grid.chooser);
    s->decided_at = v->epoch;
    for (int slot = 0; slot < v->nodes; slot++)
        s->grid.chooser.weigh.made_from[slot] = place_of_copy(v, slot);
}

const struct auto_method *plan_auto(const struct view *v)
{
    return v->sliding && v->sliding->grid.chooses ? &v->sliding->grid.chooser : NULL;
}

int plan_decisions(const struct view *v)
{
    return plan_auto(v) && v->sliding->decided_at == v->epoch ? v->sliding->grid.chooser.decisions : 0;
}

static void take_pattern(struct weigh_figures *f, const struct view_event *e)
{
    uint32_t shape = e->b & 127;
    if (shape >= WEIGH_SHAPES)
        return;
    f->shape = (enum weigh_shape)shape;
    f->declared = e->b >> 7 & 1;
    f->horizon_ms = (uint64_t)(e->b >> 8) * 1000;
    f->steps_per_ks = e->c;
    f->message_bytes = e->d;
}

void plan_take_figure(struct weigh *w, int slots, const struct view_event *e)
{
    switch (e->a) {
    case FIGURE_PATTERN:
        take_pattern(&w->figures, e);
        break;
    case FIGURE_SLOT:
        if (e->b < (uint32_t)slots)
            w->slot_bytes[e->b] = e->d;
        break;
    case FIGURE_RATE:
        w->figures.link_rate = e->d ? e->d : w->figures.link_rate;
        break;
    case FIGURE_BEGIN:
        w->figures.begin_us = e->d;
        break;
    default:
        break;
    }
}

void plan_figure(struct view *v, const struct view_event *e)
{
    if (plan_auto(v))
        plan_take_figure(&v->sliding->grid.chooser.weigh, v->nodes, e);
}

bool plan_is_quiet(const struct view *v)
{
    return !v->sliding || (!v->sliding->grid.transit.pending && !v->sliding->grid.place.homeless);
}

static enum plan_rebalanced rebalance(struct view *v, uint32_t seconds)
{
    struct sliding *s = v->sliding;
    if (!plan_auto(v) || !view_ranks_begin_again(v) || v->stopped)
        return REBALANCE_NOT_AUTO;
    if (!plan_is_quiet(v))
        return REBALANCE_UNDER_WAY;
    plan_begin_to_weigh(v);
    struct transit *t = &s->grid.transit;
    struct weigh_figures *f = &s->grid.chooser.weigh.figures;
    uint64_t horizon_ms = f->horizon_ms;
    f->horizon_ms = seconds ? (uint64_t)seconds * 1000 : horizon_ms;
    bool pays = auto_rebalance(&s->grid.chooser, &s->grid.place, s->grid.method.moves, &t->plan);
    f->horizon_ms = horizon_ms;
    if (!pays)
        return f->shape == WEIGH_NOTHING ? REBALANCE_UNKNOWN : REBALANCE_STAYS;
    if (!transit_take(t, &t->plan))
        return REBALANCE_UNDER_WAY;
    v->planned = 0;
    plan_list(v);
    return REBALANCE_MOVES;
}

void plan_rebalance(struct view *v, const struct view_event *e)
{
    struct sliding *s = v->sliding;
    if (!s || s->rebalanced.at == v->epoch)
        return; /* who asks in the same view hears the same */
    s->rebalanced.what = rebalance(v, e->b);
    s->rebalanced.at = v->epoch;
}

enum plan_rebalanced plan_rebalanced(const struct view *v)
{
    const struct sliding *s = v->sliding;
    return !s ? REBALANCE_NOT_AUTO : s->rebalanced.at == v->epoch ? s->rebalanced.what : REBALANCE_NONE;
}
