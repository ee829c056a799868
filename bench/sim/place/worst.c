#include "bench/sim/place/worst.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"

/* A set of 128-bit hashes with open addressing. */
struct seen {
    uint64_t (*slot)[2];
    size_t used, cap;
};

static bool seen_grow(struct seen *s)
{
    size_t cap = s->cap ? s->cap * 2 : 1 << 16;
    uint64_t(*slot)[2] = calloc(cap, sizeof *slot);
    if (!slot)
        return false;
    for (size_t i = 0; i < s->cap; i++) {
        if (!s->slot[i][0] && !s->slot[i][1])
            continue;
        size_t at = s->slot[i][0] & (cap - 1);
        while (slot[at][0] || slot[at][1])
            at = (at + 1) & (cap - 1);
        slot[at][0] = s->slot[i][0];
        slot[at][1] = s->slot[i][1];
    }
    free(s->slot);
    s->slot = slot;
    s->cap = cap;
    return true;
}

/* returns   1 new, 0 known, -1 out of memory */
static int seen_add(struct seen *s, const uint64_t h[2])
{
    if (s->used * 2 >= s->cap && !seen_grow(s))
        return -1;
    size_t at = h[0] & (s->cap - 1);
    for (; s->slot[at][0] || s->slot[at][1]; at = (at + 1) & (s->cap - 1))
        if (s->slot[at][0] == h[0] && s->slot[at][1] == h[1])
            return 0;
    s->slot[at][0] = h[0];
    s->slot[at][1] = h[1];
    s->used++;
    return 1;
}

struct near {
    int32_t dist, spare;
};

struct search {
    const struct setup *setup;
    struct job level[WORST_MAX + 1]; /* the map after that many failures */
    struct place_plan tie[WORST_MAX + 1];
    int32_t failures, path[WORST_MAX];
    bool full, bounded;
    volatile int *stop;
    struct seen seen[WORST_MAX + 1];
    int32_t *node_image; /* [symmetries][nodes] */
    int32_t *rank_image; /* [symmetries][ranks] */
    int symmetries;
    struct near *near;   /* [ranks][spares] the spares by distance from the rank's node of launch */
    int32_t *spare_node; /* [spares] */
    uint8_t *lift;       /* [ranks][spares][links]: messages of the rank that can cross the link from there */
    uint8_t *most, *top; /* [spares][links], [failures][links]: scratch of the bound */
    bool *reached;       /* [spares] */
    int32_t spares;
    const char *error;
    struct worst_result *result;
};

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Hash of the map seen through a symmetry: who has moved where, who is dead, which sides were taken. */
static void hash_map(const struct search *s, const struct place *p, int sym, uint64_t h[2])
{
    const int32_t *ni = s->node_image + (size_t)sym * (size_t)p->grid.nodes;
    const int32_t *ri = s->rank_image + (size_t)sym * (size_t)p->ranks;
    h[0] = h[1] = 1;
    for (int32_t r = 0; r < p->ranks; r++)
        if (p->node_of[r] != p->home[r]) {
            uint64_t v = (uint64_t)ri[r] << 32 | (uint32_t)ni[p->node_of[r]];
            h[0] += mix(v + 0x9e3779b97f4a7c15u);
            h[1] += mix(v * 3 + 0x7f4a7c159e3779b9u);
        }
    for (int32_t i = 0; i < p->ndead; i++) {
        uint64_t v = (uint64_t)ni[p->dead_list[i]] | UINT64_C(1) << 63;
        h[0] += mix(v + 0x9e3779b97f4a7c15u);
        h[1] += mix(v * 3 + 0x7f4a7c159e3779b9u);
    }
    if (p->layout.r < 2)
        return;
    for (size_t i = 0; i < (size_t)p->grid.nodes * (size_t)p->grid.ndims; i++)
        if (p->last_side[i]) {
            uint64_t v = i << 8 | (uint8_t)p->last_side[i] | UINT64_C(1) << 62;
            h[0] += mix(v + 0x9e3779b97f4a7c15u);
            h[1] += mix(v * 3 + 0x7f4a7c159e3779b9u);
        }
}

static bool is_0d(const struct job *j)
{
    return j->method.steps == 1 && j->method.step[0].order == 0;
}

/* Can dimension d be turned round? A torus of even length cannot: at half the ring routes prefer one way. */
static bool reflects(const struct search *s, int d)
{
    const struct grid *g = &s->setup->grid;
    return d >= s->setup->layout.r && (!g->torus[d] || g->size[d] % 2);
}

/* Reflections of the dimensions without spares. Only 0D has no preferred direction, and only with one side is there no
 * memory of sides; only the stencils look the same from both ends. Elsewhere the identity alone. */
static bool symmetries_make(struct search *s, const struct job *j)
{
    const struct grid *g = &s->setup->grid;
    bool any = !s->full && is_0d(j) && s->setup->layout.r < 2 && s->setup->pattern <= PATTERN_STAR &&
               !s->setup->net.tree.nodes;
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

static int by_distance(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    return x->dist != y->dist ? x->dist - y->dist : x->spare - y->spare;
}

static bool tables_alloc(struct search *s, const struct place *p, size_t links)
{
    size_t pairs = (size_t)p->ranks * (size_t)p->nfree, size;
    s->spares = p->nfree;
    if (__builtin_mul_overflow(pairs, links, &size) || size > 1u << 30 || grid_diameter(&p->grid) > 1024)
        return false;
    s->near = malloc(pairs * sizeof *s->near);
    s->spare_node = malloc((size_t)s->spares * sizeof *s->spare_node);
    s->most = malloc((size_t)s->spares * links);
    s->top = malloc((size_t)s->failures * links);
    s->reached = malloc((size_t)s->spares * sizeof *s->reached);
    s->lift = calloc(size, 1);
    return s->near && s->spare_node && s->most && s->top && s->reached && s->lift;
}

/* Mark the links that a message can cross when one of its ends is here and the other at home or on any spare. */
static void can_cross(const struct search *s, const struct place *p, int32_t here, int32_t peer, int way, uint8_t *can)
{
    int32_t route[1024];
    for (int32_t k = -1; k < s->spares; k++) {
        int32_t there = k < 0 ? p->home[peer] : s->spare_node[k];
        int n = grid_route(&p->grid, NULL, way ? there : here, way ? here : there, route, 1024);
        for (int h = 0; h < n; h++)
            can[route[h]] = 1;
    }
}

/* lift[rank][spare][link]: how many messages of the rank can cross the link when it stands on the spare. */
static bool lifts_make(struct search *s, const struct job *j)
{
    const struct place *p = &j->launch;
    const struct pattern *t = &j->pattern;
    size_t links = (size_t)grid_links(&p->grid);
    uint8_t *can = malloc(links);
    if (!can || !tables_alloc(s, p, links)) {
        free(can);
        return false;
    }
    memcpy(s->spare_node, p->free_list, (size_t)s->spares * sizeof *s->spare_node);
    for (int32_t r = 0; r < p->ranks; r++) {
        struct near *near = s->near + (size_t)r * (size_t)s->spares;
        for (int32_t i = 0; i < s->spares; i++) {
            uint8_t *lift = s->lift + ((size_t)r * (size_t)s->spares + (size_t)i) * links;
            near[i] = (struct near){grid_distance(&p->grid, p->home[r], s->spare_node[i]), i};
            for (int32_t m = t->out_at[r]; m < t->out_at[r + 1]; m++)
                for (int way = 0; way < 2; way++) {
                    memset(can, 0, links);
                    can_cross(s, p, s->spare_node[i], t->out[m].rank, way, can);
                    for (size_t l = 0; l < links; l++)
                        lift[l] = (uint8_t)(lift[l] + can[l]);
                }
        }
        qsort(near, (size_t)s->spares, sizeof *near, by_distance);
    }
    free(can);
    return true;
}

/* For one more failure of this rank: every free node it may be given when `left` failures are to come. At most left - 1
 * free nodes are nearer than that one, since the others of the failures may take those first. */
static void reach(struct search *s, const struct place *p, int32_t rank, int32_t left, size_t links)
{
    const struct near *near = s->near + (size_t)rank * (size_t)s->spares;
    int32_t nearer = 0, free_so_far = 0;
    for (int32_t i = 0; i < s->spares; i++) {
        if (i && near[i].dist > near[i - 1].dist)
            nearer = free_so_far;
        if (nearer >= left && p->layout.r < 2)
            return;
        if (p->rank_at[s->spare_node[near[i].spare]] != PLACE_FREE)
            continue;
        free_so_far++;
        const uint8_t *lift = s->lift + ((size_t)rank * (size_t)s->spares + (size_t)near[i].spare) * links;
        uint8_t *most = s->most + (size_t)near[i].spare * links;
        s->reached[near[i].spare] = true;
        for (size_t l = 0; l < links; l++)
            most[l] = lift[l] > most[l] ? lift[l] : most[l];
    }
}

/* Keep, per link, the `left` largest of the values seen so far; most is used up. */
static void keep_top(struct search *s, uint8_t *most, int32_t left, size_t links)
{
    for (int32_t k = 0; k < left; k++) {
        uint8_t *top = s->top + (size_t)k * links;
        for (size_t l = 0; l < links; l++) {
            uint8_t high = top[l] > most[l] ? top[l] : most[l], low = top[l] > most[l] ? most[l] : top[l];
            top[l] = high;
            most[l] = low;
        }
    }
}

/* Can `left` more failures lift some link above `above`? They take `left` different free nodes, so to the load of a
 * link come at most the `left` largest of what each free node, with the rank that is worst there, can bring to it. */
static bool can_exceed(struct search *s, const struct job *j, int32_t left, int32_t above)
{
    const struct place *p = &j->place;
    size_t links = (size_t)grid_links(&p->grid);
    memset(s->most, 0, (size_t)s->spares * links);
    memset(s->reached, 0, (size_t)s->spares * sizeof *s->reached);
    memset(s->top, 0, (size_t)left * links);
    for (int32_t r = 0; r < p->ranks; r++)
        if (p->rank_at[p->home[r]] != PLACE_DEAD) /* only nodes of launch fail, each once */
            reach(s, p, r, left, links);
    for (int32_t i = 0; i < s->spares; i++)
        if (s->reached[i])
            keep_top(s, s->most + (size_t)i * links, left, links);
    for (size_t l = 0; l < links; l++) {
        int32_t sum = j->load.phase[0].count[l];
        for (int32_t k = 0; k < left; k++)
            sum += s->top[(size_t)k * links + l];
        if (sum > above)
            return true;
    }
    return false;
}

static void note(struct search *s, int32_t depth)
{
    int32_t c = load_collisions(&s->level[depth].load);
    if (c <= s->result->collisions[depth])
        return;
    s->result->collisions[depth] = c;
    memcpy(s->result->nodes[depth], s->path, (size_t)depth * sizeof *s->path);
}

static void descend(struct search *s, int32_t depth);

/* level[depth] is the map after the failure and its plan: look at it and go on. */
static void arrive(struct search *s, int32_t depth)
{
    if (!s->full) {
        int fresh = map_new(s, depth);
        if (fresh < 0)
            s->error = "out of memory";
        if (fresh <= 0)
            return;
    }
    s->result->maps++;
    note(s, depth);
    if (depth == s->failures)
        return;
    /* each depth has its own worst, so a map is left out only when it can raise none of those below it */
    if (s->bounded) {
        bool useful = false;
        for (int32_t f = s->failures; f > depth && !useful; f--)
            useful = can_exceed(s, &s->level[depth], f - depth, s->result->collisions[f]);
        if (!useful)
            return;
    }
    descend(s, depth);
}

static void step(struct search *s, int32_t depth, const struct place_plan *plan)
{
    struct job *j = &s->level[depth];
    place_apply(&j->place, plan);
    load_move(&j->load, plan);
    arrive(s, depth);
}

static void copy_level(struct search *s, int32_t to, int32_t from)
{
    place_copy(&s->level[to].place, &s->level[from].place);
    load_copy(&s->level[to].load, &s->level[from].load);
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
            copy_level(s, depth, depth - 1);
            int32_t same;
            place_fail(&s->level[depth].place, node, &same);
            load_drop(&s->level[depth].load, rank);
        }
        plan->rank = rank;
        plan->count = 1;
        plan->moves[0] = (struct place_move){.rank = rank, .from = node, .to = ties[i]};
        step(s, depth, plan);
    }
}

static void descend(struct search *s, int32_t depth)
{
    const struct place *p = &s->level[depth].place;
    for (int32_t r = 0; r < p->ranks && !*s->stop && !s->error; r++) {
        int32_t node = p->home[r], rank;
        if (p->rank_at[node] < 0)
            continue; /* dead already, or vacated by a slide: nothing would change */
        struct job *next = &s->level[depth + 1];
        copy_level(s, depth + 1, depth);
        s->path[depth] = node;
        place_fail(&next->place, node, &rank);
        load_drop(&next->load, rank);
        if (!place_plan(&next->place, &next->method, node, rank, &next->plan)) {
            s->result->cannot++;
            continue;
        }
        if (next->method.step[next->plan.step].order == 0)
            each_tie(s, depth + 1, node, rank);
        else
            step(s, depth + 1, &next->plan);
    }
}

/* One sequence with the ties as 0D itself breaks them; raises the worst case known for each of its lengths. */
static int32_t try_sequence(struct search *s, const int32_t *nodes, int32_t n)
{
    copy_level(s, 1, 0);
    struct job *j = &s->level[1];
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
    for (int round = 0; round < CLIMB_ROUNDS && !*s->stop; round++) {
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
        for (int line = 0; line < g->size[other] && !*s->stop; line++)
            for (int start = 0; start < g->size[dim]; start++)
                for (int stride = 1; stride <= 2; stride++) {
                    int32_t n = 0;
                    for (int c = start; c < g->size[dim] && n < s->failures; c += stride)
                        nodes[n++] = p->home[c * g->stride[dim] + line * g->stride[other]];
                    try_sequence(s, nodes, n);
                }
    }
}

static const char *open_levels(struct search *s)
{
    for (int32_t i = 0; i <= s->failures; i++)
        if (!job_open(&s->level[i], s->setup) || !place_plan_init(&s->tie[i], &s->level[i].place))
            return "out of memory";
    const struct job *j = &s->level[0];
    if (j->place.nfree > 4096)
        return "the grid is too large for a search";
    s->bounded = !s->full && is_0d(j) && j->pattern.phases == 1 && !s->setup->net.tree.nodes &&
                 s->setup->convention == LOAD_ALL && grid_links(&j->place.grid) <= 1 << 20;
    if (!symmetries_make(s, j))
        return "out of memory";
    if (s->bounded && !lifts_make(s, j))
        s->bounded = false; /* too large for the table: searched without the bound */
    return NULL;
}

static void close_levels(struct search *s)
{
    for (int32_t i = 0; i <= s->failures; i++) {
        job_close(&s->level[i]);
        place_plan_fini(&s->tie[i]);
        free(s->seen[i].slot);
    }
    free(s->node_image);
    free(s->rank_image);
    free(s->near);
    free(s->spare_node);
    free(s->most);
    free(s->top);
    free(s->reached);
    free(s->lift);
}

static void begin(struct search *s, const struct setup *setup, int32_t failures, volatile int *stop,
                  struct worst_result *r)
{
    *s = (struct search){.setup = setup, .failures = failures, .stop = stop, .result = r};
    memset(r, 0, sizeof *r);
    for (int i = 0; i <= WORST_MAX; i++)
        r->collisions[i] = -1;
}

const char *worst_run(const struct setup *setup, int32_t failures, bool full, volatile int *stop,
                      struct worst_result *r)
{
    static struct search s;
    begin(&s, setup, failures, stop, r);
    s.full = full;
    const char *why = open_levels(&s);
    if (!why) {
        if (s.bounded) {
            combs(&s);
            climb(&s);
        }
        descend(&s, 0);
        why = s.error;
    }
    r->interrupted = *stop;
    close_levels(&s);
    return why;
}

const char *worst_climb(const struct setup *setup, int32_t failures, volatile int *stop, struct worst_result *r)
{
    static struct search s;
    begin(&s, setup, failures, stop, r);
    const char *why = NULL;
    for (int i = 0; i < 2 && !why; i++)
        if (!job_open(&s.level[i], setup))
            why = "out of memory";
    if (!why) {
        combs(&s);
        climb(&s);
    }
    r->interrupted = *stop;
    close_levels(&s);
    return why;
}
