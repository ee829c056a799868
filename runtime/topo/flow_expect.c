/* The streams of a pattern. */
#include "runtime/topo/flow_int.h"

#include <stdlib.h>

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
