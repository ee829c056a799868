#include "sim/place/worst.h"

#include <stdlib.h>
#include <string.h>

#include "sim/place/seen.h"
#include "sim/place/worst_zero.h"
#include "runtime/base/rng.h"

struct search {
    const struct worst_config *config;
    const struct setup *setup;
    struct job level[WORST_MAX + 1]; /* the map after that many failures */
    struct place_plan tie[WORST_MAX + 1];
    int32_t failures, path[WORST_MAX];
    bool full;
    bool only_lines; /* no method of order 2 or more */
    int32_t gain;    /* what one failure of order 0 or 1 can add to any link, 0 unknown */
    bool sides;      /* does the method have 0D, which remembers sides? */
    const atomic_bool *stop;
    struct seen seen[WORST_MAX + 1];
    int32_t *node_image; /* [symmetries][nodes] */
    int32_t *rank_image; /* [symmetries][ranks] */
    int symmetries;
    const char *error;
    struct worst_result *result;
};

/* Hash of the map seen through a symmetry: who has moved where, who is dead, which sides were taken. */
static void hash_map(const struct search *s, const struct place *p, int sym, uint64_t h[2])
{
    const int32_t *ni = s->node_image + (size_t)sym * (size_t)p->grid.nodes;
    const int32_t *ri = s->rank_image + (size_t)sym * (size_t)p->ranks;
    h[0] = h[1] = 1;
    for (int32_t r = 0; r < p->ranks; r++)
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
    bool any = !s->full && !s->config->ndead && is_0d(j) && s->setup->layout.r < 2 &&
               s->setup->pattern <= PATTERN_STAR && !s->setup->net.tree.nodes;
    int count = 1;
    for (int d = 0; any && d < g->ndims; d++)
        count *= reflects(s, d) ? 2 : 1;
    s->symmetries = count;
    s->node_image = malloc((size_t)count * (size_t)g->nodes * sizeof *s->node_image);
    s->rank_image = malloc((size_t)count * (size_t)j->place.ranks * sizeof *s->rank_image);
    if (!s->node_image || !s->rank_image)
        return false;
    for (int sym = 0; sym < count; sym++) {
        int32_t *ni = s->node_image + (size_t)sym * (size_t)g->nodes;
        int32_t *ri = s->rank_image + (size_t)sym * (size_t)j->place.ranks;
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
        for (int32_t r = 0; r < j->place.ranks; r++)
            ri[r] = j->launch.rank_at[ni[j->place.home[r]]];
    }
    return true;
}

/* Is the map new, in all its images? returns as seen_add. */
static int map_new(struct search *s, int32_t depth)
{
    uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
    for (int sym = 0; sym < s->symmetries; sym++) {
        uint64_t h[2];
        hash_map(s, &s->level[depth].place, sym, h);
        if (h[0] < best[0] || (h[0] == best[0] && h[1] < best[1]))
            memcpy(best, h, sizeof best);
    }
    return seen_add(&s->seen[depth], best);
}

/* The path of that length leads to so many collisions. */
static void note(struct search *s, int32_t depth, const struct load *l)
{
    int32_t c = load_collisions(l);
    if (c <= s->result->collisions[depth])
        return;
    s->result->collisions[depth] = c;
    memcpy(s->result->nodes[depth], s->path, (size_t)depth * sizeof *s->path);
}

static void descend(struct search *s, int32_t depth);

/* By how much can one failure lift a link, at most? A substitution of order 0 or 1 moves each rank of one line to the
 * next node at most, and only one of them crosses or enters any given place. Routes are dimension-ordered on a mesh, so
 * a link gains only messages sent by that rank or only messages sent to it. Not for messages left out when sent by
 * substituted ranks: a rank that returns to its first node sends again (which without 2D none does, see only_lines).
 * On a ring routes turn round at half its length. returns   0 for no bound. */
static int32_t most_gain(const struct search *s, const struct job *j)
{
    const struct pattern *t = &j->pattern;
    int32_t most = 1;
    for (int d = 0; d < j->place.grid.ndims; d++)
        if (j->place.grid.torus[d])
            return 0;
    if (s->full || s->config->ndead || t->phases > 1 || s->setup->net.tree.nodes ||
        (s->setup->convention != LOAD_ALL && !s->only_lines))
        return 0;
    for (int32_t r = 0; r < t->ranks; r++) {
        int32_t out = t->out_at[r + 1] - t->out_at[r], in = t->in_at[r + 1] - t->in_at[r];
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

/* Can the last failure, by a plan of this order, give a worse case than any known? */
static bool last_can_win(const struct search *s, int order)
{
    int32_t now = load_collisions(&s->level[s->failures - 1].load);
    return !s->gain || order > 1 || now + s->gain > s->result->collisions[s->failures];
}

/* level[depth] is the map after the failure and its plan: look at it and go on. */
static void arrive(struct search *s, int32_t depth, const struct place_plan *plan, int32_t rank)
{
    struct job *j = &s->level[depth];
    s->result->maps++;
    if (!s->full) {
        int fresh = map_new(s, depth);
        if (fresh < 0)
            s->error = "out of memory";
        if (fresh <= 0)
            return;
    }
    load_copy(&j->load, &s->level[depth - 1].load);
    load_drop(&j->load, rank);
    load_move(&j->load, plan);
    note(s, depth, &j->load);
    if (depth + 1 < s->failures || (depth + 1 == s->failures && last_can_win(s, s->only_lines ? 1 : 2)))
        descend(s, depth);
}

/* All free nodes as near as the one the plan took, on the same side of the choice that 0D made. */
static void each_tie(struct search *s, int32_t depth, int32_t node, int32_t rank)
{
    struct place *p = &s->level[depth].place;
    int32_t chosen = s->level[depth].plan.moves[0].to, ties[4096], n = 0;
    int near = grid_distance(&p->grid, node, chosen), side = spare_side(&p->layout, &p->grid, chosen);
    for (int32_t i = 0; i < p->nfree && n < 4096; i++)
        if (grid_distance(&p->grid, node, p->free_list[i]) == near &&
            (p->layout.r < 2 || spare_side(&p->layout, &p->grid, p->free_list[i]) == side))
            ties[n++] = p->free_list[i];
    for (int32_t i = 0; i < n && !s->error; i++) {
        struct place_plan *plan = &s->tie[depth];
        if (i) {
            place_copy(p, &s->level[depth - 1].place);
            int32_t same;
            place_fail(p, node, &same);
        }
        plan->rank = rank;
        plan->count = 1;
        plan->zero = true;
        plan->moves[0] = (struct place_move){.rank = rank, .from = node, .to = ties[i]};
        place_apply(p, plan);
        arrive(s, depth, plan, rank);
    }
}

/* An idle node dies: the map is the same, but later failures cannot use the node. */
static void idle(struct search *s, int32_t depth)
{
    struct job *j = &s->level[depth];
    s->result->maps++;
    if (!s->full) {
        int fresh = map_new(s, depth);
        if (fresh < 0)
            s->error = "out of memory";
        if (fresh <= 0)
            return;
    }
    load_copy(&j->load, &s->level[depth - 1].load);
    note(s, depth, &j->load);
    descend(s, depth);
}

/* Does this node's death count among the sequences? */
static bool may_die(const struct search *s, const struct place *p, int32_t node)
{
    if (p->rank_at[node] == PLACE_DEAD)
        return false;
    return s->config->draw == DRAW_ANY || (s->config->draw == DRAW_ACTIVE && p->rank_at[node] >= 0) ||
           (s->config->draw == DRAW_JOB && s->level[0].launch.rank_at[node] >= 0);
}

static void fail_node(struct search *s, int32_t depth, int32_t node)
{
    const struct place *p = &s->level[depth].place;
    struct job *next = &s->level[depth + 1];
    int32_t rank;
    s->path[depth] = node;
    if (p->rank_at[node] == PLACE_FREE && depth + 1 == s->failures) { /* nothing changes, and nothing comes after it */
        note(s, s->failures, &s->level[depth].load);
        return;
    }
    place_copy(&next->place, p);
    if (place_fail(&next->place, node, &rank) == PLACE_IDLE) {
        idle(s, depth + 1);
        return;
    }
    if (!place_plan(&next->place, &next->method, node, rank, &next->plan)) {
        s->result->cannot++;
        return;
    }
    int order = next->method.step[next->plan.step].order;
    if (depth + 1 == s->failures && !last_can_win(s, order))
        return;
    if (order == 0) {
        each_tie(s, depth + 1, node, rank);
        return;
    }
    place_apply(&next->place, &next->plan);
    arrive(s, depth + 1, &next->plan, rank);
}

static void descend(struct search *s, int32_t depth)
{
    const struct place *p = &s->level[depth].place;
    for (int32_t node = 0; node < p->grid.nodes && !atomic_load(s->stop) && !s->error; node++)
        if (may_die(s, p, node))
            fail_node(s, depth, node);
}

/* One sequence with the ties as 0D itself breaks them; raises the worst case known for each of its lengths. */
static int32_t try_sequence(struct search *s, const int32_t *nodes, int32_t n)
{
    struct job *j = &s->level[1];
    place_copy(&j->place, &s->level[0].place);
    load_copy(&j->load, &s->level[0].load);
    int32_t c = -1;
    for (int32_t f = 0; f < n; f++) {
        if (job_fail(j, nodes[f]) != PLACE_MOVED)
            return -1;
        c = load_collisions(&j->load);
        if (c > s->result->collisions[f + 1]) {
            s->result->collisions[f + 1] = c;
            memcpy(s->result->nodes[f + 1], nodes, (size_t)(f + 1) * sizeof *nodes);
        }
    }
    return c;
}

enum { CLIMB_ROUNDS = 40, CLIMB_STEPS = 1500 };

/* A bad sequence found early lets the bound leave out more: hill climbing, one node of the sequence changed at a time,
 * from random starts. The seed is fixed, so that a search repeats itself. */
static void climb(struct search *s)
{
    const struct place *p = &s->level[0].place;
    struct rng r;
    rng_seed(&r, 1);
    int32_t best[WORST_MAX], next[WORST_MAX];
    for (int round = 0; round < CLIMB_ROUNDS && !atomic_load(s->stop); round++) {
        int32_t value = -1, n = s->failures - round % s->failures;
        for (int32_t i = 0; i < n; i++)
            best[i] = p->home[rng_below(&r, (uint64_t)p->ranks)];
        for (int i = 0; i < CLIMB_STEPS; i++) {
            memcpy(next, best, sizeof next);
            next[rng_below(&r, (uint64_t)n)] = p->home[rng_below(&r, (uint64_t)p->ranks)];
            int32_t v = try_sequence(s, next, n);
            if (v >= value) {
                value = v;
                memcpy(best, next, sizeof best);
            }
        }
    }
}

/* Every other node of a row or column, from each corner of the first two dimensions on and in each of a few lines: the
 * shape of the paper's worst cases. */
static void combs(struct search *s)
{
    const struct place *p = &s->level[0].place;
    const struct grid *g = &p->rank_grid;
    int32_t nodes[WORST_MAX];
    for (int dim = 0; dim < g->ndims && dim < 2 && g->ndims > 1; dim++) {
        int other = 1 - dim;
        for (int line = 0; line < g->size[other] && !atomic_load(s->stop); line++)
            for (int start = 0; start < g->size[dim]; start++)
                for (int stride = 1; stride <= 2; stride++) {
                    int32_t n = 0;
                    for (int c = start; c < g->size[dim] && n < s->failures; c += stride)
                        nodes[n++] = p->home[c * g->stride[dim] + line * g->stride[other]];
                    try_sequence(s, nodes, n);
                }
    }
}

/* How many hashes of 16 bytes a level may keep, in a table that is half full, so that all take 2 GiB. */
static size_t seen_most(int32_t levels)
{
    size_t all = (size_t)1 << 27, table = all;
    while (table * (size_t)levels > all)
        table /= 2;
    return table / 2;
}

static const char *open_levels(struct search *s)
{
    for (int32_t i = 0; i <= s->failures; i++)
        if (!job_open(&s->level[i], s->setup) || !place_plan_init(&s->tie[i], &s->level[i].place))
            return "out of memory";
    for (int32_t i = 0; i < s->config->ndead; i++)
        job_fail(&s->level[0], s->config->dead[i]);
    const struct job *j = &s->level[0];
    if (j->place.nfree > 4096)
        return "the grid is too large for a search";
    s->only_lines = true;
    for (int i = 0; i < j->method.steps; i++) {
        s->sides = s->sides || j->method.step[i].order == 0;
        s->only_lines = s->only_lines && j->method.step[i].order <= 1;
    }
    s->gain = most_gain(s, j);
    for (int32_t i = 0; i <= s->failures; i++)
        s->seen[i].most = seen_most(s->failures);
    if (!symmetries_make(s, j))
        return "out of memory";
    return NULL;
}

static void close_levels(struct search *s)
{
    for (int32_t i = 0; i <= s->failures; i++) {
        job_close(&s->level[i]);
        place_plan_fini(&s->tie[i]);
        seen_free(&s->seen[i]);
    }
    free(s->node_image);
    free(s->rank_image);
}

/* Ordered sequences of 1..failures of n nodes. */
static double sequences(int32_t n, int32_t failures)
{
    double of_this = 1, sum = 0;
    for (int32_t f = 0; f < failures; f++) {
        of_this *= n - f;
        sum += of_this;
    }
    return sum;
}

static struct search *begin(const struct worst_config *c, struct worst_result *r)
{
    struct search *s = calloc(1, sizeof *s);
    memset(r, 0, sizeof *r);
    for (int i = 0; i <= WORST_MAX; i++)
        r->collisions[i] = -1;
    if (s)
        *s = (struct search){
            .config = c, .setup = &c->setup, .failures = c->failures, .full = c->full, .stop = c->stop, .result = r};
    return s;
}

static void end(struct search *s)
{
    s->result->interrupted = atomic_load(s->stop);
    close_levels(s);
    free(s);
}

/* worst_zero.h is for the failures of the launch's nodes, from a launch without dead ones. */
static bool zero_fits(const struct search *s)
{
    const struct worst_config *c = s->config;
    return !c->full && c->draw == DRAW_JOB && !c->ndead && worst_zero_fits(s->setup, &s->level[0], s->failures);
}

const char *worst_run(const struct worst_config *c, struct worst_result *r)
{
    struct search *s = begin(c, r);
    const char *why = s ? open_levels(s) : "out of memory";
    if (s && !why) {
        r->sequences = sequences(c->draw == DRAW_JOB ? s->level[0].place.ranks : c->setup.grid.nodes, c->failures);
        if (!c->full) { /* a bad case known early lets the bounds leave out more */
            combs(s);
            climb(s);
        }
        if (zero_fits(s))
            why = worst_zero(s->setup, &s->level[0], s->failures, s->stop, r);
        else
            descend(s, 0);
        why = why ? why : s->error;
    }
    if (s)
        end(s);
    return why;
}

const char *worst_climb(const struct worst_config *c, struct worst_result *r)
{
    struct search *s = begin(c, r);
    const char *why = s ? NULL : "out of memory";
    for (int i = 0; i < 2 && !why; i++)
        if (!job_open(&s->level[i], s->setup))
            why = "out of memory";
    if (!why) {
        combs(s);
        climb(s);
    }
    if (s)
        end(s);
    return why;
}
