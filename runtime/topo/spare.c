#include "runtime/topo/spare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *spare_parse(struct spare_layout *l, const char *text)
{
    int used = 0;
    long q, r, s;
    if (strlen(text) > 24 || sscanf(text, "%ldD(%ld,%ld)%n", &q, &r, &s, &used) != 3 || text[used] != '\0')
        return "a spare allocation is written like 3D(2,1)";
    if (q < 1 || q > GRID_MAX_DIMS)
        return "q in qD(r,s) must be 1 to 6";
    if (r < 0 || r > q)
        return "r in qD(r,s) must be 0 to q";
    if (s < 1 || s > GRID_MAX_NODES)
        return "s in qD(r,s) must be at least 1 and less than the sides of the grid";
    *l = (struct spare_layout){.q = (int)q, .r = (int)r, .s = (int)s};
    return NULL;
}

char *spare_format(const struct spare_layout *l, char *buf, size_t len)
{
    snprintf(buf, len, "%dD(%d,%d)", l->q, l->r, l->s);
    return buf;
}

const char *spare_check(const struct spare_layout *l, const struct grid *g)
{
    if (l->q != g->ndims)
        return "q in qD(r,s) must be the number of dimensions of the grid";
    if (l->r < 0 || l->r > l->q)
        return "r in qD(r,s) must be 0 to q";
    for (int d = 0; d < l->r; d++)
        if (l->s < 1 || l->s >= g->size[d])
            return "s in qD(r,s) must be at least 1 and less than the sides of the grid";
    return NULL;
}

int spare_side(const struct spare_layout *l, const struct grid *g, int32_t node)
{
    for (int d = 0; d < l->r; d++)
        if (grid_coord(g, node, d) >= g->size[d] - l->s)
            return d;
    return -1;
}

bool spare_is(const struct spare_layout *l, const struct grid *g, int32_t node)
{
    return spare_side(l, g, node) >= 0;
}

int32_t spare_count(const struct spare_layout *l, const struct grid *g)
{
    return g->nodes - spare_rank_grid(l, g).nodes;
}

double spare_share(const struct spare_layout *l, double nodes)
{
    double side = pow(nodes, 1.0 / l->q);
    return 1 - pow(side - l->s, l->r) * pow(side, l->q - l->r) / nodes;
}

struct grid spare_rank_grid(const struct spare_layout *l, const struct grid *g)
{
    int size[GRID_MAX_DIMS];
    for (int d = 0; d < g->ndims; d++)
        size[d] = g->size[d] - (d < l->r ? l->s : 0);
    struct grid ranks;
    grid_init(&ranks, g->ndims, size, g->torus);
    return ranks;
}

double spare_choose(const struct grid *g, double low, double high, struct spare_layout *l)
{
    double best = INFINITY, share = 0, middle = sqrt(low * high);
    *l = (struct spare_layout){.q = g->ndims, .r = 0, .s = 1};
    int smallest = g->size[0];
    for (int s = 1; s <= smallest; s++) {
        for (int r = 1; r <= g->ndims; r++) {
            struct spare_layout cand = {.q = g->ndims, .r = r, .s = s};
            if (spare_check(&cand, g))
                continue;
            double x = (double)spare_count(&cand, g) / g->nodes;
            double off = fabs(log(x / middle));
            if (off < best) {
                best = off;
                share = x;
                *l = cand;
            }
        }
        if (share >= low && share <= high)
            break;
    }
    return share;
}
