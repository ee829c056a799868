#include "sim/place/worst_zero.h"

#include <stdlib.h>

#include "sim/place/worst_zero_state.h"

static size_t line_key(const struct zero *z, int32_t node, int d)
{
    return (size_t)d * (size_t)z->grid->nodes + (size_t)(node - grid_coord(z->grid, node, d) * z->grid->stride[d]);
}

/* The spares that 0D may give the slot: the nearest, or the nearest on a side that its lines have not just used; with
 * all that are as near on the same side. */
static int choices(const struct zero *z, int32_t slot, int32_t tie[MAX_TIES])
{
    const struct near *near = z->near + (size_t)slot * (size_t)z->spares, *pick = NULL;
    unsigned avoid = 0;
    for (int d = 0; z->r > 1 && d < z->grid->ndims; d++) {
        int8_t side = z->side[line_key(z, z->home[slot], d)];
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

static bool may_choose(const struct zero *z, int32_t slot, int32_t spare)
{
    int32_t tie[MAX_TIES];
    for (int n = choices(z, slot, tie); n > 0; n--)
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

/* Does a link of the open lanes really carry more than the worst case known? The sums of what each slot alone brings,
 * put right for each message with both ends on spares. */
static bool really(struct zero *z, int32_t depth)
{
    const struct pattern *t = z->pattern;
    const uint32_t *open = z->open + (size_t)depth * z->lanes;
    bool all = z->setup->convention == LOAD_ALL;
    size_t n = z->opens[depth];
    lane high = {0}, best = {0};
    best += (uint8_t)to_beat(z, depth);
    for (size_t k = 0; k < n; k++) {
        lane sum = z->bound[open[k]];
        for (int32_t i = 0; i < depth; i++)
            sum += pair(z, z->exact, z->path[i], z->path_spare[i])[open[k]];
        z->count[open[k]] = sum;
    }
    for (int32_t i = 0; i < depth; i++) {
        int32_t r = z->path[i], spare = z->path_spare[i];
        for (int32_t m = t->out_at[r]; m < t->out_at[r + 1]; m++) {
            int32_t peer = t->out[m].slot, there = z->spare_of[peer], links[MAX_ROUTE];
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
    return lane_any(high) || to_beat(z, depth) < 0;
}

/* The load of each link, counted message by message; becomes the worst case known when it is one. */
static void count_exactly(struct zero *z, int32_t depth)
{
    const struct pattern *t = z->pattern;
    int32_t links[MAX_ROUTE], most = 0;
    memcpy(z->load, z->home_load, z->links * sizeof *z->load);
    for (int32_t k = 0; k < depth; k++)
        for (int way = 0; way < 2; way++) {
            int32_t slot = z->path[k];
            const int32_t *at = way ? t->in_at : t->out_at;
            for (int32_t m = at[slot]; m < at[slot + 1]; m++) {
                int32_t peer = way ? t->in[m].slot : t->out[m].slot, from = way ? peer : slot, to = way ? slot : peer;
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
    int32_t nodes[WORST_MAX];
    for (int32_t k = 0; k < depth; k++)
        nodes[k] = z->home[z->path[k]];
    worst_best_note(&z->search->best, depth, most, z->task, nodes);
}

/* The bound after one more failure, for the lanes that were open before it; those that are still open.
 * returns   their number. A link that cannot become the worst never can again, so no other lane is ever looked at. */
static size_t bound_make(struct zero *z, int32_t depth, int32_t slot, int32_t spare)
{
    const lane *before = z->bound + (size_t)(depth - 1) * z->lanes, *need = z->need + (size_t)(depth - 1) * z->lanes;
    const lane *change = pair(z, z->change, slot, spare);
    const uint32_t *was = z->open + (size_t)(depth - 1) * z->lanes;
    uint32_t *open = z->open + (size_t)depth * z->lanes;
    lane *now = z->bound + (size_t)depth * z->lanes;
    size_t n = 0;
    for (size_t k = 0; k < z->opens[depth - 1]; k++)
        now[was[k]] = before[was[k]] + change[was[k]];
    home_messages(z, slot, true, 1, (uint8_t *)now); /* those had left the links with the peer */
    for (size_t k = 0; k < z->opens[depth - 1]; k++)
        if (lane_any((lane)(now[was[k]] >= need[was[k]])))
            open[n++] = was[k];
    return z->opens[depth] = n;
}

/* Could the slot's failure, wherever it is sent, keep a lane open? */
static bool worth_it(const struct zero *z, int32_t depth, int32_t slot)
{
    const lane *before = z->bound + (size_t)depth * z->lanes, *need = z->need + (size_t)depth * z->lanes;
    const lane *alone = z->alone + (size_t)slot * z->lanes;
    const uint32_t *open = z->open + (size_t)depth * z->lanes;
    for (size_t k = 0; k < z->opens[depth]; k++)
        if (lane_any((lane)(before[open[k]] + alone[open[k]] >= need[open[k]])))
            return true;
    return false;
}

/* What the slot can bring on each spare that at most left - 1 free ones are nearer than: into nearer[how many are], for
 * the failure that may take it, and into the spare's most. */
static void slot_brings(struct zero *z, int32_t slot, int32_t left, const uint32_t *open, size_t opens)
{
    const struct near *near = z->near + (size_t)slot * (size_t)z->spares;
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
        const lane *bring = z->bring + ((size_t)slot * (size_t)z->spares + (size_t)near[i].spare) * z->lanes;
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
    int32_t best = to_beat(z, z->failures);
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
    for (int32_t r = 0; r < z->slots; r++)
        if (z->spare_of[r] < 0)
            slot_brings(z, r, (int32_t)n, open, opens);
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

static bool mirror_fits(struct zero *z, int32_t depth, int32_t slot)
{
    for (int d = 0; d < z->grid->ndims; d++) {
        z->balance[depth][d] = z->balance[depth - 1][d] + z->mirror[slot][d];
        if (z->balance[depth][d] + z->failures - depth < 0)
            return false;
    }
    return true;
}

static void descend(struct zero *z, int32_t depth);

/* Hash of the map and of the sides it remembers, from that before the failure. */
static void hash_make(struct zero *z, int32_t depth, int32_t slot, int32_t spare, int8_t side)
{
    uint64_t *h = z->hash[depth];
    memcpy(h, z->hash[depth - 1], sizeof z->hash[0]);
    seen_mix(h, (uint64_t)slot << 32 | (uint32_t)spare, 1);
    for (int d = 0; z->r > 1 && d < z->grid->ndims; d++) {
        size_t key = line_key(z, z->home[slot], d);
        if (z->side[key])
            seen_mix(h, key << 8 | (uint8_t)z->side[key] | UINT64_C(1) << 62, (uint64_t)-1);
        seen_mix(h, key << 8 | (uint8_t)side | UINT64_C(1) << 62, 1);
    }
}

/* The map after one more failure: is it new, and can it win? */
static bool worth_a_look(struct zero *z, int32_t depth, int32_t slot, int32_t spare, int8_t side)
{
    z->maps++;
    if (!bound_make(z, depth, slot, spare))
        return false;
    if (depth == z->failures)
        return true;
    hash_make(z, depth, slot, spare, side);
    return depth < 2 || seen_add(&z->search->seen, z->hash[depth], z->task);
}

static void substitute(struct zero *z, int32_t depth, int32_t slot, int32_t spare)
{
    int8_t side = (int8_t)(1 + z->spare_side[spare]), was[GRID_MAX_DIMS];
    if (!worth_a_look(z, depth, slot, spare, side))
        return;
    z->spare_of[slot] = spare;
    z->taken[spare] = true;
    z->path[depth - 1] = slot;
    z->path_spare[depth - 1] = spare;
    for (int d = 0; z->r > 1 && d < z->grid->ndims; d++) {
        int8_t *at = &z->side[line_key(z, z->home[slot], d)];
        was[d] = *at;
        *at = side;
    }
    if (depth == z->failures) {
        if (really(z, depth))
            count_exactly(z, depth);
    } else if (close_lanes(z, depth))
        descend(z, depth);
    for (int d = z->grid->ndims - 1; z->r > 1 && d >= 0; d--)
        z->side[line_key(z, z->home[slot], d)] = was[d];
    z->taken[spare] = false;
    z->spare_of[slot] = -1;
}

static void fail_slot(struct zero *z, int32_t depth, int32_t slot)
{
    int32_t tie[MAX_TIES];
    if (z->spare_of[slot] >= 0 || !mirror_fits(z, depth + 1, slot) || !worth_it(z, depth, slot))
        return;
    int n = choices(z, slot, tie);
    z->cannot += n == 0;
    for (int i = 0; i < n; i++)
        if (!(depth && slot < z->path[depth - 1] && turns_round(z, depth, slot, tie[i])))
            substitute(z, depth + 1, slot, tie[i]);
}

static void descend(struct zero *z, int32_t depth)
{
    for (int32_t slot = 0; slot < z->slots && !atomic_load(z->stop); slot++)
        fail_slot(z, depth, slot);
}

void zero_follow(struct zero *z, int32_t slot)
{
    z->task = (uint32_t)slot + 1;
    fail_slot(z, 0, slot);
}

struct zero *worst_zero(struct search *s)
{
    struct zero *z = malloc(sizeof *z);
    if (z && !zero_open(z, s)) {
        worst_zero_end(z);
        return NULL;
    }
    return z;
}

void worst_zero_end(struct zero *z)
{
    if (z)
        zero_close(z);
    free(z);
}

bool zero_stage(struct zero *z, int32_t failures)
{
    z->failures = failures;
    return bring_make(z);
}

struct zero *zero_branch(const struct zero *from, const atomic_bool *stop)
{
    struct zero *z = malloc(sizeof *z);
    if (!z)
        return NULL;
    *z = *from;
    z->stop = stop;
    z->task = 0; /* a lane is closed here for all tasks, also for those that need least */
    if (!zero_open_branch(z)) {
        zero_branch_end(z);
        return NULL;
    }
    z->opens[0] = z->lanes;
    for (size_t i = 0; i < z->lanes; i++)
        z->open[i] = (uint32_t)i;
    close_lanes(z, 0);
    return z;
}

void zero_branch_end(struct zero *z)
{
    if (z)
        zero_close_branch(z);
    free(z);
}

void zero_counts(struct zero *z, int64_t *maps, int64_t *cannot)
{
    *maps += z->maps;
    *cannot += z->cannot;
    z->maps = z->cannot = 0;
}
