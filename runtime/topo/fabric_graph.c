/* Networks given by their edges. */
#include "runtime/topo/fabric_int.h"

#include <stdlib.h>
#include <string.h>

static const char *graph_join(struct fabric *f, uint16_t *degree, const struct fabric_edge *e)
{
    if (e->a < 0 || e->b < 0 || e->a >= f->routers || e->b >= f->routers || e->a == e->b)
        return "an edge must join two routers of the graph";
    uint16_t *seen = f->hop + (size_t)(e->a < e->b ? e->a : e->b) * (size_t)f->routers + (e->a < e->b ? e->b : e->a);
    if (*seen == 0)
        return "two routers of a graph are joined by one edge at most";
    *seen = 0;
    int32_t ab = e->a * f->ports + degree[e->a]++, ba = e->b * f->ports + degree[e->b]++;
    f->neighbor[ab] = e->b;
    f->neighbor[ba] = e->a;
    f->reverse[ab] = ba;
    f->reverse[ba] = ab;
    f->firm[ab] = f->firm[ba] = e->firm;
    return NULL;
}

/* Shortest ways to one router, breadth first from it: the port that leads back to where the flood came from. */
static bool graph_routes(struct fabric *f, int32_t to, int32_t *queue)
{
    int32_t head = 0, tail = 0;
    size_t n = (size_t)f->routers;
    f->hop[(size_t)to * n + (size_t)to] = 0;
    for (queue[tail++] = to; head < tail; head++)
        for (int p = 0; p < f->ports; p++) {
            int32_t link = queue[head] * f->ports + p, r = f->neighbor[link];
            if (r < 0 || r == to || f->hop[(size_t)r * n + (size_t)to] != UINT16_MAX)
                continue;
            f->hop[(size_t)r * n + (size_t)to] = (uint16_t)(f->reverse[link] % f->ports);
            queue[tail++] = r;
        }
    return tail == f->routers;
}

const char *fabric_graph(struct fabric *f, int32_t routers, int32_t endpoints, const struct fabric_edge *edge,
                         int32_t n)
{
    memset(f, 0, sizeof *f);
    if (routers < 1 || routers > FABRIC_MAX_VERTICES || endpoints < 1 || endpoints > routers)
        return "a graph has 1 to 1024 routers, and endpoints on some of them";
    const char *wrong = NULL;
    uint16_t *degree = calloc((size_t)routers, sizeof *degree);
    int32_t *queue = malloc((size_t)routers * sizeof *queue);
    f->kind = FABRIC_GRAPH;
    f->routers = routers;
    f->endpoints = endpoints;
    for (int32_t i = 0; degree && i < n; i++)
        for (int end = 0; end < 2; end++) {
            int32_t r = end ? edge[i].b : edge[i].a;
            if (r >= 0 && r < routers && ++degree[r] > f->ports)
                f->ports = degree[r];
        }
    f->ports = f->ports ? f->ports : 1;
    f->hop = malloc((size_t)routers * (size_t)routers * sizeof *f->hop);
    f->firm = calloc((size_t)routers * (size_t)f->ports, 1);
    if (!degree || !queue || !f->hop || !f->firm || !fabric_alloc(f, 0)) {
        wrong = "out of memory";
        goto out;
    }
    memset(f->neighbor, -1, (size_t)fabric_links(f) * sizeof *f->neighbor);
    memset(f->reverse, -1, (size_t)fabric_links(f) * sizeof *f->reverse);
    memset(f->hop, -1, (size_t)routers * (size_t)routers * sizeof *f->hop);
    memset(degree, 0, (size_t)routers * sizeof *degree);
    for (int32_t i = 0; i < n && !wrong; i++)
        wrong = graph_join(f, degree, &edge[i]);
    memset(f->hop, -1, (size_t)routers * (size_t)routers * sizeof *f->hop);
    for (int32_t to = 0; to < routers && !wrong; to++)
        if (!graph_routes(f, to, queue))
            wrong = "a graph must be in one piece";
out:
    free(degree);
    free(queue);
    if (wrong)
        fabric_fini(f);
    return wrong;
}

const char *fabric_full(struct fabric *f, int32_t nodes, int32_t rails)
{
    memset(f, 0, sizeof *f);
    if (nodes < 2 || rails < 1 || nodes > FABRIC_MAX_VERTICES || rails > FABRIC_MAX_VERTICES / nodes)
        return "there must be two nodes or more, with at most 1024 rails together";
    int32_t n = 0;
    struct fabric_edge *edge = malloc((size_t)nodes * (size_t)nodes * (size_t)rails * sizeof *edge);
    if (!edge)
        return "out of memory";
    for (int32_t rail = 0; rail < rails; rail++)
        for (int32_t i = 0; i < nodes; i++) {
            if (rail > 0)
                edge[n++] = (struct fabric_edge){i, rail * nodes + i, true};
            for (int32_t k = i + 1; k < nodes; k++)
                edge[n++] = (struct fabric_edge){rail * nodes + i, rail * nodes + k, false};
        }
    const char *wrong = fabric_graph(f, rails * nodes, nodes, edge, n);
    free(edge);
    return wrong;
}
