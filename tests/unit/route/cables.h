/* How many cables a network has; firm links are none. */
#ifndef KEEL_TESTS_ROUTE_CABLES_H
#define KEEL_TESTS_ROUTE_CABLES_H

#include "runtime/topo/fabric.h"

static inline int32_t fabric_cables(const struct fabric *f)
{
    int32_t n = 0;
    for (int32_t l = 0; l < fabric_links(f); l++)
        n += f->neighbor[l] >= 0 && f->reverse[l] > l && !fabric_firm(f, l);
    return n;
}
#endif
