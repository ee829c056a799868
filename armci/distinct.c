/* Of pieces that begin at the same place the last one stays, as if they were put one after the other. GA_Scatter to an
 * element twice is such a call: without this each of its pieces would be an operation that is waited for. */
#include <stdlib.h>

#include "armci/armci_int.h"

struct entry {
    keel_piece piece;
    size_t order;
};

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->piece.offset != y->piece.offset)
        return x->piece.offset < y->piece.offset ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

size_t armci_distinct(keel_piece *piece, size_t n)
{
    struct entry *e = malloc(n * sizeof *e + 1);
    size_t left = 0;
    if (!e)
        return n;
    for (size_t i = 0; i < n; i++)
        e[i] = (struct entry){piece[i], i};
    qsort(e, n, sizeof *e, by_place);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || e[i + 1].piece.offset != e[i].piece.offset)
            piece[left++] = e[i].piece;
    free(e);
    return left;
}
