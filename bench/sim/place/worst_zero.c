#include "bench/sim/place/worst_zero.h"

#include <stdlib.h>
#include <string.h>

#include "bench/sim/place/seen.h"

enum { LANE = 16, MAX_ROUTE = 1024, MAX_TIES = 64, MAX_REACH = 512 };
typedef uint8_t lane __attribute__((vector_size(LANE)));

struct near {
    int32_t dist, spare;
    int8_t side;
};

struct zero {
    const struct setup *setup;
    const struct grid *grid;
    const struct pattern *pattern;
    const int32_t *home; /* [ranks] */
    int32_t ranks, spares, failures;
    int r;               /* sides with spares */
    size_t lanes, links; /* per vector over links */
    lane *bring;         /* [ranks][spares][lanes] messages of the rank there, see bring_make */
    lane *change;        /* the same, less those it had at home (mod 256) */
    lane *exact;         /* the messages of the rank there when its peers are at home, less those it had (mod 256) */
    lane *in, *out;      /* [ranks][spares][lanes] the route from the spare to the rank's home, and back */
    lane *across;        /* [spares][spares][lanes] the route from one spare to another */
    lane *count;         /* [lanes] scratch of really */
    lane *bound;         /* [failures + 1][lanes] */
    lane *need;          /* [failures + 1][lanes] what a link must carry after one failure more, for open lanes */
    lane *alone;         /* [ranks][lanes] the most the rank can bring on any spare in reach */
    lane *nearer;        /* [failures][lanes], [failures][lanes], [spares][lanes]: scratch of close_lanes */
    lane *top, *most;
    bool *reached;  /* [spares] */
    uint32_t *open; /* [failures + 1][lanes] the lanes of the map in which a link may become the worst: opens of them */
    size_t opens[WORST_MAX + 1];
    struct near *near;               /* [ranks][spares] by distance, then node */
    int32_t *spare_node;             /* [spares] */
    int8_t *spare_side;              /* [spares] */
    int32_t *spare_of;               /* [ranks] index of the spare it is on, -1 at home */
    bool *taken;                     /* [spares] */
    int8_t *side;                    /* [ndims][nodes] as in struct place */
    int8_t (*mirror)[GRID_MAX_DIMS]; /* [ranks] +1 upper half, -1 lower half, 0 middle or not to be turned round */
    int balance[WORST_MAX + 1][GRID_MAX_DIMS];
    int32_t path[WORST_MAX], path_spare[WORST_MAX];
    int32_t *home_load, *load; /* [links] */
    struct seen seen;
    uint64_t hash[WORST_MAX + 1][2];
    bool failed; /* out of memory */
    volatile int *stop;
    struct worst_result *result;
};

static size_t table_size(const struct job *j)
{
    size_t size, links = ((size_t)grid_links(&j->place.grid) + LANE - 1) / LANE * LANE;
    if (__builtin_mul_overflow((size_t)j->place.ranks * (size_t)j->place.nfree, links, &size))
        return SIZE_MAX;
    return size;
}

bool worst_zero_fits(const struct setup *s, const struct job *j, int32_t failures)
{
    /* messages per link must fit a byte: those of the failures, and those at home */
    int32_t most = 0;
    for (int32_t r = 0; r < j->place.ranks; r++) {
        int32_t m = j->pattern.out_at[r + 1] - j->pattern.out_at[r] + j->pattern.in_at[r + 1] - j->pattern.in_at[r];
        most = m > most ? m : most;
    }
    return j->method.steps == 1 && j->method.step[0].order == 0 && j->pattern.phases == 1 && !s->net.tree.nodes &&
           s->grid.ndims <= 4 && grid_diameter(&s->grid) <= MAX_ROUTE && table_size(j) <= 1u << 27 &&
           most * failures + load_collisions(&j->load) <= 250;
}

static bool lane_any(lane a)
{
    uint64_t half[LANE / 8];
    memcpy(half, &a, sizeof half);
    return half[0] | half[1];
}

static lane lane_max(lane a, lane b)
{
    lane more = (lane)(a > b);
    return (a & more) | (b & ~more);
}

static lane *pair(const struct zero *z, lane *table, int32_t rank, int32_t spare)
{
    return table + ((size_t)rank * (size_t)z->spares + (size_t)spare) * z->lanes;
}

static int32_t route(const struct zero *z, int32_t from, int32_t to, int32_t *links)
{
    return grid_route(z->grid, NULL, from, to, links, MAX_ROUTE);
}

/* Adds delta on each link that the rank's messages use while it and its peers are at home; only those whose peer is
 * substituted when gone is set. */
static void home_messages(const struct zero *z, int32_t rank, bool gone, int delta, uint8_t *sum)
{
    const struct pattern *t = z->pattern;
    int32_t links[MAX_ROUTE];
    for (int way = 0; way < 2; way++) {
        const int32_t *at = way ? t->in_at : t->out_at;
        const struct pattern_peer *peers = way ? t->in : t->out;
        for (int32_t m = at[rank]; m < at[rank + 1]; m++) {
            int32_t peer = peers[m].rank;
            if (gone && z->spare_of[peer] < 0)
                continue;
            int32_t n = route(z, z->home[way ? peer : rank], z->home[way ? rank : peer], links);
            for (int32_t i = 0; i < n; i++)
                sum[links[i]] = (uint8_t)(sum[links[i]] + delta);
        }
    }
}

static int near_order(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    return x->dist != y->dist ? (x->dist > y->dist) - (x->dist < y->dist)
                              : (x->spare > y->spare) - (x->spare < y->spare);
}

/* Can the rank be given its i-th nearest spare within the failures searched? Nearer ones must be taken: all of them, or
 * with more than one side those of the same side. */
static bool in_reach(const struct zero *z, const struct near *near, int32_t i)
{
    int32_t nearer = 0;
    for (int32_t k = 0; k < i && near[k].dist < near[i].dist; k++)
        nearer += z->r < 2 || near[k].side == near[i].side;
    return nearer < z->failures;
}

/* What bring_message works with: per spare that the sender or the receiver can reach, marks by link. */
struct split {
    int32_t from_spare[MAX_REACH], to_spare[MAX_REACH]; /* spares in reach */
    int32_t froms, tos;
    uint8_t *from_home, *to_home; /* [MAX_REACH][links] the route with the other end at home crosses the link */
    uint8_t *from, *to;           /* [MAX_REACH][links] the share of each end */
    int32_t *cost[2];             /* [links] */
};

static void mark_route(const struct zero *z, int32_t from, int32_t to, uint8_t *mark)
{
    int32_t links[MAX_ROUTE], n = route(z, from, to, links);
    for (int32_t i = 0; i < n; i++)
        mark[links[i]] = 1;
}

static int32_t reach_list(const struct zero *z, int32_t rank, int32_t list[MAX_REACH])
{
    const struct near *near = z->near + (size_t)rank * (size_t)z->spares;
    int32_t n = 0;
    for (int32_t i = 0; i < z->spares; i++)
        if (in_reach(z, near, i)) {
            if (n == MAX_REACH)
                return -1;
            list[n++] = near[i].spare;
        }
    return n;
}

/* Where both ends of a message are on spares, its crossing of a link is the sum of a share of each end. One end's share
 * is what its message with the other end at home crosses, the other's also what is missing then: which end, is chosen
 * per link. Here the shares for one of the two choices, and what they sum up to. */
static void split_try(const struct zero *z, struct split *p, bool sender)
{
    size_t n = z->links;
    int32_t links[MAX_ROUTE], *cost = p->cost[sender];
    memcpy(p->from, p->from_home, (size_t)p->froms * n);
    memcpy(p->to, p->to_home, (size_t)p->tos * n);
    for (int32_t a = 0; z->setup->convention == LOAD_ALL && a < p->froms; a++)
        for (int32_t b = 0; b < p->tos; b++) {
            if (p->from_spare[a] == p->to_spare[b])
                continue;
            int32_t hops = route(z, z->spare_node[p->from_spare[a]], z->spare_node[p->to_spare[b]], links);
            for (int32_t i = 0; i < hops; i++) {
                size_t l = (size_t)links[i];
                if (sender && !p->to_home[(size_t)b * n + l])
                    p->from[(size_t)a * n + l] = 1;
                else if (!sender && !p->from_home[(size_t)a * n + l])
                    p->to[(size_t)b * n + l] = 1;
            }
        }
    memset(cost, 0, n * sizeof *cost);
    for (int32_t a = 0; a < p->froms; a++)
        for (size_t l = 0; l < n; l++)
            cost[l] += p->from[(size_t)a * n + l];
    for (int32_t b = 0; b < p->tos; b++)
        for (size_t l = 0; l < n; l++)
            cost[l] += p->to[(size_t)b * n + l];
}

static void split_take(const struct zero *z, const struct split *p, bool sender, int32_t from, int32_t to)
{
    size_t n = z->links;
    for (int end = 0; end < 2; end++)
        for (int32_t a = 0; a < (end ? p->tos : p->froms); a++) {
            size_t rank = (size_t)(end ? to : from), spare = (size_t)(end ? p->to_spare[a] : p->from_spare[a]);
            uint8_t *sum = (uint8_t *)(z->bring + (rank * (size_t)z->spares + spare) * z->lanes);
            const uint8_t *share = (end ? p->to : p->from) + (size_t)a * n;
            for (size_t l = 0; l < n; l++)
                if ((p->cost[1][l] < p->cost[0][l]) == sender)
                    sum[l] = (uint8_t)(sum[l] + share[l]);
        }
}

static bool bring_message(const struct zero *z, struct split *p, int32_t from, int32_t to)
{
    size_t n = z->links;
    p->froms = reach_list(z, from, p->from_spare);
    p->tos = reach_list(z, to, p->to_spare);
    if (p->froms < 0 || p->tos < 0)
        return false;
    memset(p->from_home, 0, (size_t)p->froms * n);
    memset(p->to_home, 0, (size_t)p->tos * n);
    for (int32_t a = 0; z->setup->convention == LOAD_ALL && a < p->froms; a++)
        mark_route(z, z->spare_node[p->from_spare[a]], z->home[to], p->from_home + (size_t)a * n);
    for (int32_t b = 0; b < p->tos; b++)
        mark_route(z, z->home[from], z->spare_node[p->to_spare[b]], p->to_home + (size_t)b * n);
    for (int sender = 1; sender >= 0; sender--)
        split_try(z, p, sender);
    split_take(z, p, false, from, to);
    split_try(z, p, true);
    split_take(z, p, true, from, to);
    return true;
}

static bool bring_make(struct zero *z)
{
    const struct pattern *t = z->pattern;
    size_t room = MAX_REACH * z->links;
    struct split *p = calloc(1, sizeof *p);
    if (!p)
        return false;
    p->from_home = malloc(room);
    p->to_home = malloc(room);
    p->from = malloc(room);
    p->to = malloc(room);
    p->cost[0] = malloc(z->links * sizeof(int32_t));
    p->cost[1] = malloc(z->links * sizeof(int32_t));
    bool ok = p->from_home && p->to_home && p->from && p->to && p->cost[0] && p->cost[1];
    memset(z->bring, 0, (size_t)z->ranks * (size_t)z->spares * z->links);
    for (int32_t r = 0; ok && r < z->ranks; r++)
        for (int32_t m = t->out_at[r]; ok && m < t->out_at[r + 1]; m++)
            ok = bring_message(z, p, r, t->out[m].rank);
    memset(z->alone, 0, (size_t)z->ranks * z->links);
    for (int32_t r = 0; r < z->ranks; r++)
        for (int32_t s = 0; s < z->spares; s++)
            for (size_t k = 0; k < z->lanes; k++) {
                lane *most = z->alone + (size_t)r * z->lanes + k;
                *most = lane_max(*most, pair(z, z->bring, r, s)[k]);
            }
    memcpy(z->change, z->bring, (size_t)z->ranks * (size_t)z->spares * z->links);
    for (int32_t r = 0; ok && r < z->ranks; r++)
        for (int32_t s = 0; s < z->spares; s++)
            home_messages(z, r, false, -1,
                          (uint8_t *)(z->change + ((size_t)r * (size_t)z->spares + (size_t)s) * z->lanes));
    free(p->from_home);
    free(p->to_home);
    free(p->from);
    free(p->to);
    free(p->cost[0]);
    free(p->cost[1]);
    free(p);
    return ok;
}

/* The tables of really. */
static void exact_make(struct zero *z)
{
    const struct pattern *t = z->pattern;
    for (int32_t a = 0; a < z->spares; a++)
        for (int32_t b = 0; b < z->spares; b++)
            mark_route(z, z->spare_node[a], z->spare_node[b], (uint8_t *)pair(z, z->across, a, b));
    for (int32_t r = 0; r < z->ranks; r++)
        for (int32_t s = 0; s < z->spares; s++) {
            mark_route(z, z->spare_node[s], z->home[r], (uint8_t *)pair(z, z->in, r, s));
            mark_route(z, z->home[r], z->spare_node[s], (uint8_t *)pair(z, z->out, r, s));
        }
    for (int32_t r = 0; r < z->ranks; r++)
        for (int32_t s = 0; s < z->spares; s++) {
            lane *sum = pair(z, z->exact, r, s);
            for (int32_t m = t->out_at[r]; z->setup->convention == LOAD_ALL && m < t->out_at[r + 1]; m++)
                for (size_t k = 0; k < z->lanes; k++)
                    sum[k] += pair(z, z->in, t->out[m].rank, s)[k];
            for (int32_t m = t->in_at[r]; m < t->in_at[r + 1]; m++)
                for (size_t k = 0; k < z->lanes; k++)
                    sum[k] += pair(z, z->out, t->in[m].rank, s)[k];
            home_messages(z, r, false, -1, (uint8_t *)sum);
        }
}

static void near_make(struct zero *z)
{
    for (int32_t r = 0; r < z->ranks; r++) {
        struct near *near = z->near + (size_t)r * (size_t)z->spares;
        for (int32_t s = 0; s < z->spares; s++)
            near[s] = (struct near){grid_distance(z->grid, z->home[r], z->spare_node[s]), s,
                                    (int8_t)spare_side(&z->setup->layout, z->grid, z->spare_node[s])};
        qsort(near, (size_t)z->spares, sizeof *near, near_order);
    }
}

/* A dimension without spares turns round, unless it is a ring of even length, where routes of half its length prefer
 * one way. With more than one side of spares the choice among equally near ones prefers low numbers, so none does. */
static void mirror_make(struct zero *z)
{
    const struct grid *g = z->grid;
    for (int32_t r = 0; r < z->ranks; r++)
        for (int d = 0; d < g->ndims; d++) {
            bool turns = z->r == 1 && d > 0 && (!g->torus[d] || g->size[d] % 2) && z->setup->pattern <= PATTERN_STAR;
            int twice = 2 * grid_coord(g, z->home[r], d) - (g->size[d] - 1);
            z->mirror[r][d] = (int8_t)(turns ? (twice > 0) - (twice < 0) : 0);
        }
}

/* Zeroed. */
static lane *lanes_alloc(size_t lanes)
{
    lane *a = aligned_alloc(LANE, (lanes + 1) * sizeof *a);
    if (a)
        memset(a, 0, (lanes + 1) * sizeof *a);
    return a;
}

static bool zero_open(struct zero *z, const struct setup *s, const struct job *j, int32_t failures)
{
    const struct place *p = &j->launch;
    *z = (struct zero){.setup = s,
                       .grid = &p->grid,
                       .pattern = &j->pattern,
                       .home = p->home,
                       .ranks = p->ranks,
                       .spares = p->nfree,
                       .failures = failures,
                       .r = s->layout.r};
    z->links = ((size_t)grid_links(&p->grid) + LANE - 1) / LANE * LANE;
    z->lanes = z->links / LANE;
    size_t pairs = (size_t)z->ranks * (size_t)z->spares, depths = (size_t)failures + 1, ranks = (size_t)z->ranks;
    z->bring = aligned_alloc(LANE, (pairs + 1) * z->links);
    z->change = aligned_alloc(LANE, (pairs + 1) * z->links);
    z->exact = lanes_alloc(pairs * z->lanes);
    z->in = lanes_alloc(pairs * z->lanes);
    z->out = lanes_alloc(pairs * z->lanes);
    z->across = lanes_alloc((size_t)z->spares * (size_t)z->spares * z->lanes);
    z->count = lanes_alloc(z->lanes);
    z->nearer = aligned_alloc(LANE, depths * z->links);
    z->top = aligned_alloc(LANE, depths * z->links);
    z->most = aligned_alloc(LANE, ((size_t)z->spares + 1) * z->links);
    z->reached = malloc((size_t)z->spares + 1);
    z->open = malloc(depths * z->lanes * sizeof *z->open);
    z->need = lanes_alloc(depths * z->lanes);
    z->alone = lanes_alloc(ranks * z->lanes);
    z->bound = aligned_alloc(LANE, depths * z->links);
    z->near = malloc((pairs + 1) * sizeof *z->near);
    z->spare_node = malloc(((size_t)z->spares + 1) * sizeof *z->spare_node);
    z->spare_side = malloc((size_t)z->spares + 1);
    z->spare_of = malloc(ranks * sizeof *z->spare_of);
    z->taken = calloc((size_t)z->spares + 1, sizeof *z->taken);
    z->side = calloc((size_t)p->grid.nodes, (size_t)p->grid.ndims);
    z->mirror = calloc(ranks, sizeof *z->mirror);
    z->home_load = calloc(z->links, sizeof *z->home_load);
    z->load = calloc(z->links, sizeof *z->load);
    if (!z->exact || !z->in || !z->out || !z->across || !z->count || !z->change || !z->nearer || !z->top || !z->most ||
        !z->reached || !z->open || !z->bring || !z->need || !z->alone || !z->bound || !z->near || !z->spare_side ||
        !z->spare_node || !z->spare_of || !z->taken || !z->side || !z->mirror || !z->home_load || !z->load)
        return false;
    memset(z->bring, 0, (pairs + 1) * z->links);
    memset(z->bound, 0, depths * z->links);
    memset(z->spare_of, -1, ranks * sizeof *z->spare_of);
    for (int32_t n = 0, k = 0; n < p->grid.nodes; n++)
        if (p->rank_at[n] == PLACE_FREE)
            z->spare_node[k++] = n;
    for (int32_t k = 0; k < z->spares; k++)
        z->spare_side[k] = (int8_t)spare_side(&s->layout, &p->grid, z->spare_node[k]);
    z->seen.most = 1 << 26; /* 2 GiB */
    for (int32_t l = 0; l < j->launch_load.links; l++) {
        z->home_load[l] = j->launch_load.phase[0].count[l];
        ((uint8_t *)z->bound)[l] = (uint8_t)z->home_load[l];
    }
    mirror_make(z);
    near_make(z);
    exact_make(z);
    return true;
}

static void zero_close(struct zero *z)
{
    free(z->bring);
    free(z->change);
    free(z->exact);
    free(z->in);
    free(z->out);
    free(z->across);
    free(z->count);
    free(z->nearer);
    free(z->top);
    free(z->most);
    free(z->reached);
    free(z->open);
    free(z->need);
    free(z->alone);
    free(z->bound);
    free(z->near);
    free(z->spare_node);
    free(z->spare_side);
    free(z->spare_of);
    free(z->taken);
    free(z->side);
    free(z->mirror);
    free(z->home_load);
    free(z->load);
}

static size_t line_key(const struct zero *z, int32_t node, int d)
{
    return (size_t)d * (size_t)z->grid->nodes + (size_t)(node - grid_coord(z->grid, node, d) * z->grid->stride[d]);
}

/* The spares that 0D may give the rank: the nearest, or the nearest on a side that its lines have not just used; with
 * all that are as near on the same side. */
static int choices(const struct zero *z, int32_t rank, int32_t tie[MAX_TIES])
{
    const struct near *near = z->near + (size_t)rank * (size_t)z->spares, *pick = NULL;
    unsigned avoid = 0;
    for (int d = 0; z->r > 1 && d < z->grid->ndims; d++) {
        int8_t side = z->side[line_key(z, z->home[rank], d)];
        avoid |= side ? 1u << (side - 1) : 0;
    }
    for (int32_t i = 0; i < z->spares; i++)
        if (!z->taken[near[i].spare]) {
            pick = pick ? pick : &near[i];
            if (!(avoid >> near[i].side & 1)) {
                pick = &near[i];
                break;
            }
        }
    int n = 0;
    for (const struct near *c = pick; c && c < near + z->spares && c->dist == pick->dist && n < MAX_TIES; c++)
        if (!z->taken[c->spare] && (z->r < 2 || c->side == pick->side))
            tie[n++] = c->spare;
    return n;
}

static bool may_choose(const struct zero *z, int32_t rank, int32_t spare)
{
    int32_t tie[MAX_TIES];
    for (int n = choices(z, rank, tie); n > 0; n--)
        if (tie[n - 1] == spare)
            return true;
    return false;
}

/* Would b's failure before the last one, a's, have led to the same map and memory? */
static bool turns_round(struct zero *z, int32_t depth, int32_t b, int32_t b_spare)
{
    int32_t a = z->path[depth - 1], a_spare = z->path_spare[depth - 1];
    for (int d = 0; z->r > 1 && d < z->grid->ndims; d++)
        if (line_key(z, z->home[a], d) == line_key(z, z->home[b], d))
            return false;
    z->taken[a_spare] = false;
    bool same = may_choose(z, b, b_spare);
    z->taken[b_spare] = true;
    same = same && may_choose(z, a, a_spare);
    z->taken[b_spare] = false;
    z->taken[a_spare] = true;
    return same;
}

/* Does a link of the open lanes really carry more than the worst case known? The sums of what each rank alone brings,
 * put right for each message with both ends on spares. */
static bool really(struct zero *z, int32_t depth)
{
    const struct pattern *t = z->pattern;
    const uint32_t *open = z->open + (size_t)depth * z->lanes;
    bool all = z->setup->convention == LOAD_ALL;
    size_t n = z->opens[depth];
    lane high = {0}, best = {0};
    best += (uint8_t)z->result->collisions[depth];
    for (size_t k = 0; k < n; k++) {
        lane sum = z->bound[open[k]];
        for (int32_t i = 0; i < depth; i++)
            sum += pair(z, z->exact, z->path[i], z->path_spare[i])[open[k]];
        z->count[open[k]] = sum;
    }
    for (int32_t i = 0; i < depth; i++) {
        int32_t r = z->path[i], spare = z->path_spare[i];
        for (int32_t m = t->out_at[r]; m < t->out_at[r + 1]; m++) {
            int32_t peer = t->out[m].rank, there = z->spare_of[peer], links[MAX_ROUTE];
            if (there < 0)
                continue;
            const lane *in = pair(z, z->in, peer, spare), *out = pair(z, z->out, r, there);
            const lane *across = pair(z, z->across, spare, there);
            for (size_t k = 0; k < n; k++)
                z->count[open[k]] += (all ? across[open[k]] - in[open[k]] : (lane){0}) - out[open[k]];
            int32_t hops = route(z, z->home[r], z->home[peer], links);
            for (int32_t h = 0; h < hops; h++)
                ((uint8_t *)z->count)[links[h]]++;
        }
    }
    for (size_t k = 0; k < n; k++)
        high |= (lane)(z->count[open[k]] > best);
    return lane_any(high) || z->result->collisions[depth] < 0;
}

/* The load of each link, counted message by message; becomes the worst case known when it is one. */
static void count_exactly(struct zero *z, int32_t depth)
{
    const struct pattern *t = z->pattern;
    int32_t links[MAX_ROUTE], most = 0;
    memcpy(z->load, z->home_load, z->links * sizeof *z->load);
    for (int32_t k = 0; k < depth; k++)
        for (int way = 0; way < 2; way++) {
            int32_t rank = z->path[k];
            const int32_t *at = way ? t->in_at : t->out_at;
            for (int32_t m = at[rank]; m < at[rank + 1]; m++) {
                int32_t peer = way ? t->in[m].rank : t->out[m].rank, from = way ? peer : rank, to = way ? rank : peer;
                if (way && z->spare_of[peer] >= 0)
                    continue; /* counted from its sender */
                int32_t n = route(z, z->home[from], z->home[to], links);
                for (int32_t i = 0; i < n; i++)
                    z->load[links[i]]--;
                if (z->setup->convention != LOAD_ALL && z->spare_of[from] >= 0)
                    continue;
                n = route(z, z->spare_of[from] < 0 ? z->home[from] : z->spare_node[z->spare_of[from]],
                          z->spare_of[to] < 0 ? z->home[to] : z->spare_node[z->spare_of[to]], links);
                for (int32_t i = 0; i < n; i++)
                    z->load[links[i]]++;
            }
        }
    for (size_t l = 0; l < z->links; l++)
        most = z->load[l] > most ? z->load[l] : most;
    if (most <= z->result->collisions[depth])
        return;
    z->result->collisions[depth] = most;
    for (int32_t k = 0; k < depth; k++)
        z->result->nodes[depth][k] = z->home[z->path[k]];
}

/* The bound after one more failure, for the lanes that were open before it; those that are still open.
 * returns   their number. A link that cannot become the worst never can again, so no other lane is ever looked at. */
static size_t bound_make(struct zero *z, int32_t depth, int32_t rank, int32_t spare)
{
    const lane *before = z->bound + (size_t)(depth - 1) * z->lanes, *need = z->need + (size_t)(depth - 1) * z->lanes;
    const lane *change = pair(z, z->change, rank, spare);
    const uint32_t *was = z->open + (size_t)(depth - 1) * z->lanes;
    uint32_t *open = z->open + (size_t)depth * z->lanes;
    lane *now = z->bound + (size_t)depth * z->lanes;
    size_t n = 0;
    for (size_t k = 0; k < z->opens[depth - 1]; k++)
        now[was[k]] = before[was[k]] + change[was[k]];
    home_messages(z, rank, true, 1, (uint8_t *)now); /* those had left the links with the peer */
    for (size_t k = 0; k < z->opens[depth - 1]; k++)
        if (lane_any((lane)(now[was[k]] >= need[was[k]])))
            open[n++] = was[k];
    return z->opens[depth] = n;
}

/* Could the rank's failure, wherever it is sent, keep a lane open? */
static bool worth_it(const struct zero *z, int32_t depth, int32_t rank)
{
    const lane *before = z->bound + (size_t)depth * z->lanes, *need = z->need + (size_t)depth * z->lanes;
    const lane *alone = z->alone + (size_t)rank * z->lanes;
    const uint32_t *open = z->open + (size_t)depth * z->lanes;
    for (size_t k = 0; k < z->opens[depth]; k++)
        if (lane_any((lane)(before[open[k]] + alone[open[k]] >= need[open[k]])))
            return true;
    return false;
}

/* What the rank can bring on each spare that at most left - 1 free ones are nearer than: into nearer[how many are], for
 * the failure that may take it, and into the spare's most. */
static void rank_brings(struct zero *z, int32_t rank, int32_t left, const uint32_t *open, size_t opens)
{
    const struct near *near = z->near + (size_t)rank * (size_t)z->spares;
    int32_t free_before[GRID_MAX_DIMS] = {0}, free_now[GRID_MAX_DIMS] = {0}, dist = -1;
    for (int32_t i = 0; i < z->spares; i++) {
        if (near[i].dist != dist)
            memcpy(free_before, free_now, sizeof free_before);
        dist = near[i].dist;
        int side = z->r < 2 ? 0 : near[i].side;
        if (free_before[side] >= left && z->r < 2)
            return;
        if (z->taken[near[i].spare] || free_before[side] >= left)
            continue;
        free_now[side]++;
        const lane *bring = z->bring + ((size_t)rank * (size_t)z->spares + (size_t)near[i].spare) * z->lanes;
        lane *nearer = z->nearer + (size_t)free_before[side] * z->lanes;
        lane *most = z->most + (size_t)near[i].spare * z->lanes;
        bool first = !z->reached[near[i].spare];
        z->reached[near[i].spare] = true;
        for (size_t k = 0; k < opens; k++) {
            lane b = bring[open[k]];
            nearer[k] = lane_max(nearer[k], b);
            most[k] = first ? b : lane_max(most[k], b);
        }
    }
}

/* A closer look at what the failures to come can add. The i-th of them can take a spare that at most i - 1 which are
 * free now are nearer than; and they take different spares. Per link, the lower of the two sums; lanes in which it is
 * too low everywhere are closed. returns   the number of those still open. */
static size_t close_lanes(struct zero *z, int32_t depth)
{
    int32_t best = z->result->collisions[z->failures];
    if (depth + 1 == z->failures) {
        lane need = {0};
        need += (uint8_t)(best + 1);
        for (size_t k = 0; k < z->opens[depth]; k++)
            z->need[(size_t)depth * z->lanes + z->open[(size_t)depth * z->lanes + k]] = need;
        return z->opens[depth];
    }
    size_t n = (size_t)(z->failures - depth), opens = z->opens[depth], still = 0;
    uint32_t *open = z->open + (size_t)depth * z->lanes;
    memset(z->reached, 0, (size_t)z->spares);
    memset(z->nearer, 0, n * z->lanes * sizeof *z->nearer);
    memset(z->top, 0, n * z->lanes * sizeof *z->top);
    for (int32_t r = 0; r < z->ranks; r++)
        if (z->spare_of[r] < 0)
            rank_brings(z, r, (int32_t)n, open, opens);
    for (int32_t s = 0; s < z->spares; s++)
        for (size_t k = 0; z->reached[s] && k < opens; k++) {
            lane m = z->most[(size_t)s * z->lanes + k];
            for (size_t i = 0; i < n; i++) {
                lane *t = z->top + i * z->lanes + k, high = lane_max(*t, m);
                m = *t ^ m ^ high; /* the lower one */
                *t = high;
            }
        }
    for (size_t k = 0; k < opens; k++) {
        lane by_turn = {0}, by_spare = {0}, high = {0};
        for (size_t i = 0; i < n; i++) {
            high = lane_max(high, z->nearer[i * z->lanes + k]);
            by_turn += high;
            by_spare += z->top[i * z->lanes + k];
        }
        const uint8_t *a = (const uint8_t *)&by_turn, *b = (const uint8_t *)&by_spare;
        const uint8_t *now = (const uint8_t *)(z->bound + (size_t)depth * z->lanes + open[k]);
        bool any = false;
        for (int l = 0; l < LANE; l++)
            any = any || now[l] + (a[l] < b[l] ? a[l] : b[l]) > best;
        if (!any)
            continue;
        /* after one failure more each of the others is one earlier in its turn, and one spare fewer is taken */
        by_turn -= z->nearer[k];
        by_spare -= z->top[(n - 1) * z->lanes + k];
        uint8_t *need = (uint8_t *)(z->need + (size_t)depth * z->lanes + open[k]);
        for (int l = 0; l < LANE; l++) {
            int least = best + 1 - (a[l] < b[l] ? a[l] : b[l]);
            need[l] = (uint8_t)(least < 0 ? 0 : least);
        }
        open[still++] = open[k];
    }
    return z->opens[depth] = still;
}

static bool mirror_fits(struct zero *z, int32_t depth, int32_t rank)
{
    for (int d = 0; d < z->grid->ndims; d++) {
        z->balance[depth][d] = z->balance[depth - 1][d] + z->mirror[rank][d];
        if (z->balance[depth][d] + z->failures - depth < 0)
            return false;
    }
    return true;
}

static void descend(struct zero *z, int32_t depth);

/* Hash of the map and of the sides it remembers, from that before the failure. */
static void hash_make(struct zero *z, int32_t depth, int32_t rank, int32_t spare, int8_t side)
{
    uint64_t *h = z->hash[depth];
    memcpy(h, z->hash[depth - 1], sizeof z->hash[0]);
    seen_mix(h, (uint64_t)rank << 32 | (uint32_t)spare, 1);
    for (int d = 0; z->r > 1 && d < z->grid->ndims; d++) {
        size_t key = line_key(z, z->home[rank], d);
        if (z->side[key])
            seen_mix(h, key << 8 | (uint8_t)z->side[key] | UINT64_C(1) << 62, (uint64_t)-1);
        seen_mix(h, key << 8 | (uint8_t)side | UINT64_C(1) << 62, 1);
    }
}

/* The map after one more failure: is it new, and can it win? */
static bool worth_a_look(struct zero *z, int32_t depth, int32_t rank, int32_t spare, int8_t side)
{
    z->result->maps++;
    if (!bound_make(z, depth, rank, spare))
        return false;
    if (depth == z->failures)
        return true;
    hash_make(z, depth, rank, spare, side);
    int fresh = seen_add(&z->seen, z->hash[depth]);
    z->failed = z->failed || fresh < 0;
    return fresh > 0;
}

static void substitute(struct zero *z, int32_t depth, int32_t rank, int32_t spare)
{
    int8_t side = (int8_t)(1 + z->spare_side[spare]), was[GRID_MAX_DIMS];
    if (!worth_a_look(z, depth, rank, spare, side))
        return;
    z->spare_of[rank] = spare;
    z->taken[spare] = true;
    z->path[depth - 1] = rank;
    z->path_spare[depth - 1] = spare;
    for (int d = 0; z->r > 1 && d < z->grid->ndims; d++) {
        int8_t *at = &z->side[line_key(z, z->home[rank], d)];
        was[d] = *at;
        *at = side;
    }
    if (depth == z->failures) {
        if (really(z, depth))
            count_exactly(z, depth);
    } else if (close_lanes(z, depth))
        descend(z, depth);
    for (int d = z->grid->ndims - 1; z->r > 1 && d >= 0; d--)
        z->side[line_key(z, z->home[rank], d)] = was[d];
    z->taken[spare] = false;
    z->spare_of[rank] = -1;
}

static void descend(struct zero *z, int32_t depth)
{
    int32_t tie[MAX_TIES];
    for (int32_t rank = 0; rank < z->ranks && !*z->stop && !z->failed; rank++) {
        if (z->spare_of[rank] >= 0 || !mirror_fits(z, depth + 1, rank) || !worth_it(z, depth, rank))
            continue;
        int n = choices(z, rank, tie);
        z->result->cannot += n == 0;
        for (int i = 0; i < n; i++)
            if (!(depth && rank < z->path[depth - 1] && turns_round(z, depth, rank, tie[i])))
                substitute(z, depth + 1, rank, tie[i]);
    }
}

const char *worst_zero(const struct setup *s, const struct job *j, int32_t failures, volatile int *stop,
                       struct worst_result *r)
{
    struct zero z;
    bool ok = zero_open(&z, s, j, failures);
    z.stop = stop;
    z.result = r;
    for (int32_t f = 1; ok && f <= failures && !*stop; f++) {
        z.failures = f;
        ok = bring_make(&z);
        if (!ok)
            break;
        z.opens[0] = z.lanes;
        for (size_t i = 0; i < z.lanes; i++)
            z.open[i] = (uint32_t)i;
        close_lanes(&z, 0);
        descend(&z, 0);
        seen_free(&z.seen);
        ok = !z.failed;
    }
    zero_close(&z);
    return ok ? NULL : "out of memory";
}
