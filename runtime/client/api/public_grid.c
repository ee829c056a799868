/* The public calls about grids and patterns, on the process's instance. */
#include "runtime/client/api/calls.h"
#include "runtime/client/job/grid.h"
#include "runtime/client/job/process.h"

keel_status call_grid_make(int dims, const int64_t *extent, keel_grid *grid)
{
    return process_client.ready ? grid_make(process_client.page, dims, extent, grid) : KEEL_ERR_STATE;
}

keel_status call_grid_coords(const keel_grid *grid, int rank, int *coords)
{
    if (!grid_is_whole(grid) || rank < 0 || rank >= grid_ranks(grid) || !coords)
        return KEEL_ERR_ARG;
    grid_coords_of(grid, rank, coords);
    return KEEL_OK;
}

keel_status call_grid_rank(const keel_grid *grid, const int *coords, int *rank)
{
    if (!grid_is_whole(grid) || !coords || !rank)
        return KEEL_ERR_ARG;
    for (int d = 0; d < grid->dims; d++)
        if (coords[d] < 0 || coords[d] >= grid->size[d])
            return KEEL_ERR_ARG;
    *rank = grid_rank_of(grid, coords);
    return KEEL_OK;
}

keel_status call_grid_neighbour(const keel_grid *grid, int rank, const int *step, bool periodic, int *neighbour)
{
    if (!grid_is_whole(grid) || rank < 0 || rank >= grid_ranks(grid) || !step || !neighbour)
        return KEEL_ERR_ARG;
    int coords[KEEL_GRID_DIMS_MAX];
    grid_coords_of(grid, rank, coords);
    *neighbour = -1;
    for (int d = 0; d < grid->dims; d++) {
        int64_t at = (int64_t)coords[d] + step[d], size = grid->size[d];
        if ((at < 0 || at >= size) && !periodic)
            return KEEL_OK;
        coords[d] = (int)((at % size + size) % size);
    }
    *neighbour = grid_rank_of(grid, coords);
    return KEEL_OK;
}

/* The place of the node that runs the rank; -1: none. */
static int place_of(int rank)
{
    int node = call_rank_node(rank);
    if (node < 0 || !process_client.page->grid.dims)
        return -1;
    return atomic_load_explicit(&page_node(process_client.page, node)->place, memory_order_relaxed);
}

int call_grid_place(int rank, int *coords)
{
    int place = place_of(rank);
    if (place < 0 || !coords)
        return 0;
    grid_place_coords(&process_client.page->grid, place, coords);
    return (int)process_client.page->grid.dims;
}

int call_grid_distance(int a, int b)
{
    int from = place_of(a), to = place_of(b);
    return from < 0 || to < 0 ? -1 : grid_hops(&process_client.page->grid, from, to);
}

keel_status call_pattern(keel_pattern_kind kind, uint64_t bytes)
{
    static const enum note_pattern of[] = {[KEEL_PATTERN_NONE] = PATTERN_WITHDRAWN, [KEEL_PATTERN_5P] = PATTERN_BESIDE,
                                           [KEEL_PATTERN_7P] = PATTERN_BESIDE,      [KEEL_PATTERN_9P] = PATTERN_AROUND,
                                           [KEEL_PATTERN_27P] = PATTERN_AROUND,     [KEEL_PATTERN_RING] = PATTERN_NEXT,
                                           [KEEL_PATTERN_ALL] = PATTERN_EVERYBODY};
    struct client *c = &process_client;
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (kind < KEEL_PATTERN_NONE || kind > KEEL_PATTERN_ALL)
        return KEEL_ERR_ARG;
    atomic_store_explicit(&c->intents->pattern_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&c->intents->pattern, of[kind], memory_order_release);
    return KEEL_OK;
}
