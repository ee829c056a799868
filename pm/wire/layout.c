#include "pm/wire/layout.h"

#include <stdio.h>

int layout_ranks(int ranks, int nodes, int ppn, int *rank_node)
{
    if (ranks < 1 || nodes < 1 || ppn < 0 || nodes > ranks)
        return 0;
    if (ppn > 0 && ((ranks + ppn - 1) / ppn != nodes))
        return 0;
    int base = ranks / nodes, extra = ranks % nodes, rank = 0;
    for (int node = 0; node < nodes; node++) {
        int here = ppn > 0 ? ppn : base + (node < extra);
        for (int i = 0; i < here && rank < ranks; i++)
            rank_node[rank++] = node;
    }
    return 1;
}

int layout_max_per_node(const int *rank_node, int ranks)
{
    int max = 0, run = 0;
    for (int r = 0; r < ranks; r++) {
        run = r > 0 && rank_node[r] == rank_node[r - 1] ? run + 1 : 1;
        max = run > max ? run : max;
    }
    return max;
}

size_t layout_pmi_mapping(const int *rank_node, int ranks, char *out, size_t size)
{
    size_t used = 0;
#define EMIT(...) used += (size_t)snprintf(used < size ? out + used : NULL, used < size ? size - used : 0, __VA_ARGS__)
    EMIT("(vector");
    for (int r = 0; r < ranks;) {
        int first = rank_node[r], per_node = 0, nodes = 0;
        while (r + per_node < ranks && rank_node[r + per_node] == first)
            per_node++;
        /* as many further nodes, counted up, as hold the same number of ranks */
        while (r < ranks) {
            int here = 0;
            while (r + here < ranks && rank_node[r + here] == first + nodes)
                here++;
            if (here != per_node)
                break;
            r += here;
            nodes++;
        }
        EMIT(",(%d,%d,%d)", first, nodes, per_node);
    }
    EMIT(")");
#undef EMIT
    return used;
}
