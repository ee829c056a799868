#include "runtime/topo/auto.h"

#include <stdio.h>
#include <string.h>

bool auto_init(struct auto_method *a, const struct place *p, struct balance *balance, struct remap *remap)
{
    *a = (struct auto_method){.balance = balance, .remap = remap};
    a->to = malloc((size_t)p->slots * sizeof *a->to);
    a->mark = malloc((size_t)p->slots * sizeof *a->mark);
    bool ok = a->to && a->mark && weigh_init(&a->weigh, p) && place_plan_init(&a->trial, p) &&
              place_init(&a->replay, &p->grid, &p->layout, p->slots, NULL);
    if (!ok) {
        auto_fini(a);
        return false;
    }
    place_arrange_init(p, a->mark);
    return true;
}

void auto_fini(struct auto_method *a)
{
    weigh_fini(&a->weigh);
    place_plan_fini(&a->trial);
    place_fini(&a->replay);
    free(a->to);
    free(a->mark);
    *a = (struct auto_method){0};
}

void auto_forget(struct auto_method *a)
{
    a->decisions = 0;
}

/* Beyond so many the last one is written over: they are only told. */
static struct auto_decision *decide(struct auto_method *a, int32_t slot, int32_t node)
{
    if (a->decisions < AUTO_DECISIONS)
        a->decisions++;
    struct auto_decision *d = &a->decision[a->decisions - 1];
    *d = (struct auto_decision){.slot = slot,
                                .node = node,
                                .known = a->weigh.figures.shape != WEIGH_NOTHING,
                                .figures = a->weigh.figures,
                                .chosen = -1};
    return d;
}

static struct auto_candidate *add(struct auto_decision *d, const char *name)
{
    struct auto_candidate *c = &d->candidate[d->count++];
    snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

/* The candidate, a->trial, is the best so far: plan has its moves. */
static void take(struct auto_method *a, struct auto_decision *d, struct place_plan *plan)
{
    struct place_move *moves = plan->moves;
    plan->moves = a->trial.moves;
    plan->count = a->trial.count;
    plan->zero = a->trial.zero;
    plan->order = a->trial.order;
    a->trial.moves = moves;
    d->chosen = d->count - 1;
}

/* ---- a node died ---- */

static void begin_trial(struct auto_method *a, const struct place_plan *plan)
{
    a->trial.count = 0;
    a->trial.slot = plan->slot;
    a->trial.most = plan->most;
    a->trial.bounded = a->trial.zero = false;
    a->trial.order = PLACE_OWN;
}

static void consider(struct auto_method *a, struct auto_decision *d, const char *name, struct place_plan *plan)
{
    struct auto_candidate *c = add(d, name);
    c->price = weigh_plan(&a->weigh, &a->trial);
    if (d->chosen < 0 || weigh_better(&c->price, &d->candidate[d->chosen].price))
        take(a, d, plan);
}

static void try_slide(struct auto_method *a, struct auto_decision *d, const struct place *p, int q,
                      struct place_plan *plan)
{
    char name[AUTO_NAME];
    snprintf(name, sizeof name, "%dD", q);
    begin_trial(a, plan);
    a->trial.order = q;
    if (place_slide(p, d->node, &a->trial, (void *)(intptr_t)q))
        consider(a, d, name, plan);
    plan->bounded |= a->trial.bounded;
}

static void try_repair(struct auto_method *a, struct auto_decision *d, const struct place *p, int32_t moves,
                       struct place_plan *plan)
{
    char name[AUTO_NAME];
    snprintf(name, sizeof name, "repair(%d)", (int)moves);
    begin_trial(a, plan);
    a->remap->moves = moves;
    if (remap_plan(p, d->node, &a->trial, a->remap))
        consider(a, d, name, plan);
    plan->bounded |= a->trial.bounded;
}

bool auto_plan(const struct place *p, int32_t node, struct place_plan *plan, void *arg)
{
    struct auto_method *a = arg;
    struct auto_decision *d = decide(a, plan->slot, node);
    if (!d->known) {
        bool ok = balance_plan(p, node, plan, a->balance);
        add(d, "balance")->price = (struct weigh_price){.moves = ok ? plan->count : 0};
        d->chosen = ok ? 0 : -1;
        return ok;
    }
    for (int q = 0; q <= p->grid.ndims; q++)
        try_slide(a, d, p, q, plan);
    begin_trial(a, plan);
    if (balance_plan(p, node, &a->trial, a->balance))
        consider(a, d, "balance", plan);
    plan->bounded |= a->trial.bounded;
    try_repair(a, d, p, 2, plan);
    try_repair(a, d, p, REMAP_MOVES, plan);
    return d->chosen >= 0;
}

/* ---- somebody asks ---- */

/* The map that the method would have come to with so many moves for each failure; 0: with any number. */
static bool replay(struct auto_method *a, const struct place *p, const char *name, int32_t moves)
{
    struct place_method m;
    if (place_method_parse(&m, name, p->grid.ndims))
        return false;
    m.moves = moves;
    place_reset(&a->replay);
    for (int32_t i = 0; i < p->ndead; i++)
        if (place_substitute(&a->replay, &m, p->dead_list[i], &a->trial) == PLACE_CANNOT)
            return false;
    memcpy(a->to, a->replay.node_of, (size_t)p->slots * sizeof *a->to);
    return true;
}

static void try_map(struct auto_method *a, struct auto_decision *d, const struct place *p, const char *name,
                    int32_t moves, struct place_plan *plan)
{
    int64_t most = (int64_t)moves * (p->ndead > 1 ? p->ndead : 1);
    if (!replay(a, p, name, moves) || !place_arrange(p, NULL, p->slots, a->to, a->mark, &a->trial) || !a->trial.count ||
        (most > 0 && a->trial.count > most))
        return;
    struct auto_candidate *c = add(d, name);
    a->trial.zero = false;
    c->price = weigh_plan(&a->weigh, &a->trial);
    const struct weigh_price *best = &d->candidate[d->chosen].price;
    if (d->chosen == 0 ? c->price.cost_ns < best->cost_ns : weigh_better(&c->price, best))
        take(a, d, plan);
}

bool auto_rebalance(struct auto_method *a, const struct place *p, int32_t moves, struct place_plan *plan)
{
    struct auto_decision *d = decide(a, -1, -1);
    plan->count = 0;
    plan->slot = -1;
    plan->zero = plan->bounded = false;
    d->known = d->known && !p->homeless;
    if (!d->known)
        return false;
    add(d, "stay")->price = weigh_plan(&a->weigh, plan);
    d->chosen = 0;
    for (int q = 0; q <= p->grid.ndims; q++) {
        char name[AUTO_NAME];
        snprintf(name, sizeof name, "%dD", q);
        try_map(a, d, p, name, moves, plan);
    }
    try_map(a, d, p, "hybrid(all)", moves, plan);
    if (p->grid.ndims > 1)
        try_map(a, d, p, "hybrid(-2D)", moves, plan);
    return d->chosen > 0;
}
