#include "runtime/topo/fabric_int.h"

#include "runtime/base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Trees (Petrini and Vanneschi's numbering). A switch is (level, w) with n-1 digits w of base k; level 0 holds the
 * roots, level n-1 the switches with endpoints. (l, w) and (l+1, v) are joined when w and v agree in every digit but
 * digit l. Ports 0..k-1 of level l lead down and are named by the new digit l; ports k..2k-1 lead up and are named by
 * the new digit l-1. */

static uint16_t *tree_digits(const struct fabric *f, int32_t sw)
{
    return f->digits + (size_t)sw * (size_t)(f->levels - 1);
}

static int32_t tree_pow(const struct fabric *f, int exp)
{
    int32_t p = 1;
    while (exp-- > 0)
        p *= f->arity;
    return p;
}

/* Switch number with one digit replaced, on another level. Digit 0 is the most significant. */
static int32_t tree_switch(const struct fabric *f, int32_t sw, int level, int digit, int value)
{
    int32_t w = sw % f->row;
    return level * f->row + w + (value - tree_digits(f, sw)[digit]) * tree_pow(f, f->levels - 2 - digit);
}

/* Digit i of an endpoint's number, 0 most significant, n digits. */
static int tree_endpoint_digit(const struct fabric *f, int32_t endpoint, int i)
{
    return (int)(endpoint / tree_pow(f, f->levels - 1 - i)) % f->arity;
}

/* Down until every digit below both switches agrees, then up until the rest can be set on the way down, then down.
 * The digits that are free on the way up follow the destination endpoint, so that the endpoints of one switch are
 * reached through different roots. On its own, so that a hop of a grid saves no registers for it. */
__attribute__((noinline)) static int tree_next(const struct fabric *f, int32_t at, int32_t to, int32_t endpoint)
{
    const uint16_t *w = tree_digits(f, at), *v = tree_digits(f, to);
    int l = (int)(at / f->row), m = (int)(to / f->row);
    int min_diff = f->levels, max_diff = -1;
    for (int i = 0; i < f->levels - 1; i++) {
        if (w[i] == v[i])
            continue;
        if (min_diff == f->levels)
            min_diff = i;
        max_diff = i;
    }
    if (max_diff >= l && max_diff >= m)
        return v[l];
    if (l > m || min_diff < l)
        return f->arity + (l - 1 >= m ? v[l - 1] : tree_endpoint_digit(f, endpoint, l));
    return v[l];
}

static int grid_next(const struct fabric *f, int32_t at, int32_t to)
{
    size_t n = (size_t)f->grid.ndims;
    const uint16_t *a = f->digits + (size_t)at * n, *b = f->digits + (size_t)to * n;
    for (size_t d = 0; d < n; d++)
        if (a[d] != b[d])
            return f->toward[d][b[d] - a[d]];
    return -1;
}

int fabric_next(const struct fabric *f, int32_t at, int32_t to, int32_t endpoint)
{
    if (at == to)
        return -1;
    if (f->kind == FABRIC_GRID)
        return grid_next(f, at, to);
    return f->kind == FABRIC_GRAPH ? f->hop[(size_t)at * (size_t)f->routers + (size_t)to]
                                   : tree_next(f, at, to, endpoint);
}

int fabric_hops(const struct fabric *f, int32_t from, int32_t to, int32_t endpoint)
{
    int hops = 0;
    for (int port; (port = fabric_next(f, from, to, endpoint)) >= 0;) {
        int32_t link = from * f->ports + port;
        hops += !fabric_firm(f, link);
        from = f->neighbor[link];
    }
    return hops;
}

static int grid_hops_avoiding(const struct fabric *f, int32_t at, int32_t to, const uint8_t *avoid, int limit)
{
    const struct grid *g = &f->grid;
    const uint16_t *a = f->digits + (size_t)at * (size_t)g->ndims, *b = f->digits + (size_t)to * (size_t)g->ndims;
    int hops = 0;
    for (int d = 0; d < g->ndims; d++) {
        if (a[d] == b[d])
            continue;
        int off = grid_offset(g, d, a[d], b[d]), port = 2 * d + (off > 0 ? GRID_UP : GRID_DOWN);
        int n = abs(off);
        hops += n;
        if (hops > limit)
            return -1;
        for (; n > 0; n--) {
            int32_t link = at * f->ports + port;
            if (avoid[link])
                return -1;
            at = f->neighbor[link];
        }
    }
    return hops;
}

int fabric_hops_avoiding(const struct fabric *f, int32_t from, int32_t to, int32_t endpoint, const uint8_t *avoid,
                         int limit)
{
    if (f->kind == FABRIC_GRID)
        return grid_hops_avoiding(f, from, to, avoid, limit);
    int hops = 0;
    for (int port; (port = fabric_next(f, from, to, endpoint)) >= 0;) {
        int32_t link = from * f->ports + port;
        hops += !fabric_firm(f, link);
        if (avoid[link] || hops > limit)
            return -1;
        from = f->neighbor[link];
    }
    return hops;
}

/* The lowest level at which two switches of the last level have common ancestors: that of the first digit they
 * differ in. */
static int tree_meet(const struct fabric *f, int32_t from, int32_t to)
{
    int first = 0;
    while (first < f->levels - 1 && tree_digits(f, from)[first] == tree_digits(f, to)[first])
        first++;
    return first;
}

int32_t fabric_ancestor(const struct fabric *f, int32_t from, int32_t to, int32_t i)
{
    int level = f->levels - 1, first = tree_meet(f, from, to);
    int32_t sw = first * f->row + from % f->row;
    for (int digit = first; digit < level; digit++, i /= f->arity)
        sw = tree_switch(f, sw, first, digit, i % f->arity);
    return i == 0 ? sw : -1; /* all below are counted */
}

static int32_t tree_between(const struct fabric *f, int32_t from, int32_t to, struct rng *rng)
{
    int level = f->levels - 1;
    if (from / f->row != level || to / f->row != level || from == to)
        return from;
    int first = tree_meet(f, from, to);
    int32_t sw = first * f->row + from % f->row;
    for (int i = first; i < level; i++)
        sw = tree_switch(f, sw, first, i, (int)rng_below(rng, (uint64_t)f->arity));
    return sw;
}

int32_t fabric_between(const struct fabric *f, int32_t from, int32_t to, int inner, struct rng *rng)
{
    if (f->kind == FABRIC_TREE)
        return tree_between(f, from, to, rng);
    if (f->kind == FABRIC_GRAPH)
        return from;
    const struct grid *g = &f->grid;
    const uint16_t *a = f->digits + (size_t)from * (size_t)g->ndims, *b = f->digits + (size_t)to * (size_t)g->ndims;
    int32_t via = 0;
    int first = inner < g->ndims ? (int)rng_below(rng, (uint64_t)g->ndims) : 0;
    uint64_t corners = UINT64_C(1) << g->ndims; /* the first and the last one are the two routers */
    uint64_t corner = inner == 0 && corners > 2 ? 1 + rng_below(rng, corners - 2) : rng_below(rng, corners);
    for (int d = 0; d < g->ndims; d++) {
        int off = grid_offset(g, d, a[d], b[d]), size = abs(off);
        bool within = (d - first + g->ndims) % g->ndims < inner;
        int part = within ? (int)rng_below(rng, (uint64_t)size + 1) : corner >> d & 1 ? size : 0;
        int c = (a[d] + (off < 0 ? -part : part) + g->size[d]) % g->size[d];
        via += c * g->stride[d];
    }
    return via;
}

double fabric_bisection_bound(const struct fabric *f)
{
    if (f->kind != FABRIC_GRID)
        return 1.0; /* a k-ary n-tree has full bisection */
    double bound = 1.0;
    for (int d = 0; d < f->grid.ndims; d++) {
        int k = f->grid.size[d], larger = (k + 1) / 2, smaller = k / 2;
        if (k < 2)
            continue;
        /* The larger part of a cut has that many of k rows; what crosses it one way is rate * nodes * share. */
        double share = (double)larger * smaller / ((double)k * k);
        double crossing = (f->grid.torus[d] ? 2.0 : 1.0) / k;
        if (crossing / share < bound)
            bound = crossing / share;
    }
    return bound;
}

bool fabric_alloc(struct fabric *f, int ndigits)
{
    size_t links = (size_t)f->routers * (size_t)f->ports;
    f->neighbor = malloc(links * sizeof *f->neighbor);
    f->reverse = malloc(links * sizeof *f->reverse);
    f->digits = malloc(((size_t)f->routers * (size_t)ndigits + 1) * sizeof *f->digits);
    return f->neighbor && f->reverse && f->digits;
}

/* The direction of each way in each dimension, looked up at every hop. */
static bool grid_make_toward(struct fabric *f)
{
    const struct grid *g = &f->grid;
    size_t n = 0;
    for (int d = 0; d < g->ndims; d++)
        n += 2 * (size_t)g->size[d] - 1;
    uint8_t *all = f->ports_toward = malloc(n + 1);
    if (!all)
        return false;
    for (int d = 0; d < g->ndims; d++) {
        int size = g->size[d];
        for (int off = 1 - size; off < size; off++)
            all[off + size - 1] =
                (uint8_t)(2 * d + (grid_offset(g, d, off < 0 ? -off : 0, off < 0 ? 0 : off) > 0 ? GRID_UP : GRID_DOWN));
        f->toward[d] = all + size - 1;
        all += 2 * size - 1;
    }
    return true;
}

static const char *fabric_make_grid(struct fabric *f)
{
    struct grid *g = &f->grid;
    for (int d = 0; d < g->ndims; d++)
        g->torus[d] = g->torus[d] && g->size[d] > 2;
    if (g->nodes > FABRIC_MAX_ROUTERS)
        return "the network is too large (4194304 routers at most)";
    for (int d = 0; d < g->ndims; d++)
        if (g->size[d] > UINT16_MAX)
            return "a dimension of the network is too large (65535 at most)";
    f->kind = FABRIC_GRID;
    f->routers = f->endpoints = g->nodes;
    f->ports = 2 * g->ndims;
    if (!fabric_alloc(f, g->ndims) || !grid_make_toward(f))
        return "out of memory";
    for (int32_t r = 0; r < f->routers; r++)
        for (int d = 0; d < g->ndims; d++) {
            f->digits[(size_t)r * (size_t)g->ndims + (size_t)d] = (uint16_t)grid_coord(g, r, d);
            for (int dir = 0; dir < 2; dir++) {
                int32_t to = grid_neighbor(g, r, d, dir), link = grid_link(g, r, d, dir);
                f->neighbor[link] = to;
                f->reverse[link] = to < 0 ? -1 : grid_link(g, to, d, !dir);
            }
        }
    return NULL;
}

static const char *fabric_make_tree(struct fabric *f, int arity, int levels)
{
    if (arity < 2 || arity > FABRIC_MAX_ARITY || levels < 2 || levels > FABRIC_MAX_LEVELS)
        return "a tree is written tree:K,N with K from 2 to 64 and N from 2 to 12";
    f->kind = FABRIC_TREE;
    f->arity = arity;
    f->levels = levels;
    int64_t row = 1;
    for (int i = 0; i < levels - 1; i++)
        row *= row > FABRIC_MAX_ROUTERS ? 1 : arity;
    if (row * levels > FABRIC_MAX_ROUTERS || row * arity > FABRIC_MAX_ROUTERS)
        return "the network is too large (4194304 routers or endpoints at most)";
    f->row = (int32_t)row;
    f->routers = f->row * levels;
    f->endpoints = f->row * arity;
    f->ports = 2 * arity;
    if (!fabric_alloc(f, levels - 1))
        return "out of memory";
    for (int32_t sw = 0; sw < f->routers; sw++)
        for (int i = 0; i < levels - 1; i++)
            tree_digits(f, sw)[i] = (uint16_t)((sw % f->row) / tree_pow(f, levels - 2 - i) % arity);
    for (int32_t sw = 0; sw < f->routers; sw++) {
        int level = (int)(sw / f->row);
        for (int d = 0; d < arity; d++) {
            int32_t down = sw * f->ports + d, up = down + arity;
            bool has_down = level<levels - 1, has_up = level> 0;
            f->neighbor[down] = has_down ? tree_switch(f, sw, level + 1, level, d) : -1;
            f->reverse[down] = has_down ? f->neighbor[down] * f->ports + arity + tree_digits(f, sw)[level] : -1;
            f->neighbor[up] = has_up ? tree_switch(f, sw, level - 1, level - 1, d) : -1;
            f->reverse[up] = has_up ? f->neighbor[up] * f->ports + tree_digits(f, sw)[level - 1] : -1;
        }
    }
    return NULL;
}

const char *fabric_parse(struct fabric *f, const char *text)
{
    memset(f, 0, sizeof *f);
    const char *wrong;
    if (strncmp(text, "tree:", 5) == 0) {
        int arity, levels, used = 0;
        if (!number_none_is_odd(text) || sscanf(text + 5, "%4d,%4d%n", &arity, &levels, &used) != 2 ||
            text[5 + used] != '\0')
            return "a tree is written tree:K,N with K from 2 to 64 and N from 2 to 12";
        wrong = fabric_make_tree(f, arity, levels);
    } else {
        wrong = grid_parse(&f->grid, text);
        if (!wrong)
            wrong = fabric_make_grid(f);
    }
    if (wrong)
        fabric_fini(f);
    return wrong;
}

void fabric_fini(struct fabric *f)
{
    free(f->neighbor);
    free(f->reverse);
    free(f->digits);
    free(f->ports_toward);
    free(f->hop);
    free(f->firm);
    memset(f, 0, sizeof *f);
}

char *fabric_format(const struct fabric *f, char *buf, size_t len)
{
    if (f->kind == FABRIC_GRID)
        return grid_format(&f->grid, buf, len);
    if (f->kind == FABRIC_GRAPH)
        snprintf(buf, len, "graph of %d", (int)f->routers);
    else
        snprintf(buf, len, "tree:%d,%d", f->arity, f->levels);
    return buf;
}
