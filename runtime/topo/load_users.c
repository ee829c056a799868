/* Whose messages cross a link? A dimension-ordered route that crosses a link along dimension d has come from a node
 * with the link's coordinates in the dimensions after d, and goes to one with those in the dimensions before d; either
 * set is a subspace of the grid, and the smaller one is looked through. */
#include "runtime/topo/load.h"

int32_t load_hottest(const struct load *l, int32_t *phase)
{
    *phase = 0;
    for (int32_t i = 1; i < l->pattern->phases; i++)
        if (l->phase[i].max > l->phase[*phase].max)
            *phase = i;
    const struct load_phase *ph = &l->phase[*phase];
    for (int32_t i = 0; ph->max > 0 && i < l->links; i++)
        if (ph->count[i] == ph->max)
            return i;
    return -1;
}

/* Does the route from a to b use the link that leaves u along d in direction dir? */
static bool crosses(const struct place *p, int32_t a, int32_t b, int32_t u, int d, int dir)
{
    const int16_t *ca = p->coord[a], *cb = p->coord[b], *cu = p->coord[u];
    for (int k = 0; k < d; k++)
        if (cb[k] != cu[k])
            return false;
    for (int k = d + 1; k < p->grid.ndims; k++)
        if (ca[k] != cu[k])
            return false;
    int off = grid_offset(&p->grid, d, ca[d], cb[d]), n = p->grid.size[d];
    if (!off || (off > 0) != (dir == GRID_UP))
        return false;
    int step = dir == GRID_UP ? cu[d] - ca[d] : ca[d] - cu[d];
    return (step < 0 ? step + n : step) < abs(off) && (step >= 0 || p->grid.torus[d]);
}

int load_crossings(const struct load *l, int32_t phase, int32_t link, int32_t slot, int32_t node)
{
    const struct pattern *t = l->pattern;
    const struct place *p = l->place;
    int32_t u = grid_link_from(&p->grid, link);
    int d = grid_link_dim(&p->grid, link), dir = grid_link_dir(link), n = 0;
    bool all = l->convention == LOAD_ALL;
    for (int32_t i = t->out_at[slot]; (all || node == p->home[slot]) && i < t->out_at[slot + 1]; i++) {
        int32_t peer = t->out[i].slot;
        n += t->out[i].phase == phase && !l->absent[peer] && crosses(p, node, l->at[peer], u, d, dir);
    }
    for (int32_t i = t->in_at[slot]; i < t->in_at[slot + 1]; i++) {
        int32_t peer = t->in[i].slot;
        n += t->in[i].phase == phase && !l->absent[peer] && (all || l->at[peer] == p->home[peer]) &&
             crosses(p, l->at[peer], node, u, d, dir);
    }
    return n;
}

struct users {
    const struct load *l;
    int32_t phase, link;
    struct load_user *list;
    int n, cap;
};

static void add(struct users *u, int32_t slot)
{
    for (int i = 0; i < u->n && i < u->cap; i++)
        if (u->list[i].slot == slot) {
            u->list[i].messages++;
            return;
        }
    if (u->n < u->cap)
        u->list[u->n] = (struct load_user){.slot = slot, .messages = 1};
    u->n++;
}

static void look(struct users *u, int32_t from, int32_t to)
{
    const struct load *l = u->l;
    bool uses = false;
    if (l->absent[from] || l->absent[to] || (l->convention != LOAD_ALL && l->at[from] != l->place->home[from]))
        return;
    if (l->net.tree.nodes) {
        int32_t links[4];
        int n = fattree_route(&l->net.tree, l->at[from], l->at[to], links);
        for (int i = 0; i < n; i++)
            uses = uses || links[i] == u->link;
    } else {
        const struct grid *g = &l->place->grid;
        uses = crosses(l->place, l->at[from], l->at[to], grid_link_from(g, u->link), grid_link_dim(g, u->link),
                       grid_link_dir(u->link));
    }
    if (uses) {
        add(u, from);
        add(u, to);
    }
}

static void look_sent(struct users *u, int32_t slot)
{
    const struct pattern *t = u->l->pattern;
    for (int32_t i = t->out_at[slot]; i < t->out_at[slot + 1]; i++)
        if (t->out[i].phase == u->phase)
            look(u, slot, t->out[i].slot);
}

static void look_received(struct users *u, int32_t slot)
{
    const struct pattern *t = u->l->pattern;
    for (int32_t i = t->in_at[slot]; i < t->in_at[slot + 1]; i++)
        if (t->in[i].phase == u->phase)
            look(u, t->in[i].slot, slot);
}

int load_users(const struct load *l, const int32_t *slot_at, int32_t phase, int32_t link, struct load_user *users,
               int cap)
{
    struct users u = {.l = l, .phase = phase, .link = link, .list = users, .cap = cap};
    const struct grid *g = &l->place->grid;
    if (l->net.tree.nodes) {
        for (int32_t r = 0; r < l->pattern->slots; r++)
            look_sent(&u, r);
        return u.n;
    }
    int d = grid_link_dim(g, link);
    int32_t node = grid_link_from(g, link);
    int32_t senders = g->stride[d] * g->size[d], receivers = g->nodes / g->stride[d]; /* in the two subspaces */
    if (senders <= receivers) {
        int32_t first = node - node % senders;
        for (int32_t i = 0; i < senders; i++)
            if (slot_at[first + i] >= 0)
                look_sent(&u, slot_at[first + i]);
    } else {
        for (int32_t at = node % g->stride[d]; at < g->nodes; at += g->stride[d])
            if (slot_at[at] >= 0)
                look_received(&u, slot_at[at]);
    }
    return u.n;
}
