#include "runtime/topo/flow_int.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

bool flow_takes(const struct fabric *f)
{
    if (f->kind == FABRIC_TREE)
        return f->ports + f->arity <= QUEUED;
    return f->kind == FABRIC_GRID && f->grid.ndims <= 2;
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
                                                  : flow_grid_route(w, from, dest, noise, rng, &found);
    if (price < 0)
        price = flow_search_route(w, from, dest, FLT_MAX, &found);
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
    double less = flow_search_route(w, from, dest, (float)limit, &longer);
    if (less < 0)
        return price;
    *path = longer;
    return less;
}
