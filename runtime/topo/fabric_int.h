/* Between fabric.c and fabric_graph.c. */
#ifndef KEEL_TOPO_FABRIC_INT_H
#define KEEL_TOPO_FABRIC_INT_H
#include "runtime/topo/fabric.h"

/* The arrays of all kinds, for as many routers and ports. returns false when memory is out. */
bool fabric_alloc(struct fabric *f, int ndigits);
#endif
