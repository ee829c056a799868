#include "runtime/client/job/grid.h"

#include <string.h>

#include "runtime/base/limits.h"

enum { DIMS = KEEL_GRID_DIMS_MAX };
_Static_assert((int)DIMS == (int)PAGE_GRID_DIMS, "the same limit for nodes");
#define ELEMENTS_MAX (INT64_C(1) << 40) /* times ranks it fits an int64_t */

/* ---- coordinates ---- */

static int product(const int *size)
{
    int64_t n = 1;
    for (int d = 0; d < DIMS && n <= LIMIT_RANKS; d++)
        n *= size[d];
    return n <= LIMIT_RANKS ? (int)n : LIMIT_RANKS + 1;
}

bool grid_is_whole(const keel_grid *g)
{
    if (!g || g->dims < 1 || g->dims > DIMS)
        return false;
    for (int d = 0; d < DIMS; d++)
        if (g->size[d] < 1 || g->block[d] < 1 || g->size[d] % g->block[d] || (d >= g->dims && g->size[d] > 1))
            return false;
    return product(g->size) <= LIMIT_RANKS;
}

int grid_ranks(const keel_grid *g)
{
    return product(g->size);
}

void grid_coords_of(const keel_grid *g, int rank, int *coords)
{
    int in_block = product(g->block), at = rank % in_block, block = rank / in_block;
    for (int d = 0; d < g->dims; d++) {
        int blocks = g->size[d] / g->block[d];
        coords[d] = block % blocks * g->block[d] + at % g->block[d];
        block /= blocks;
        at /= g->block[d];
    }
}

int grid_rank_of(const keel_grid *g, const int *coords)
{
    int at = 0, block = 0;
    for (int d = g->dims - 1; d >= 0; d--) {
        block = block * (g->size[d] / g->block[d]) + coords[d] / g->block[d];
        at = at * g->block[d] + coords[d] % g->block[d];
    }
    return block * product(g->block) + at;
}

/* ---- how it is cut ---- */

struct cut {
    int dims;
    const int64_t *extent; /* NULL: all equal */
    const int *blocks;     /* [DIMS] that there are of each in a dimension */
    int best[DIMS];        /* block */
    int64_t faces;         /* of best; -1: there is none yet */
};

/* Elements on the faces between pieces; -1: a piece has none. */
static int64_t faces_of(const struct cut *c, const int *block)
{
    int64_t sum = 0;
    for (int d = 0; d < c->dims; d++) {
        int64_t ranks = (int64_t)c->blocks[d] * block[d], face = ranks - 1;
        if (c->extent && ranks > c->extent[d])
            return -1;
        for (int e = 0; c->extent && e < c->dims; e++)
            face *= e == d ? 1 : c->extent[e];
        sum += face;
    }
    return sum;
}

/* All ways to give n ranks to the dimensions 0 .. d, those with the most in the first ones first. */
static void try_factors(struct cut *c, int *block, int d, int n)
{
    if (d == 0) {
        block[0] = n;
        int64_t faces = faces_of(c, block);
        if (faces >= 0 && (c->faces < 0 || faces < c->faces)) {
            memcpy(c->best, block, sizeof c->best);
            c->faces = faces;
        }
        return;
    }
    for (int here = 1; here <= n; here++)
        if (n % here == 0) {
            block[d] = here;
            try_factors(c, block, d - 1, n / here); // NOLINT(misc-no-recursion): as deep as there are dimensions
        }
}

static bool cut(keel_grid *out, int dims, const int64_t *extent, const int *blocks, int n)
{
    struct cut c = {.dims = dims, .extent = extent, .blocks = blocks, .faces = -1};
    int block[DIMS] = {1, 1, 1, 1, 1, 1};
    try_factors(&c, block, dims - 1, n);
    for (int d = 0; d < DIMS && c.faces >= 0; d++) {
        out->block[d] = c.best[d];
        out->size[d] = blocks[d] * c.best[d];
    }
    return c.faces >= 0;
}

/* Ranks on each node, if the places for computing nodes have one each, with equally many ranks in their order;
 * else 0. */
static int ranks_each(const struct page *page)
{
    uint32_t places = 1, each = page->ranks / page->nodes;
    for (uint32_t d = 0; d < page->grid.dims; d++)
        places *= (uint32_t)page->grid.slots[d];
    if (places != page->nodes || each * page->nodes != page->ranks)
        return 0;
    for (uint32_t r = 0; r < page->ranks; r++)
        if (page_rank(page, (int)r)->slot != r / each || page_rank(page, (int)r)->index != r % each)
            return 0;
    return (int)each;
}

static bool extents_are_right(int dims, const int64_t *extent)
{
    int64_t all = 1;
    for (int d = 0; extent && d < dims; d++) {
        if (extent[d] < 1 || extent[d] > ELEMENTS_MAX / all)
            return false;
        all *= extent[d];
    }
    return true;
}

keel_status grid_make_plain(int ranks, int dims, const int64_t *extent, keel_grid *out)
{
    static const int one[DIMS] = {1, 1, 1, 1, 1, 1};
    if (dims < 1 || dims > DIMS || !out || !extents_are_right(dims, extent))
        return KEEL_ERR_ARG;
    *out = (keel_grid){.dims = dims};
    return cut(out, dims, extent, one, ranks) ? KEEL_OK : KEEL_ERR_LIMIT;
}

keel_status grid_make(const struct page *page, int dims, const int64_t *extent, keel_grid *out)
{
    int of_nodes = (int)page->grid.dims, blocks[DIMS] = {1, 1, 1, 1, 1, 1};
    if (dims == 0 && !extent)
        dims = of_nodes ? of_nodes : 2;
    keel_status status = grid_make_plain((int)page->ranks, dims, extent, out);
    if (status == KEEL_ERR_ARG)
        return status;
    int each = dims == of_nodes ? ranks_each(page) : 0;
    for (int d = 0; d < of_nodes; d++)
        blocks[d] = page->grid.slots[d];
    if (each && cut(out, dims, extent, blocks, each))
        return KEEL_OK;
    return status;
}

/* ---- the grid of nodes ---- */

void grid_place_coords(const struct page_grid *nodes, int place, int *coords)
{
    for (uint32_t d = 0; d < nodes->dims; d++) {
        coords[d] = place % nodes->size[d];
        place /= nodes->size[d];
    }
}

int grid_hops(const struct page_grid *nodes, int a, int b)
{
    int from[DIMS], to[DIMS], hops = 0;
    grid_place_coords(nodes, a, from);
    grid_place_coords(nodes, b, to);
    for (uint32_t d = 0; d < nodes->dims; d++) {
        int straight = from[d] < to[d] ? to[d] - from[d] : from[d] - to[d], round = nodes->size[d] - straight;
        hops += nodes->rings >> d & 1 && round < straight ? round : straight;
    }
    return hops;
}
