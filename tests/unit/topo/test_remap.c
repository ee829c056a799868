#include "tests/unit/topo/testlib.h"

#include "runtime/topo/remap.h"
#include "tests/lib/topo/look.h"

struct study {
    const char *grid, *layout;
    enum pattern_kind pattern;
    enum load_convention convention;
    int tree; /* nodes per edge switch, 0: a grid */
    int32_t moves;
};

static void use_remap(struct job *j, struct remap *r, int32_t moves)
{
    memset(&j->method, 0, sizeof j->method);
    assert_true(remap_init(r, &j->place, &j->load, moves));
    assert_true(place_method_add(&j->method, remap_plan, r));
}

static void open_study(struct job *j, struct remap *r, const struct study *s)
{
    struct load_network net = {0};
    struct grid g;
    assert_null(grid_parse(&g, s->grid));
    if (s->tree)
        assert_true(fattree_init(&net.tree, g.nodes, s->tree, s->tree));
    job_open_on(j, s->grid, s->layout, "0D", s->pattern, s->convention, &net);
    use_remap(j, r, s->moves);
}

/* Is every destination free when its turn comes? */
static void assert_in_order(const struct place *before, const struct place_plan *plan)
{
    int32_t *at = malloc((size_t)before->grid.nodes * sizeof *at);
    assert_non_null(at);
    memcpy(at, before->slot_at, (size_t)before->grid.nodes * sizeof *at);
    for (int32_t i = 0; i < plan->count; i++) {
        const struct place_move *m = &plan->moves[i];
        assert_int_equal(at[m->to], PLACE_FREE);
        at[m->to] = m->slot;
        at[m->from] = at[m->from] >= 0 ? PLACE_FREE : at[m->from];
    }
    free(at);
}

static void assert_counted_right(struct job *j)
{
    int32_t collisions = load_collisions(&j->load);
    int64_t hops = j->load.hops;
    assert_true(load_count(&j->load, &j->place, NULL));
    assert_int_equal(load_collisions(&j->load), collisions);
    assert_true(j->load.hops == hops);
}

static void run_study(const struct study *s, uint64_t seed)
{
    struct rng rng;
    struct job j;
    struct remap r;
    struct place before;
    rng_seed(&rng, seed);
    open_study(&j, &r, s);
    assert_true(place_init(&before, &j.grid, &j.layout, 0, NULL));
    for (int32_t left = spare_count(&j.layout, &j.grid); left > 0; left--) {
        int32_t node = (int32_t)rng_below(&rng, (uint64_t)j.grid.nodes);
        place_copy(&before, &j.place);
        enum place_result got = job_fail(&j, node);
        assert_true(got != PLACE_CANNOT);
        assert_true(look_place_valid(&j.place));
        assert_int_equal(j.place.homeless, 0);
        if (got != PLACE_MOVED)
            continue;
        assert_in_range(j.plan.count, 1, s->moves);
        assert_in_order(&before, &j.plan);
        assert_counted_right(&j);
    }
    place_fini(&before);
    remap_fini(&r);
    job_close(&j);
}

static void test_remap_any_failures_map_whole_and_moves_within_the_bound(void **state)
{
    (void)state;
    static const struct study studies[] = {
        {"12x12", "2D(2,1)", PATTERN_5P, LOAD_ALL, 0, 1},        {"12x12", "2D(2,1)", PATTERN_5P, LOAD_ALL, 0, 4},
        {"9x8", "2D(2,1)", PATTERN_9P, LOAD_RECEIVED, 0, 16},    {"6x6x6", "3D(2,1)", PATTERN_7P, LOAD_ALL, 0, 3},
        {"7tx6x5t", "3D(2,1)", PATTERN_7P, LOAD_ALL, 0, 8},      {"6x5x4", "3D(1,1)", PATTERN_BARRIER, LOAD_ALL, 0, 5},
        {"5x5x5", "3D(3,1)", PATTERN_27P, LOAD_RECEIVED, 0, 64}, {"30", "1D(1,6)", PATTERN_STAR, LOAD_ALL, 0, 8},
        {"6x6x4", "3D(2,1)", PATTERN_7P, LOAD_ALL, 12, 6},
    };
    print_message("seeds 1..5\n");
    for (uint64_t seed = 1; seed <= 5; seed++)
        for (size_t i = 0; i < sizeof studies / sizeof *studies; i++)
            run_study(&studies[i], seed);
}

/* Mean collisions after all spares of a 12x12 grid are used. */
static double mean_at_the_end(int32_t moves)
{
    enum { SEQUENCES = 40 };
    struct job j;
    struct remap r;
    double sum = 0;
    job_open(&j, "12x12", "2D(2,1)", "0D");
    if (moves)
        use_remap(&j, &r, moves);
    for (uint64_t seed = 1; seed <= SEQUENCES; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        place_reset(&j.place);
        assert_true(load_count(&j.load, &j.place, NULL));
        for (int32_t left = spare_count(&j.layout, &j.grid); left > 0;) {
            int32_t node = j.place.home[rng_below(&rng, (uint64_t)j.place.slots)];
            if (j.place.slot_at[node] == PLACE_DEAD)
                continue;
            job_fail(&j, node);
            left--;
        }
        sum += load_collisions(&j.load);
    }
    if (moves)
        remap_fini(&r);
    job_close(&j);
    return sum / SEQUENCES;
}

/* The reason for the method: 0D ends with more than nine messages on a link, a few moves per failure halve that. */
static void test_remap_more_moves_relieve_the_network(void **state)
{
    (void)state;
    double zero = mean_at_the_end(0), few = mean_at_the_end(4), many = mean_at_the_end(32);
    assert_true(zero > 9);
    assert_true(few < 6);
    assert_true(many < 4.5);
}

static void test_remap_no_free_node_cannot(void **state)
{
    (void)state;
    struct job j;
    struct remap r;
    job_open(&j, "3x2", "2D(1,1)", "0D");
    use_remap(&j, &r, 4);
    assert_int_equal(job_fail(&j, 2), PLACE_IDLE);
    assert_int_equal(job_fail(&j, 0), PLACE_MOVED);
    assert_int_equal(job_fail(&j, 1), PLACE_CANNOT);
    assert_true(look_place_valid(&j.place));
    remap_fini(&r);
    job_close(&j);
}

static void test_remap_same_failures_same_plans(void **state)
{
    (void)state;
    struct study s = {"8x8", "2D(2,1)", PATTERN_5P, LOAD_ALL, 0, 8};
    int32_t nodes[] = {9, 18, 27, 36, 45, 10, 17};
    struct job a, b;
    struct remap ra, rb;
    open_study(&a, &ra, &s);
    open_study(&b, &rb, &s);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        job_fail(&a, nodes[i]);
        place_reset(&b.place); /* what came before leaves no trace in the method */
        assert_true(load_count(&b.load, &b.place, NULL));
        for (size_t k = 0; k <= i; k++)
            job_fail(&b, nodes[k]);
        assert_int_equal(a.plan.count, b.plan.count);
        assert_memory_equal(a.plan.moves, b.plan.moves, (size_t)a.plan.count * sizeof *a.plan.moves);
    }
    remap_fini(&ra);
    remap_fini(&rb);
    job_close(&a);
    job_close(&b);
}

/* The caller's bound is lower than the method's own, and the plan says when that mattered. */
static void test_remap_bound_of_the_whole_method(void **state)
{
    (void)state;
    struct job j;
    struct remap r;
    struct rng rng;
    print_message("seed 5\n");
    rng_seed(&rng, 5);
    for (int32_t bound = 1; bound <= 3; bound++) {
        int32_t bounded = 0;
        job_open(&j, "8x8", "2D(2,1)", "0D");
        use_remap(&j, &r, 16);
        j.method.moves = bound;
        for (int i = 0; i < 14; i++)
            if (job_fail(&j, j.place.home[rng_below(&rng, (uint64_t)j.place.slots)]) == PLACE_MOVED) {
                assert_in_range(j.plan.count, 1, bound);
                bounded += j.plan.bounded;
            }
        assert_true(bounded > 0);
        remap_fini(&r);
        job_close(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remap_any_failures_map_whole_and_moves_within_the_bound),
        cmocka_unit_test(test_remap_more_moves_relieve_the_network),
        cmocka_unit_test(test_remap_no_free_node_cannot),
        cmocka_unit_test(test_remap_same_failures_same_plans),
        cmocka_unit_test(test_remap_bound_of_the_whole_method),
    };
    return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
