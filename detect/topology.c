/* Who reads whose heartbeat. Each topology gives every node its out-edges; when nodes are gone, the nearest live
 * predecessor (by id) of a gone reader takes over its edges. So a ring closes over the dead, and in every topology each
 * live node keeps a reader as long as another node lives: once somebody is gone, each node also reads its next live
 * successor, because a gone reader's edge may lead back to the node that takes it over. */
#include "detect/member_internal.h"

struct edges {
    const struct idset *gone;
    int self, n, max;
    int *out;
};

static void add(struct edges *e, int target, int *count)
{
    if (target == e->self || idset_has(e->gone, target) || *count == e->max)
        return;
    for (int i = 0; i < *count; i++)
        if (e->out[i] == target)
            return;
    e->out[(*count)++] = target;
}

static int torus_width(int n)
{
    int w = 1;
    while ((w + 1) * (w + 1) <= n)
        w++;
    while (n % w)
        w--;
    return w;
}

/* The j-th stride of the random circulant: the same on every node. */
static int random_stride(const struct member_params *p, int j)
{
    struct rng r;
    rng_seed(&r, p->seed + (uint64_t)j * 0x9e3779b97f4a7c15ull);
    return 1 + (int)rng_below(&r, (uint64_t)(p->n - 1));
}

static void add_file_edges(const struct member_params *p, int reader, struct edges *e, int *count)
{
    int next = (reader + 1) % p->n;
    bool next_is_read = false;
    for (int i = 0; i < p->edge_count; i++) {
        if (p->edges[2 * i] == reader)
            add(e, p->edges[2 * i + 1], count);
        if (p->edges[2 * i + 1] == next)
            next_is_read = true;
    }
    if (!next_is_read) /* nobody in the file reads it: the ring does */
        add(e, next, count);
}

static void add_edges_of(const struct member_params *p, int reader, struct edges *e, int *count)
{
    int n = p->n;
    switch (p->topology) {
    case MEMBER_RING:
        for (int j = 1; j <= p->degree && j < n; j++)
            add(e, (reader + j) % n, count);
        break;
    case MEMBER_TORUS: {
        int w = torus_width(n);
        add(e, reader / w * w + (reader + 1) % w, count);
        add(e, (reader + w) % n, count);
        break;
    }
    case MEMBER_HYPERCUBE: {
        for (int bit = 1; bit < n; bit <<= 1)
            if ((reader ^ bit) < n)
                add(e, reader ^ bit, count);
        break;
    }
    case MEMBER_RANDOM:
        for (int j = 0; j < p->degree; j++)
            add(e, (reader + random_stride(p, j)) % n, count);
        break;
    case MEMBER_FILE:
        add_file_edges(p, reader, e, count);
        break;
    }
}

static void add_next_live(struct edges *e, int *count)
{
    int r = idset_next_out(e->gone, e->self + 1);
    add(e, r < e->n ? r : idset_next_out(e->gone, 0), count); /* self at the latest, which add ignores */
}

int topology_targets(const struct member_params *p, const struct idset *gone, int *out, int max)
{
    if (p->n < 2)
        return 0;
    struct edges e = {.gone = gone, .self = p->self, .n = p->n, .max = max, .out = out};
    int count = 0;
    if (idset_below(gone, p->n)) /* first: so that everybody is read, however much there is to take over */
        add_next_live(&e, &count);
    add_edges_of(p, p->self, &e, &count);
    for (int r = (p->self + 1) % p->n; r != p->self && idset_has(gone, r) && count < max; r = (r + 1) % p->n)
        add_edges_of(p, r, &e, &count);
    return count;
}
