/* Ranks as a grid, and how far they are from each other on the grid of nodes.
 *
 * A grid of ranks has 1 to KEEL_GRID_DIMS_MAX dimensions, and each rank its coordinates. They belong to the rank,
 * whatever becomes of nodes: a process that takes a rank over, there or elsewhere, has the same ones.
 *
 * Under `keelrun --grid` the nodes are a grid, too. A grid of ranks with as many dimensions follows it, if each place
 * for a computing node has one, all with as many ranks: the ranks that started on one node are a block of the grid, and
 * the blocks lie as their nodes do. So neighbours are on the same node or on nodes side by side; what `--substitution`
 * does when a node dies is to keep them near. In any other job, and with another number of dimensions, ranks are
 * numbered through, the first coordinate fastest. All ranks that ask the same get the same.
 *
 * threads   any.
 * blocks    no.
 * errors    KEEL_ERR_ARG: an argument is wrong. */
#ifndef KEEL_GRID_H
#define KEEL_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KEEL_GRID_DIMS_MAX = 6 };

/* size[0] by size[1] ... ranks; they are 1 from dims on. Ranks are numbered block by block, and within a block, both
 * with the first dimension fastest; block divides size, and is the same where ranks are numbered through. */
typedef struct keel_grid {
    int dims;
    int size[KEEL_GRID_DIMS_MAX];
    int block[KEEL_GRID_DIMS_MAX];
} keel_grid;

/* All ranks of the job as a grid of so many dimensions; 0: as many as the nodes' grid has, 2 where there is none.
 * extent[dims] are the sides of what is cut into a piece for each rank, in elements (NULL: a square, a cube): of all
 * ways the one with the fewest elements on the faces between pieces is taken, of equal ones that with the most ranks in
 * the first dimension, then in the second, and so on. It leaves out those with more ranks than elements in a dimension,
 * and does not follow the nodes where that would leave none.
 * errors    KEEL_ERR_ARG: dims is negative or too large, or an extent below 1, or their product above 2^40.
 *           KEEL_ERR_LIMIT: there is no way to give each rank an element. KEEL_ERR_STATE: before keel_init. */
KEEL_MUST_CHECK keel_status keel_grid_make(int dims, const int64_t *extent, keel_grid *grid);
/* The rank's coordinates, coords[grid->dims], from 0 on; and whose these are.
 * errors    KEEL_ERR_ARG: no such rank or coordinates. */
KEEL_MUST_CHECK keel_status keel_grid_coords(const keel_grid *grid, int rank, int *coords);
KEEL_MUST_CHECK keel_status keel_grid_rank(const keel_grid *grid, const int *coords, int *rank);
/* The rank that is step[grid->dims] away, in any direction, diagonals too. Beyond the end of a dimension nobody is, and
 * *neighbour is -1; with periodic that dimension begins again, and it may be the rank itself. */
__extension__ KEEL_MUST_CHECK keel_status keel_grid_neighbour(const keel_grid *grid, int rank, const int *step,
                                                              bool periodic, int *neighbour);

/* Where the node stands that runs the rank now: its coordinates on the grid of nodes, coords[KEEL_GRID_DIMS_MAX].
 * Changes with the view.
 * returns   how many there are; 0: the nodes have no grid, nobody runs the rank, or there is no such one. */
int keel_grid_place(int rank, int *coords);
/* Links between the nodes that run two ranks now, on the shortest way; 0 on one node. Changes with the view.
 * returns   -1 where keel_grid_place is 0 for one of them. */
int keel_grid_distance(int a, int b);

#ifdef __cplusplus
}
#endif
#endif
