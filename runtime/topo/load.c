#include "runtime/topo/load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define always_inline inline __attribute__((always_inline))

static int32_t network_links(const struct load_network *net, const struct grid *g)
{
    return net->tree.nodes ? fattree_links(&net->tree) : grid_links(g);
}

static void phase_sizes(struct load *l)
{
    for (int32_t r = 0; r < l->pattern->ranks; r++)
        for (int32_t i = l->pattern->out_at[r]; i < l->pattern->out_at[r + 1]; i++)
            l->phase[l->pattern->out[i].phase].cap++;
}

bool load_init(struct load *l, const struct pattern *pattern, const struct place *p, const struct load_network *net,
               enum load_convention convention)
{
    *l = (struct load){.pattern = pattern, .place = p, .convention = convention};
    if (net)
        l->net = *net;
    if (l->net.tree.nodes && l->net.tree.nodes != p->grid.nodes)
        return false;
    l->links = network_links(&l->net, &p->grid);
    l->phase = calloc((size_t)pattern->phases, sizeof *l->phase);
    l->stamp = calloc((size_t)pattern->ranks, sizeof *l->stamp);
    l->absent = calloc((size_t)pattern->ranks, sizeof *l->absent);
    l->at = malloc((size_t)pattern->ranks * sizeof *l->at);
    bool ok = l->phase && l->stamp && l->absent && l->at;
    if (ok)
        phase_sizes(l);
    for (int32_t i = 0; ok && i < pattern->phases; i++) {
        struct load_phase *ph = &l->phase[i];
        ph->count = calloc((size_t)l->links, sizeof *ph->count);
        ph->hist = calloc((size_t)ph->cap + 2, sizeof *ph->hist);
        ok = ph->count && ph->hist;
    }
    if (!ok) {
        load_fini(l);
        return false;
    }
    load_count(l, p);
    return true;
}

void load_fini(struct load *l)
{
    for (int32_t i = 0; l->phase && i < l->pattern->phases; i++) {
        free(l->phase[i].count);
        free(l->phase[i].hist);
    }
    free(l->phase);
    free(l->stamp);
    free(l->absent);
    free(l->at);
    *l = (struct load){0};
}

static always_inline void link_change(struct load_phase *ph, int32_t link, int delta)
{
    int32_t c = ph->count[link];
    ph->hist[c]--;
    c += delta;
    ph->hist[c]++;
    ph->count[link] = c;
    if (delta > 0 && c > ph->max)
        ph->max = c;
}

/* Add (delta 1) or remove (-1) one message along a dimension-order route; returns its hops. */
static always_inline int grid_message(const struct place *p, struct load_phase *ph, int32_t from, int32_t to, int delta)
{
    const struct grid *g = &p->grid;
    const int16_t *a = p->coord[from], *b = p->coord[to];
    int hops = 0;
    for (int d = 0; d < g->ndims; d++) {
        int off = grid_offset(g, d, a[d], b[d]), n = g->size[d];
        if (!off)
            continue;
        int dir = off > 0 ? GRID_UP : GRID_DOWN, left = off > 0 ? off : -off;
        int32_t per = 2 * g->ndims * g->stride[d], link = grid_link(g, from, d, dir);
        hops += left;
        int edge = dir == GRID_UP ? n - a[d] : a[d] + 1; /* hops until the coordinate wraps around */
        if (dir == GRID_DOWN)
            per = -per;
        for (; left; left--, link += per) {
            if (edge-- == 0)
                link -= per * n;
            link_change(ph, link, delta);
        }
        from += (b[d] - a[d]) * g->stride[d];
    }
    return hops;
}

static always_inline void message(struct load *l, int32_t phase, int32_t from, int32_t to, int delta)
{
    struct load_phase *ph = &l->phase[phase];
    if (!l->net.tree.nodes) {
        l->hops += delta * grid_message(l->place, ph, from, to, delta);
        return;
    }
    int32_t links[4];
    int n = fattree_route(&l->net.tree, from, to, links);
    for (int i = 0; i < n; i++)
        link_change(ph, links[i], delta);
    l->hops += delta * n;
}

static always_inline bool counts(const struct load *l, int32_t sender)
{
    return l->convention == LOAD_ALL || l->at[sender] == l->place->home[sender];
}

/* All messages from and to a rank; those exchanged with ranks stamped now only from the sender's side. */
static always_inline void rank_messages(struct load *l, int32_t rank, int delta)
{
    const struct pattern *t = l->pattern;
    int32_t at = l->at[rank];
    if (counts(l, rank))
        for (int32_t i = t->out_at[rank]; i < t->out_at[rank + 1]; i++) {
            int32_t peer = t->out[i].rank;
            if (!l->absent[peer])
                message(l, t->out[i].phase, at, l->at[peer], delta);
        }
    for (int32_t i = t->in_at[rank]; i < t->in_at[rank + 1]; i++) {
        int32_t peer = t->in[i].rank;
        if (l->stamp[peer] != l->now && !l->absent[peer] && counts(l, peer))
            message(l, t->in[i].phase, l->at[peer], at, delta);
    }
}

static void settle(struct load *l)
{
    for (int32_t i = 0; i < l->pattern->phases; i++) {
        struct load_phase *ph = &l->phase[i];
        while (ph->max > 0 && ph->hist[ph->max] == 0)
            ph->max--;
    }
}

static void new_stamp(struct load *l)
{
    if (++l->now == 0) {
        memset(l->stamp, 0, (size_t)l->pattern->ranks * sizeof *l->stamp);
        l->now = 1;
    }
}

void load_count(struct load *l, const struct place *p)
{
    for (int32_t i = 0; i < l->pattern->phases; i++) {
        struct load_phase *ph = &l->phase[i];
        assert(ph->count && ph->hist);
        memset(ph->count, 0, (size_t)l->links * sizeof *ph->count);
        memset(ph->hist, 0, ((size_t)ph->max + 1) * sizeof *ph->hist);
        ph->hist[0] = l->links;
        ph->max = 0;
    }
    l->hops = 0;
    const struct pattern *t = l->pattern;
    for (int32_t r = 0; r < t->ranks; r++) {
        l->at[r] = p->node_of[r];
        l->absent[r] = p->rank_at[p->node_of[r]] != r;
    }
    for (int32_t r = 0; r < t->ranks; r++)
        if (!l->absent[r] && counts(l, r))
            for (int32_t i = t->out_at[r]; i < t->out_at[r + 1]; i++)
                if (!l->absent[t->out[i].rank])
                    message(l, t->out[i].phase, l->at[r], l->at[t->out[i].rank], 1);
}

void load_copy(struct load *dst, const struct load *src)
{
    for (int32_t i = 0; i < src->pattern->phases; i++) {
        struct load_phase *d = &dst->phase[i];
        const struct load_phase *s = &src->phase[i];
        memcpy(d->count, s->count, (size_t)src->links * sizeof *s->count);
        int32_t top = d->max > s->max ? d->max : s->max;
        memcpy(d->hist, s->hist, ((size_t)top + 1) * sizeof *s->hist);
        d->max = s->max;
    }
    memcpy(dst->at, src->at, (size_t)src->pattern->ranks * sizeof *src->at);
    memcpy(dst->absent, src->absent, (size_t)src->pattern->ranks * sizeof *src->absent);
    dst->hops = src->hops;
}

void load_drop(struct load *l, int32_t rank)
{
    if (l->absent[rank])
        return;
    new_stamp(l);
    rank_messages(l, rank, -1);
    l->absent[rank] = true;
    settle(l);
}

void load_put(struct load *l, int32_t rank, int32_t node)
{
    new_stamp(l);
    l->at[rank] = node;
    l->absent[rank] = false;
    rank_messages(l, rank, 1);
}

bool load_put_within(struct load *l, int32_t rank, int32_t node, int32_t limit)
{
    const struct pattern *t = l->pattern;
    int32_t sent = t->out_at[rank], received = t->in_at[rank];
    l->at[rank] = node;
    bool sends = counts(l, rank), fits = true;
    for (; sends && fits && sent < t->out_at[rank + 1]; sent++)
        if (!l->absent[t->out[sent].rank]) {
            message(l, t->out[sent].phase, node, l->at[t->out[sent].rank], 1);
            fits = l->phase[t->out[sent].phase].max <= limit;
        }
    for (; fits && received < t->in_at[rank + 1]; received++)
        if (!l->absent[t->in[received].rank] && counts(l, t->in[received].rank)) {
            message(l, t->in[received].phase, l->at[t->in[received].rank], node, 1);
            fits = l->phase[t->in[received].phase].max <= limit;
        }
    l->absent[rank] = !fits;
    if (fits)
        return true;
    while (received-- > t->in_at[rank])
        if (!l->absent[t->in[received].rank] && counts(l, t->in[received].rank))
            message(l, t->in[received].phase, l->at[t->in[received].rank], node, -1);
    while (sends && sent-- > t->out_at[rank])
        if (!l->absent[t->out[sent].rank])
            message(l, t->out[sent].phase, node, l->at[t->out[sent].rank], -1);
    settle(l);
    return false;
}

/* A plan may move a rank more than once. Its messages are then removed with the move that starts, and added with the
 * one that ends, at the place where it stands. */
static void plan_stamp(struct load *l, const struct place_plan *plan)
{
    new_stamp(l);
    for (int32_t i = 0; i < plan->count; i++)
        l->stamp[plan->moves[i].rank] = l->now;
}

void load_move(struct load *l, const struct place_plan *plan)
{
    plan_stamp(l, plan);
    for (int32_t i = 0; i < plan->count; i++) {
        const struct place_move *m = &plan->moves[i];
        if (!l->absent[m->rank] && m->from == l->at[m->rank])
            rank_messages(l, m->rank, -1);
    }
    for (int32_t i = 0; i < plan->count; i++) {
        l->at[plan->moves[i].rank] = plan->moves[i].to;
        l->absent[plan->moves[i].rank] = false;
    }
    for (int32_t i = 0; i < plan->count; i++)
        if (plan->moves[i].to == l->at[plan->moves[i].rank])
            rank_messages(l, plan->moves[i].rank, 1);
    settle(l);
}

void load_undo(struct load *l, const struct place_plan *plan)
{
    plan_stamp(l, plan);
    for (int32_t i = 0; i < plan->count; i++)
        if (plan->moves[i].to == l->at[plan->moves[i].rank])
            rank_messages(l, plan->moves[i].rank, -1);
    for (int32_t i = plan->count - 1; i >= 0; i--)
        l->at[plan->moves[i].rank] = plan->moves[i].from;
    if (plan->rank >= 0)
        l->absent[plan->rank] = true;
    for (int32_t i = 0; i < plan->count; i++) {
        const struct place_move *m = &plan->moves[i];
        if (!l->absent[m->rank] && m->from == l->at[m->rank])
            rank_messages(l, m->rank, 1);
    }
    settle(l);
}

enum place_result load_substitute(struct load *l, struct place *p, const struct place_method *method, int32_t node,
                                  struct place_plan *plan)
{
    int32_t rank;
    plan->count = 0;
    enum place_result was = place_fail(p, node, &rank);
    plan->rank = rank;
    if (was != PLACE_MOVED)
        return was;
    load_drop(l, rank);
    if (!place_plan(p, method, node, rank, plan))
        return PLACE_CANNOT;
    place_apply(p, plan);
    load_move(l, plan);
    return PLACE_MOVED;
}

int32_t load_collisions(const struct load *l)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < l->pattern->phases; i++)
        sum += l->phase[i].max;
    return sum;
}

double load_mean(const struct load *l)
{
    int64_t used = 0;
    for (int32_t i = 0; i < l->pattern->phases; i++)
        used += l->links - l->phase[i].hist[0];
    return used ? (double)l->hops / (double)used : 0;
}
