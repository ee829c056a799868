#include "runtime/topo/grid.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool grid_init(struct grid *g, int ndims, const int *size, const bool *torus)
{
    if (ndims < 1 || ndims > GRID_MAX_DIMS)
        return false;
    memset(g, 0, sizeof *g);
    g->ndims = ndims;
    int64_t nodes = 1;
    for (int d = 0; d < ndims; d++) {
        if (size[d] < 1 || nodes > GRID_MAX_NODES / size[d])
            return false;
        g->size[d] = size[d];
        g->torus[d] = torus && torus[d];
        g->stride[d] = (int32_t)nodes;
        nodes *= size[d];
    }
    g->nodes = (int32_t)nodes;
    return true;
}

const char *grid_parse(struct grid *g, const char *text)
{
    int size[GRID_MAX_DIMS], n = 0;
    bool torus[GRID_MAX_DIMS];
    for (const char *p = text;;) {
        if (n == GRID_MAX_DIMS)
            return "a grid has at most 6 dimensions";
        if (!isdigit((unsigned char)*p))
            return "a grid is written like 12x12x12, or 8tx8tx16 with t for a torus dimension";
        char *end;
        unsigned long v = strtoul(p, &end, 10);
        if (v < 1)
            return "every dimension of a grid needs at least one node";
        if (v > GRID_MAX_NODES)
            return "the grid is too large (67108864 nodes at most)";
        size[n] = (int)v;
        p = end;
        torus[n] = *p == 't';
        p += torus[n++];
        if (*p == '\0')
            break;
        if (*p != 'x')
            return "a grid is written like 12x12x12, or 8tx8tx16 with t for a torus dimension";
        p++;
    }
    return grid_init(g, n, size, torus) ? NULL : "the grid is too large (67108864 nodes at most)";
}

char *grid_format(const struct grid *g, char *buf, size_t len)
{
    size_t at = 0;
    for (int d = 0; d < g->ndims && at < len; d++)
        at += (size_t)snprintf(buf + at, len - at, "%s%d%s", d ? "x" : "", g->size[d], g->torus[d] ? "t" : "");
    return buf;
}

void grid_coords(const struct grid *g, int32_t node, int coords[])
{
    for (int d = 0; d < g->ndims; d++) {
        coords[d] = (int)(node % g->size[d]);
        node /= g->size[d];
    }
}

int32_t grid_node(const struct grid *g, const int coords[])
{
    int32_t node = 0;
    for (int d = 0; d < g->ndims; d++)
        node += coords[d] * g->stride[d];
    return node;
}

int32_t grid_neighbor(const struct grid *g, int32_t node, int dim, int dir)
{
    int c = grid_coord(g, node, dim), n = g->size[dim];
    int to = dir == GRID_UP ? c + 1 : c - 1;
    if (to < 0 || to >= n) {
        if (!g->torus[dim] || n < 2)
            return -1;
        to = to < 0 ? n - 1 : 0;
    }
    return node + (to - c) * g->stride[dim];
}

int grid_distance(const struct grid *g, int32_t a, int32_t b)
{
    int sum = 0;
    for (int d = 0; d < g->ndims; d++)
        sum += abs(grid_offset(g, d, grid_coord(g, a, d), grid_coord(g, b, d)));
    return sum;
}

static int walk_dim(const struct grid_walk *w)
{
    return w->order ? w->order[w->step] : w->step;
}

/* Set up the dimension at w->step, skipping those that need no hop. */
static void walk_enter(struct grid_walk *w)
{
    for (; w->step < w->g->ndims; w->step++) {
        int d = walk_dim(w);
        w->pos = grid_coord(w->g, w->node, d);
        w->left = grid_offset(w->g, d, w->pos, grid_coord(w->g, w->to, d));
        if (w->left)
            return;
    }
}

void grid_walk_begin(struct grid_walk *w, const struct grid *g, const uint8_t *order, int32_t from, int32_t to)
{
    *w = (struct grid_walk){.g = g, .order = order, .node = from, .to = to};
    walk_enter(w);
}

int32_t grid_walk_next(struct grid_walk *w)
{
    const struct grid *g = w->g;
    if (w->step >= g->ndims)
        return -1;
    int d = walk_dim(w), dir = w->left > 0 ? GRID_UP : GRID_DOWN;
    int32_t link = grid_link(g, w->node, d, dir);
    int to = dir == GRID_UP ? w->pos + 1 : w->pos - 1;
    if (to == g->size[d])
        to = 0;
    else if (to < 0)
        to = g->size[d] - 1;
    w->node += (to - w->pos) * g->stride[d];
    w->pos = to;
    w->left -= dir == GRID_UP ? 1 : -1;
    if (!w->left) {
        w->step++;
        walk_enter(w);
    }
    return link;
}

int grid_route(const struct grid *g, const uint8_t *order, int32_t from, int32_t to, int32_t *links, int cap)
{
    struct grid_walk w;
    grid_walk_begin(&w, g, order, from, to);
    int n = 0;
    for (int32_t l; (l = grid_walk_next(&w)) >= 0; n++)
        if (n < cap)
            links[n] = l;
    return n;
}

int grid_diameter(const struct grid *g)
{
    int sum = 0;
    for (int d = 0; d < g->ndims; d++)
        sum += g->torus[d] ? g->size[d] / 2 : g->size[d] - 1;
    return sum;
}
