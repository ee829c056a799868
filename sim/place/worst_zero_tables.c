#include <stdlib.h>

#include "sim/place/worst_zero_state.h"

static size_t table_size(const struct job *j)
{
    size_t size, links = ((size_t)grid_links(&j->place.grid) + LANE - 1) / LANE * LANE;
    if (__builtin_mul_overflow((size_t)j->place.slots * (size_t)j->place.nfree, links, &size))
        return SIZE_MAX;
    return size;
}

bool worst_zero_fits(const struct setup *s, const struct job *j, int32_t failures)
{
    /* messages per link must fit a byte: those of the failures, and those at home */
    int32_t most = 0;
    for (int32_t r = 0; r < j->place.slots; r++) {
        int32_t m = j->pattern.out_at[r + 1] - j->pattern.out_at[r] + j->pattern.in_at[r + 1] - j->pattern.in_at[r];
        most = m > most ? m : most;
    }
    return j->method.steps == 1 && j->method.step[0].order == 0 && j->pattern.phases == 1 && !s->net.tree.nodes &&
           s->grid.ndims <= 4 && grid_diameter(&s->grid) <= MAX_ROUTE && table_size(j) <= 1u << 27 &&
           most * failures + load_collisions(&j->load) <= 250;
}

void home_messages(const struct zero *z, int32_t slot, bool gone, int delta, uint8_t *sum)
{
    const struct pattern *t = z->pattern;
    int32_t links[MAX_ROUTE];
    for (int way = 0; way < 2; way++) {
        const int32_t *at = way ? t->in_at : t->out_at;
        const struct pattern_peer *peers = way ? t->in : t->out;
        for (int32_t m = at[slot]; m < at[slot + 1]; m++) {
            int32_t peer = peers[m].slot;
            if (gone && z->spare_of[peer] < 0)
                continue;
            int32_t n = route(z, z->home[way ? peer : slot], z->home[way ? slot : peer], links);
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

/* Can the slot be given its i-th nearest spare within the failures searched? Nearer ones must be taken: all of them, or
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

static int32_t reach_list(const struct zero *z, int32_t slot, int32_t list[MAX_REACH])
{
    const struct near *near = z->near + (size_t)slot * (size_t)z->spares;
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
            size_t slot = (size_t)(end ? to : from), spare = (size_t)(end ? p->to_spare[a] : p->from_spare[a]);
            uint8_t *sum = (uint8_t *)(z->bring + (slot * (size_t)z->spares + spare) * z->lanes);
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

bool bring_make(struct zero *z)
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
    memset(z->bring, 0, (size_t)z->slots * (size_t)z->spares * z->links);
    for (int32_t r = 0; ok && r < z->slots; r++)
        for (int32_t m = t->out_at[r]; ok && m < t->out_at[r + 1]; m++)
            ok = bring_message(z, p, r, t->out[m].slot);
    memset(z->alone, 0, (size_t)z->slots * z->links);
    for (int32_t r = 0; r < z->slots; r++)
        for (int32_t s = 0; s < z->spares; s++)
            for (size_t k = 0; k < z->lanes; k++) {
                lane *most = z->alone + (size_t)r * z->lanes + k;
                *most = lane_max(*most, pair(z, z->bring, r, s)[k]);
            }
    memcpy(z->change, z->bring, (size_t)z->slots * (size_t)z->spares * z->links);
    for (int32_t r = 0; ok && r < z->slots; r++)
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
    for (int32_t r = 0; r < z->slots; r++)
        for (int32_t s = 0; s < z->spares; s++) {
            mark_route(z, z->spare_node[s], z->home[r], (uint8_t *)pair(z, z->in, r, s));
            mark_route(z, z->home[r], z->spare_node[s], (uint8_t *)pair(z, z->out, r, s));
        }
    for (int32_t r = 0; r < z->slots; r++)
        for (int32_t s = 0; s < z->spares; s++) {
            lane *sum = pair(z, z->exact, r, s);
            for (int32_t m = t->out_at[r]; z->setup->convention == LOAD_ALL && m < t->out_at[r + 1]; m++)
                for (size_t k = 0; k < z->lanes; k++)
                    sum[k] += pair(z, z->in, t->out[m].slot, s)[k];
            for (int32_t m = t->in_at[r]; m < t->in_at[r + 1]; m++)
                for (size_t k = 0; k < z->lanes; k++)
                    sum[k] += pair(z, z->out, t->in[m].slot, s)[k];
            home_messages(z, r, false, -1, (uint8_t *)sum);
        }
}

static void near_make(struct zero *z)
{
    for (int32_t r = 0; r < z->slots; r++) {
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
    for (int32_t r = 0; r < z->slots; r++)
        for (int d = 0; d < g->ndims; d++) {
            bool turns = z->r == 1 && !spare_holds(&z->setup->layout, d) && (!g->torus[d] || g->size[d] % 2) &&
                         z->setup->pattern <= PATTERN_STAR;
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

/* The tables by (slot, spare), and their bytes. */
enum { BIG_TABLES = 5 };

static size_t each_table(const struct job *j)
{
    size_t links = ((size_t)grid_links(&j->place.grid) + LANE - 1) / LANE * LANE;
    return ((size_t)j->place.slots * (size_t)j->place.nfree + 1) * links;
}

size_t zero_size(const struct job *j, int32_t failures, bool each)
{
    size_t links = ((size_t)grid_links(&j->place.grid) + LANE - 1) / LANE * LANE, lanes = links / LANE;
    size_t spares = (size_t)j->place.nfree, slots = (size_t)j->place.slots, depths = (size_t)failures + 1;
    if (each)
        return links * (2 + 4 * depths + spares + 1 + sizeof(int32_t)) + depths * lanes * sizeof(uint32_t) +
               2 * spares + slots * sizeof(int32_t) + (size_t)j->place.grid.nodes * (size_t)j->place.grid.ndims;
    return BIG_TABLES * each_table(j) + (spares * spares + slots) * links + slots * spares * sizeof(struct near) +
           4 * MAX_REACH * links;
}

bool zero_open(struct zero *z, struct search *s)
{
    const struct job *j = &s->base;
    const struct place *p = &j->launch;
    *z = (struct zero){.setup = s->setup,
                       .search = s,
                       .grid = &p->grid,
                       .pattern = &j->pattern,
                       .home = p->home,
                       .slots = p->slots,
                       .spares = p->nfree,
                       .failures = s->failures,
                       .r = s->setup->layout.r};
    z->links = ((size_t)grid_links(&p->grid) + LANE - 1) / LANE * LANE;
    z->lanes = z->links / LANE;
    size_t pairs = (size_t)z->slots * (size_t)z->spares, slots = (size_t)z->slots;
    z->bring = lanes_alloc(pairs * z->lanes);
    z->change = lanes_alloc(pairs * z->lanes);
    z->exact = lanes_alloc(pairs * z->lanes);
    z->in = lanes_alloc(pairs * z->lanes);
    z->out = lanes_alloc(pairs * z->lanes);
    z->across = lanes_alloc((size_t)z->spares * (size_t)z->spares * z->lanes);
    z->alone = lanes_alloc(slots * z->lanes);
    z->near = malloc((pairs + 1) * sizeof *z->near);
    z->spare_node = calloc((size_t)z->spares + 1, sizeof *z->spare_node);
    z->spare_side = malloc((size_t)z->spares + 1);
    z->mirror = calloc(slots, sizeof *z->mirror);
    z->home_load = calloc(z->links, sizeof *z->home_load);
    if (!z->bring || !z->change || !z->exact || !z->in || !z->out || !z->across || !z->alone || !z->near ||
        !z->spare_node || !z->spare_side || !z->mirror || !z->home_load)
        return false;
    for (int32_t n = 0, k = 0; n < p->grid.nodes; n++)
        if (p->slot_at[n] == PLACE_FREE)
            z->spare_node[k++] = n;
    for (int32_t k = 0; k < z->spares; k++)
        z->spare_side[k] = (int8_t)spare_side(&z->setup->layout, z->grid, z->spare_node[k]);
    for (int32_t l = 0; l < j->launch_load.links; l++)
        z->home_load[l] = j->launch_load.phase[0].count[l];
    mirror_make(z);
    near_make(z);
    exact_make(z);
    return true;
}

void zero_close(struct zero *z)
{
    free(z->bring);
    free(z->change);
    free(z->exact);
    free(z->in);
    free(z->out);
    free(z->across);
    free(z->alone);
    free(z->near);
    free(z->spare_node);
    free(z->spare_side);
    free(z->mirror);
    free(z->home_load);
}

bool zero_open_branch(struct zero *z)
{
    size_t depths = (size_t)z->search->failures + 1;
    z->count = lanes_alloc(z->lanes);
    z->bound = lanes_alloc(depths * z->lanes);
    z->need = lanes_alloc(depths * z->lanes);
    z->nearer = lanes_alloc(depths * z->lanes);
    z->top = lanes_alloc(depths * z->lanes);
    z->most = lanes_alloc(((size_t)z->spares + 1) * z->lanes);
    z->reached = malloc((size_t)z->spares + 1);
    z->open = malloc(depths * z->lanes * sizeof *z->open);
    z->spare_of = malloc((size_t)z->slots * sizeof *z->spare_of);
    z->taken = calloc((size_t)z->spares + 1, sizeof *z->taken);
    z->side = calloc((size_t)z->grid->nodes, (size_t)z->grid->ndims);
    z->load = calloc(z->links, sizeof *z->load);
    if (!z->count || !z->bound || !z->need || !z->nearer || !z->top || !z->most || !z->reached || !z->open ||
        !z->spare_of || !z->taken || !z->side || !z->load)
        return false;
    memset(z->spare_of, -1, (size_t)z->slots * sizeof *z->spare_of);
    for (size_t l = 0; l < z->links; l++)
        ((uint8_t *)z->bound)[l] = (uint8_t)z->home_load[l];
    return true;
}

void zero_close_branch(struct zero *z)
{
    free(z->count);
    free(z->bound);
    free(z->need);
    free(z->nearer);
    free(z->top);
    free(z->most);
    free(z->reached);
    free(z->open);
    free(z->spare_of);
    free(z->taken);
    free(z->side);
    free(z->load);
}
