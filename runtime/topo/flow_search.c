/* Ways of any length. */
#include "runtime/topo/flow_int.h"

#include <float.h>
#include <stdlib.h>

static int32_t link_into(const struct fabric *f, int32_t at, int input)
{
    return f->reverse[at * f->ports + (f->kind == FABRIC_GRID ? input ^ 1 : input)];
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

static bool path_of(const struct fabric *f, int32_t from, int32_t dest, const uint8_t *ports, int n,
                    struct detour_path *path)
{
    if (f->kind == FABRIC_TREE)
        return flow_tree_path(f, fabric_home(f, from), dest, ports, n, path);
    return flow_grid_path(f, from, ports, n, path);
}

double flow_search_route(struct flow *w, int32_t from, int32_t dest, float limit, struct detour_path *path)
{
    uint8_t ports[PORTS_MAX] = {0};
    for (int round = 0; round < DEARER_TURNS; round++) {
        int n = 0;
        if (search_all(w, from, dest, turn_price(w, round), limit, ports, &n) >= FLT_MAX)
            return -1;
        if (path_of(w->fabric, from, dest, ports, n, path))
            return flow_price(w, from, path, dest);
    }
    return -1;
}
