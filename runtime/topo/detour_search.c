/* Candidates are grouped by the sum of two distances: that of a first intermediate from the start and that of a last
 * one from the destination. The paper's order takes the nearest group with a usable path; within a group, the path
 * with the fewest hops. The `shortest` order first tries random routers on shortest ways, those with few turns first,
 * at no cost in hops; then it looks at every group up to max_distance and takes the fewest hops, with a random draw
 * among equals, so that the traffic of many sources spreads around a hole instead of piling up on one side. Where no
 * group has a usable path a breadth-first search over the cables not to be avoided finds one, cut into as few minimal
 * segments as a greedy walk gives. */
#include "runtime/topo/detour_search.h"

#include <limits.h>
#include <string.h>

enum { RING_MAX = 128, DISTANCE_MAX = 8, BETWEEN_TRIES = 16, BETWEEN_INNER = 6 };

/* Routers around a centre by distance: those at distance k are router[start[k]] .. router[start[k + 1] - 1]. */
struct rings {
    int32_t router[RING_MAX];
    int start[DISTANCE_MAX + 2];
    int depth; /* complete rings */
};

struct best {
    struct detour_path path;
    int hops;
    uint32_t equals; /* candidates as good as this one, for the draw */
};

void detour_walk_begin(struct detour_walk *w, const struct fabric *f, int32_t from, const struct detour_path *path,
                       int32_t dest)
{
    *w = (struct detour_walk){.fabric = f, .path = path, .at = from, .dest = dest};
    w->to = path->nvia ? path->via[0] : fabric_home(f, dest);
}

int32_t detour_walk_next(struct detour_walk *w)
{
    while (w->at == w->to) {
        if (w->step >= w->path->nvia)
            return -1;
        w->step++;
        w->to = w->step < w->path->nvia ? w->path->via[w->step] : fabric_home(w->fabric, w->dest);
    }
    int32_t link = w->at * w->fabric->ports + fabric_next(w->fabric, w->at, w->to, w->dest);
    w->at = w->fabric->neighbor[link];
    return link;
}

bool detour_path_equal(const struct detour_path *a, const struct detour_path *b)
{
    return a->nvia == b->nvia && memcmp(a->via, b->via, a->nvia * sizeof a->via[0]) == 0;
}

void detour_mark(struct detour *d, int32_t cable, uint8_t value)
{
    uint8_t step = value ? 1 : UINT8_MAX; /* minus one */
    d->avoid[cable] = (uint8_t)(d->avoid[cable] + step);
    d->avoid[d->fabric->reverse[cable]] = (uint8_t)(d->avoid[d->fabric->reverse[cable]] + step);
}

int detour_path_hops(const struct detour *d, int32_t from, const struct detour_path *path, int32_t dest, int limit)
{
    int hops = 0;
    for (int i = 0; i <= path->nvia; i++) {
        int32_t to = i < path->nvia ? path->via[i] : fabric_home(d->fabric, dest);
        int leg = fabric_hops_avoiding(d->fabric, from, to, dest, d->avoid, limit - hops);
        if (leg < 0)
            return -1;
        hops += leg;
        from = to;
    }
    return hops;
}

static void rings_make(struct detour *d, int32_t centre, int depth, struct rings *r)
{
    const struct fabric *f = d->fabric;
    uint32_t round = ++d->round;
    d->stamp[centre] = round;
    r->router[0] = centre;
    r->start[0] = 0;
    r->start[1] = 1;
    r->depth = 0;
    while (r->depth < depth) {
        int n = r->start[r->depth + 1];
        for (int i = r->start[r->depth]; i < r->start[r->depth + 1]; i++)
            for (int p = 0; p < f->ports; p++) {
                int32_t to = f->neighbor[r->router[i] * f->ports + p];
                if (to < 0 || d->stamp[to] == round)
                    continue;
                if (n == RING_MAX)
                    return; /* the last ring is not complete and does not count */
                d->stamp[to] = round;
                r->router[n++] = to;
            }
        r->depth++;
        r->start[r->depth + 1] = n;
    }
}

static bool is_known(const struct detour_query *q, const struct detour_path *path)
{
    for (int i = 0; i < q->skip; i++)
        if (detour_path_equal(&q->known[i].path, path))
            return true;
    return false;
}

/* a or b is -1 when that end has no intermediate. */
static void consider(struct detour *d, const struct detour_query *q, int32_t a, int32_t b, struct rng *rng,
                     struct best *best)
{
    struct detour_path path = {.nvia = 0};
    if (a >= 0)
        path.via[path.nvia++] = a;
    if (b >= 0 && b != a)
        path.via[path.nvia++] = b;
    int hops = detour_path_hops(d, q->from, &path, q->dest, best->hops >= 0 ? best->hops : INT_MAX);
    if (hops < 0 || is_known(q, &path))
        return;
    if (hops == best->hops && (!d->config.shortest || rng_below(rng, ++best->equals) != 0))
        return;
    if (hops != best->hops)
        best->equals = 1;
    best->path = path;
    best->hops = hops;
}

/* Every pair of one router at distance i from the start and one at distance j from the destination. */
static void consider_rings(struct detour *d, const struct detour_query *q, const struct rings *near, int i,
                           const struct rings *far, int j, struct rng *rng, struct best *best)
{
    for (int a = near->start[i]; a < near->start[i + 1]; a++)
        for (int b = far->start[j]; b < far->start[j + 1]; b++)
            consider(d, q, i ? near->router[a] : -1, j ? far->router[b] : -1, rng, best);
}

static void search_rings(struct detour *d, const struct detour_query *q, int least, struct rng *rng, struct best *best)
{
    int depth = d->config.max_distance < DISTANCE_MAX ? d->config.max_distance : DISTANCE_MAX;
    struct rings near, far;
    rings_make(d, q->from, depth, &near);
    rings_make(d, fabric_home(d->fabric, q->dest), q->both_ends ? depth : 0, &far);
    for (int sum = 1; sum <= depth && (best->hops < 0 || (d->config.shortest && best->hops > least)); sum++)
        for (int i = 0; i <= sum; i++)
            if (i <= near.depth && sum - i <= far.depth)
                consider_rings(d, q, &near, i, &far, sum - i, rng, best);
}

/* The routers beyond queue[first..last-1] that have not been reached: by firm links, or by cables. returns where
 * they end. */
static int32_t flood_on(struct detour *d, int32_t first, int32_t last, int32_t tail, bool firm, int32_t dest)
{
    const struct fabric *f = d->fabric;
    for (int32_t i = first; i < (firm ? tail : last); i++)
        for (int p = 0; p < f->ports; p++) {
            int32_t r = d->queue[i], link = r * f->ports + p, to = f->neighbor[link];
            if (to < 0 || d->stamp[to] == d->round || d->avoid[link] || fabric_firm(f, link) != firm)
                continue;
            /* Only hops a static route takes: of two cables between the same routers it takes one. */
            if (to * f->ports + fabric_next(f, to, r, dest) != f->reverse[link])
                continue;
            d->stamp[to] = d->round;
            d->parent[to] = r;
            d->queue[tail++] = to;
        }
    return tail;
}

/* Breadth-first over the cables that are not avoided, from the destination, so that parent[] leads there. What firm
 * links join is equally far. */
static bool flood(struct detour *d, int32_t from, int32_t home, int32_t dest)
{
    int32_t first = 0, last, tail = 0;
    d->stamp[home] = ++d->round;
    d->queue[tail++] = home;
    for (; first < tail && d->stamp[from] != d->round; first = last) {
        last = d->fabric->firm ? flood_on(d, first, tail, tail, true, dest) : tail;
        tail = flood_on(d, first, last, last, false, dest);
    }
    return d->stamp[from] == d->round;
}

/* Cut the flooded way into segments: from each start the farthest router whose static route avoids what it must. */
static void segment(struct detour *d, int32_t from, int32_t home, int32_t dest, struct detour_path *path)
{
    path->nvia = 0;
    while (from != home && path->nvia < DETOUR_MAX_VIA) {
        int32_t reach = d->parent[from];
        for (int32_t r = reach; r != home;) {
            r = d->parent[r];
            if (fabric_hops_avoiding(d->fabric, from, r, dest, d->avoid, INT_MAX) < 0)
                break;
            reach = r;
        }
        if (reach != home)
            path->via[path->nvia++] = reach;
        from = reach;
    }
}

static int search_anywhere(struct detour *d, const struct detour_query *q, struct detour_path *path)
{
    int32_t home = fabric_home(d->fabric, q->dest);
    if (!flood(d, q->from, home, q->dest))
        return -1;
    segment(d, q->from, home, q->dest, path);
    struct detour_walk w;
    detour_walk_begin(&w, d->fabric, q->from, path, q->dest);
    int hops = 0;
    for (int32_t link; (link = detour_walk_next(&w)) >= 0;)
        hops += !fabric_firm(d->fabric, link);
    return is_known(q, path) ? -1 : hops;
}

/* A clean path over a random router between both ends is as short as the original one. Corners of the box that they
 * span come first, then its edges: messages wait where streams merge, so each turn costs, and a path over a corner has
 * no more of them than the original one, while one over the middle may have three. */
static bool search_between(struct detour *d, const struct detour_query *q, int least, struct rng *rng,
                           struct best *best)
{
    int32_t home = fabric_home(d->fabric, q->dest);
    for (int i = 0; i < BETWEEN_TRIES && best->hops < 0; i++) {
        int32_t via = fabric_between(d->fabric, q->from, home, i / BETWEEN_INNER, rng);
        struct detour_path path = {.nvia = 1, .via = {via}};
        if (via == q->from || via == home || is_known(q, &path))
            continue;
        best->hops = detour_path_hops(d, q->from, &path, q->dest, least);
        best->path = path;
    }
    return best->hops >= 0;
}

int detour_search(struct detour *d, const struct detour_query *q, struct rng *rng, struct detour_path *path)
{
    int least = fabric_hops(d->fabric, q->from, fabric_home(d->fabric, q->dest), q->dest);
    struct best best = {.hops = -1};
    consider(d, q, -1, -1, rng, &best);
    if (best.hops < 0 && d->config.shortest)
        search_between(d, q, least, rng, &best);
    if (best.hops < 0)
        search_rings(d, q, least, rng, &best);
    if (best.hops < 0)
        return search_anywhere(d, q, path);
    *path = best.path;
    return best.hops;
}
