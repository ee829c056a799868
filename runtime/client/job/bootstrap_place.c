/* Pure. */
#include <string.h>

#include "runtime/client/job/bootstrap.h"

int bootstrap_place(const char *machines, int stride, int n, int wanted, int *rank_node)
{
    int nodes = 0;
    for (int r = 0; r < n; r++) {
        rank_node[r] = -1;
        for (int q = 0; q < r && rank_node[r] < 0; q++)
            if (strcmp(machines + (long)q * stride, machines + (long)r * stride) == 0)
                rank_node[r] = rank_node[q];
        if (rank_node[r] < 0)
            rank_node[r] = nodes++;
    }
    if (!wanted)
        return nodes;
    if (nodes > 1)
        return -1;
    if (wanted > n)
        wanted = n;
    for (int r = 0; r < n; r++)
        rank_node[r] = (int)((long)r * wanted / n);
    return wanted;
}
