#include "apps/stencil/block.h"

#include <string.h>

/* Cells on the faces between blocks: what the ranks of such a grid have to send each other. */
static int64_t faces(const struct field *f, const int *ranks)
{
    int64_t sum = 0;
    for (int d = 0; d < STENCIL_DIMS; d++) {
        int64_t face = ranks[d] - 1;
        for (int e = 0; e < STENCIL_DIMS; e++)
            face *= e == d ? 1 : f->cells[e];
        sum += face;
    }
    return sum;
}

static bool fits(const struct field *f, const int *ranks)
{
    for (int d = 0; d < STENCIL_DIMS; d++)
        if (ranks[d] > f->cells[d])
            return false;
    return true;
}

bool field_arrange(struct field *f, int ranks)
{
    bool found = false;
    for (int i = 1; i <= ranks; i++) {
        for (int j = 1; ranks % i == 0 && j <= ranks / i; j++) {
            int grid[STENCIL_DIMS] = {i, j, ranks / i / j};
            if (ranks / i % j || (f->dims == 2 && grid[2] > 1) || !fits(f, grid))
                continue;
            if (!found || faces(f, grid) < faces(f, f->ranks))
                memcpy(f->ranks, grid, sizeof grid);
            found = true;
        }
    }
    return found;
}

static int rank_at(const struct field *f, const int *at)
{
    int where[STENCIL_DIMS];
    for (int d = 0; d < STENCIL_DIMS; d++) {
        where[d] = at[d];
        if (where[d] >= 0 && where[d] < f->ranks[d])
            continue;
        if (!f->periodic || d >= f->dims)
            return -1;
        where[d] = (where[d] + f->ranks[d]) % f->ranks[d];
    }
    return (where[0] * f->ranks[1] + where[1]) * f->ranks[2] + where[2];
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
    struct block b = {.at = {rank / f->ranks[2] / f->ranks[1], rank / f->ranks[2] % f->ranks[1], rank % f->ranks[2]}};
    for (int d = 0; d < STENCIL_DIMS; d++) {
        int each = f->cells[d] / f->ranks[d], more = f->cells[d] % f->ranks[d];
        b.cells[d] = each + (b.at[d] < more);
        b.first[d] = b.at[d] * each + (b.at[d] < more ? b.at[d] : more);
    }
    for (int direction = 0; direction < STENCIL_DIRECTIONS; direction++) {
        int at[STENCIL_DIMS];
        for (int d = 0; d < STENCIL_DIMS; d++)
            at[d] = b.at[d] + direction_step(direction, d);
        bool needed = direction != STENCIL_HERE && (f->corners || distance(direction) == 1);
        b.neighbour[direction] = needed ? rank_at(f, at) : -1;
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
