/* Ranks as a grid (keel/grid.h): how it is cut, and how far apart they are. Pure. */
#ifndef KEEL_CLIENT_JOB_GRID_H
#define KEEL_CLIENT_JOB_GRID_H

#include <keel/grid.h>

#include "runtime/wire/page.h"

/* keel_grid_make, for the job of this page. */
keel_status grid_make(const struct page *page, int dims, const int64_t *extent, keel_grid *out);
/* The same for so many ranks, without regard to nodes. dims 0 is KEEL_ERR_ARG. */
keel_status grid_make_plain(int ranks, int dims, const int64_t *extent, keel_grid *out);
/* Is it one that grid_make makes? */
bool grid_is_whole(const keel_grid *grid);
int grid_ranks(const keel_grid *grid);
void grid_coords_of(const keel_grid *grid, int rank, int *coords);
int grid_rank_of(const keel_grid *grid, const int *coords);
/* The coordinates of a place on the grid of nodes. */
void grid_place_coords(const struct page_grid *nodes, int place, int *coords);
int grid_hops(const struct page_grid *nodes, int a, int b);
#endif
