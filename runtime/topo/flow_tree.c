#include "runtime/topo/flow_tree.h"

double flow_tree_route(const struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng,
                       struct detour_path *path)
{
    int32_t home = fabric_home(w->fabric, from), to = fabric_home(w->fabric, dest);
    double best = -1;
    if (home == to) {
        path->nvia = 0;
        return flow_price(w, from, path, dest);
    }
    for (int32_t i = 0, top; (top = fabric_ancestor(w->fabric, home, to, i)) >= 0; i++) {
        const struct detour_path way = {.via = {top}, .nvia = 1};
        double price = flow_price(w, from, &way, dest);
        if (price < 0)
            continue;
        price *= noise > 0 ? 1 + noise * rng_double(rng) : 1;
        if (best < 0 || price < best) {
            best = price;
            *path = way;
        }
    }
    return best;
}

/* Does the static route from one router to another begin with these ports, and end after them? */
static bool is_static(const struct fabric *f, int32_t at, int32_t to, int32_t dest, const uint8_t *ports, int n)
{
    int i = 0;
    for (int port; (port = fabric_next(f, at, to, dest)) >= 0; at = f->neighbor[at * f->ports + port])
        if (i == n || port != ports[i++])
            return false;
    return i == n;
}

bool flow_tree_path(const struct fabric *f, int32_t at, int32_t dest, const uint8_t *ports, int n,
                    struct detour_path *path)
{
    path->nvia = 0;
    for (int done = 0; done < n;) {
        int32_t end = at, to = at;
        int took = 0;
        for (int i = done; i < n; i++) {
            to = f->neighbor[to * f->ports + ports[i]];
            if (is_static(f, at, to, dest, ports + done, i + 1 - done)) {
                end = to;
                took = i + 1 - done;
            }
        }
        if (took == 0)
            return false;
        done += took;
        at = end;
        if (done < n && path->nvia == DETOUR_MAX_VIA)
            return false;
        if (done < n)
            path->via[path->nvia++] = at;
    }
    return true;
}
