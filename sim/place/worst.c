#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "sim/place/worst_int.h"

/* Hash of the map seen through a symmetry: who has moved where, who is dead, which sides were taken. */
static void hash_map(const struct search *s, const struct place *p, int32_t depth, int sym, uint64_t h[2])
{
    const int32_t *ni = s->node_image + (size_t)sym * (size_t)p->grid.nodes;
    const int32_t *ri = s->slot_image + (size_t)sym * (size_t)p->slots;
    h[0] = h[1] = 0;
    seen_mix(h, (uint64_t)depth, 1);
    for (int32_t r = 0; r < p->slots; r++)
        if (p->node_of[r] != p->home[r])
            seen_mix(h, (uint64_t)ri[r] << 32 | (uint32_t)ni[p->node_of[r]], 1);
    for (int32_t i = 0; i < p->ndead; i++)
        seen_mix(h, (uint64_t)ni[p->dead_list[i]] | UINT64_C(1) << 63, 1);
    if (p->layout.r < 2 || !s->sides)
        return;
    for (size_t i = 0; i < (size_t)p->grid.nodes * (size_t)p->grid.ndims; i++)
        if (p->last_side[i])
            seen_mix(h, i << 8 | (uint8_t)p->last_side[i] | UINT64_C(1) << 62, 1);
}

static bool is_0d(const struct job *j)
{
    return j->method.steps == 1 && j->method.step[0].order == 0;
}

/* Can dimension d be turned round? A torus of even length cannot: at half the ring routes prefer one way. */
static bool reflects(const struct search *s, int d)
{
    const struct grid *g = &s->setup->grid;
    return !spare_holds(&s->setup->layout, d) && (!g->torus[d] || g->size[d] % 2);
}

/* Reflections of the dimensions without spares. Only 0D has no preferred direction, and only with one side is there no
 * memory of sides; only the stencils look the same from both ends. Elsewhere the identity alone. */
static bool symmetries_make(struct search *s, const struct job *j)
{
    const struct grid *g = &s->setup->grid;
    bool any = !s->config->full && !s->config->ndead && is_0d(j) && s->setup->layout.r < 2 &&
               s->setup->pattern <= PATTERN_STAR && !s->setup->net.tree.nodes;
    int count = 1;
    for (int d = 0; any && d < g->ndims; d++)
        count *= reflects(s, d) ? 2 : 1;
    s->symmetries = count;
    s->node_image = malloc((size_t)count * (size_t)g->nodes * sizeof *s->node_image);
    s->slot_image = malloc((size_t)count * (size_t)j->place.slots * sizeof *s->slot_image);
    if (!s->node_image || !s->slot_image)
        return false;
    for (int sym = 0; sym < count; sym++) {
        int32_t *ni = s->node_image + (size_t)sym * (size_t)g->nodes;
        int32_t *ri = s->slot_image + (size_t)sym * (size_t)j->place.slots;
        for (int32_t n = 0; n < g->nodes; n++) {
            int c[GRID_MAX_DIMS], rest = sym;
            grid_coords(g, n, c);
            for (int d = 0; any && d < g->ndims; d++)
                if (reflects(s, d)) {
                    c[d] = rest % 2 ? g->size[d] - 1 - c[d] : c[d];
                    rest /= 2;
                }
            ni[n] = grid_node(g, c);
        }
        for (int32_t r = 0; r < j->place.slots; r++)
            ri[r] = j->launch.slot_at[ni[j->place.home[r]]];
    }
    return true;
}

/* Is the map new, in all its images? Those after one failure are not asked about: each task begins with its own. */
static bool map_new(struct walker *w, int32_t depth)
{
    struct search *s = w->search;
    uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
    if (s->config->full || depth < 2)
        return true;
    for (int sym = 0; sym < s->symmetries; sym++) {
        uint64_t h[2];
        hash_map(s, &w->level[depth].place, depth, sym, h);
        if (h[0] < best[0] || (h[0] == best[0] && h[1] < best[1]))
            memcpy(best, h, sizeof best);
    }
    return seen_add(&s->seen, best, w->task);
}

/* The path of that length leads to so many collisions. */
static void note(struct walker *w, int32_t depth, const struct load *l)
{
    worst_best_note(&w->search->best, depth, load_collisions(l), w->task, w->path);
}

static void descend(struct walker *w, int32_t depth);

/* By how much can one failure lift a link, at most? A substitution of order 0 or 1 moves each slot of one line to the
 * next node at most, and only one of them crosses or enters any given place. Routes are dimension-ordered on a mesh, so
 * a link gains only messages sent by that slot or only messages sent to it. Not for messages left out when sent by
 * substituted slots: a slot that returns to its first node sends again (which without 2D none does, see only_lines).
 * On a ring routes turn round at half its length. returns   0 for no bound. */
static int32_t most_gain(const struct search *s, const struct job *j)
{
    const struct pattern *t = &j->pattern;
    int32_t most = 1;
    for (int d = 0; d < j->place.grid.ndims; d++)
        if (j->place.grid.torus[d])
            return 0;
    if (s->config->full || s->config->ndead || t->phases > 1 || s->setup->net.tree.nodes ||
        (s->setup->convention != LOAD_ALL && !s->only_lines))
        return 0;
    for (int32_t r = 0; r < t->slots; r++) {
        int32_t out = t->out_at[r + 1] - t->out_at[r], in = t->in_at[r + 1] - t->in_at[r];
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

/* Can the last failure, by a plan of this order, give a worse case than any known? */
static bool last_can_win(const struct walker *w, int order)
{
    const struct search *s = w->search;
    int32_t now = load_collisions(&w->level[s->failures - 1].load);
    return !s->gain || order > 1 || now + s->gain >= worst_best_need(&s->best, s->failures, w->task);
}

/* level[depth] is the map after the failure and its plan: look at it and go on. */
static void arrive(struct walker *w, int32_t depth, const struct place_plan *plan, int32_t slot)
{
    const struct search *s = w->search;
    struct job *j = &w->level[depth];
    w->maps++;
    if (!map_new(w, depth))
        return;
    load_copy(&j->load, &w->level[depth - 1].load);
    load_drop(&j->load, slot);
    load_move(&j->load, plan);
    note(w, depth, &j->load);
    if (depth + 1 < s->failures || (depth + 1 == s->failures && last_can_win(w, s->only_lines ? 1 : 2)))
        descend(w, depth);
}

/* All free nodes as near as the one the plan took, on the same side of the choice that 0D made. */
static void each_tie(struct walker *w, int32_t depth, int32_t node, int32_t slot)
{
    struct place *p = &w->level[depth].place;
    int32_t chosen = w->level[depth].plan.moves[0].to, ties[WORST_FREE_MAX], n = 0;
    int near = grid_distance(&p->grid, node, chosen), side = spare_side(&p->layout, &p->grid, chosen);
    for (int32_t i = 0; i < p->nfree && n < WORST_FREE_MAX; i++)
        if (grid_distance(&p->grid, node, p->free_list[i]) == near &&
            (p->layout.r < 2 || spare_side(&p->layout, &p->grid, p->free_list[i]) == side))
            ties[n++] = p->free_list[i];
    for (int32_t i = 0; i < n; i++) {
        struct place_plan *plan = &w->tie[depth];
        if (i) {
            place_copy(p, &w->level[depth - 1].place);
            int32_t same;
            place_fail(p, node, &same);
        }
        plan->slot = slot;
        plan->count = 1;
        plan->zero = true;
        plan->moves[0] = (struct place_move){.slot = slot, .from = node, .to = ties[i]};
        place_apply(p, plan);
        arrive(w, depth, plan, slot);
    }
}

/* An idle node dies: the map is the same, but later failures cannot use the node. */
static void idle(struct walker *w, int32_t depth)
{
    struct job *j = &w->level[depth];
    w->maps++;
    if (!map_new(w, depth))
        return;
    load_copy(&j->load, &w->level[depth - 1].load);
    note(w, depth, &j->load);
    descend(w, depth);
}

/* Does this node's death count among the sequences? */
static bool may_die(const struct search *s, const struct place *p, int32_t node)
{
    if (p->slot_at[node] == PLACE_DEAD)
        return false;
    return s->config->draw == DRAW_ANY || (s->config->draw == DRAW_ACTIVE && p->slot_at[node] >= 0) ||
           (s->config->draw == DRAW_JOB && s->base.launch.slot_at[node] >= 0);
}

static void fail_node(struct walker *w, int32_t depth, int32_t node)
{
    const struct search *s = w->search;
    const struct place *p = &w->level[depth].place;
    struct job *next = &w->level[depth + 1];
    int32_t slot;
    w->path[depth] = node;
    if (p->slot_at[node] == PLACE_FREE && depth + 1 == s->failures) { /* nothing changes, and nothing comes after it */
        note(w, s->failures, &w->level[depth].load);
        return;
    }
    place_copy(&next->place, p);
    if (place_fail(&next->place, node, &slot) == PLACE_IDLE) {
        idle(w, depth + 1);
        return;
    }
    if (!place_plan(&next->place, &next->method, node, slot, &next->plan)) {
        w->cannot++;
        return;
    }
    int order = next->plan.order;
    if (depth + 1 == s->failures && !last_can_win(w, order))
        return;
    if (order == 0) {
        each_tie(w, depth + 1, node, slot);
        return;
    }
    place_apply(&next->place, &next->plan);
    arrive(w, depth + 1, &next->plan, slot);
}

static void descend(struct walker *w, int32_t depth)
{
    const struct place *p = &w->level[depth].place;
    for (int32_t node = 0; node < p->grid.nodes && !atomic_load(w->stop); node++)
        if (may_die(w->search, p, node))
            fail_node(w, depth, node);
}

void walker_follow(struct walker *w, int32_t node)
{
    w->task = (uint32_t)node + 1;
    if (may_die(w->search, &w->level[0].place, node))
        fail_node(w, 0, node);
}

/* One sequence with the ties as 0D itself breaks them; raises the worst case known for each of its lengths. */
static int32_t try_sequence(struct walker *w, const int32_t *nodes, int32_t n)
{
    struct job *j = &w->level[1];
    place_copy(&j->place, &w->level[0].place);
    load_copy(&j->load, &w->level[0].load);
    int32_t c = -1;
    for (int32_t f = 0; f < n; f++) {
        if (job_fail(j, nodes[f]) != PLACE_MOVED)
            return -1;
        c = load_collisions(&j->load);
        worst_best_note(&w->search->best, f + 1, c, 0, nodes);
    }
    return c;
}

enum { CLIMB_ROUNDS = 40, CLIMB_STEPS = 1500 };

/* Hill climbing, one node of the sequence changed at a time,
 * from random starts. The seed is fixed, so that a search repeats itself. */
static void climb(struct walker *w)
{
    const struct place *p = &w->level[0].place;
    struct rng r;
    rng_seed(&r, 1);
    int32_t best[WORST_MAX], next[WORST_MAX], failures = w->search->failures;
    for (int round = 0; round < CLIMB_ROUNDS && !atomic_load(w->stop); round++) {
        int32_t value = -1, n = failures - round % failures;
        for (int32_t i = 0; i < n; i++)
            best[i] = p->home[rng_below(&r, (uint64_t)p->slots)];
        for (int i = 0; i < CLIMB_STEPS && !atomic_load(w->stop); i++) {
            memcpy(next, best, sizeof next);
            next[rng_below(&r, (uint64_t)n)] = p->home[rng_below(&r, (uint64_t)p->slots)];
            int32_t v = try_sequence(w, next, n);
            if (v >= value) {
                value = v;
                memcpy(best, next, sizeof best);
            }
        }
    }
}

/* Every other node of a row or column, from each corner of the first two dimensions on and in each of a few lines: the
 * shape of the paper's worst cases. */
static void combs(struct walker *w)
{
    const struct place *p = &w->level[0].place;
    const struct grid *g = &p->slot_grid;
    int32_t nodes[WORST_MAX];
    for (int dim = 0; dim < g->ndims && dim < 2 && g->ndims > 1; dim++) {
        int other = 1 - dim;
        for (int line = 0; line < g->size[other] && !atomic_load(w->stop); line++)
            for (int start = 0; start < g->size[dim]; start++)
                for (int stride = 1; stride <= 2; stride++) {
                    int32_t n = 0;
                    for (int c = start; c < g->size[dim] && n < w->search->failures; c += stride)
                        nodes[n++] = p->home[c * g->stride[dim] + line * g->stride[other]];
                    try_sequence(w, nodes, n);
                }
    }
}

void walker_climb(struct walker *w)
{
    w->task = 0;
    combs(w);
    climb(w);
}

bool search_prepare(struct search *s)
{
    const struct job *j = &s->base;
    s->only_lines = true;
    for (int i = 0; i < j->method.steps; i++) {
        s->sides = s->sides || j->method.step[i].order == 0;
        s->only_lines = s->only_lines && j->method.step[i].order <= 1;
    }
    s->gain = most_gain(s, j);
    return symmetries_make(s, j);
}

void search_free(struct search *s)
{
    job_close(&s->base);
    free(s->node_image);
    free(s->slot_image);
}

bool walker_open(struct walker *w, struct search *s, int32_t levels, const atomic_bool *stop)
{
    *w = (struct walker){.search = s, .levels = levels, .stop = stop};
    for (int32_t i = 0; i <= levels; i++)
        if (!job_open(&w->level[i], s->setup) || !place_plan_init(&w->tie[i], &w->level[i].place))
            return false;
    place_copy(&w->level[0].place, &s->base.place);
    load_copy(&w->level[0].load, &s->base.load);
    return true;
}

void walker_close(struct walker *w)
{
    for (int32_t i = 0; i <= w->levels; i++) {
        job_close(&w->level[i]);
        place_plan_fini(&w->tie[i]);
    }
}

size_t walker_size(const struct search *s, int32_t levels)
{
    const struct job *j = &s->base;
    size_t nodes = (size_t)j->place.grid.nodes, slots = (size_t)j->place.slots, q = (size_t)j->place.grid.ndims;
    size_t messages = (size_t)j->pattern.out_at[slots], sections = sizeof(int32_t), int4 = sizeof(int32_t);
    for (int d = 0; d < j->place.grid.ndims; d++)
        sections *= (size_t)j->place.grid.size[d] + 1;
    size_t place = nodes * (int4 * (5 + q) + sizeof *j->place.coord + 1 + q) + slots * int4 * 2 + sections;
    size_t load = (size_t)j->pattern.phases * (size_t)j->load.links * int4 + 2 * messages * int4 +
                  slots * (int4 * 4 + 1) + nodes * int4;
    size_t pattern = 2 * (messages * sizeof *j->pattern.out + (slots + 1) * int4);
    size_t plans = 2 * (slots + slots / 2 + 1) * sizeof(struct place_move);
    return ((size_t)levels + 1) * (2 * place + 2 * load + pattern + plans);
}
