/* Ranks on a grid flood the largest of their numbers to all: in each round a rank takes the largest of its own and its
 * neighbours'. A node dies, and neighbours stay near. Usage: grid [ROUNDS]. */
#include "check.h"

#include <inttypes.h>

/* A rank's number lies twice in its part: what round r reads at r % 2, what it writes behind that. */
static size_t place(uint64_t round)
{
    return sizeof(int64_t) * (size_t)(round % 2);
}

static int64_t largest_around(const keel_grid *grid, keel_segment *numbers, uint64_t round)
{
    int64_t largest = -1, number;
    for (int way = 0; way < 5; way++) {
        static const int steps[5][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
        int neighbour;
        check(keel_grid_neighbour(grid, keel_rank(), steps[way], false, &neighbour), "neighbour");
        if (neighbour < 0)
            continue; /* beyond the edge */
        check(keel_get(numbers, neighbour, place(round), &number, sizeof number), "get");
        largest = number > largest ? number : largest;
    }
    return largest;
}

/* Links between the nodes of neighbours, where they are farthest apart; -1: nodes have no places. */
static int farthest(const keel_grid *grid)
{
    static const int right[2] = {1, 0}, up[2] = {0, 1};
    int most = keel_grid_distance(0, 0);
    for (int rank = 0; rank < keel_size(); rank++)
        for (int way = 0; way < 2; way++) {
            int neighbour, links;
            check(keel_grid_neighbour(grid, rank, way ? up : right, false, &neighbour), "neighbour");
            links = neighbour < 0 ? 0 : keel_grid_distance(rank, neighbour);
            most = links > most ? links : most;
        }
    return most;
}

int main(int argc, char **argv)
{
    uint64_t round = 0, rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    keel_segment *numbers;
    keel_grid grid;
    int at[KEEL_GRID_DIMS_MAX];
    check(keel_init(), "init");
    check(keel_move_mode(KEEL_MOVE_ASK), "move_mode"); /* this rank moves where keel_move stands, and nowhere else */
    check(keel_grid_make(2, NULL, &grid), "grid_make");
    check(keel_grid_coords(&grid, keel_rank(), at), "grid_coords");
    check(keel_segment_alloc(2 * sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &numbers), "segment_alloc");
    check(keel_resume(&round), "resume"); /* each round makes one collective, and so does the start */

    if (round == 0) {
        int64_t mine = keel_rank();
        check(keel_put(numbers, keel_rank(), place(1), &mine, sizeof mine), "put");
        check(keel_barrier(), "barrier");
        round = 1;
    } else {
        fprintf(stderr, "rank %d at %d,%d goes on in round %" PRIu64 " on node %d\n", keel_rank(), at[0], at[1], round,
                keel_rank_node(keel_rank()));
    }
    for (; round <= rounds; round++) {
        int64_t largest = largest_around(&grid, numbers, round);
        check(keel_put(numbers, keel_rank(), place(round + 1), &largest, sizeof largest), "put");
        if (round == rounds / 2)
            check(keel_event("half", (int64_t)round, NULL), "event");
        check(keel_barrier(), "barrier"); /* all have written, and nobody reads what the next round writes */
        if (keel_move_pending())
            (void)keel_move(); /* does not come back, unless the plan has changed meanwhile */
    }
    if (keel_rank() == 0) {
        int64_t here;
        check(keel_get(numbers, 0, place(round), &here, sizeof here), "get");
        printf("%dx%d ranks: rank 0 has heard of %" PRId64 "; neighbours are at most %d links apart\n", grid.size[0],
               grid.size[1], here, farthest(&grid));
    }
    check(keel_finalize(), "finalize");
    return 0;
}
