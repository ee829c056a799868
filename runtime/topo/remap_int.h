/* Inside of remap.h: remap.c changes places, remap_near.c finds which are near. */
#ifndef KEEL_TOPO_REMAP_INT_H
#define KEEL_TOPO_REMAP_INT_H
#include "runtime/topo/remap.h"

/* Component by component the median of where the peers of a slot stand: hops to them are fewest there. */
int32_t remap_middle(const struct load *l, int32_t slot);
/* The free nodes nearest to the middle of the slot's peers. */
int remap_near_free(const struct remap *r, const struct place *p, int32_t middle, struct remap_candidate *list);
/* The displaced slots with which a change of places shortens the ways to both slots' peers most. */
int remap_near_displaced(const struct remap *r, const struct place *p, int32_t slot, struct remap_candidate *list);
void remap_find_middle(struct remap *r, const struct place *p, int32_t index);
/* After a slot has moved, its own distance and its peers' middles are others. */
void remap_find_middles_around(struct remap *r, const struct place *p, int32_t slot);
void remap_add_displaced(struct remap *r, int32_t slot);
#endif
