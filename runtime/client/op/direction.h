/* Where on the grid of slots the bytes go that an operation moves by way of an agent: counted, so that agents know what
 * pattern the program has if it declares none (runtime/agent/weighing.h). Pure. */
#ifndef KEEL_CLIENT_OP_DIRECTION_H
#define KEEL_CLIENT_OP_DIRECTION_H

#include "runtime/base/counters.h"
#include "runtime/wire/page.h"

/* Under which counter bytes between two slots are counted, from != to; the nodes stand on a grid. */
static inline enum counter direction_of(const struct page_grid *g, int from, int to)
{
    int near = 0, first = 0, beside = 1;
    for (uint32_t d = 0, a = (uint32_t)from, b = (uint32_t)to; d < g->dims; d++) {
        int size = g->slots[d] > 0 ? g->slots[d] : 1;
        int step = (int)(a % (uint32_t)size) - (int)(b % (uint32_t)size);
        a /= (uint32_t)size;
        b /= (uint32_t)size;
        beside = beside && step >= -1 && step <= 1;
        near += step != 0;
        first = first || (d == 0 && step != 0);
    }
    if (beside)
        return near > 1 ? COUNTER_box_bytes : first ? COUNTER_row_bytes : COUNTER_star_bytes;
    int slots = 1, apart = from < to ? to - from : from - to;
    for (uint32_t d = 0; d < g->dims; d++)
        slots *= g->slots[d];
    return apart == 1 || apart == slots - 1 ? COUNTER_ring_bytes : COUNTER_far_bytes;
}
#endif
