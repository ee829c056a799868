/* How a field of cells is cut into blocks, one for each rank, and what of a block its neighbours need. Pure.
 *
 * A field has two or three dimensions; with two the third has one cell and one rank. Ranks stand in a grid of
 * keel's (keel/grid.h), whose x is the field's last dimension: rows of cells are rows of ranks, and of nodes. Cells
 * are cut as evenly as can be: the first blocks of a dimension have one more. A block is kept with a border of one
 * cell on all sides. */
#ifndef APPS_STENCIL_BLOCK_H
#define APPS_STENCIL_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/grid.h>

enum { STENCIL_DIMS = 3, STENCIL_DIRECTIONS = 27, STENCIL_HERE = 13 };

/* Cells [from, to) in each dimension of a block with its border: 0 is the border, 1 the first own cell. */
struct box {
    int from[STENCIL_DIMS], to[STENCIL_DIMS];
};

struct field {
    int dims;                /* 2, 3 */
    int cells[STENCIL_DIMS]; /* of the whole field */
    keel_grid grid;          /* that the ranks stand in, */
    int ranks[STENCIL_DIMS]; /* and how many there are along each dimension of the field */
    bool periodic;
    bool corners; /* the stencil needs neighbours across edges and corners, too */
};

struct block {
    int at[STENCIL_DIMS];              /* coordinates of the rank */
    int first[STENCIL_DIMS];           /* its first cell in the whole field */
    int cells[STENCIL_DIMS];           /* own cells */
    int neighbour[STENCIL_DIRECTIONS]; /* rank in that direction, -1: none, or nothing is needed from it */
};

/* What keel_grid_make is to cut. */
void field_extent(const struct field *f, int64_t extent[STENCIL_DIMS]);
/* The ranks stand in this grid, of as many dimensions. False: some rank would have no cell. */
bool field_arrange(struct field *f, const keel_grid *grid);
static inline int field_ranks(const struct field *f)
{
    return f->ranks[0] * f->ranks[1] * f->ranks[2];
}
struct block block_of(const struct field *f, int rank);
/* Cells of a block with its border, and the place of one of them in memory. */
static inline size_t block_size(const struct block *b)
{
    return (size_t)(b->cells[0] + 2) * (size_t)(b->cells[1] + 2) * (size_t)(b->cells[2] + 2);
}
static inline size_t block_index(const struct block *b, int i, int j, int k)
{
    return ((size_t)i * (size_t)(b->cells[1] + 2) + (size_t)j) * (size_t)(b->cells[2] + 2) + (size_t)k;
}
/* The largest block of the field with its border, and the most cells that one sends to a neighbour. */
size_t field_largest_block(const struct field *f);
size_t field_largest_halo(const struct field *f);

/* Directions are numbers: 9 * di + 3 * dj + dk, each d 0 (down), 1 (same), 2 (up). */
static inline int direction_step(int direction, int dim)
{
    static const int unit[STENCIL_DIMS] = {9, 3, 1};
    return direction / unit[dim] % 3 - 1;
}
static inline int direction_back(int direction)
{
    return STENCIL_DIRECTIONS - 1 - direction;
}
/* What is sent in a direction, and where what comes from there goes. */
struct box block_given(const struct block *b, int direction);
struct box block_taken(const struct block *b, int direction);
size_t box_cells(const struct box *box);
/* Copy the cells of a box of a block to a row, and back. Returns how many. */
size_t box_pack(const struct block *b, const struct box *box, const double *cells, double *row);
size_t box_unpack(const struct block *b, const struct box *box, double *cells, const double *row);
#endif
