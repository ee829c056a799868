#include "runtime/topo/balance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reference_init(struct balance *b, const struct place *p, const char *method)
{
    struct balance_reference *r = &b->ref[b->refs++];
    return !place_method_parse(&r->method, method, p->grid.ndims) &&
           place_init(&r->place, &p->grid, &p->layout, p->slots, NULL) &&
           load_init(&r->load, b->load->pattern, &r->place, &b->load->net, b->load->convention);
}

bool balance_init(struct balance *b, const struct place *p, struct load *l)
{
    *b = (struct balance){.load = l};
    b->mark = malloc((size_t)p->slots * sizeof *b->mark);
    bool ok = b->mark && load_key_init(&b->key[0], l) && load_key_init(&b->key[1], l) &&
              place_plan_init(&b->trial, p) && place_init(&b->launch, &p->grid, &p->layout, p->slots, NULL) &&
              load_init(&b->launch_load, l->pattern, &b->launch, &l->net, l->convention) &&
              reference_init(b, p, "hybrid(all)") && reference_init(b, p, "0D") &&
              (p->grid.ndims < 2 || reference_init(b, p, "hybrid(-2D)"));
    if (!ok) {
        balance_fini(b);
        return false;
    }
    place_arrange_init(p, b->mark);
    b->together = b->refs == BALANCE_REFERENCES;
    b->collisions = load_collisions(&b->launch_load);
    b->straight = !l->net.tree.nodes;
    for (int d = 0; d < p->grid.ndims; d++)
        b->straight = b->straight && !p->grid.torus[d];
    return true;
}

void balance_fini(struct balance *b)
{
    for (int i = 0; i < b->refs; i++) {
        load_fini(&b->ref[i].load);
        place_fini(&b->ref[i].place);
    }
    load_fini(&b->launch_load);
    place_fini(&b->launch);
    place_plan_fini(&b->trial);
    load_key_fini(&b->key[0]);
    load_key_fini(&b->key[1]);
    free(b->mark);
    *b = (struct balance){0};
}

void balance_reset(struct balance *b)
{
    b->together = b->refs == BALANCE_REFERENCES;
    for (int i = 0; i < b->refs - b->together; i++) {
        place_copy(&b->ref[i].place, &b->launch);
        load_copy(&b->ref[i].load, &b->launch_load);
    }
    b->seen = 0;
    b->returns = b->load->place->returns;
    b->collisions = load_collisions(&b->launch_load);
}

/* The slot that stood on node moves by the reference's method. */
static void substitute(struct balance *b, struct balance_reference *r, int32_t node, int32_t slot)
{
    if (!place_plan(&r->place, &r->method, node, slot, &b->trial))
        return;
    if (b->together && r == b->ref && b->trial.order == 2) {
        place_copy(&b->ref[b->refs - 1].place, &r->place);
        load_copy(&b->ref[b->refs - 1].load, &r->load);
        b->together = false;
        place_apply(&r->place, &b->trial);
        load_move(&r->load, &b->trial);
        substitute(b, &b->ref[b->refs - 1], node, slot);
        return;
    }
    place_apply(&r->place, &b->trial);
    load_move(&r->load, &b->trial);
}

/* Nodes that are alive again are so in the reference, too, and its slots without a node may have one now. */
static void bring_back(struct balance *b, struct balance_reference *r, const struct place *p)
{
    int32_t slot;
    for (int32_t i = r->place.ndead - 1; i >= 0; i--) {
        int32_t node = r->place.dead_list[i];
        if (p->slot_at[node] != PLACE_DEAD && place_return(&r->place, node, &slot) == PLACE_MOVED)
            load_put(&r->load, slot, node);
    }
    for (slot = 0; slot < p->slots && r->place.homeless; slot++)
        if (r->place.slot_at[r->place.node_of[slot]] == PLACE_DEAD)
            substitute(b, r, r->place.node_of[slot], slot);
}

static void follow(struct balance *b, const struct place *p)
{
    if (b->returns != p->returns) {
        for (int i = 0; i < b->refs - b->together; i++)
            bring_back(b, &b->ref[i], p);
        b->returns = p->returns;
        b->seen = 0; /* what they know already they are told again, which changes nothing */
    }
    for (; b->seen < p->ndead; b->seen++) {
        int32_t node = p->dead_list[b->seen], slot;
        const struct balance_reference *end = b->ref + b->refs - b->together;
        for (struct balance_reference *r = b->ref; r < end; r++) {
            if (place_fail(&r->place, node, &slot) != PLACE_MOVED)
                continue;
            load_drop(&r->load, slot);
            substitute(b, r, node, slot);
        }
    }
}

/* Try b->trial on the load; it becomes the plan when it is the first or the best. A single move is given up at the
 * first message that makes it worse than the best. */
static void consider(struct balance *b, struct place_plan *plan)
{
    if (b->trial.count == 1) {
        int32_t limit = plan->count && b->load->pattern->phases == 1 ? b->key[0].collisions : INT32_MAX;
        if (!load_put_within(b->load, plan->slot, b->trial.moves[0].to, limit))
            return;
        load_key_read(&b->key[1], b->load, 1);
        load_put_back(b->load, plan->slot);
    } else {
        load_try(b->load, &b->trial);
        load_key_read(&b->key[1], b->load, b->trial.count);
        load_try_back(b->load, &b->trial);
    }
    if (plan->count && !load_key_better(&b->key[1], &b->key[0]))
        return;
    struct load_key better = b->key[1];
    b->key[1] = b->key[0];
    b->key[0] = better;
    struct place_move *moves = plan->moves;
    plan->moves = b->trial.moves;
    plan->count = b->trial.count;
    b->trial.moves = moves;
}

/* Nothing can be better: a message is on some link, unless it is one that does not count. */
static int32_t fewest_possible(const struct load *l)
{
    return l->convention == LOAD_ALL ? 1 : 0;
}

/* A slide of the highest order changes no route but for the empty layer it leaves: the shortest one is taken at once
 * when it adds no collision, without a look at the others. */
static bool consider_whole(struct balance *b, const struct place *p, int32_t node, struct place_plan *plan,
                           int32_t collisions)
{
    int q = p->grid.ndims, best = -1, best_dir = 0;
    int32_t fewest = INT32_MAX;
    unsigned all = (1u << q) - 1;
    for (int dim = 0; dim < q && q > 1; dim++)
        for (int dir = GRID_UP; dir <= GRID_DOWN; dir++) {
            int32_t moves = place_slide_moves(p, node, dim, dir, all & ~(1u << dim), fewest - 1);
            if (moves < 0)
                continue;
            fewest = moves;
            best = dim;
            best_dir = dir;
        }
    if (best < 0)
        return false;
    if (fewest > plan->most) {
        plan->bounded = true;
        return false;
    }
    bool sure = b->straight && b->collisions <= fewest_possible(b->load);
    place_slide_along(p, node, best, best_dir, all & ~(1u << best), sure ? plan : &b->trial);
    if (sure)
        b->key[0].collisions = b->collisions;
    else
        consider(b, plan);
    return sure || b->key[0].collisions <= collisions;
}

static void consider_slides(struct balance *b, const struct place *p, int32_t node, struct place_plan *plan)
{
    int q = p->grid.ndims;
    for (int dim = 0; dim < q; dim++)
        for (unsigned across = 0; across < 1u << q; across++) {
            if (across >> dim & 1 || (q > 1 && __builtin_popcount(across) == q - 1))
                continue;
            for (int dir = GRID_UP; dir <= GRID_DOWN; dir++)
                if (place_slide_along(p, node, dim, dir, across, &b->trial))
                    consider(b, plan);
        }
}

static void consider_nearest(struct balance *b, const struct place *p, int32_t node, struct place_plan *plan)
{
    int32_t at[BALANCE_NEAR];
    int dist[BALANCE_NEAR], n = 0;
    for (int32_t i = 0; i < p->nfree; i++) {
        int32_t cand = p->free_list[i];
        int d = place_distance(p, node, cand);
        if (n == BALANCE_NEAR && (d > dist[n - 1] || (d == dist[n - 1] && cand > at[n - 1])))
            continue;
        int j = n < BALANCE_NEAR ? n++ : n - 1;
        for (; j > 0 && (dist[j - 1] > d || (dist[j - 1] == d && at[j - 1] > cand)); j--) {
            dist[j] = dist[j - 1];
            at[j] = at[j - 1];
        }
        dist[j] = d;
        at[j] = cand;
    }
    for (int i = 0; i < n; i++) {
        b->trial.moves[0] = (struct place_move){.slot = plan->slot, .from = node, .to = at[i]};
        b->trial.count = 1;
        consider(b, plan);
    }
}

/* The moves that turn the map into the reference's. */
static bool adopt(struct balance *b, const struct place *p, const struct place *to, struct place_plan *plan)
{
    return p->homeless <= 1 && !to->homeless && place_arrange(p, NULL, p->slots, to->node_of, b->mark, plan);
}

bool balance_plan(const struct place *p, int32_t node, struct place_plan *plan, void *arg)
{
    struct balance *b = arg;
    int32_t before = load_collisions(b->load);
    plan->count = 0;
    b->trial.slot = plan->slot;
    if (!p->nfree)
        return false;
    b->trial.most = plan->most;
    b->trial.bounded = false;
    if (!consider_whole(b, p, node, plan, before)) {
        consider_slides(b, p, node, plan);
        consider_nearest(b, p, node, plan);
    }
    int best = -1;
    int32_t collisions = b->key[0].collisions, least = fewest_possible(b->load);
    plan->bounded |= b->trial.bounded; /* following sets another bound */
    if (collisions > least)
        follow(b, p);
    for (int i = 0; collisions > least && i < b->refs - b->together; i++)
        if (load_collisions(&b->ref[i].load) < collisions) {
            best = i;
            collisions = load_collisions(&b->ref[i].load);
        }
    bool fits = best >= 0 && adopt(b, p, &b->ref[best].place, &b->trial);
    plan->bounded |= fits && b->trial.count > plan->most;
    if (fits && b->trial.count <= plan->most) {
        struct place_move *moves = plan->moves;
        plan->moves = b->trial.moves;
        plan->count = b->trial.count;
        b->trial.moves = moves;
        b->adopted++;
    } else
        collisions = b->key[0].collisions;
    b->collisions = collisions;
    return plan->count > 0;
}
