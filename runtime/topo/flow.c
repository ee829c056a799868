#include "runtime/topo/flow.h"

#include "runtime/topo/flow_tree.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { NOISE = 256 };

enum { QUEUED = 0x80 }; /* beside an input, in `back` of a search through all links */

bool flow_takes(const struct fabric *f)
{
    if (f->kind == FABRIC_TREE)
        return f->ports + f->arity <= QUEUED;
    return f->kind == FABRIC_GRID && f->grid.ndims <= 2;
}

/* The inputs of a router are its ports, and those of its endpoints behind them. Of a grid an input has the number of
 * the port that leads on in the same direction, of a tree that of the port it comes in by. */
static int input_of(const struct fabric *f, int32_t link)
{
    return (f->kind == FABRIC_GRID ? link : f->reverse[link]) % f->ports;
}

static int32_t link_into(const struct fabric *f, int32_t at, int input)
{
    return f->reverse[at * f->ports + (f->kind == FABRIC_GRID ? input ^ 1 : input)];
}

static int first_input(const struct fabric *f, int32_t from)
{
    return f->ports + (f->kind == FABRIC_TREE ? from % f->arity : 0);
}

/* Links to endpoints that are priced. */
static int32_t ends(const struct fabric *f)
{
    return f->kind == FABRIC_TREE ? f->endpoints : 0;
}

/* The outputs of all routers: links to others, then those to endpoints. */
static size_t outputs(const struct fabric *f)
{
    return (size_t)(fabric_links(f) + ends(f));
}

bool flow_init(struct flow *w, const struct fabric *f, const struct flow_traffic *t)
{
    assert(flow_takes(f));
    size_t links = (size_t)fabric_links(f), outs = outputs(f);
    size_t inputs = (size_t)(f->ports + (f->kind == FABRIC_TREE ? f->arity : 1));
    *w = (struct flow){.fabric = f, .traffic = *t, .inputs = (int)inputs};
    w->stream = calloc(outs * inputs, sizeof *w->stream);
    w->sum = calloc(outs, sizeof *w->sum);
    w->gain = calloc(outs, sizeof *w->gain);
    w->cost = malloc(links * sizeof *w->cost);
    w->back = malloc(links);
    w->queue = malloc(links * sizeof *w->queue);
    if (w->stream && w->sum && w->gain && w->cost && w->back && w->queue) {
        flow_clear(w);
        return true;
    }
    flow_fini(w);
    return false;
}

void flow_fini(struct flow *w)
{
    free(w->stream);
    free(w->sum);
    free(w->gain);
    free(w->cost);
    free(w->back);
    free(w->queue);
    memset(w, 0, sizeof *w);
}

static void update_gain(struct flow *w, int32_t link)
{
    double busy = w->sum[link] * w->traffic.serial_ns, room = busy < 0.95 ? 1 - busy : 0.05;
    w->gain[link] = (float)(w->traffic.serial2_ns / (room * room));
}

void flow_clear(struct flow *w)
{
    size_t outs = outputs(w->fabric);
    memset(w->stream, 0, outs * (size_t)w->inputs * sizeof *w->stream);
    memset(w->sum, 0, outs * sizeof *w->sum);
    for (size_t l = 0; l < outs; l++)
        update_gain(w, (int32_t)l);
}

static float wait_at(const struct flow *w, int32_t out, int input)
{
    return w->gain[out] * (w->sum[out] - w->stream[out * w->inputs + input]);
}

static float price(const struct flow *w, int32_t link, int input)
{
    return (float)w->traffic.hop_ns + wait_at(w, link, input);
}

/* At the link to the endpoint. In a grid it is left out: that gains nothing there. */
static float wait_at_end(const struct flow *w, int32_t dest, int input)
{
    return ends(w->fabric) ? wait_at(w, fabric_links(w->fabric) + dest, input) : 0;
}

static void add_at(struct flow *w, int32_t out, int input, double rate)
{
    w->stream[out * w->inputs + input] += (float)rate;
    w->sum[out] += (float)rate;
    update_gain(w, out);
}

void flow_add(struct flow *w, int32_t from, const struct detour_path *path, int32_t dest, double rate)
{
    struct detour_walk walk;
    int input = first_input(w->fabric, from);
    detour_walk_begin(&walk, w->fabric, fabric_home(w->fabric, from), path, dest);
    for (int32_t link; (link = detour_walk_next(&walk)) >= 0; input = input_of(w->fabric, link))
        add_at(w, link, input, rate);
    if (ends(w->fabric))
        add_at(w, fabric_links(w->fabric) + dest, input, rate);
}

double flow_price(const struct flow *w, int32_t from, const struct detour_path *path, int32_t dest)
{
    struct detour_walk walk;
    int input = first_input(w->fabric, from);
    double sum = 0;
    detour_walk_begin(&walk, w->fabric, fabric_home(w->fabric, from), path, dest);
    for (int32_t link; (link = detour_walk_next(&walk)) >= 0; input = input_of(w->fabric, link)) {
        if (w->avoid && w->avoid[link])
            return -1;
        sum += (double)price(w, link, input);
    }
    return sum + (double)wait_at_end(w, dest, input);
}

double flow_waiting(const struct flow *w)
{
    double sum = 0;
    for (size_t l = 0; l < outputs(w->fabric); l++) {
        double pairs = (double)w->sum[l] * w->sum[l], busy = w->sum[l] * w->traffic.serial_ns;
        for (int i = 0; i < w->inputs; i++)
            pairs -=
                (double)w->stream[l * (size_t)w->inputs + (size_t)i] * w->stream[l * (size_t)w->inputs + (size_t)i];
        sum += pairs * w->traffic.serial2_ns / 2 / (busy < 0.95 ? 1 - busy : 0.05);
    }
    return sum / (w->traffic.rate * w->fabric->endpoints);
}

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

/* A multi-step path that follows these ports. returns false when it takes too many segments. */
static bool path_of(const struct flow *w, int32_t from, int32_t dest, const uint8_t *ports, int n,
                    struct detour_path *path)
{
    const struct fabric *f = w->fabric;
    if (f->kind == FABRIC_TREE)
        return flow_tree_path(f, fabric_home(f, from), dest, ports, n, path);
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

/* A turn from the second dimension to the first begins a segment, and a path has room for a few only. Where the
 * cheapest way has more, such turns are made dearer until one is found that can be named. */
enum { DEARER_TURNS = 10 };

static float turn_price(const struct flow *w, int round)
{
    return round ? (float)w->traffic.hop_ns * (float)(1u << 2 * (round - 1)) : 0;
}

/* A rectangle of shortest ways: nx and ny hops by the ports px and py. */
struct box {
    int32_t from, home;
    int nx, ny, px, py;
    float turn; /* what a turn from y to x costs beside the waiting there */
};

enum { BY_X, BY_Y, CELL = 2, WIDTH_MAX = 256, WAYS_MAX = 16384, PORTS_MAX = 1024 };

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

/* Any way, with costs that spread from link to link until nothing gets cheaper: for the pairs whose shortest ways are
 * all cut, or are dear. Only ways cheaper than the limit are found, so that in a grid the search stays near the
 * shortest ones. back[link] is the input by which the way came to the link's router. returns the price or FLT_MAX. */
struct frontier {
    int32_t head, waiting;
    float turn;               /* as in a box */
    float limit;              /* FLT_MAX: none */
    float left[2][WIDTH_MAX]; /* what the hops that are left along a dimension cost at least, where there is a limit */
};

/* returns false where no limit can be kept: then there is none. */
static bool set_limit(const struct flow *w, int32_t home, float limit, struct frontier *q)
{
    const struct fabric *f = w->fabric;
    const struct grid *g = &f->grid;
    q->limit = FLT_MAX;
    if (f->kind != FABRIC_GRID || limit >= FLT_MAX)
        return limit >= FLT_MAX;
    for (int d = 0; d < g->ndims; d++)
        if (g->size[d] > WIDTH_MAX)
            return false;
    for (int d = 0; d < g->ndims; d++)
        for (int at = 0, to = f->digits[home * g->ndims + d]; at < g->size[d]; at++)
            q->left[d][at] = (float)(abs(grid_offset(g, d, at, to)) * w->traffic.hop_ns);
    q->limit = limit;
    return true;
}

static bool is_beyond(const struct flow *w, const struct frontier *q, int32_t at, float cost)
{
    const struct grid *g = &w->fabric->grid;
    const uint16_t *digit = w->fabric->digits + (size_t)at * (size_t)g->ndims;
    for (int d = 0; d < g->ndims; d++)
        cost += q->left[d][digit[d]];
    return cost >= q->limit;
}

static void relax(struct flow *w, int32_t link, int input, float so_far, struct frontier *q)
{
    int32_t links = fabric_links(w->fabric);
    if (w->fabric->neighbor[link] < 0 || (w->avoid && w->avoid[link]))
        return;
    float cost = so_far + price(w, link, input);
    if (q->turn > 0 && input / 2 == BY_Y && link % w->fabric->ports / 2 == BY_X)
        cost += q->turn;
    if (cost >= w->cost[link] || (q->limit < FLT_MAX && is_beyond(w, q, w->fabric->neighbor[link], cost)))
        return;
    bool queued = w->back[link] & QUEUED;
    w->cost[link] = cost;
    w->back[link] = (uint8_t)(input | QUEUED);
    if (!queued)
        w->queue[(q->head + q->waiting++) % links] = link;
}

static float search_all(struct flow *w, int32_t from, int32_t dest, float turn, float limit, uint8_t *ports, int *n)
{
    const struct fabric *f = w->fabric;
    int32_t links = fabric_links(f), home = fabric_home(f, dest), best = -1;
    struct frontier q;
    q.head = q.waiting = 0;
    q.turn = turn;
    float least = FLT_MAX;
    if (!set_limit(w, home, limit, &q))
        return FLT_MAX;
    for (int32_t l = 0; l < links; l++) {
        w->cost[l] = FLT_MAX;
        w->back[l] = 0;
    }
    for (int p = 0, input = first_input(f, from); p < f->ports; p++)
        relax(w, fabric_home(f, from) * f->ports + p, input, 0, &q);
    while (q.waiting) {
        int32_t link = w->queue[q.head], at = f->neighbor[link];
        q.head = (q.head + 1) % links;
        q.waiting--;
        w->back[link] &= (uint8_t)~QUEUED;
        if (at == home) {
            float all = w->cost[link] + wait_at_end(w, dest, input_of(f, link));
            best = all < least ? link : best;
            least = all < least ? all : least;
            continue;
        }
        if (w->cost[link] >= least)
            continue;
        for (int p = 0; p < f->ports; p++)
            if (at * f->ports + p != f->reverse[link]) /* not back at once */
                relax(w, at * f->ports + p, input_of(f, link), w->cost[link], &q);
    }
    if (best < 0)
        return FLT_MAX;
    *n = 0;
    bool started = false;
    for (int32_t link = best; *n < PORTS_MAX; (*n)++) { /* from the end; turned round below */
        ports[*n] = (uint8_t)(link % f->ports);
        int input = w->back[link];
        int32_t at = link / f->ports;
        started = input >= f->ports;
        if (started) {
            ++*n;
            break;
        }
        link = link_into(f, at, input);
    }
    for (int i = 0; i < *n / 2; i++) {
        uint8_t swap = ports[i];
        ports[i] = ports[*n - 1 - i];
        ports[*n - 1 - i] = swap;
    }
    return started ? least : FLT_MAX; /* longer than any path can be */
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

/* The cheapest of the shortest ways of a grid. returns its price or a negative number. */
static double route_in_grid(const struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng,
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
            if (cost < best && path_of(w, from, dest, ports, box[i].nx + box[i].ny, &found)) {
                best = cost;
                *path = found;
            }
        }
        if (best < FLT_MAX)
            return round ? flow_price(w, from, path, dest) : (double)best;
    }
    return -1;
}

/* The cheapest way of any length, if it costs less than the limit. */
static double route_anywhere(struct flow *w, int32_t from, int32_t dest, float limit, struct detour_path *path)
{
    uint8_t ports[PORTS_MAX] = {0};
    for (int round = 0; round < DEARER_TURNS; round++) {
        int n = 0;
        if (search_all(w, from, dest, turn_price(w, round), limit, ports, &n) >= FLT_MAX)
            return -1;
        if (path_of(w, from, dest, ports, n, path))
            return flow_price(w, from, path, dest);
    }
    return -1;
}

/* May a longer way be cheaper than this one, a shortest? */
static bool is_dear(const struct flow *w, int32_t from, const struct detour_path *path, int32_t dest, double *price)
{
    const struct fabric *f = w->fabric;
    if (f->kind != FABRIC_GRID)
        return false;
    *price = flow_price(w, from, path, dest);
    return *price > (fabric_hops(f, fabric_home(f, from), fabric_home(f, dest), dest) + 1) * w->traffic.hop_ns;
}

double flow_route(struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng, struct detour_path *path)
{
    struct detour_path found;
    double price = w->fabric->kind == FABRIC_TREE ? flow_tree_route(w, from, dest, noise, rng, &found)
                                                  : route_in_grid(w, from, dest, noise, rng, &found);
    if (price < 0)
        price = route_anywhere(w, from, dest, FLT_MAX, &found);
    if (price >= 0)
        *path = found;
    return price;
}

double flow_route_longer(struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng,
                         struct detour_path *path)
{
    struct detour_path longer;
    double limit, price = flow_route(w, from, dest, noise, rng, path);
    if (price < 0 || !is_dear(w, from, path, dest, &limit))
        return price;
    double less = route_anywhere(w, from, dest, (float)limit, &longer);
    if (less < 0)
        return price;
    *path = longer;
    return less;
}

static const struct detour_path original = {.nvia = 0};

/* One pair of the plan: its stream and the way it takes at present. */
struct pair {
    int32_t from, dest;
    double rate;
    bool cut, routed;
    struct detour_path path;
};

static int32_t list_pairs(const struct flow *w, const struct flow_plan *p, struct rng *rng, struct pair *pair,
                          int32_t max)
{
    int32_t n = 0, endpoints = w->fabric->endpoints;
    for (int32_t e = 0; p->partner && e < endpoints; e++)
        if (p->partner[e] >= 0)
            pair[n++] = (struct pair){.from = e, .dest = p->partner[e], .rate = w->traffic.rate};
    if (p->partner)
        return n;
    bool all = p->sample == 0;
    for (int32_t i = 0; i < max; i++) { /* of a sample, every source has its part */
        int32_t from = all ? i / (endpoints - 1) : i % endpoints;
        int32_t to = all ? i % (endpoints - 1) : (int32_t)rng_below(rng, (uint64_t)endpoints - 1);
        double rate = w->traffic.rate * endpoints / max;
        pair[n++] = (struct pair){.from = from, .dest = to < from ? to : to + 1, .rate = rate};
    }
    return n;
}

bool flow_expect(struct flow *w, const struct flow_plan *p)
{
    int32_t endpoints = w->fabric->endpoints;
    int32_t max = p->partner ? endpoints : p->sample ? p->sample : endpoints * (endpoints - 1);
    struct pair *pair = malloc((size_t)max * sizeof *pair);
    if (!pair)
        return false;
    struct rng rng;
    rng_seed(&rng, p->seed);
    int32_t n = list_pairs(w, p, &rng, pair, max);
    flow_clear(w);
    for (int32_t i = 0; i < n; i++) {
        int32_t from = fabric_home(w->fabric, pair[i].from), to = fabric_home(w->fabric, pair[i].dest);
        pair[i].cut = w->avoid && fabric_hops_avoiding(w->fabric, from, to, pair[i].dest, w->avoid, INT32_MAX) < 0;
        pair[i].routed = !pair[i].cut;
        if (!pair[i].cut)
            flow_add(w, pair[i].from, &original, pair[i].dest, pair[i].rate);
    }
    for (int k = 0; k < p->sweeps; k++)
        for (int32_t i = 0; i < n; i++) {
            struct pair *q = &pair[i];
            if (i % 64 == 0 && p->stop && atomic_load_explicit(p->stop, memory_order_relaxed))
                goto out;
            if (!q->cut && !p->all_move)
                continue;
            if (q->routed)
                flow_add(w, q->from, &q->path, q->dest, -q->rate);
            if ((p->longer ? flow_route_longer : flow_route)(w, q->from, q->dest, p->noise, &rng, &q->path) >= 0)
                q->routed = true; /* else it keeps the way it has */
            if (q->routed)
                flow_add(w, q->from, &q->path, q->dest, q->rate);
        }
out:
    for (int32_t i = 0; p->routes && i < n; i++)
        if (pair[i].routed) {
            size_t from = (size_t)pair[i].from;
            p->routes[p->partner ? from : from * (size_t)endpoints + (size_t)pair[i].dest] = pair[i].path;
        }
    free(pair);
    return true;
}
