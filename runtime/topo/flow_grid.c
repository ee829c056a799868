/* The shortest ways of a grid. */
#include "runtime/topo/flow_int.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { NOISE = 256, CELL = 2, WAYS_MAX = 16384 };

/* A segment of a multi-step path in the making: hops along each dimension. */
struct segment {
    int hops[2], port[2];
};

/* May the static route of the segment go on by this port? Not back to the first dimension, not the other way along the
 * same one, and not so far round a ring that the other way is shorter (or as short, and taken: upwards). */
static bool segment_extend(const struct grid *g, struct segment *s, int port)
{
    int d = port / 2, hops = s->hops[d] + 1;
    if ((d == 0 && s->hops[1]) || (s->hops[d] && s->port[d] != port))
        return false;
    if (g->torus[d] && (2 * hops > g->size[d] || (2 * hops == g->size[d] && port % 2 != GRID_UP)))
        return false;
    s->hops[d] = hops;
    s->port[d] = port;
    return true;
}

bool flow_grid_path(const struct fabric *f, int32_t from, const uint8_t *ports, int n, struct detour_path *path)
{
    struct segment s = {0};
    path->nvia = 0;
    for (int32_t i = 0, at = from; i < n; at = f->neighbor[at * f->ports + ports[i++]]) {
        if (segment_extend(&f->grid, &s, ports[i]))
            continue;
        if (path->nvia == DETOUR_MAX_VIA)
            return false;
        path->via[path->nvia++] = at;
        s = (struct segment){0};
        segment_extend(&f->grid, &s, ports[i]);
    }
    return true;
}

/* A rectangle of shortest ways: nx and ny hops by the ports px and py. */
struct box {
    int32_t from, home;
    int nx, ny, px, py;
    float turn; /* what a turn from y to x costs beside the waiting there */
};

struct cell {
    float cost[CELL]; /* of the cheapest way here whose last hop is along that dimension */
    uint8_t back[CELL];
};

/* One step of the search: the cheapest way out of a cell by a link. *by becomes the dimension of the hop before. */
static float step(const struct flow *w, const struct cell *c, const struct box *b, int32_t link, bool first, float turn,
                  const float *dearer, uint8_t *by)
{
    int ports = w->fabric->ports;
    if (w->avoid && w->avoid[link])
        return FLT_MAX;
    if (first)
        return price(w, link, ports);
    float sum = w->sum[link], gain = w->gain[link], best = FLT_MAX;
    const float *stream = &w->stream[link * w->inputs];
    for (int d = 0; d < CELL; d++) {
        if (c->cost[d] >= FLT_MAX)
            continue;
        int input = d == BY_X ? b->px : b->py;
        float wait = gain * (sum - stream[input]);
        float cost =
            c->cost[d] + (float)w->traffic.hop_ns + (dearer ? wait * dearer[(link * 5 + input) & (NOISE - 1)] : wait);
        if (d == BY_Y)
            cost += turn;
        if (cost < best) {
            best = cost;
            *by = (uint8_t)d;
        }
    }
    return best;
}

/* The cheapest of the shortest ways within a box, as a list of ports. returns its price or FLT_MAX. */
static float box_search(const struct flow *w, const struct box *b, const float *dearer, uint8_t *ports)
{
    const struct fabric *f = w->fabric;
    struct cell row[2][WIDTH_MAX]; /* two rows at a time; the ways back of all */
    uint8_t back[WAYS_MAX];
    int width = b->nx + 1;
    if (width > WIDTH_MAX || width * (b->ny + 1) * CELL > WAYS_MAX || b->nx + b->ny > PORTS_MAX)
        return FLT_MAX;
    memset(back, 0, (size_t)(width * (b->ny + 1) * CELL));
    int32_t line = b->from;
    for (int y = 0; y <= b->ny; y++) {
        struct cell *here = row[y & 1], *above = row[!(y & 1)];
        int32_t at = line;
        for (int x = 0; x <= b->nx; x++) {
            struct cell c = {.cost = {FLT_MAX, FLT_MAX}};
            if (x > 0) {
                int32_t link = at; /* the router before, along x */
                c.cost[BY_X] =
                    step(w, &here[x - 1], b, link * f->ports + b->px, x == 1 && y == 0, b->turn, dearer, &c.back[BY_X]);
                at = f->neighbor[link * f->ports + b->px];
            }
            if (y > 0) {
                int32_t up = f->neighbor[at * f->ports + (b->py ^ 1)];
                c.cost[BY_Y] = step(w, &above[x], b, up * f->ports + b->py, x == 0 && y == 1, 0, dearer, &c.back[BY_Y]);
            }
            here[x] = c;
            for (int d = 0; d < CELL; d++)
                back[(y * width + x) * CELL + d] = c.back[d];
        }
        if (y < b->ny)
            line = f->neighbor[line * f->ports + b->py];
    }
    const struct cell *end = &row[b->ny & 1][b->nx];
    int d = end->cost[BY_Y] < end->cost[BY_X] ? BY_Y : BY_X, x = b->nx, y = b->ny;
    float best = end->cost[d];
    for (int i = x + y; i-- > 0 && best < FLT_MAX;) {
        int before = back[(y * width + x) * CELL + d];
        ports[i] = (uint8_t)(d == BY_X ? b->px : b->py);
        d == BY_X ? x-- : y--;
        d = before;
    }
    return best;
}

/* The shortest ways between two routers lie in one box, or in more where half of a ring lies between them. */
static int boxes(const struct fabric *f, int32_t from, int32_t home, struct box box[4])
{
    const struct grid *g = &f->grid;
    int off[2] = {0}, both[2] = {0};
    for (int d = 0; d < g->ndims; d++) {
        const uint16_t *a = f->digits + (size_t)from * (size_t)g->ndims,
                       *b = f->digits + (size_t)home * (size_t)g->ndims;
        off[d] = grid_offset(g, d, a[d], b[d]);
        both[d] = g->torus[d] && 2 * abs(off[d]) == g->size[d];
    }
    int n = 0;
    for (int x = 0; x <= both[0]; x++)
        for (int y = 0; y <= both[1]; y++)
            box[n++] = (struct box){.from = from,
                                    .home = home,
                                    .nx = abs(off[0]),
                                    .ny = abs(off[1]),
                                    .px = (off[0] > 0) != x ? GRID_UP : GRID_DOWN,
                                    .py = 2 + ((off[1] > 0) != y ? GRID_UP : GRID_DOWN)};
    return n;
}

double flow_grid_route(const struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng,
                       struct detour_path *path)
{
    float dearer[NOISE], best = FLT_MAX;
    uint8_t ports[PORTS_MAX] = {0};
    struct box box[4];
    struct detour_path found;
    bool any = true;
    if (noise > 0)
        for (int i = 0; i < NOISE; i += 4) {
            uint64_t r = rng_u64(rng);
            for (int k = 0; k < 4; k++)
                dearer[i + k] = 1 + (float)noise * (float)(r >> 16 * k & 0xffff) / 65536.0f;
        }
    int n = boxes(w->fabric, from, dest, box);
    for (int round = 0; round < DEARER_TURNS && any; round++) {
        any = false;
        for (int i = 0; i < n; i++) {
            box[i].turn = turn_price(w, round);
            float cost = box_search(w, &box[i], noise > 0 ? dearer : NULL, ports);
            any = any || cost < FLT_MAX;
            if (cost < best && flow_grid_path(w->fabric, from, ports, box[i].nx + box[i].ny, &found)) {
                best = cost;
                *path = found;
            }
        }
        if (best < FLT_MAX)
            return round ? flow_price(w, from, path, dest) : (double)best;
    }
    return -1;
}
