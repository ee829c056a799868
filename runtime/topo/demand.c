#include "runtime/topo/demand.h"

#include <string.h>

/* A pattern that is a map: 2 + map + MAPS * (shift of x + size of x * shift of y). */
enum { MAPS = 8, MAP_SWAP = 1, MAP_TURN_X = 2, MAP_TURN_Y = 4, FIRST_MAP = 2, ENOUGH = 12, TRIES = 4 };

/* Of its last messages nearly all went to one endpoint, or to many. */
static int32_t own_flow(const struct demand *d)
{
    int n = d->sent < DEMAND_OWN ? (int)d->sent : DEMAND_OWN, distinct = 0, most = 0;
    int32_t to = DEMAND_NOBODY;
    for (int i = 0; i < n; i++) {
        int same = 0, before = 0;
        for (int k = 0; k < n; k++) {
            same += d->own[k] == d->own[i];
            before += k < i && d->own[k] == d->own[i];
        }
        distinct += before == 0;
        if (same > most) {
            most = same;
            to = d->own[i];
        }
    }
    if (n >= DEMAND_OWN / 2 && 8 * most >= 7 * n)
        return to;
    return distinct >= 6 ? DEMAND_SPREAD : DEMAND_NOBODY;
}

/* returns whether that was new. */
static bool set(struct demand *d, int32_t from, int32_t to)
{
    struct demand_flow *f = NULL;
    for (int i = 0; i < d->used && !f; i++)
        if (d->flow[i].from == from)
            f = &d->flow[i];
    if (f && f->to == to)
        return false;
    if (!f) {
        if (d->used < DEMAND_FLOWS)
            d->used++;
        f = &d->flow[d->turn];
        d->turn = (d->turn + 1) % DEMAND_FLOWS;
    }
    *f = (struct demand_flow){from, to};
    d->changed = true;
    return true;
}

void demand_sent(struct demand *d, int32_t self, int32_t dest)
{
    d->own[d->sent++ % DEMAND_OWN] = dest;
    if (d->sent % (DEMAND_OWN / 2) != 0)
        return;
    int32_t to = own_flow(d);
    if (to != DEMAND_NOBODY)
        set(d, self, to);
}

bool demand_told(struct demand *d, const struct demand_flow *flow)
{
    return set(d, flow->from, flow->to);
}

int demand_recall(struct demand *d, int32_t self, int max, struct demand_flow *flow)
{
    int n = 0, own = -1;
    for (int i = 0; i < d->used && max > 0; i++)
        if (d->flow[i].from == self) {
            own = i;
            flow[n++] = d->flow[i];
        }
    for (int left = d->used; left > 0 && n < max; left--) {
        d->told = (d->told + 1) % d->used;
        if (d->told != own)
            flow[n++] = d->flow[d->told];
    }
    return n;
}

static void coords(const struct grid *g, int32_t endpoint, int c[2])
{
    c[0] = grid_coord(g, endpoint, 0);
    c[1] = g->ndims > 1 ? grid_coord(g, endpoint, 1) : 0;
}

static int size_of(const struct grid *g, int dim)
{
    return dim < g->ndims ? g->size[dim] : 1;
}

/* Without the shift. */
static void turn(const struct grid *g, int map, const int from[2], int to[2])
{
    to[0] = from[map & MAP_SWAP ? 1 : 0];
    to[1] = from[map & MAP_SWAP ? 0 : 1];
    if (map & MAP_TURN_X)
        to[0] = size_of(g, 0) - 1 - to[0];
    if (map & MAP_TURN_Y)
        to[1] = size_of(g, 1) - 1 - to[1];
}

static bool is_map(const struct grid *g, int map)
{
    if (g->ndims == 1)
        return !(map & (MAP_SWAP | MAP_TURN_Y));
    return !(map & MAP_SWAP) || g->size[0] == g->size[1];
}

/* The pattern by which `from` sends to `to` under this map. */
static uint32_t map_of(const struct grid *g, int map, const struct demand_flow *f)
{
    int from[2], to[2], turned[2], shift[2];
    coords(g, f->from, from);
    coords(g, f->to, to);
    turn(g, map, from, turned);
    for (int i = 0; i < 2; i++)
        shift[i] = (to[i] - turned[i] + size_of(g, i)) % size_of(g, i);
    return FIRST_MAP + (uint32_t)(map + MAPS * (shift[0] + size_of(g, 0) * shift[1]));
}

int32_t demand_partner(uint32_t pattern, const struct grid *g, int32_t endpoint)
{
    if (pattern < FIRST_MAP)
        return DEMAND_NOBODY;
    int rest = (int)(pattern - FIRST_MAP), at[2], to[2];
    coords(g, endpoint, at);
    turn(g, rest % MAPS, at, to);
    int shift[2] = {rest / MAPS % size_of(g, 0), rest / MAPS / size_of(g, 0)};
    for (int i = 0; i < 2; i++)
        to[i] = (to[i] + shift[i]) % size_of(g, i);
    int32_t dest = (int32_t)(to[0] + size_of(g, 0) * to[1]);
    return dest == endpoint ? DEMAND_NOBODY : dest;
}

/* Nine of ten flows agree. */
static bool fits(const struct demand *d, const struct grid *g, uint32_t pattern)
{
    int n = 0;
    for (int i = 0; i < d->used; i++)
        n += pattern == DEMAND_UNIFORM ? d->flow[i].to == DEMAND_SPREAD
                                       : demand_partner(pattern, g, d->flow[i].from) == d->flow[i].to;
    return 10 * n >= 9 * d->used;
}

static uint32_t look(const struct demand *d, const struct grid *g)
{
    int enough = g->nodes / 4 < ENOUGH ? g->nodes / 4 : ENOUGH;
    if (fits(d, g, DEMAND_UNIFORM)) /* also who has heard of nobody, and sends to many itself */
        return DEMAND_UNIFORM;
    if (d->used < enough)
        return DEMAND_UNKNOWN;
    for (int i = 0; i < TRIES; i++) {
        const struct demand_flow *f = &d->flow[(i * d->used) / TRIES];
        for (int map = 0; f->to >= 0 && map < MAPS; map++) {
            uint32_t pattern = is_map(g, map) ? map_of(g, map, f) : DEMAND_UNKNOWN;
            if (pattern != DEMAND_UNKNOWN && fits(d, g, pattern))
                return pattern;
        }
    }
    return DEMAND_UNKNOWN;
}

uint32_t demand_pattern(struct demand *d, const struct grid *g)
{
    if (d->changed)
        d->pattern = look(d, g);
    d->changed = false;
    return d->pattern;
}
