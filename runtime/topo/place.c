#include "runtime/topo/place.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static_assert(_Alignof(max_align_t) >= PLACE_ALIGN, "what malloc returns can be read by vectors");

/* Offsets of the nodes of the subspace spanned by the dimensions in set, relative to its node at the origin. */
static bool section_make(struct place *p, unsigned set)
{
    const struct grid *g = &p->grid;
    int32_t len = 1;
    for (int d = 0; d < g->ndims; d++)
        if (set >> d & 1)
            len *= g->size[d];
    int32_t *off = malloc((size_t)len * sizeof *off);
    if (!off)
        return false;
    off[0] = 0;
    int32_t n = 1;
    for (int d = 0; d < g->ndims; d++) {
        if (!(set >> d & 1))
            continue;
        for (int c = 1; c < g->size[d]; c++)
            for (int32_t i = 0; i < n; i++)
                off[c * n + i] = off[i] + c * g->stride[d];
        n *= g->size[d];
    }
    p->section[set] = off;
    p->section_len[set] = len;
    return true;
}

/* What depends on where a node is. returns   false when stopped. */
static bool survey(struct place *p, const atomic_bool *stop)
{
    int c[GRID_MAX_DIMS];
    for (int32_t n = 0; n < p->grid.nodes; n++) {
        if (grid_stopped(stop, n))
            return false;
        grid_coords(&p->grid, n, c);
        p->side[n] = (int8_t)spare_side(&p->layout, &p->grid, n);
        for (int d = 0; d < GRID_MAX_DIMS; d++)
            p->coord[n][d] = (int16_t)(d < p->grid.ndims ? c[d] : 0);
    }
    for (int32_t r = 0; r < p->places; r++) {
        if (grid_stopped(stop, r))
            return false;
        grid_coords(&p->slot_grid, r, c);
        p->home[r] = grid_node(&p->grid, c);
        p->node_of[r] = p->home[r];
    }
    return true;
}

bool place_init(struct place *p, const struct grid *g, const struct spare_layout *l, int32_t slots,
                const atomic_bool *stop)
{
    memset(p, 0, sizeof *p);
    if (spare_check(l, g))
        return false;
    for (int d = 0; d < g->ndims; d++)
        if (g->size[d] > INT16_MAX)
            return false;
    p->grid = *g;
    p->layout = *l;
    p->slot_grid = spare_slot_grid(l, g);
    p->places = p->slot_grid.nodes;
    p->slots = slots ? slots : p->places;
    if (p->slots < 1 || p->slots > p->places)
        return false;
    size_t nodes = (size_t)g->nodes, places = (size_t)p->places;
    p->node_of = malloc(places * sizeof *p->node_of);
    p->home = malloc(places * sizeof *p->home);
    p->slot_at = malloc(nodes * sizeof *p->slot_at);
    p->free_list = malloc(nodes * sizeof *p->free_list);
    p->free_pos = malloc(nodes * sizeof *p->free_pos);
    p->room = (g->nodes + PLACE_LANES - 1) / PLACE_LANES * PLACE_LANES;
    p->free_at = malloc((size_t)p->room * (size_t)g->ndims * sizeof *p->free_at);
    p->free_bit = malloc((size_t)p->room * sizeof *p->free_bit);
    p->dead_list = malloc(nodes * sizeof *p->dead_list);
    p->coord = malloc(nodes * sizeof *p->coord);
    p->given_up = malloc(places);
    p->side = malloc(nodes);
    p->last_side = malloc(nodes * (size_t)g->ndims);
    bool ok = p->node_of && p->home && p->slot_at && p->free_list && p->free_pos && p->free_at && p->free_bit &&
              p->dead_list && p->coord && p->given_up && p->side && p->last_side;
    for (unsigned set = 0; ok && set + 1 < 1u << g->ndims; set++)
        ok = section_make(p, set);
    if (!ok || !survey(p, stop)) {
        place_fini(p);
        return false;
    }
    memset(p->free_at, 0, (size_t)p->room * (size_t)g->ndims * sizeof *p->free_at); /* what is past the end is read */
    memset(p->free_bit, 0, (size_t)p->room * sizeof *p->free_bit);
    place_reset(p);
    return true;
}

void place_fini(struct place *p)
{
    free(p->node_of);
    free(p->home);
    free(p->slot_at);
    free(p->free_list);
    free(p->free_pos);
    free(p->free_at);
    free(p->free_bit);
    free(p->dead_list);
    free(p->coord);
    free(p->given_up);
    free(p->side);
    free(p->last_side);
    for (unsigned set = 0; set < 1u << GRID_MAX_DIMS; set++)
        free(p->section[set]);
    memset(p, 0, sizeof *p);
}

/* The node is the i-th of the free ones. */
static void free_put(struct place *p, int32_t i, int32_t node)
{
    p->free_pos[node] = i;
    p->free_list[i] = node;
    for (int d = 0; d < p->grid.ndims; d++)
        p->free_at[(size_t)d * (size_t)p->room + (size_t)i] = p->coord[node][d];
    p->free_bit[i] = p->side[node] < 0 ? 0 : 1 << p->side[node];
}

static void free_add(struct place *p, int32_t node)
{
    p->slot_at[node] = PLACE_FREE;
    free_put(p, p->nfree++, node);
}

static void free_remove(struct place *p, int32_t node)
{
    int32_t last = p->free_list[--p->nfree];
    free_put(p, p->free_pos[node], last);
}

void place_reset(struct place *p)
{
    p->nfree = p->ndead = p->homeless = p->returns = 0;
    for (int32_t n = 0; n < p->grid.nodes; n++)
        p->slot_at[n] = PLACE_FREE;
    for (int32_t r = 0; r < p->slots; r++) {
        p->node_of[r] = p->home[r];
        p->slot_at[p->home[r]] = r;
    }
    for (int32_t n = 0; n < p->grid.nodes; n++)
        if (p->slot_at[n] == PLACE_FREE)
            free_add(p, n);
    memset(p->given_up, 0, (size_t)p->places);
    memset(p->last_side, 0, (size_t)p->grid.nodes * (size_t)p->grid.ndims);
}

void place_copy(struct place *dst, const struct place *src)
{
    size_t nodes = (size_t)src->grid.nodes;
    memcpy(dst->node_of, src->node_of, (size_t)src->slots * sizeof *src->node_of);
    memcpy(dst->slot_at, src->slot_at, nodes * sizeof *src->slot_at);
    memcpy(dst->free_list, src->free_list, (size_t)src->nfree * sizeof *src->free_list);
    memcpy(dst->free_pos, src->free_pos, nodes * sizeof *src->free_pos);
    memcpy(dst->free_bit, src->free_bit, (size_t)src->nfree * sizeof *src->free_bit);
    for (int d = 0; d < src->grid.ndims; d++)
        memcpy(dst->free_at + (size_t)d * (size_t)src->room, src->free_at + (size_t)d * (size_t)src->room,
               (size_t)src->nfree * sizeof *src->free_at);
    memcpy(dst->last_side, src->last_side, nodes * (size_t)src->grid.ndims);
    memcpy(dst->given_up, src->given_up, (size_t)src->slots);
    memcpy(dst->dead_list, src->dead_list, (size_t)src->ndead * sizeof *src->dead_list);
    dst->nfree = src->nfree;
    dst->ndead = src->ndead;
    dst->homeless = src->homeless;
    dst->returns = src->returns;
}

bool place_plan_init(struct place_plan *plan, const struct place *p)
{
    int32_t cap = p->slots + p->slots / 2 + 1;
    *plan = (struct place_plan){.moves = malloc((size_t)cap * sizeof *plan->moves), .cap = cap, .most = INT32_MAX};
    if (plan->moves)
        memset(plan->moves, 0, (size_t)cap * sizeof *plan->moves); /* now, so that no failure has to wait for pages */
    return plan->moves;
}

void place_plan_fini(struct place_plan *plan)
{
    free(plan->moves);
    *plan = (struct place_plan){0};
}

enum place_result place_fail(struct place *p, int32_t node, int32_t *slot)
{
    int32_t r = p->slot_at[node];
    *slot = -1;
    if (r == PLACE_DEAD)
        return PLACE_REPEAT;
    p->dead_list[p->ndead++] = node;
    if (r == PLACE_FREE) {
        free_remove(p, node);
        p->slot_at[node] = PLACE_DEAD;
        return PLACE_IDLE;
    }
    p->slot_at[node] = PLACE_DEAD;
    p->homeless++;
    *slot = r;
    return PLACE_MOVED;
}

bool place_give_up(struct place *p, int32_t slot)
{
    if (p->slot_at[p->node_of[slot]] == slot)
        return false;
    p->given_up[slot] = 1;
    return true;
}

int32_t place_lost_on(const struct place *p, int32_t node)
{
    if (!p->homeless || p->slot_at[node] != PLACE_DEAD)
        return -1;
    for (int32_t s = 0; s < p->slots; s++)
        if (p->node_of[s] == node && !p->given_up[s])
            return s;
    return -1;
}

enum place_result place_return(struct place *p, int32_t node, int32_t *slot)
{
    *slot = -1;
    if (p->slot_at[node] != PLACE_DEAD)
        return PLACE_REPEAT;
    int32_t at = 0;
    while (p->dead_list[at] != node)
        at++;
    memmove(p->dead_list + at, p->dead_list + at + 1, (size_t)(--p->ndead - at) * sizeof *p->dead_list);
    p->returns++;
    *slot = place_lost_on(p, node);
    if (*slot < 0) {
        free_add(p, node);
        return PLACE_IDLE;
    }
    p->slot_at[node] = *slot;
    p->homeless--;
    return PLACE_MOVED;
}

int32_t place_take(struct place *p, int32_t slot, int32_t node, int32_t lost)
{
    int32_t had = p->slot_at[node];
    p->slot_at[node] = slot;
    p->node_of[slot] = node;
    if (had >= 0) {
        p->node_of[had] = lost;
        return had;
    }
    free_remove(p, node);
    p->homeless--;
    return -1;
}

void place_swap(struct place *p, int32_t a, int32_t b)
{
    int32_t node = p->node_of[a];
    p->node_of[a] = p->node_of[b];
    p->node_of[b] = node;
    p->slot_at[p->node_of[a]] = a;
    p->slot_at[node] = b;
}

bool place_plan(const struct place *p, const struct place_method *m, int32_t node, int32_t slot,
                struct place_plan *plan)
{
    plan->slot = slot;
    plan->most = m->moves > 0 ? m->moves : INT32_MAX;
    plan->bounded = false;
    for (plan->step = 0; plan->step <= m->steps; plan->step++) {
        bool last = plan->step == m->steps;
        if (last && !plan->bounded)
            break;
        const struct place_step nearest = {.fn = place_slide}, *s = last ? &nearest : &m->step[plan->step];
        plan->count = 0;
        plan->zero = false;
        plan->order = s->order;
        if (s->fn(p, node, plan, s->arg))
            return true;
    }
    plan->count = 0;
    return false;
}

/* Which side 0D sent a failure to is remembered per line, so that the next one in the line takes another. A node that a
 * slide has left is on no side. */
static void remember_side(struct place *p, int32_t failed, int32_t to)
{
    int8_t side = (int8_t)(1 + p->side[to]);
    if (!side)
        return;
    for (int d = 0; d < p->grid.ndims; d++)
        p->last_side[(size_t)d * (size_t)p->grid.nodes + (size_t)(failed - p->coord[failed][d] * p->grid.stride[d])] =
            side;
}

/* A node that is left and entered again within the plan, as most are in a slide, never gets into the list of the free
 * ones: until the end free_pos tells whether a free node is in it. */
void place_apply(struct place *p, const struct place_plan *plan)
{
    enum { UNLISTED = -1 };
    for (int32_t i = 0; i < plan->count; i++) {
        const struct place_move *m = &plan->moves[i];
        if (p->free_pos[m->to] != UNLISTED)
            free_remove(p, m->to);
        p->slot_at[m->to] = m->slot;
        p->node_of[m->slot] = m->to;
        if (p->slot_at[m->from] == PLACE_DEAD)
            p->homeless--;
        else {
            p->slot_at[m->from] = PLACE_FREE;
            p->free_pos[m->from] = UNLISTED;
        }
    }
    for (int32_t i = 0; i < plan->count; i++) {
        int32_t node = plan->moves[i].from;
        if (p->slot_at[node] == PLACE_FREE && p->free_pos[node] == UNLISTED)
            free_add(p, node);
    }
    if (plan->zero)
        remember_side(p, plan->moves[0].from, plan->moves[0].to);
}

enum place_result place_substitute(struct place *p, const struct place_method *m, int32_t node, struct place_plan *plan)
{
    int32_t slot;
    plan->count = 0;
    plan->zero = false;
    enum place_result was = place_fail(p, node, &slot);
    plan->slot = slot;
    if (was != PLACE_MOVED)
        return was;
    if (!place_plan(p, m, node, slot, plan))
        return PLACE_CANNOT;
    place_apply(p, plan);
    return PLACE_MOVED;
}
