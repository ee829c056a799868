#include "runtime/topo/load_route.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int32_t network_links(const struct load_network *net, const struct grid *g)
{
    return net->tree.nodes ? fattree_links(&net->tree) : grid_links(g);
}

static void phase_sizes(struct load *l, const atomic_bool *stop)
{
    for (int32_t r = 0; r < l->pattern->slots && !grid_stopped(stop, r); r++)
        for (int32_t i = l->pattern->out_at[r]; i < l->pattern->out_at[r + 1]; i++)
            l->phase[l->pattern->out[i].phase].cap++;
}

/* Do two slots send alike: to the same places, seen from their nodes of launch, in the same phases and order? */
static bool sends_alike(const struct load *l, int32_t a, int32_t b)
{
    const struct pattern *t = l->pattern;
    const struct pattern_peer *pa = t->out + t->out_at[a], *pb = t->out + t->out_at[b];
    const int32_t *home = l->place->home;
    int32_t n = t->out_at[a + 1] - t->out_at[a];
    if (t->out_at[b + 1] - t->out_at[b] != n)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (home[pa[i].slot] - home[a] != home[pb[i].slot] - home[b] || pa[i].phase != pb[i].phase)
            return false;
    return true;
}

/* Only for patterns in which every message has one the other way, as in stencils. */
static void find_shapes(struct load *l, const atomic_bool *stop)
{
    const struct pattern *t = l->pattern;
    int32_t first[LOAD_SHAPES + 1];
    int known = 0, last = 0;
    for (int32_t r = 0; r < t->slots && t->in == t->out && !grid_stopped(stop, r); r++) {
        int32_t peers = t->out_at[r + 1] - t->out_at[r];
        int shape = last; /* most are as the one before */
        if (peers > LOAD_ALONG)
            continue;
        if (!last || !sends_alike(l, first[last], r))
            for (shape = 1; shape <= known && !sends_alike(l, first[shape], r);)
                shape++;
        if (shape > LOAD_SHAPES)
            continue;
        if (shape > known)
            first[++known] = r;
        l->shape[r] = (uint8_t)shape;
        last = shape;
    }
}

bool load_init(struct load *l, const struct pattern *pattern, const struct place *p, const struct load_network *net,
               enum load_convention convention)
{
    return load_init_until(l, pattern, p, net, convention, NULL);
}

bool load_init_until(struct load *l, const struct pattern *pattern, const struct place *p,
                     const struct load_network *net, enum load_convention convention, const atomic_bool *stop)
{
    *l = (struct load){.pattern = pattern, .place = p, .convention = convention};
    if (net)
        l->net = *net;
    if (l->net.tree.nodes && l->net.tree.nodes != p->grid.nodes)
        return false;
    l->links = network_links(&l->net, &p->grid);
    l->longest = l->net.tree.nodes ? 4 : grid_diameter(&p->grid);
    l->phase = calloc((size_t)pattern->phases, sizeof *l->phase);
    l->mover = malloc((size_t)pattern->slots * sizeof *l->mover);
    l->movers = malloc((size_t)pattern->slots * sizeof *l->movers);
    l->left = malloc((size_t)p->grid.nodes * sizeof *l->left);
    l->along = malloc((size_t)pattern->slots * sizeof *l->along);
    l->shape = calloc((size_t)pattern->slots, sizeof *l->shape);
    l->absent = calloc((size_t)pattern->slots, sizeof *l->absent);
    l->at = malloc((size_t)pattern->slots * sizeof *l->at);
    bool ok = l->phase && l->mover && l->movers && l->left && l->along && l->shape && l->absent && l->at;
    if (ok) {
        phase_sizes(l, stop);
        find_shapes(l, stop);
        memset(l->left, -1, (size_t)p->grid.nodes * sizeof *l->left);
        memset(l->along, 0, (size_t)pattern->slots * sizeof *l->along); /* these are written now, so that no failure */
        memset(l->movers, 0, (size_t)pattern->slots * sizeof *l->movers); /* has to wait for their pages */
        memset(l->mover, 0, (size_t)pattern->slots * sizeof *l->mover);
    }
    for (int32_t i = 0; ok && i < pattern->phases; i++) {
        struct load_phase *ph = &l->phase[i];
        ph->log = malloc(LOAD_LOG * sizeof *ph->log);
        ph->count = calloc((size_t)l->links, sizeof *ph->count);
        ph->hist = calloc(2 * (size_t)ph->cap + 2, sizeof *ph->hist); /* load_move adds before it removes */
        ok = ph->log && ph->count && ph->hist;
    }
    if (!ok || !load_count(l, p, stop)) {
        load_fini(l);
        return false;
    }
    return true;
}

void load_fini(struct load *l)
{
    for (int32_t i = 0; l->phase && i < l->pattern->phases; i++) {
        free(l->phase[i].count);
        free(l->phase[i].hist);
        free(l->phase[i].log);
    }
    free(l->phase);
    free(l->mover);
    free(l->movers);
    free(l->left);
    free(l->along);
    free(l->shape);
    free(l->absent);
    free(l->at);
    *l = (struct load){0};
}

static always_inline bool counts(const struct load *l, int32_t sender)
{
    return l->convention == LOAD_ALL || l->at[sender] == l->place->home[sender];
}

/* All messages from and to a slot. */
static always_inline void slot_messages(struct load *l, int32_t slot, int delta)
{
    const struct pattern *t = l->pattern;
    int32_t at = l->at[slot];
    if (counts(l, slot))
        for (int32_t i = t->out_at[slot]; i < t->out_at[slot + 1]; i++) {
            int32_t peer = t->out[i].slot;
            if (!l->absent[peer])
                load_message(l, t->out[i].phase, at, l->at[peer], delta);
        }
    for (int32_t i = t->in_at[slot]; i < t->in_at[slot + 1]; i++) {
        int32_t peer = t->in[i].slot;
        if (!l->absent[peer] && counts(l, peer))
            load_message(l, t->in[i].phase, l->at[peer], at, delta);
    }
}

bool load_count(struct load *l, const struct place *p, const atomic_bool *stop)
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
    for (int32_t r = 0; r < t->slots; r++) {
        l->at[r] = p->node_of[r];
        l->absent[r] = p->slot_at[p->node_of[r]] != r;
    }
    for (int32_t r = 0; r < t->slots && !grid_stopped(stop, r); r++)
        if (!l->absent[r] && counts(l, r))
            for (int32_t i = t->out_at[r]; i < t->out_at[r + 1]; i++)
                if (!l->absent[t->out[i].slot])
                    load_message(l, t->out[i].phase, l->at[r], l->at[t->out[i].slot], 1);
    return !grid_stopped(stop, 0);
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
    memcpy(dst->at, src->at, (size_t)src->pattern->slots * sizeof *src->at);
    memcpy(dst->absent, src->absent, (size_t)src->pattern->slots * sizeof *src->absent);
    dst->hops = src->hops;
}

void load_drop(struct load *l, int32_t slot)
{
    if (l->absent[slot])
        return;
    slot_messages(l, slot, -1);
    l->absent[slot] = true;
    load_settle(l);
}

void load_put(struct load *l, int32_t slot, int32_t node)
{
    l->at[slot] = node;
    l->absent[slot] = false;
    slot_messages(l, slot, 1);
}

void load_log_begin(struct load *l)
{
    for (int32_t i = 0; i < l->pattern->phases; i++) {
        struct load_phase *ph = &l->phase[i];
        ph->logging = true;
        ph->nlog = 0;
        ph->max_before = ph->max;
    }
    l->hops_before = l->hops;
}

void load_log_end(struct load *l)
{
    for (int32_t i = 0; i < l->pattern->phases; i++)
        l->phase[i].logging = false;
}

bool load_log_back(struct load *l)
{
    for (int32_t i = 0; i < l->pattern->phases; i++)
        if (l->phase[i].nlog > LOAD_LOG)
            return false;
    for (int32_t i = 0; i < l->pattern->phases; i++) {
        struct load_phase *ph = &l->phase[i];
        while (ph->nlog > 0) {
            int32_t link = ph->log[--ph->nlog], more = link < 0;
            link = more ? ~link : link;
            load_link_change(ph, link, more ? 1 : -1);
        }
        ph->max = ph->max_before;
    }
    l->hops = l->hops_before;
    return true;
}

/* All messages of the slot, until a link carries more than limit. */
static bool put_messages(struct load *l, int32_t slot, int32_t limit)
{
    const struct pattern *t = l->pattern;
    int32_t node = l->at[slot];
    bool fits = true;
    for (int32_t i = t->out_at[slot]; counts(l, slot) && fits && i < t->out_at[slot + 1]; i++)
        if (!l->absent[t->out[i].slot]) {
            load_message(l, t->out[i].phase, node, l->at[t->out[i].slot], 1);
            fits = l->phase[t->out[i].phase].max <= limit;
        }
    for (int32_t i = t->in_at[slot]; fits && i < t->in_at[slot + 1]; i++)
        if (!l->absent[t->in[i].slot] && counts(l, t->in[i].slot)) {
            load_message(l, t->in[i].phase, l->at[t->in[i].slot], node, 1);
            fits = l->phase[t->in[i].phase].max <= limit;
        }
    return fits;
}

bool load_put_within(struct load *l, int32_t slot, int32_t node, int32_t limit)
{
    const struct pattern *t = l->pattern;
    int64_t messages = t->out_at[slot + 1] - t->out_at[slot] + t->in_at[slot + 1] - t->in_at[slot];
    bool logged = messages * l->longest <= LOAD_LOG;
    l->at[slot] = node;
    load_log_begin(l);
    bool fits = put_messages(l, slot, logged ? limit : INT32_MAX);
    load_log_end(l);
    for (int32_t i = 0; !logged && i < l->pattern->phases; i++)
        fits = fits && l->phase[i].max <= limit;
    l->absent[slot] = false;
    if (!fits)
        load_put_back(l, slot);
    return fits;
}

void load_put_back(struct load *l, int32_t slot)
{
    if (load_log_back(l))
        l->absent[slot] = true;
    else
        load_drop(l, slot);
}

enum place_result load_substitute(struct load *l, struct place *p, const struct place_method *method, int32_t node,
                                  struct place_plan *plan)
{
    int32_t slot;
    plan->count = 0;
    enum place_result was = place_fail(p, node, &slot);
    plan->slot = slot;
    if (was != PLACE_MOVED)
        return was;
    load_drop(l, slot);
    if (!place_plan(p, method, node, slot, plan))
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
