/* Neighbours in a ring of ranks, each of which has a slab of a periodic grid, exchange the planes at their slabs'
 * ends. */
#ifndef KEEL_NPB_HALO_H
#define KEEL_NPB_HALO_H

#include "apps/npb/window.h"

struct halo {
    struct window window;
    int below, above; /* the neighbours' ranks; the caller's own in a ring of one */
    size_t room;      /* bytes of the largest plane */
    unsigned step;
};

/* Collective; room, the bytes of the largest plane, is the same on all ranks. */
void halo_open(struct npb *npb, size_t room, struct halo *out);
void halo_close(struct halo *halo);

/* lowest and highest are the caller's outermost planes; below and above receive the neighbours' that are next to
 * them. All ranks call it with the same number of bytes. */
void halo_exchange(struct halo *halo, const double *lowest, const double *highest, double *below, double *above,
                   size_t bytes);

#endif
