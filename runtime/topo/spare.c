#include "runtime/topo/spare.h"

#include "runtime/base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char letters[] = "xyzuvw";

static const char *parse_sides(struct spare_layout *l, const char *text)
{
    int n = 0;
    for (; text[n]; n++) {
        const char *side = memchr(letters, text[n], (size_t)l->q);
        if (!side || l->dims >> (side - letters) & 1)
            return "the sides of spares are dimensions of the grid, each named once, like 3D(2,1):xz";
        l->dims |= 1u << (side - letters);
    }
    if (n != l->r)
        return "r in qD(r,s) must be the number of sides named";
    if (l->dims == (1u << n) - 1)
        l->dims = 0; /* the first ones need no name */
    return NULL;
}

const char *spare_parse(struct spare_layout *l, const char *text)
{
    int used = 0;
    long q, r, s;
    static const char *const form = "a spare allocation is written like 3D(2,1), or 3D(2,1):xz with its sides named";
    if (strlen(text) > 32 || !number_none_is_odd(text) || sscanf(text, "%ldD(%ld,%ld)%n", &q, &r, &s, &used) != 3 ||
        !used || (text[used] != '\0' && text[used] != ':'))
        return form;
    if (q < 1 || q > GRID_MAX_DIMS)
        return "q in qD(r,s) must be 1 to 6";
    if (r < 0 || r > q)
        return "r in qD(r,s) must be 0 to q";
    if (s < 1 || s > GRID_MAX_NODES)
        return "s in qD(r,s) must be at least 1 and less than the sides of the grid";
    *l = (struct spare_layout){.q = (int)q, .r = (int)r, .s = (int)s};
    return text[used] ? parse_sides(l, text + used + 1) : NULL;
}

char *spare_format(const struct spare_layout *l, char *buf, size_t len)
{
    size_t n = (size_t)snprintf(buf, len, "%dD(%d,%d)%s", l->q, l->r, l->s, l->dims ? ":" : "");
    for (int d = 0; d < l->q && l->dims && n + 1 < len; d++)
        if (spare_holds(l, d)) {
            buf[n++] = letters[d];
            buf[n] = '\0';
        }
    return buf;
}

const char *spare_check(const struct spare_layout *l, const struct grid *g)
{
    if (l->q != g->ndims)
        return "q in qD(r,s) must be the number of dimensions of the grid";
    if (l->r < 0 || l->r > l->q)
        return "r in qD(r,s) must be 0 to q";
    for (int d = 0; d < l->q; d++)
        if (spare_holds(l, d) && (l->s < 1 || l->s >= g->size[d]))
            return "s in qD(r,s) must be at least 1 and less than the sides of the grid";
    return NULL;
}

int spare_side(const struct spare_layout *l, const struct grid *g, int32_t node)
{
    for (int d = 0; d < g->ndims; d++)
        if (spare_holds(l, d) && grid_coord(g, node, d) >= g->size[d] - l->s)
            return d;
    return -1;
}

struct spare_layout spare_default(const struct grid *g)
{
    struct spare_layout l = {.q = g->ndims, .s = 1};
    for (int d = 0; d < g->ndims && l.r < 2; d++)
        if (g->size[d] > 1) {
            l.dims |= 1u << d;
            l.r++;
        }
    if (l.dims == (1u << l.r) - 1)
        l.dims = 0;
    return l;
}

bool spare_is(const struct spare_layout *l, const struct grid *g, int32_t node)
{
    return spare_side(l, g, node) >= 0;
}

int32_t spare_count(const struct spare_layout *l, const struct grid *g)
{
    return g->nodes - spare_slot_grid(l, g).nodes;
}

double spare_share(const struct spare_layout *l, double nodes)
{
    double side = pow(nodes, 1.0 / l->q);
    return 1 - pow(side - l->s, l->r) * pow(side, l->q - l->r) / nodes;
}

struct grid spare_slot_grid(const struct spare_layout *l, const struct grid *g)
{
    int size[GRID_MAX_DIMS];
    for (int d = 0; d < g->ndims; d++)
        size[d] = g->size[d] - (spare_holds(l, d) ? l->s : 0);
    struct grid slots;
    grid_init(&slots, g->ndims, size, g->torus);
    return slots;
}

double spare_choose(const struct grid *g, double low, double high, struct spare_layout *l)
{
    double best = INFINITY, share = 0, middle = sqrt(low * high);
    *l = (struct spare_layout){.q = g->ndims, .r = 0, .s = 1};
    int longest = 1;
    for (int d = 0; d < g->ndims; d++)
        longest = g->size[d] > longest ? g->size[d] : longest;
    for (int s = 1; s < longest && !(share >= low && share <= high); s++)
        for (int r = 1; r <= g->ndims; r++)
            for (unsigned dims = 1; dims < 1u << g->ndims; dims++) {
                struct spare_layout cand = {.q = g->ndims, .r = r, .s = s, .dims = dims == (1u << r) - 1 ? 0 : dims};
                if (__builtin_popcount(dims) != r || spare_check(&cand, g))
                    continue;
                double x = (double)spare_count(&cand, g) / g->nodes, off = fabs(log(x / middle));
                if (off < best) {
                    best = off;
                    share = x;
                    *l = cand;
                }
            }
    return share;
}
