/* placed STEPS [KIND BYTES]: ranks on a grid of nodes count to STEPS in their parts of a segment with shadows, a step
 * every ten milliseconds. They declare a pattern, if one is given: KIND is a number of keel_pattern_kind; with 0 they
 * declare nothing and put BYTES to the neighbours in both directions at each step. Each says where it begins, and in
 * the end where all are, as keel/grid.h has it. */
#include <keel/keel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { STEP_US = 10000 };

static const char *place_text(int rank, char *out, size_t size)
{
    int at[KEEL_GRID_DIMS_MAX], dims = keel_grid_place(rank, at);
    size_t n = 0;
    out[0] = '\0';
    for (int d = 0; d < dims; d++)
        n += (size_t)snprintf(out + n, size - n, "%s%d", d ? "," : "", at[d]);
    return out;
}

/* To each neighbour into its place for what comes: nobody reads it. */
static void send_to_neighbours(keel_segment *s, const keel_grid *grid, const char *bytes, size_t len)
{
    for (int side = 0; side < 4 && len; side++) {
        int step[KEEL_GRID_DIMS_MAX] = {0}, to;
        step[side / 2] = side % 2 ? 1 : -1;
        CHECK(keel_grid_neighbour(grid, keel_rank(), step, false, &to));
        if (to >= 0)
            CHECK(keel_put(s, to, sizeof(int64_t), bytes, len));
    }
}

int main(int argc, char **argv)
{
    const int64_t steps = argc > 1 ? atoi(argv[1]) : 100;
    keel_segment *s;
    keel_grid grid;
    int64_t at = 0;
    char text[80];
    int coords[KEEL_GRID_DIMS_MAX];
    CHECK(keel_init());
    const int me = keel_rank();
    EXPECT(keel_pattern((keel_pattern_kind)(KEEL_PATTERN_ALL + 1), 8) == KEEL_ERR_ARG);
    if (argc > 3)
        CHECK(keel_pattern((keel_pattern_kind)atoi(argv[2]), strtoull(argv[3], NULL, 10)));
    const size_t len = argc > 3 && atoi(argv[2]) == 0 ? strtoull(argv[3], NULL, 10) : 0;
    char *bytes = calloc(1, len + 1);
    EXPECT(bytes != NULL);
    CHECK(keel_segment_alloc(sizeof at + len, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_get(s, me, 0, &at, sizeof at));
    CHECK(keel_grid_make(2, NULL, &grid));
    CHECK(keel_grid_coords(&grid, me, coords));
    EXPECT(keel_grid_distance(me, me) == 0);
    printf("rank %d is %d,%d and begins at %s\n", me, coords[0], coords[1], place_text(me, text, sizeof text));
    fflush(stdout);
    CHECK(keel_resume(NULL));
    while (at < steps) {
        usleep(STEP_US);
        at++;
        CHECK(keel_put(s, me, 0, &at, sizeof at));
        send_to_neighbours(s, &grid, bytes, len);
        (void)keel_move(); /* where the rank is to go elsewhere this process ends here */
    }
    CHECK(keel_barrier());
    for (int r = 0; r < keel_size() && me == 0; r++) {
        CHECK(keel_get(s, r, 0, &at, sizeof at));
        EXPECT(at == steps);
        printf("rank %d ends at %s, %d from rank 0\n", r, place_text(r, text, sizeof text), keel_grid_distance(0, r));
    }
    fflush(stdout);
    free(bytes);
    CHECK(keel_barrier());
    return keel_finalize() != KEEL_OK;
}
