#include "runtime/topo/remap_int.h"

#include <stdlib.h>
#include <string.h>

bool remap_init(struct remap *r, const struct place *p, struct load *l, int32_t moves)
{
    size_t slots = (size_t)p->places;
    *r = (struct remap){.load = l, .moves = moves};
    r->slot_at = malloc((size_t)p->grid.nodes * sizeof *r->slot_at);
    r->changed = malloc(slots * sizeof *r->changed);
    r->displaced = malloc(slots * sizeof *r->displaced);
    r->middle = malloc(slots * sizeof *r->middle);
    r->there = malloc(slots * sizeof *r->there);
    r->index = malloc(slots * sizeof *r->index);
    r->mark = malloc(slots * sizeof *r->mark);
    bool ok = r->slot_at && r->changed && r->displaced && r->middle && r->there && r->index && r->mark &&
              load_key_init(&r->best, l) && load_key_init(&r->trial, l) && place_plan_init(&r->slide, p);
    if (ok)
        place_arrange_init(p, r->mark);
    else
        remap_fini(r);
    return ok;
}

void remap_fini(struct remap *r)
{
    free(r->slot_at);
    free(r->changed);
    free(r->displaced);
    free(r->middle);
    free(r->there);
    free(r->index);
    free(r->mark);
    load_key_fini(&r->best);
    load_key_fini(&r->trial);
    place_plan_fini(&r->slide);
    *r = (struct remap){0};
}

/* Keep the better of the trial and another key there. */
static bool is_better(struct load_key *trial, struct load_key *best)
{
    if (!load_key_better(trial, best))
        return false;
    struct load_key t = *trial;
    *trial = *best;
    *best = t;
    return true;
}

/* Is the slot one of those that stand on each other's nodes in a ring, and the lowest of them? */
static bool leads_ring(const struct place *p, const int32_t *at, int32_t slot)
{
    int32_t next = slot, lowest = slot;
    do {
        next = p->slot_at[at[next]];
        lowest = next >= 0 && next < lowest ? next : lowest;
    } while (next >= 0 && next != slot);
    return next == slot && lowest == slot;
}

/* Migrations that the map under trial needs: one for each slot that stands elsewhere, and one more for each ring. */
static int32_t moves_needed(const struct remap *r, const struct place *p)
{
    const int32_t *at = r->load->at;
    int32_t moves = 0;
    for (int32_t i = 0; i < r->nchanged; i++)
        if (at[r->changed[i]] != p->node_of[r->changed[i]])
            moves += leads_ring(p, at, r->changed[i]) ? 2 : 1;
    return moves;
}

static void note_changed(struct remap *r, int32_t slot)
{
    for (int32_t i = 0; i < r->nchanged; i++)
        if (r->changed[i] == slot)
            return;
    r->changed[r->nchanged++] = slot;
}

static void stand(struct remap *r, int32_t slot, int32_t node)
{
    load_put(r->load, slot, node);
    r->slot_at[node] = slot;
}

static void leave(struct remap *r, int32_t slot)
{
    r->slot_at[r->load->at[slot]] = PLACE_FREE;
    load_drop(r->load, slot);
}

/* No map with more collisions than the best known one is worth a look. */
static int32_t limit(const struct remap *r)
{
    return r->load->pattern->phases == 1 ? r->best.collisions : INT32_MAX;
}

/* So many moves, by the method's own bound and by the caller's? */
static bool is_allowed(struct remap *r, int32_t moves)
{
    r->bounded = r->bounded || (moves > r->most && moves <= r->moves);
    return moves <= r->most;
}

/* Every short slide, of any order, dimension and direction. */
static void try_slides(struct remap *r, const struct place *p, int32_t node, struct place_plan *plan)
{
    struct place_plan *t = &r->slide;
    t->slot = plan->slot;
    for (int dim = 0; dim < p->grid.ndims; dim++)
        for (unsigned across = 0; across < 1u << p->grid.ndims; across++)
            for (int dir = GRID_UP; dir <= GRID_DOWN; dir++) {
                if (across >> dim & 1 || !place_slide_along(p, node, dim, dir, across, t) || !is_allowed(r, t->count))
                    continue;
                load_try(r->load, t);
                load_key_read(&r->trial, r->load, t->count);
                load_try_back(r->load, t);
                if (!is_better(&r->trial, &r->best))
                    continue;
                memcpy(plan->moves, t->moves, (size_t)t->count * sizeof *t->moves);
                plan->count = t->count;
            }
}

static void try_first(struct remap *r, int32_t node, int32_t to, struct place_plan *plan)
{
    if (!load_put_within(r->load, plan->slot, to, plan->count ? limit(r) : INT32_MAX))
        return;
    load_key_read(&r->trial, r->load, 1);
    load_put_back(r->load, plan->slot);
    if (plan->count && !load_key_better(&r->trial, &r->best))
        return;
    struct load_key t = r->trial;
    r->trial = r->best;
    r->best = t;
    plan->moves[0] = (struct place_move){.slot = plan->slot, .from = node, .to = to};
    plan->count = 1;
}

/* Where the failed node's slot goes at once. */
static void place_first(struct remap *r, const struct place *p, int32_t node, struct place_plan *plan)
{
    struct remap_candidate list[REMAP_NEAR];
    int n = remap_near_free(r, p, remap_middle(r->load, plan->slot), list);
    plan->count = 0;
    for (int i = 0; i < n; i++)
        try_first(r, node, list[i].node, plan);
    if (r->most > 1)
        try_slides(r, p, node, plan);
    for (int32_t i = 0; i < plan->count; i++) {
        if (plan->moves[i].slot != plan->slot)
            leave(r, plan->moves[i].slot);
        note_changed(r, plan->moves[i].slot);
        stand(r, plan->moves[i].slot, plan->moves[i].to);
    }
}

struct choice {
    int32_t slot, node, other; /* other: the slot it changes places with, -1 none */
};

/* A trial is worth it only when it takes messages off the link: the slot there (it is dropped now), and the other one,
 * if any, on the slot's node. */
static bool relieves(const struct remap *r, int32_t slot, int32_t to, int32_t other, int32_t from)
{
    const struct load *l = r->load;
    if (l->net.tree.nodes)
        return true;
    int32_t now = l->phase[r->phase].count[r->link] + load_crossings(l, r->phase, r->link, slot, to);
    if (other >= 0 && now + 1 >= r->hottest)
        now -= load_crossings(l, r->phase, r->link, other, to);
    if (other >= 0 && now < r->hottest)
        now += load_crossings(l, r->phase, r->link, other, from);
    return now < r->hottest;
}

static void try_free(struct remap *r, const struct place *p, int32_t slot, struct choice *best)
{
    struct remap_candidate list[REMAP_NEAR];
    int32_t from = r->load->at[slot];
    int n = remap_near_free(r, p, remap_middle(r->load, slot), list);
    load_drop(r->load, slot);
    for (int i = 0; i < n; i++) {
        if (!relieves(r, slot, list[i].node, -1, from) || !load_put_within(r->load, slot, list[i].node, limit(r)))
            continue;
        load_key_read(&r->trial, r->load, 0);
        int32_t needed = moves_needed(r, p);
        load_put_back(r->load, slot);
        if (is_allowed(r, needed) && is_better(&r->trial, &r->best))
            *best = (struct choice){.slot = slot, .node = list[i].node, .other = -1};
    }
    load_put(r->load, slot, from);
}

/* slot, dropped, on the other's node, and that one on the slot's: is that better than the best known? */
static bool try_swap(struct remap *r, const struct place *p, int32_t slot, int32_t from, int32_t other, int32_t to)
{
    bool better = false;
    load_drop(r->load, other);
    if (load_put_within(r->load, slot, to, limit(r))) {
        if (load_put_within(r->load, other, from, limit(r))) {
            load_key_read(&r->trial, r->load, 0);
            int32_t was = r->nchanged;
            note_changed(r, other);
            better = is_allowed(r, moves_needed(r, p)) && is_better(&r->trial, &r->best);
            r->nchanged = was;
            load_put_back(r->load, other);
        }
        load_drop(r->load, slot);
    }
    load_put(r->load, other, to);
    return better;
}

static void try_swaps(struct remap *r, const struct place *p, int32_t slot, struct choice *best)
{
    struct remap_candidate list[REMAP_NEAR];
    int32_t from = r->load->at[slot];
    int n = remap_near_displaced(r, p, slot, list);
    load_drop(r->load, slot);
    for (int i = 0; i < n; i++) {
        int32_t other = list[i].node, to = r->load->at[other];
        if (relieves(r, slot, to, other, from) && try_swap(r, p, slot, from, other, to))
            *best = (struct choice){.slot = slot, .node = to, .other = other};
    }
    load_put(r->load, slot, from);
}

static void carry_out(struct remap *r, const struct place *p, const struct choice *c)
{
    int32_t from = r->load->at[c->slot];
    leave(r, c->slot);
    if (c->other >= 0) {
        leave(r, c->other);
        stand(r, c->other, from);
        note_changed(r, c->other);
    }
    stand(r, c->slot, c->node);
    note_changed(r, c->slot);
    remap_add_displaced(r, c->slot);
    remap_find_middles_around(r, p, c->slot);
    if (c->other >= 0)
        remap_find_middles_around(r, p, c->other);
}

/* The users with the most messages first, as many of them as are tried. */
static int sort_users(struct load_user *users, int n)
{
    int tried = n < REMAP_SLOTS ? n : REMAP_SLOTS;
    for (int k = 0; k < tried; k++) {
        int top = k;
        for (int i = k + 1; i < n; i++)
            if (users[i].messages > users[top].messages)
                top = i;
        struct load_user u = users[top];
        users[top] = users[k];
        users[k] = u;
    }
    return tried;
}

/* Relieve the first of the hottest links by the best change of one or two slots. returns  was there one? */
static bool remap_once(struct remap *r, const struct place *p)
{
    struct load_user users[REMAP_USERS];
    struct choice best = {.slot = -1};
    r->link = load_hottest(r->load, &r->phase);
    r->hottest = r->load->phase[r->phase].max;
    int n = load_users(r->load, r->slot_at, r->phase, r->link, users, REMAP_USERS);
    n = sort_users(users, n < REMAP_USERS ? n : REMAP_USERS);
    load_key_read(&r->best, r->load, 0);
    for (int k = 0; k < n; k++) {
        int32_t was = r->nchanged;
        note_changed(r, users[k].slot); /* as moves_needed looks at it */
        try_free(r, p, users[k].slot, &best);
        try_swaps(r, p, users[k].slot, &best);
        r->nchanged = was;
    }
    if (best.slot >= 0)
        carry_out(r, p, &best);
    return best.slot >= 0;
}

static void begin(struct remap *r, const struct place *p)
{
    memcpy(r->slot_at, p->slot_at, (size_t)p->grid.nodes * sizeof *r->slot_at);
    r->nchanged = r->ndisplaced = 0;
    for (int32_t i = 0; i < p->places; i++) {
        r->index[i] = -1;
        if (p->node_of[i] != p->home[i] && p->slot_at[p->node_of[i]] == i) /* who has no node gives none in exchange */
            remap_add_displaced(r, i);
    }
}

/* The load is the caller's: back to the map as it is, without the failed node's slot. */
static void take_back(struct remap *r, const struct place *p, int32_t lost, int32_t node)
{
    for (int32_t i = 0; i < r->nchanged; i++)
        load_drop(r->load, r->changed[i]);
    for (int32_t i = 0; i < r->nchanged; i++)
        if (r->changed[i] != lost)
            load_put(r->load, r->changed[i], p->node_of[r->changed[i]]);
    r->load->at[lost] = node;
}

bool remap_plan(const struct place *p, int32_t node, struct place_plan *plan, void *arg)
{
    struct remap *r = arg;
    if (!p->nfree)
        return false;
    r->most = r->moves < plan->most ? r->moves : plan->most;
    r->bounded = false;
    begin(r, p);
    place_first(r, p, node, plan);
    for (int32_t i = 0; i < r->nchanged; i++)
        remap_add_displaced(r, r->changed[i]);
    /* one message on each link of each phase cannot be improved on */
    if (r->most > 1 && load_collisions(r->load) > r->load->pattern->phases) {
        for (int32_t i = 0; i < r->ndisplaced; i++)
            remap_find_middle(r, p, i);
        while (load_collisions(r->load) > r->load->pattern->phases && remap_once(r, p))
            continue;
    }
    bool ok = place_arrange(p, r->changed, r->nchanged, r->load->at, r->mark, plan);
    take_back(r, p, plan->slot, node);
    plan->bounded |= r->bounded || (r->most == 1 && r->moves > 1); /* with one move nothing else is looked at */
    return ok;
}
