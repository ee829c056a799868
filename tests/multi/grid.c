/* Ranks as a grid, in any job: coordinates and ranks are one to one, all ranks get the same, and neighbours on the grid
 * of nodes are near. grid SIZE BLOCK: what --grid makes of the ranks ("8x8 2x2"); "" where the nodes have no grid. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

static void expect_numbers(const keel_grid *grid)
{
    int at[KEEL_GRID_DIMS_MAX], rank, coords[KEEL_GRID_DIMS_MAX];
    for (int r = 0; r < keel_size(); r++) {
        CHECK(keel_grid_coords(grid, r, at));
        CHECK(keel_grid_rank(grid, at, &rank));
        EXPECT(rank == r);
        for (int d = 0; d < grid->dims; d++) {
            int there, back, up[KEEL_GRID_DIMS_MAX] = {0}, down[KEEL_GRID_DIMS_MAX] = {0};
            up[d] = 1;
            down[d] = -1;
            CHECK(keel_grid_neighbour(grid, r, up, true, &there));
            CHECK(keel_grid_neighbour(grid, there, down, true, &back));
            EXPECT(back == r);
            CHECK(keel_grid_coords(grid, there, coords));
            EXPECT(coords[d] == (at[d] + 1) % grid->size[d]);
            CHECK(keel_grid_neighbour(grid, r, up, false, &there));
            EXPECT((there < 0) == (at[d] == grid->size[d] - 1));
        }
    }
    EXPECT_STATUS(keel_grid_coords(grid, keel_size(), at), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_grid_coords(grid, -1, at), KEEL_ERR_ARG);
    at[0] = grid->size[0];
    EXPECT_STATUS(keel_grid_rank(grid, at, &rank), KEEL_ERR_ARG);
}

static void expect_the_same_everywhere(const keel_grid *grid)
{
    keel_grid of_rank_0 = *grid;
    CHECK(keel_bcast(0, &of_rank_0, sizeof of_rank_0));
    EXPECT(memcmp(&of_rank_0, grid, sizeof *grid) == 0);
}

static void write_sides(char *out, size_t size, const int *side, int dims)
{
    size_t n = 0;
    for (int d = 0; d < dims; d++)
        n += (size_t)snprintf(out + n, size - n, "%s%d", d ? "x" : "", side[d]);
}

/* Ranks of one block are on one node, those of blocks side by side are one link apart. */
static void expect_near(const keel_grid *grid)
{
    int place[KEEL_GRID_DIMS_MAX];
    for (int r = 0; r < keel_size(); r++) {
        EXPECT(keel_grid_place(r, place) == grid->dims);
        for (int d = 0; d < grid->dims; d++) {
            int at[KEEL_GRID_DIMS_MAX], step[KEEL_GRID_DIMS_MAX] = {0}, there;
            step[d] = 1;
            CHECK(keel_grid_coords(grid, r, at));
            CHECK(keel_grid_neighbour(grid, r, step, false, &there));
            EXPECT(place[d] == at[d] / grid->block[d]);
            EXPECT(there < 0 || keel_grid_distance(r, there) == ((at[d] + 1) % grid->block[d] == 0));
        }
    }
}

int main(int argc, char **argv)
{
    keel_grid grid, other;
    char text[80];
    int place[KEEL_GRID_DIMS_MAX];
    CHECK(keel_init());
    EXPECT(argc == 3);
    CHECK(keel_grid_make(0, NULL, &grid));
    expect_numbers(&grid);
    expect_the_same_everywhere(&grid);
    if (*argv[1]) {
        write_sides(text, sizeof text, grid.size, grid.dims);
        EXPECT(strcmp(text, argv[1]) == 0);
        write_sides(text, sizeof text, grid.block, grid.dims);
        EXPECT(strcmp(text, argv[2]) == 0);
        expect_near(&grid);
    } else {
        EXPECT(grid.dims == 2 && memcmp(grid.size, grid.block, sizeof grid.size) == 0);
        EXPECT(keel_grid_place(0, place) == 0 && keel_grid_distance(0, 0) == -1);
    }
    for (int dims = 1; dims <= KEEL_GRID_DIMS_MAX; dims++) {
        CHECK(keel_grid_make(dims, NULL, &other));
        EXPECT(other.dims == dims);
        expect_numbers(&other);
    }
    EXPECT_STATUS(keel_grid_make(KEEL_GRID_DIMS_MAX + 1, NULL, &other), KEEL_ERR_ARG);
    EXPECT(keel_grid_distance(0, keel_size()) == -1 && keel_grid_place(-1, place) == 0);
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    return 0;
}
