#include "apps/stencil/block.h"

#include <stdlib.h>
#include <string.h>

/* The grid's dimension that is this one of the field. */
static int dim_of_grid(const struct field *f, int dim)
{
    return f->dims - 1 - dim;
}

void field_extent(const struct field *f, int64_t extent[STENCIL_DIMS])
{
    for (int d = 0; d < f->dims; d++)
        extent[dim_of_grid(f, d)] = f->cells[d];
}

bool field_arrange(struct field *f, const keel_grid *grid)
{
    f->grid = *grid;
    f->ranks[2] = 1;
    for (int d = 0; d < f->dims; d++)
        f->ranks[d] = grid->size[dim_of_grid(f, d)];
    for (int d = 0; d < STENCIL_DIMS; d++)
        if (f->ranks[d] > f->cells[d])
            return false;
    return grid->dims == f->dims;
}

static int rank_towards(const struct field *f, int rank, int direction)
{
    int step[STENCIL_DIMS], there = -1;
    for (int d = 0; d < STENCIL_DIMS; d++) {
        if (d < f->dims)
            step[dim_of_grid(f, d)] = direction_step(direction, d);
        else if (direction_step(direction, d))
            return -1;
    }
    return keel_grid_neighbour(&f->grid, rank, step, f->periodic, &there) == KEEL_OK ? there : -1;
}

static int distance(int direction)
{
    int steps = 0;
    for (int d = 0; d < STENCIL_DIMS; d++)
        steps += direction_step(direction, d) != 0;
    return steps;
}

struct block block_of(const struct field *f, int rank)
{
    struct block b = {0};
    int coords[STENCIL_DIMS] = {0};
    if (keel_grid_coords(&f->grid, rank, coords) != KEEL_OK)
        abort(); /* no such rank: the caller's mistake */
    for (int d = 0; d < f->dims; d++)
        b.at[d] = coords[dim_of_grid(f, d)];
    for (int d = 0; d < STENCIL_DIMS; d++) {
        int each = f->cells[d] / f->ranks[d], more = f->cells[d] % f->ranks[d];
        b.cells[d] = each + (b.at[d] < more);
        b.first[d] = b.at[d] * each + (b.at[d] < more ? b.at[d] : more);
    }
    for (int direction = 0; direction < STENCIL_DIRECTIONS; direction++) {
        bool needed = direction != STENCIL_HERE && (f->corners || distance(direction) == 1);
        b.neighbour[direction] = needed ? rank_towards(f, rank, direction) : -1;
    }
    return b;
}

size_t field_largest_block(const struct field *f)
{
    struct block b = block_of(f, 0); /* the first has one more cell wherever one has */
    return block_size(&b);
}

size_t field_largest_halo(const struct field *f)
{
    struct block b = block_of(f, 0);
    size_t most = 0;
    for (int direction = 0; direction < STENCIL_DIRECTIONS; direction++) {
        struct box box = block_given(&b, direction);
        if (distance(direction) == 1 && box_cells(&box) > most)
            most = box_cells(&box);
    }
    return most;
}

/* A layer at the lower or upper end of a dimension: of own cells, or of the border beside them. */
static struct box layer(const struct block *b, int direction, int low, int beyond)
{
    struct box box;
    for (int d = 0; d < STENCIL_DIMS; d++) {
        int step = direction_step(direction, d), high = b->cells[d] + beyond;
        box.from[d] = step < 0 ? low : step > 0 ? high : 1;
        box.to[d] = step ? box.from[d] + 1 : b->cells[d] + 1;
    }
    return box;
}

struct box block_given(const struct block *b, int direction)
{
    return layer(b, direction, 1, 0);
}

struct box block_taken(const struct block *b, int direction)
{
    return layer(b, direction, 0, 1);
}

size_t box_cells(const struct box *box)
{
    size_t n = 1;
    for (int d = 0; d < STENCIL_DIMS; d++)
        n *= (size_t)(box->to[d] - box->from[d]);
    return n;
}

size_t box_pack(const struct block *b, const struct box *box, const double *cells, double *row)
{
    size_t n = 0, len = (size_t)(box->to[2] - box->from[2]);
    for (int i = box->from[0]; i < box->to[0]; i++)
        for (int j = box->from[1]; j < box->to[1]; j++, n += len)
            memcpy(row + n, cells + block_index(b, i, j, box->from[2]), len * sizeof *row);
    return n;
}

size_t box_unpack(const struct block *b, const struct box *box, double *cells, const double *row)
{
    size_t n = 0, len = (size_t)(box->to[2] - box->from[2]);
    for (int i = box->from[0]; i < box->to[0]; i++)
        for (int j = box->from[1]; j < box->to[1]; j++, n += len)
            memcpy(cells + block_index(b, i, j, box->from[2]), row + n, len * sizeof *row);
    return n;
}
