/* The paper's small examples by hand, and what must hold on any grid. */
#include "tests/unit/topo/testlib.h"
#include "tests/lib/topo/look.h"

/* Figure 4: one failure far from its spare; five routes share a link. */
static void test_place_0d_one_failure_five_messages_meet(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "6x6", "2D(1,1)", "0D");
    assert_int_equal(load_collisions(&j.load), 1);
    assert_int_equal(job_fail_xy(&j, 2, 3), PLACE_MOVED);
    assert_int_equal(j.plan.count, 1);
    assert_int_equal(j.plan.moves[0].to, at(&j, 5, 3));
    assert_int_equal(load_collisions(&j.load), 5);
    assert_int_equal(j.load.phase[0].count[grid_link(&j.grid, at(&j, 4, 3), 0, GRID_DOWN)], 5);
    job_close(&j);
}

/* Figure 5: the same failure by 0D, 1D and 2D. */
static void test_place_one_failure_moves_one_node_a_line_or_a_half_plane(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "6x6", "2D(1,1)", "1D");
    assert_int_equal(job_fail_xy(&j, 2, 3), PLACE_MOVED);
    assert_int_equal(j.plan.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(j.plan.moves[i].from, at(&j, 4 - i, 3));
        assert_int_equal(j.plan.moves[i].to, at(&j, 5 - i, 3));
    }
    assert_int_equal(load_collisions(&j.load), 3);
    job_close(&j);
    job_open(&j, "6x6", "2D(1,1)", "2D");
    assert_int_equal(job_fail_xy(&j, 2, 3), PLACE_MOVED);
    assert_int_equal(j.plan.count, 3 * 6);
    for (int y = 0; y < 6; y++)
        assert_int_equal(j.place.slot_at[at(&j, 2, y)], y == 3 ? PLACE_DEAD : PLACE_FREE);
    assert_int_equal(load_collisions(&j.load), 1);
    /* the second failure finds no empty layer */
    assert_int_equal(job_fail_xy(&j, 4, 1), PLACE_CANNOT);
    assert_int_equal(j.place.homeless, 1);
    assert_true(look_place_valid(&j.place));
    job_close(&j);
}

/* Figure 6, left: five failures in a row with live nodes between them; eleven messages enter the last of them. */
static void test_place_0d_five_in_a_row_eleven_messages_meet(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "14x14", "2D(1,1)", "0D");
    for (int x = 1; x <= 9; x += 2)
        assert_int_equal(job_fail_xy(&j, x, 5), PLACE_MOVED);
    for (int y = 3; y <= 7; y++)
        assert_true(j.place.slot_at[at(&j, 13, y)] >= 0);
    assert_int_equal(j.load.phase[0].count[grid_link(&j.grid, at(&j, 10, 5), 0, GRID_UP)], 11);
    assert_int_equal(load_collisions(&j.load), 11);
    job_close(&j);
}

/* Figure 6, right: seven failures in the second row; the link between the third and fourth spare carries sixteen. */
static void test_place_0d_seven_at_the_side_sixteen_messages_meet(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "16x16", "2D(1,1)", "0D");
    for (int x = 1; x <= 13; x += 2)
        assert_int_equal(job_fail_xy(&j, x, 1), PLACE_MOVED);
    for (int y = 0; y < 7; y++)
        assert_true(j.place.slot_at[at(&j, 15, y)] >= 0);
    assert_int_equal(j.load.phase[0].count[grid_link(&j.grid, at(&j, 15, 2), 1, GRID_UP)], 16);
    assert_int_equal(load_collisions(&j.load), 16);
    job_close(&j);
}

/* A method that always slides columns, and one that tries rows only: the choices in figure 7. */
static bool slide_column(const struct place *p, int32_t node, struct place_plan *plan, void *arg)
{
    (void)arg;
    return place_slide_along(p, node, 1, GRID_UP, 0, plan);
}

static bool slide_row(const struct place *p, int32_t node, struct place_plan *plan, void *arg)
{
    (void)arg;
    return place_slide_along(p, node, 0, GRID_UP, 0, plan);
}

static void job_use(struct job *j, place_fn *fn)
{
    memset(&j->method, 0, sizeof j->method);
    assert_true(place_method_add(&j->method, fn, NULL));
}

/* Figure 7, top: 21 slides its column, 16 its row; 15 stands where both have been used up. Middle: two columns instead
 * leave 15 its row. */
static void test_place_1d_mixed_directions_lose_what_uneven_ones_keep(void **state)
{
    (void)state;
    struct job j;
    for (int uneven = 0; uneven <= 1; uneven++) {
        job_open(&j, "6x6", "2D(2,1)", "1D");
        struct place_method both = j.method;
        job_use(&j, slide_column);
        assert_int_equal(job_fail(&j, 21), PLACE_MOVED);
        if (!uneven)
            job_use(&j, slide_row);
        assert_int_equal(job_fail(&j, 16), PLACE_MOVED);
        j.method = both;
        assert_int_equal(job_fail(&j, 15), uneven ? PLACE_MOVED : PLACE_CANNOT);
        assert_true(look_place_valid(&j.place));
        job_close(&j);
    }
}

/* Any three failures, in any order, on the figure's grid; the fourth may find no line. */
static void test_place_1d_always_handles_three_failures(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "6x6", "2D(2,1)", "1D");
    int fourth_cannot = 0;
    for (int a = 0; a < 25; a++)
        for (int b = 0; b < 25; b++)
            for (int c = 0; c < 25; c++) {
                if (a == b || a == c || b == c)
                    continue;
                place_reset(&j.place);
                int f[3] = {a, b, c};
                for (int i = 0; i < 3; i++)
                    assert_int_equal(place_substitute(&j.place, &j.method, j.place.home[f[i]], &j.plan), PLACE_MOVED);
                for (int d = 0; d < 25 && !fourth_cannot; d++)
                    if (d != a && d != b && d != c) {
                        struct place copy;
                        assert_true(place_init(&copy, &j.grid, &j.layout, 0, NULL));
                        place_copy(&copy, &j.place);
                        fourth_cannot |= place_substitute(&copy, &j.method, copy.home[d], &j.plan) == PLACE_CANNOT;
                        place_fini(&copy);
                    }
            }
    assert_true(fourth_cannot);
    job_close(&j);
}

/* Figure 9: two failures by 2D, the third by 1D into the layer the first left behind. */
static void test_place_hybrid_third_failure_uses_1d(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "6x6", "2D(2,1)", "hybrid(2D+1D)");
    assert_int_equal(job_fail_xy(&j, 1, 1), PLACE_MOVED);
    assert_int_equal(j.method.step[j.plan.step].order, 2);
    assert_int_equal(load_collisions(&j.load), 1);
    assert_int_equal(job_fail_xy(&j, 3, 3), PLACE_MOVED);
    assert_int_equal(j.method.step[j.plan.step].order, 2);
    assert_int_equal(load_collisions(&j.load), 1);
    assert_int_equal(job_fail_xy(&j, 4, 4), PLACE_MOVED);
    assert_int_equal(j.method.step[j.plan.step].order, 1);
    assert_true(load_collisions(&j.load) > 1);
    job_close(&j);
}

static void test_place_idle_repeated_and_exhausted_are_ordinary(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "3x3", "2D(1,1)", "hybrid(all)");
    assert_int_equal(job_fail_xy(&j, 2, 0), PLACE_IDLE);
    assert_int_equal(job_fail_xy(&j, 2, 0), PLACE_REPEAT);
    assert_int_equal(job_fail_xy(&j, 0, 0), PLACE_MOVED);
    assert_int_equal(job_fail_xy(&j, 0, 0), PLACE_REPEAT);
    assert_int_equal(job_fail_xy(&j, 0, 1), PLACE_MOVED);
    assert_int_equal(j.place.nfree, 0);
    assert_int_equal(job_fail_xy(&j, 0, 2), PLACE_CANNOT);
    assert_int_equal(j.place.homeless, 1);
    /* a node that serves as a spare dies too */
    assert_int_equal(job_fail_xy(&j, 2, 1), PLACE_CANNOT);
    assert_int_equal(j.place.homeless, 2);
    assert_true(look_place_valid(&j.place));
    job_close(&j);
}

static void test_place_0d_failures_in_one_row_alternate_sides(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "9x9", "2D(2,1)", "0D");
    int sides[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(job_fail_xy(&j, 1 + 2 * i, 4), PLACE_MOVED);
        sides[i] = spare_side(&j.layout, &j.grid, j.plan.moves[0].to);
    }
    for (int i = 1; i < 4; i++)
        assert_int_not_equal(sides[i], sides[i - 1]);
    job_close(&j);
}

static enum place_result fail_by(struct job *j, const char *method, int x, int y)
{
    assert_null(place_method_parse(&j->method, method, 2));
    return (enum place_result)job_fail_xy(j, x, y);
}

/* Sides are 0D's: a slide of one move says nothing about where the next failure in the line should go. */
static void test_place_slide_of_one_move_is_no_0d_failure(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "9x9", "2D(2,1)", "0D");
    assert_int_equal(fail_by(&j, "1D", 3, 7), PLACE_MOVED);
    assert_int_equal(j.plan.count, 1);
    assert_int_equal(fail_by(&j, "0D", 3, 5), PLACE_MOVED);
    assert_int_equal(spare_side(&j.layout, &j.grid, j.plan.moves[0].to), 1); /* the nearest one */
    job_close(&j);
}

/* A node that a slide has left is on no side: 0D remembers the side it took before. */
static void test_place_0d_onto_vacated_node_forgets_no_side(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "9x9", "2D(2,1)", "0D");
    assert_int_equal(fail_by(&j, "2D", 0, 0), PLACE_MOVED); /* row 0 is left */
    assert_int_equal(fail_by(&j, "0D", 6, 5), PLACE_MOVED);
    assert_int_equal(j.plan.moves[0].to, at(&j, 8, 5));
    int8_t side = j.place.last_side[j.grid.nodes + 6]; /* of column 6 */
    assert_int_equal(side, 1);
    assert_int_equal(fail_by(&j, "0D", 6, 1), PLACE_MOVED);
    assert_int_equal(j.plan.moves[0].to, at(&j, 6, 0));
    assert_int_equal(j.place.last_side[j.grid.nodes + 6], side);
    job_close(&j);
}

static int moved_along(struct job *j, const char *order, const char *method)
{
    struct place_order o;
    const struct place_move *m = j->plan.moves;
    place_reset(&j->place);
    assert_null(place_method_parse(&j->method, method, j->grid.ndims));
    if (order) {
        assert_null(place_order_parse(&o, order, j->grid.ndims));
        place_method_order(&j->method, &o);
    }
    assert_int_equal(place_substitute(&j->place, &j->method, grid_node(&j->grid, (int[]){1, 1, 1}), &j->plan),
                     PLACE_MOVED);
    for (int d = 0; d < j->grid.ndims; d++)
        if (m->to - m->from == j->grid.stride[d])
            return d;
    return -1;
}

static void test_place_order_decides_which_slide_is_taken(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "5x6x7", "3D(3,1)", "1D");
    assert_int_equal(moved_along(&j, NULL, "1D"), 1);
    assert_int_equal(moved_along(&j, "yxz", "1D"), 1);
    assert_int_equal(moved_along(&j, "xyz", "1D"), 0);
    assert_int_equal(moved_along(&j, "zyx", "1D"), 2);
    assert_int_equal(moved_along(&j, "zyx", "hybrid(1D+0D)"), 2);
    /* a plane that slides along z has x or y beside it */
    assert_int_equal(moved_along(&j, "zyx", "2D"), 2);
    assert_int_equal(j.plan.count, 5 * 4); /* 5 layers to slide, 4 slots along x */
    assert_int_equal(moved_along(&j, "zyx-", "2D"), 2);
    assert_int_equal(j.plan.count, 5 * 5); /* 5 along y */
    struct place_order o;
    static const char *const bad[] = {"", "xy", "xyzu", "xxz", "xy-", "xyw", "XYZ", "-xyz", "xyz--"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(place_order_parse(&o, bad[i], 3));
    job_close(&j);
}

static void test_place_method_names_parse_or_say_why(void **state)
{
    (void)state;
    struct place_method m;
    assert_null(place_method_parse(&m, "hybrid(all)", 3));
    assert_int_equal(m.steps, 4);
    assert_int_equal(m.step[0].order, 3);
    assert_int_equal(m.step[3].order, 0);
    assert_null(place_method_parse(&m, "hybrid(-2D)", 3));
    assert_int_equal(m.steps, 3);
    assert_int_equal(m.step[1].order, 1);
    assert_null(place_method_parse(&m, "hybrid(2D+0D)", 2));
    assert_int_equal(m.steps, 2);
    const char *bad[] = {"",           "4D",          "2D+",           "hybrid",      "hybrid()",
                         "hybrid(all", "hybrid(-4D)", "hybrid(1D+1D)", "hybrid(2D+)", "hybrid(all)x",
                         "-1D",        "best"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(place_method_parse(&m, bad[i], 3));
}

/* Random grids, layouts, methods and failures (of any node, again and again). */
static void test_place_random_failures_keep_the_map_whole(void **state)
{
    (void)state;
    uint64_t seed = 20;
    struct rng r;
    rng_seed(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 300; round++) {
        char grid[96] = "", layout[32], method[32];
        int q = 1 + (int)rng_below(&r, 4);
        for (int d = 0; d < q; d++)
            sprintf(grid + strlen(grid), "%s%d%s", d ? "x" : "", 3 + (int)rng_below(&r, 4),
                    rng_below(&r, 2) ? "t" : "");
        sprintf(layout, "%dD(%d,%d)", q, (int)rng_below(&r, (uint64_t)q + 1), 1 + (int)rng_below(&r, 2));
        int kind = (int)rng_below(&r, 3);
        sprintf(method,
                kind == 0   ? "hybrid(all)"
                : kind == 1 ? "hybrid(-%dD)"
                            : "%dD",
                (int)rng_below(&r, (uint64_t)q + 1));
        struct job j;
        job_open(&j, grid, layout, method);
        int32_t *before = malloc((size_t)j.place.slots * sizeof *before);
        for (int i = 0; i < 40; i++) {
            memcpy(before, j.place.node_of, (size_t)j.place.slots * sizeof *before);
            int32_t node = (int32_t)rng_below(&r, (uint64_t)j.grid.nodes), homeless = j.place.homeless;
            bool dead = j.place.slot_at[node] == PLACE_DEAD, idle = j.place.slot_at[node] == PLACE_FREE;
            enum place_result got = place_substitute(&j.place, &j.method, node, &j.plan);
            assert_true(look_place_valid(&j.place));
            assert_int_equal(got == PLACE_REPEAT, dead);
            assert_int_equal(got == PLACE_IDLE, idle);
            assert_int_equal(j.place.homeless, homeless + (got == PLACE_CANNOT));
            if (got == PLACE_CANNOT && strcmp(method, "hybrid(all)") == 0)
                assert_int_equal(j.place.nfree, 0);
            for (int32_t m = 0; m < j.plan.count; m++) {
                assert_int_equal(before[j.plan.moves[m].slot], j.plan.moves[m].from);
                before[j.plan.moves[m].slot] = j.plan.moves[m].to;
            }
            assert_memory_equal(before, j.place.node_of, (size_t)j.place.slots * sizeof *before);
        }
        free(before);
        job_close(&j);
    }
}

/* Routes after a slide of the highest order are those before it with an empty layer in the middle: for any pattern. */
static void test_place_highest_order_slides_add_no_collision(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 21);
    static const enum pattern_kind kinds[] = {PATTERN_STAR, PATTERN_BARRIER, PATTERN_RING};
    for (int round = 0; round < 120; round++) {
        char grid[96] = "", layout[32], method[32];
        int q = 1 + (int)rng_below(&r, 3), sides = 1 + (int)rng_below(&r, (uint64_t)q), slides = 0;
        for (int d = 0; d < q; d++)
            sprintf(grid + strlen(grid), "%s%d", d ? "x" : "", 3 + (int)rng_below(&r, 5));
        sprintf(layout, "%dD(%d,1)", q, sides);
        sprintf(method, "%dD", q);
        struct job j;
        job_open_on(&j, grid, layout, method, kinds[round % 3], LOAD_ALL, NULL);
        int32_t calm = load_collisions(&j.load);
        for (int i = 0; i < 30; i++) {
            int32_t node = (int32_t)rng_below(&r, (uint64_t)j.grid.nodes);
            enum place_result got = job_fail(&j, node);
            if (got == PLACE_CANNOT)
                break;
            slides += got == PLACE_MOVED;
            assert_int_equal(load_collisions(&j.load), calm);
        }
        assert_true(slides <= sides + 1);
        job_close(&j);
    }
}

/* Against a look at every node, on meshes and rings, with any number of free nodes and any sides left out. */
static void test_place_nearest_free_node_is_the_nearest_and_of_those_the_lowest(void **state)
{
    (void)state;
    print_message("seed 9\n");
    struct rng r;
    rng_seed(&r, 9);
    static const char *const grids[] = {"40", "9x7", "8tx9t", "6x5tx4", "12x12x12", "3x3tx3x4t", "20000tx2"};
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        struct job j;
        char layout[32];
        struct grid g;
        assert_null(grid_parse(&g, grids[i]));
        snprintf(layout, sizeof layout, "%dD(%d,1)", g.ndims, g.ndims > 1 ? 2 : 1);
        job_open(&j, grids[i], layout, "0D");
        for (int round = 0; round < 200 && j.place.nfree; round++) {
            int32_t node = (int32_t)rng_below(&r, (uint64_t)g.nodes), want = -1;
            unsigned avoid = (unsigned)rng_below(&r, 4);
            for (int32_t n = 0; n < g.nodes; n++)
                if (j.place.slot_at[n] == PLACE_FREE &&
                    (!avoid || (j.place.side[n] >= 0 && !(avoid >> j.place.side[n] & 1))) &&
                    (want < 0 || grid_distance(&g, node, n) < grid_distance(&g, node, want)))
                    want = n;
            assert_int_equal(place_nearest(&j.place, node, avoid), want);
            job_fail(&j, round % 3 ? want < 0 ? node : want : node);
        }
        job_close(&j);
    }
}

/* place_slide_moves says how many moves place_slide_along makes, and when it is none or more than wanted. */
static void test_place_slide_moves_are_those_of_the_slide(void **state)
{
    (void)state;
    static const char *const grids[] = {"7x6", "5x4x6", "5tx6", "4x5tx4t", "3x3x3x3"};
    uint64_t seed = 17;
    struct rng r;
    rng_seed(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    int possible = 0, impossible = 0;
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        for (int round = 0; round < 40; round++) {
            struct job j;
            char layout[32];
            struct grid g;
            assert_null(grid_parse(&g, grids[i]));
            snprintf(layout, sizeof layout, "%dD(2,1)", g.ndims);
            job_open(&j, grids[i], layout, "hybrid(all)");
            for (int f = 0; f < round % 8; f++)
                job_fail(&j, (int32_t)rng_below(&r, (uint64_t)g.nodes));
            int32_t slot, node = j.place.node_of[rng_below(&r, (uint64_t)j.place.slots)];
            if (place_fail(&j.place, node, &slot) == PLACE_MOVED)
                for (int dim = 0; dim < g.ndims; dim++)
                    for (unsigned across = 1; across < 1u << g.ndims; across++)
                        for (int dir = GRID_UP; dir <= GRID_DOWN; dir++) {
                            if (across >> dim & 1)
                                continue;
                            j.plan.slot = slot;
                            bool can = place_slide_along(&j.place, node, dim, dir, across, &j.plan);
                            int32_t moves = place_slide_moves(&j.place, node, dim, dir, across, INT32_MAX);
                            assert_int_equal(moves, can ? j.plan.count : -1);
                            if (can)
                                assert_int_equal(place_slide_moves(&j.place, node, dim, dir, across, moves - 1), -1);
                            possible += can;
                            impossible += !can;
                        }
            job_close(&j);
        }
    assert_true(possible > 100 && impossible > 100);
}

static int32_t moves_of_first_failure(struct job *j, const char *method, int32_t bound, int32_t node)
{
    place_reset(&j->place);
    assert_null(place_method_parse(&j->method, method, j->grid.ndims));
    j->method.moves = bound;
    assert_int_equal(place_substitute(&j->place, &j->method, node, &j->plan), PLACE_MOVED);
    assert_true(look_place_valid(&j->place));
    return j->plan.count;
}

/* The bound holds for every method, the plan says when it left something out, and it costs no slot its node. */
static void test_place_bound_on_moves(void **state)
{
    (void)state;
    static const char *const methods[] = {"hybrid(all)", "hybrid(-2D)", "hybrid(2D+0D)", "2D", "1D", "0D"};
    struct job j;
    job_open(&j, "100x100", "2D(2,1)", "0D");
    assert_int_equal(moves_of_first_failure(&j, "hybrid(all)", 0, 0), 99 * 99);
    assert_false(j.plan.bounded);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (int32_t bound = 1; bound <= 200; bound += 33) {
            assert_true(moves_of_first_failure(&j, methods[i], bound, 0) <= bound);
            assert_int_equal(j.plan.bounded, i == 1 || i == 4 ? bound < 99 : i != 5);
        }
    /* the line it takes instead of the plane, or the way to the nearest free node */
    assert_int_equal(moves_of_first_failure(&j, "hybrid(all)", 99, 0), 99);
    assert_int_equal(j.plan.order, 1);
    assert_int_equal(moves_of_first_failure(&j, "hybrid(all)", 98, 0), 1);
    assert_int_equal(j.plan.order, 0);
    assert_int_equal(moves_of_first_failure(&j, "2D", 98, 0), 1);
    assert_int_equal(j.plan.order, 0);
    /* y is first, but only x is short enough */
    assert_int_equal(moves_of_first_failure(&j, "1D", 10, at(&j, 95, 3)), 4);
    assert_true(j.plan.bounded);
    /* within the bound nothing is another plan */
    assert_int_equal(moves_of_first_failure(&j, "hybrid(all)", 99 * 99, 0), 99 * 99);
    assert_false(j.plan.bounded);
    job_close(&j);
}

/* All failures of a job until its spares are used, by every method, with each bound. */
static void test_place_bound_on_moves_at_any_failure(void **state)
{
    (void)state;
    static const char *const methods[] = {"hybrid(all)", "1D", "2D", "hybrid(3D+1D)"};
    static const char *const grids[] = {"8x9", "5x5x4", "7tx7t"};
    struct rng r;
    rng_seed(&r, 41);
    print_message("seed 41\n");
    int32_t bounded = 0;
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
        for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
            for (int32_t bound = 1; bound < 12; bound++) {
                struct job j;
                job_open(&j, grids[g], strchr(grids[g] + 2, 'x') && g == 1 ? "3D(2,1)" : "2D(2,1)", "0D");
                if (place_method_parse(&j.method, methods[i], j.grid.ndims) == NULL) {
                    j.method.moves = bound;
                    for (int f = 0; f < 12; f++) {
                        int32_t node = (int32_t)rng_below(&r, (uint64_t)j.grid.nodes);
                        enum place_result got = job_fail(&j, node);
                        assert_true(got != PLACE_MOVED || j.plan.count <= bound);
                        assert_false(got == PLACE_CANNOT && j.plan.bounded);
                        assert_true(look_place_valid(&j.place));
                        bounded += got == PLACE_MOVED && j.plan.bounded;
                    }
                }
                job_close(&j);
            }
    assert_true(bounded > 100);
}

static void test_place_node_comes_back_free_or_to_who_misses_it(void **state)
{
    (void)state;
    struct job j;
    int32_t slot;
    job_open(&j, "3x3", "2D(1,1)", "hybrid(all)");
    assert_int_equal(place_return(&j.place, 1, &slot), PLACE_REPEAT);
    assert_int_equal(job_fail_xy(&j, 0, 1), PLACE_MOVED);
    assert_int_equal(place_return(&j.place, 3, &slot), PLACE_IDLE);
    assert_int_equal(slot, -1);
    assert_int_equal(j.place.slot_at[3], PLACE_FREE);
    assert_true(look_place_valid(&j.place));
    while (j.place.nfree)
        assert_int_equal(job_fail(&j, j.place.free_list[0]), PLACE_IDLE);
    assert_int_equal(job_fail(&j, j.place.node_of[4]), PLACE_CANNOT);
    assert_int_equal(place_lost_on(&j.place, j.place.node_of[4]), 4);
    assert_int_equal(place_return(&j.place, j.place.node_of[4], &slot), PLACE_MOVED);
    assert_int_equal(slot, 4);
    assert_int_equal(j.place.homeless, 0);
    assert_true(look_place_valid(&j.place));
    job_close(&j);
}

/* The same events, the same number, in another process and on another machine too; another order, another number. */
static void test_place_digest_tells_states_apart(void **state)
{
    (void)state;
    struct job a, b;
    job_open(&a, "6x6", "2D(2,1)", "0D");
    job_open(&b, "6x6", "2D(2,1)", "0D");
    assert_true(look_place_digest(&a.place) == UINT64_C(8494248338287812080));
    assert_true(look_place_digest(&b.place) == look_place_digest(&a.place));
    job_fail(&a, 7);
    assert_true(look_place_digest(&b.place) != look_place_digest(&a.place));
    job_fail(&a, 9);
    job_fail(&b, 9);
    job_fail(&b, 7);
    assert_true(look_place_digest(&b.place) != look_place_digest(&a.place));
    place_reset(&b.place);
    job_fail(&b, 7);
    job_fail(&b, 9);
    assert_true(look_place_digest(&b.place) == look_place_digest(&a.place));
    place_copy(&a.place, &b.place);
    assert_true(look_place_digest(&b.place) == look_place_digest(&a.place));
    job_close(&a);
    job_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_nearest_free_node_is_the_nearest_and_of_those_the_lowest),
        cmocka_unit_test(test_place_0d_one_failure_five_messages_meet),
        cmocka_unit_test(test_place_one_failure_moves_one_node_a_line_or_a_half_plane),
        cmocka_unit_test(test_place_0d_five_in_a_row_eleven_messages_meet),
        cmocka_unit_test(test_place_0d_seven_at_the_side_sixteen_messages_meet),
        cmocka_unit_test(test_place_1d_mixed_directions_lose_what_uneven_ones_keep),
        cmocka_unit_test(test_place_1d_always_handles_three_failures),
        cmocka_unit_test(test_place_hybrid_third_failure_uses_1d),
        cmocka_unit_test(test_place_idle_repeated_and_exhausted_are_ordinary),
        cmocka_unit_test(test_place_0d_failures_in_one_row_alternate_sides),
        cmocka_unit_test(test_place_slide_of_one_move_is_no_0d_failure),
        cmocka_unit_test(test_place_0d_onto_vacated_node_forgets_no_side),
        cmocka_unit_test(test_place_order_decides_which_slide_is_taken),
        cmocka_unit_test(test_place_method_names_parse_or_say_why),
        cmocka_unit_test(test_place_random_failures_keep_the_map_whole),
        cmocka_unit_test(test_place_highest_order_slides_add_no_collision),
        cmocka_unit_test(test_place_slide_moves_are_those_of_the_slide),
        cmocka_unit_test(test_place_bound_on_moves),
        cmocka_unit_test(test_place_bound_on_moves_at_any_failure),
        cmocka_unit_test(test_place_node_comes_back_free_or_to_who_misses_it),
        cmocka_unit_test(test_place_digest_tells_states_apart),
    };
    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
