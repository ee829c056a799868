#include "runtime/topo/fattree.h"

bool fattree_init(struct fattree *t, int32_t nodes, int32_t down, int32_t spines)
{
    if (nodes < 1 || down < 1 || spines < 1)
        return false;
    int64_t edges = ((int64_t)nodes + down - 1) / down;
    if (2 * (int64_t)nodes + 2 * edges * spines > INT32_MAX)
        return false;
    *t = (struct fattree){.nodes = nodes, .down = down, .spines = spines, .edges = (int32_t)edges};
    return true;
}

int fattree_route(const struct fattree *t, int32_t from, int32_t to, int32_t links[4])
{
    if (from == to)
        return 0;
    int32_t from_edge = from / t->down, to_edge = to / t->down, n = 0;
    links[n++] = from;
    if (from_edge != to_edge) {
        int32_t spine = to % t->spines, base = 2 * t->nodes;
        links[n++] = base + from_edge * t->spines + spine;
        links[n++] = base + t->edges * t->spines + to_edge * t->spines + spine;
    }
    links[n++] = t->nodes + to;
    return n;
}
