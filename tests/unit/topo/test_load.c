#include "tests/unit/topo/testlib.h"

/* The laws of the paper's worst cases for 0D with 2D(1,1), built by hand: failures in one row with live nodes between
 * them, in the middle and near the side. Exact when messages sent by substituted slots are left out. */
static int worst_0d(const char *grid, enum load_convention convention, int failures, int first_x)
{
    int worst = 0;
    struct job j;
    job_open_on(&j, grid, "2D(1,1)", "0D", PATTERN_5P, convention, NULL);
    for (int y = 0; y <= 20; y += y < 4 ? 1 : 16) {
        place_reset(&j.place);
        assert_true(load_count(&j.load, &j.place, NULL));
        for (int i = 0; i < failures; i++)
            assert_int_equal(job_fail_xy(&j, first_x + 2 * i, y), PLACE_MOVED);
        worst = load_collisions(&j.load) > worst ? load_collisions(&j.load) : worst;
    }
    job_close(&j);
    return worst;
}

static void test_load_0d_on_a_mesh_follows_the_published_law(void **state)
{
    (void)state;
    for (int f = 1; f <= 10; f++) {
        int row = 2 * f + 1, side = 4 * (f - 3), law = row > side ? row : side;
        assert_int_equal(worst_0d("41x41", LOAD_RECEIVED, f, 1), law);
        assert_int_equal(worst_0d("41x41", LOAD_ALL, f, 1), f == 1 ? 5 : law);
    }
}

static void test_load_0d_on_a_torus_follows_the_published_law(void **state)
{
    (void)state;
    for (int f = 1; f <= 10; f++) {
        assert_int_equal(worst_0d("61tx61t", LOAD_RECEIVED, f, 36), 2 * f + 1);
        assert_int_equal(worst_0d("61tx61t", LOAD_ALL, f, 36), f == 1 ? 5 : 2 * f + 1);
    }
}

static void test_load_qd_slides_of_two_sides_never_collide(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"9x9", "2D(2,1)", "2D"}, {"6x6x6", "3D(2,1)", "3D"}, {"9tx9t", "2D(2,1)", "2D"}, {"6tx6x6t", "3D(2,1)", "3D"}};
    struct rng r;
    rng_seed(&r, 5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job j;
        job_open(&j, cases[i][0], cases[i][1], cases[i][2]);
        for (int round = 0; round < 300; round++) {
            place_reset(&j.place);
            assert_true(load_count(&j.load, &j.place, NULL));
            for (int f = 0; f < 2; f++) {
                int32_t slot;
                do
                    slot = (int32_t)rng_below(&r, (uint64_t)j.place.slots);
                while (j.place.slot_at[j.place.home[slot]] < 0);
                assert_int_equal(job_fail(&j, j.place.home[slot]), PLACE_MOVED);
                assert_int_equal(load_collisions(&j.load), 1);
            }
        }
        job_close(&j);
    }
}

/* The reference: routes from grid_route or fattree_route, counted in an array. */
static void check_against_routes(const struct job *j, const struct load *l)
{
    const struct place *p = &j->place;
    int64_t hops = 0;
    for (int32_t ph = 0; ph < j->pattern.phases; ph++) {
        int32_t *count = calloc((size_t)l->links, sizeof *count), links[256], max = 0;
        for (int32_t r = 0; r < p->slots; r++)
            for (int32_t i = j->pattern.out_at[r]; i < j->pattern.out_at[r + 1]; i++) {
                int32_t a = p->node_of[r], b = p->node_of[j->pattern.out[i].slot];
                if (j->pattern.out[i].phase != ph || p->slot_at[a] < 0 || p->slot_at[b] < 0)
                    continue;
                if (l->convention == LOAD_RECEIVED && a != p->home[r])
                    continue;
                int n = l->net.tree.nodes ? fattree_route(&l->net.tree, a, b, links)
                                          : grid_route(&p->grid, NULL, a, b, links, 256);
                hops += n;
                for (int k = 0; k < n; k++)
                    if (++count[links[k]] > max)
                        max = count[links[k]];
            }
        assert_memory_equal(count, l->phase[ph].count, (size_t)l->links * sizeof *count);
        assert_int_equal(max, l->phase[ph].max);
        for (int32_t c = 0; c <= max; c++) {
            int32_t n = 0;
            for (int32_t k = 0; k < l->links; k++)
                n += count[k] == c;
            assert_int_equal(n, l->phase[ph].hist[c]);
        }
        free(count);
    }
    assert_int_equal(hops, l->hops);
}

static void test_load_incremental_count_equals_full_count(void **state)
{
    (void)state;
    uint64_t seed = 31;
    struct rng r;
    rng_seed(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    static const char *const methods[] = {"hybrid(all)", "hybrid(-1D)", "0D", "1D"};
    for (int round = 0; round < 200; round++) {
        char grid[96] = "", layout[32];
        int q = 1 + (int)rng_below(&r, 3);
        for (int d = 0; d < q; d++)
            sprintf(grid + strlen(grid), "%s%d%s", d ? "x" : "", 3 + (int)rng_below(&r, 4),
                    rng_below(&r, 2) ? "t" : "");
        sprintf(layout, "%dD(%d,1)", q, 1 + (int)rng_below(&r, (uint64_t)q));
        struct job j;
        struct load_network net = {0};
        assert_null(grid_parse(&j.grid, grid));
        if (round % 4 == 0)
            assert_true(fattree_init(&net.tree, j.grid.nodes, 5, 3));
        enum pattern_kind kind = PATTERN_STAR + (enum pattern_kind)rng_below(&r, 4);
        if (q == 2 && rng_below(&r, 2))
            kind = PATTERN_9P;
        else if (q == 3 && rng_below(&r, 2))
            kind = PATTERN_27P;
        job_open_on(&j, grid, layout, methods[rng_below(&r, 4)], kind, rng_below(&r, 2) ? LOAD_ALL : LOAD_RECEIVED,
                    &net);
        for (int i = 0; i < 12; i++) {
            job_fail(&j, (int32_t)rng_below(&r, (uint64_t)j.grid.nodes));
            check_against_routes(&j, &j.load);
        }
        job_close(&j);
    }
}

/* Slabs of hundreds of slots slide, among slots that 0D has put anywhere before. */
static void test_load_large_slides_among_displaced_slots_are_counted_right(void **state)
{
    (void)state;
    static const struct {
        const char *grid, *layout;
        enum pattern_kind kind;
    } cases[] = {{"9x8x7", "3D(2,1)", PATTERN_7P},   {"9x8x7", "3D(3,1)", PATTERN_27P},
                 {"20x15", "2D(2,1)", PATTERN_5P},   {"20x15", "2D(2,2)", PATTERN_9P},
                 {"9tx8x7t", "3D(2,1)", PATTERN_7P}, {"20x15t", "2D(2,1)", PATTERN_5P},
                 {"9x8x7", "3D(2,1)", PATTERN_RING}, {"9x8x7", "3D(2,1)", PATTERN_BARRIER}};
    uint64_t seed = 34;
    struct rng r;
    rng_seed(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    int32_t largest = 0;
    for (int round = 0; round < 80; round++) {
        struct job j;
        size_t k = (size_t)round % (sizeof cases / sizeof *cases);
        job_open_on(&j, cases[k].grid, cases[k].layout, "0D", cases[k].kind, LOAD_ALL, NULL);
        for (uint64_t i = rng_below(&r, 4); i > 0; i--)
            job_fail(&j, (int32_t)rng_below(&r, (uint64_t)j.grid.nodes));
        assert_null(place_method_parse(&j.method, "hybrid(all)", j.grid.ndims));
        for (int i = 0; i < 6; i++) {
            job_fail(&j, (int32_t)rng_below(&r, (uint64_t)j.grid.nodes));
            check_against_routes(&j, &j.load);
            largest = j.plan.count > largest ? j.plan.count : largest;
        }
        job_close(&j);
    }
    assert_true(largest > 200);
}

static void test_load_undo_restores_every_count(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 32);
    struct job j;
    job_open(&j, "6x5x4", "3D(2,1)", "hybrid(all)");
    for (int i = 0; i < 40 && j.place.nfree; i++) {
        int32_t slot, node = j.place.node_of[rng_below(&r, (uint64_t)j.place.slots)];
        if (place_fail(&j.place, node, &slot) != PLACE_MOVED)
            continue;
        load_drop(&j.load, slot);
        check_against_routes(&j, &j.load);
        assert_true(place_plan(&j.place, &j.method, node, slot, &j.plan));
        load_move(&j.load, &j.plan);
        load_undo(&j.load, &j.plan);
        check_against_routes(&j, &j.load);
        load_try(&j.load, &j.plan);
        load_try_back(&j.load, &j.plan);
        check_against_routes(&j, &j.load);
        load_try(&j.load, &j.plan);
        place_apply(&j.place, &j.plan);
        check_against_routes(&j, &j.load);
    }
    job_close(&j);
}

static void test_load_stencil_on_its_own_grid_never_collides(void **state)
{
    (void)state;
    static const struct {
        const char *grid;
        enum pattern_kind kind;
        int collisions;
    } cases[] = {{"7x5", PATTERN_5P, 1}, {"5x5x4", PATTERN_7P, 1}, {"7x5", PATTERN_9P, 3}, {"5x5x4", PATTERN_27P, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job j;
        job_open_on(&j, cases[i].grid,
                    cases[i].kind == PATTERN_5P || cases[i].kind == PATTERN_9P ? "2D(1,1)" : "3D(1,1)", "0D",
                    cases[i].kind, LOAD_ALL, NULL);
        assert_int_equal(load_collisions(&j.load), cases[i].collisions);
        job_close(&j);
    }
}

/* Who crosses a link, and how often, against the routes link by link; also for a slot thought elsewhere. */
static void test_load_users_and_crossings_agree_with_the_routes(void **state)
{
    (void)state;
    print_message("seeds 1..20\n");
    static const char *const grids[] = {"6x5", "5tx6t", "4x3tx4"};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rng r;
        struct job j;
        rng_seed(&r, seed);
        job_open(&j, grids[seed % 3], seed % 3 == 2 ? "3D(2,1)" : "2D(2,1)", "hybrid(all)");
        for (int i = 0; i < 5; i++)
            job_fail(&j, (int32_t)rng_below(&r, (uint64_t)j.grid.nodes));
        const struct pattern *t = &j.pattern;
        for (int32_t link = 0; link < j.load.links; link++) {
            struct load_user users[64];
            int n = load_users(&j.load, j.place.slot_at, 0, link, users, 64);
            int32_t sum = 0;
            for (int i = 0; i < n; i++) {
                sum += users[i].messages;
                assert_int_equal(users[i].messages,
                                 load_crossings(&j.load, 0, link, users[i].slot, j.place.node_of[users[i].slot]));
            }
            assert_int_equal(sum, 2 * j.load.phase[0].count[link]);
        }
        int32_t slot = (int32_t)rng_below(&r, (uint64_t)j.place.slots);
        int32_t node = (int32_t)rng_below(&r, (uint64_t)j.grid.nodes), links[64];
        int32_t *want = calloc((size_t)j.load.links, sizeof *want);
        for (int way = 0; way < 2; way++)
            for (int32_t i = way ? t->in_at[slot] : t->out_at[slot]; i < (way ? t->in_at : t->out_at)[slot + 1]; i++) {
                int32_t peer = j.place.node_of[way ? t->in[i].slot : t->out[i].slot];
                int hops = grid_route(&j.grid, NULL, way ? peer : node, way ? node : peer, links, 64);
                for (int h = 0; h < hops; h++)
                    want[links[h]]++;
            }
        for (int32_t link = 0; link < j.load.links; link++)
            assert_int_equal(load_crossings(&j.load, 0, link, slot, node), want[link]);
        free(want);
        job_close(&j);
    }
}

struct counts {
    int32_t *count, max;
    int64_t hops;
    size_t size;
};

static struct counts counts_of(const struct load *l)
{
    struct counts c = {
        .size = (size_t)l->links * sizeof *l->phase[0].count, .max = load_collisions(l), .hops = l->hops};
    c.count = malloc(c.size);
    assert_non_null(c.count);
    memcpy(c.count, l->phase[0].count, c.size);
    return c;
}

static void assert_as_before(struct counts *c, const struct load *l)
{
    assert_memory_equal(c->count, l->phase[0].count, c->size);
    assert_true(c->hops == l->hops && c->max == load_collisions(l));
    free(c->count);
}

/* A slot is put where no link passes the limit, and otherwise leaves no trace; nor when it is taken back. */
static void put_within_study(const char *grid, const char *layout, uint64_t seed, int times)
{
    struct rng r;
    struct job j;
    int fits = 0;
    rng_seed(&r, seed);
    job_open(&j, grid, layout, "0D");
    for (int i = 0; i < 8; i++)
        job_fail(&j, (int32_t)rng_below(&r, 50));
    for (int i = 0; i < times; i++) {
        int32_t slot = (int32_t)rng_below(&r, (uint64_t)j.place.slots), from = j.place.node_of[slot];
        load_drop(&j.load, slot);
        int32_t limit = load_collisions(&j.load) - 4 + (int32_t)rng_below(&r, 6);
        struct counts before = counts_of(&j.load);
        bool put = load_put_within(&j.load, slot, (int32_t)rng_below(&r, (uint64_t)j.grid.nodes), limit);
        assert_true(!put || load_collisions(&j.load) <= limit);
        fits += put;
        if (put && i % 2)
            load_drop(&j.load, slot);
        else if (put)
            load_put_back(&j.load, slot);
        assert_as_before(&before, &j.load);
        load_put(&j.load, slot, from);
    }
    assert_in_range(fits, 1, times - 1);
    int32_t collisions = load_collisions(&j.load);
    assert_true(load_count(&j.load, &j.place, NULL));
    assert_int_equal(load_collisions(&j.load), collisions);
    job_close(&j);
}

static void test_load_put_within_fits_or_leaves_everything_as_it_was(void **state)
{
    (void)state;
    print_message("seed 3\n");
    put_within_study("8x8", "2D(2,1)", 3, 500);
    put_within_study("4000x2", "2D(1,20)", 3, 100); /* routes that are too long to be logged */
}

/* A slide of thousands of slots changes more links than are logged. */
static void test_load_try_of_any_length_is_taken_back(void **state)
{
    (void)state;
    struct job j;
    job_open(&j, "9000x3", "2D(1,2):x", "1D");
    for (int32_t node = 9003, slot; node < 17000; node += 4000) {
        assert_int_equal(place_fail(&j.place, node, &slot), PLACE_MOVED);
        load_drop(&j.load, slot);
        struct counts before = counts_of(&j.load);
        assert_true(place_plan(&j.place, &j.method, node, slot, &j.plan));
        assert_in_range(j.plan.count, LOAD_LOG / 4, 9000);
        load_try(&j.load, &j.plan);
        struct counts after = counts_of(&j.load);
        load_try_back(&j.load, &j.plan);
        assert_as_before(&before, &j.load);
        load_move(&j.load, &j.plan);
        assert_as_before(&after, &j.load);
        place_apply(&j.place, &j.plan);
        assert_true(load_count(&j.load, &j.place, NULL));
    }
    job_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_0d_on_a_mesh_follows_the_published_law),
        cmocka_unit_test(test_load_0d_on_a_torus_follows_the_published_law),
        cmocka_unit_test(test_load_qd_slides_of_two_sides_never_collide),
        cmocka_unit_test(test_load_incremental_count_equals_full_count),
        cmocka_unit_test(test_load_large_slides_among_displaced_slots_are_counted_right),
        cmocka_unit_test(test_load_undo_restores_every_count),
        cmocka_unit_test(test_load_stencil_on_its_own_grid_never_collides),
        cmocka_unit_test(test_load_users_and_crossings_agree_with_the_routes),
        cmocka_unit_test(test_load_put_within_fits_or_leaves_everything_as_it_was),
        cmocka_unit_test(test_load_try_of_any_length_is_taken_back),
    };
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
