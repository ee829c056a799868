#include "runtime/topo/remap_int.h"

int32_t remap_middle(const struct load *l, int32_t slot)
{
    enum { MOST = 64 };
    const struct pattern *t = l->pattern;
    const struct place *p = l->place;
    int32_t n = t->out_at[slot + 1] - t->out_at[slot], node = 0;
    n = n < MOST ? n : MOST;
    for (int d = 0; d < p->grid.ndims; d++) {
        int16_t c[MOST];
        int32_t k = 0;
        for (int32_t i = 0; i < n; i++) {
            int32_t peer = t->out[t->out_at[slot] + i].slot;
            if (l->absent[peer])
                continue;
            int16_t v = p->coord[l->at[peer]][d];
            int32_t j = k++;
            for (; j > 0 && c[j - 1] > v; j--)
                c[j] = c[j - 1];
            c[j] = v;
        }
        node += (k ? c[k / 2] : p->coord[l->at[slot]][d]) * p->grid.stride[d];
    }
    return node;
}

static inline bool is_behind(const struct remap_candidate *c, int32_t node, int32_t gain)
{
    return c->gain < gain || (c->gain == gain && c->node > node);
}

/* Keep the highest gains, in descending order, of equal ones the lowest numbers. */
static int keep_best(struct remap_candidate *list, int n, int32_t node, int32_t gain)
{
    if (n == REMAP_NEAR && !is_behind(&list[n - 1], node, gain))
        return n;
    int j = n < REMAP_NEAR ? n++ : n - 1;
    for (; j > 0 && is_behind(&list[j - 1], node, gain); j--)
        list[j] = list[j - 1];
    list[j] = (struct remap_candidate){.node = node, .gain = gain};
    return n;
}

int remap_near_free(const struct remap *r, const struct place *p, int32_t middle, struct remap_candidate *list)
{
    int n = 0;
    for (int32_t i = 0; i < p->nfree; i++)
        if (r->slot_at[p->free_list[i]] == PLACE_FREE)
            n = keep_best(list, n, p->free_list[i], -place_distance(p, p->free_list[i], middle));
    for (int32_t i = 0; i < r->nchanged; i++) { /* nodes that were left in this plan */
        int32_t node = p->node_of[r->changed[i]];
        if (r->slot_at[node] == PLACE_FREE)
            n = keep_best(list, n, node, -place_distance(p, node, middle));
    }
    return n;
}

int remap_near_displaced(const struct remap *r, const struct place *p, int32_t slot, struct remap_candidate *list)
{
    const struct load *l = r->load;
    int32_t middle = remap_middle(l, slot), from = l->at[slot], here = place_distance(p, from, middle);
    int n = 0;
    for (int32_t i = 0; i < r->ndisplaced; i++) {
        int32_t other = r->displaced[i], at = l->at[other];
        if (other == slot)
            continue;
        n = keep_best(list, n, other,
                      here - place_distance(p, at, middle) + r->there[i] - place_distance(p, from, r->middle[i]));
    }
    return n;
}

void remap_find_middle(struct remap *r, const struct place *p, int32_t index)
{
    r->middle[index] = remap_middle(r->load, r->displaced[index]);
    r->there[index] = place_distance(p, r->load->at[r->displaced[index]], r->middle[index]);
}

void remap_add_displaced(struct remap *r, int32_t slot)
{
    if (r->index[slot] >= 0)
        return;
    r->index[slot] = r->ndisplaced;
    r->displaced[r->ndisplaced++] = slot;
}

void remap_find_middles_around(struct remap *r, const struct place *p, int32_t slot)
{
    const struct pattern *t = r->load->pattern;
    if (r->index[slot] >= 0)
        remap_find_middle(r, p, r->index[slot]);
    for (int32_t i = t->in_at[slot]; i < t->in_at[slot + 1]; i++)
        if (r->index[t->in[i].slot] >= 0)
            remap_find_middle(r, p, r->index[t->in[i].slot]);
}
