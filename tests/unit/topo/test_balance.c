#include "tests/unit/topo/testlib.h"

#include "runtime/topo/balance.h"
#include "tests/lib/topo/look.h"

struct rival {
    const char *method;
    struct job job;
};

static void use_balance(struct job *j, struct balance *b)
{
    memset(&j->method, 0, sizeof j->method);
    assert_true(balance_init(b, &j->place, &j->load));
    assert_true(place_method_add(&j->method, balance_plan, b));
}

/* Collisions after the same failures are never more than those of the methods it promises to match; the map stays whole
 * and the link load right whatever it adopts. Returns how often it took a reference map. */
static int64_t race(const char *grid, const char *layout, enum pattern_kind pattern, uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed);
    struct rival rival[] = {{.method = "hybrid(all)"}, {.method = "0D"}, {.method = "hybrid(-2D)"}};
    struct job j;
    struct balance b;
    job_open_on(&j, grid, layout, "0D", pattern, LOAD_ALL, NULL);
    use_balance(&j, &b);
    for (size_t i = 0; i < 3; i++)
        job_open_on(&rival[i].job, grid, layout, rival[i].method, pattern, LOAD_ALL, NULL);
    int32_t spares = spare_count(&j.layout, &j.grid);
    for (int32_t f = 0; f < spares; f++) {
        int32_t node;
        do
            node = j.place.home[rng_below(&r, (uint64_t)j.place.slots)];
        while (j.place.slot_at[node] == PLACE_DEAD);
        enum place_result got = job_fail(&j, node);
        assert_true(got == PLACE_MOVED || got == PLACE_IDLE);
        assert_true(look_place_valid(&j.place));
        assert_int_equal(j.place.homeless, 0);
        for (size_t i = 0; i < 3; i++) {
            job_fail(&rival[i].job, node);
            if (got == PLACE_MOVED)
                assert_true(load_collisions(&j.load) <= load_collisions(&rival[i].job.load));
        }
        int32_t collisions = load_collisions(&j.load);
        int64_t hops = j.load.hops;
        assert_true(load_count(&j.load, &j.place, NULL));
        assert_int_equal(load_collisions(&j.load), collisions);
        assert_true(j.load.hops == hops);
    }
    int64_t adopted = b.adopted;
    balance_fini(&b);
    job_close(&j);
    for (size_t i = 0; i < 3; i++)
        job_close(&rival[i].job);
    return adopted;
}

static void test_balance_same_failures_never_more_collisions_than_references(void **state)
{
    (void)state;
    print_message("seeds 1..20\n");
    int64_t adopted = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        adopted += race("12x12", "2D(2,1)", PATTERN_5P, seed);
        adopted += race("6x6x6", "3D(2,1)", PATTERN_7P, seed);
        adopted += race("7tx6x5t", "3D(2,1)", PATTERN_7P, seed);
        adopted += race("6x5x4", "3D(1,1)", PATTERN_BARRIER, seed);
    }
    assert_true(adopted > 0); /* the wholesale change was exercised */
}

static void test_balance_after_reset_repeats_itself(void **state)
{
    (void)state;
    struct job j;
    struct balance b;
    job_open(&j, "6x6x6", "3D(2,1)", "0D");
    use_balance(&j, &b);
    int32_t first[20];
    for (int round = 0; round < 2; round++) {
        struct rng r;
        rng_seed(&r, 77);
        for (int i = 0; i < 20; i++) {
            job_fail(&j, (int32_t)rng_below(&r, (uint64_t)j.grid.nodes));
            if (round)
                assert_int_equal(load_collisions(&j.load), first[i]);
            first[i] = load_collisions(&j.load);
        }
        place_reset(&j.place);
        assert_true(load_count(&j.load, &j.place, NULL));
        balance_reset(&b);
    }
    balance_fini(&b);
    job_close(&j);
}

/* Where messages of slots off their first nodes do not count, no message at all can be on a link. */
static void test_balance_received_messages_only_is_no_worse_either(void **state)
{
    (void)state;
    for (int32_t node = 0; node < 60; node++) {
        struct job j, rival;
        struct balance b;
        job_open_on(&j, "4x3x5", "3D(2,1):xy", "0D", PATTERN_RING, LOAD_RECEIVED, NULL);
        use_balance(&j, &b);
        job_open_on(&rival, "4x3x5", "3D(2,1):xy", "hybrid(all)", PATTERN_RING, LOAD_RECEIVED, NULL);
        if (job_fail(&j, node) == PLACE_MOVED && job_fail(&rival, node) == PLACE_MOVED)
            assert_true(load_collisions(&j.load) <= load_collisions(&rival.load));
        balance_fini(&b);
        job_close(&j);
        job_close(&rival);
    }
}

static void test_balance_no_free_node_cannot(void **state)
{
    (void)state;
    struct job j;
    struct balance b;
    job_open(&j, "3x2", "2D(1,1)", "0D");
    use_balance(&j, &b);
    assert_int_equal(job_fail(&j, 2), PLACE_IDLE);
    assert_int_equal(job_fail(&j, 0), PLACE_MOVED);
    assert_int_equal(job_fail(&j, 1), PLACE_CANNOT);
    assert_true(look_place_valid(&j.place));
    balance_fini(&b);
    job_close(&j);
}

/* With a bound on moves it keeps to that, at the price of its guarantee; nodes come back to it and to its
 * references. */
static void test_balance_bound_on_moves_and_nodes_that_come_back(void **state)
{
    (void)state;
    print_message("seeds 1..10\n");
    int32_t bounded = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct rng r;
        struct job j;
        struct balance b;
        int32_t slot;
        rng_seed(&r, seed);
        job_open(&j, "8x8", "2D(2,1)", "0D");
        use_balance(&j, &b);
        j.method.moves = 3;
        for (int i = 0; i < 60; i++) {
            int32_t node = (int32_t)rng_below(&r, (uint64_t)j.grid.nodes);
            if (j.place.ndead && (j.place.nfree < 3 || i % 4 == 0)) {
                if (place_return(&j.place, j.place.dead_list[0], &slot) == PLACE_MOVED)
                    load_put(&j.load, slot, j.place.node_of[slot]);
                continue;
            }
            enum place_result got = job_fail(&j, node);
            assert_true(got != PLACE_CANNOT && look_place_valid(&j.place));
            assert_true(got != PLACE_MOVED || j.plan.count <= 3);
            bounded += got == PLACE_MOVED && j.plan.bounded;
            for (int k = 0; k < b.refs - b.together; k++)
                assert_true(look_place_valid(&b.ref[k].place));
        }
        balance_fini(&b);
        job_close(&j);
    }
    assert_true(bounded > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balance_same_failures_never_more_collisions_than_references),
        cmocka_unit_test(test_balance_after_reset_repeats_itself),
        cmocka_unit_test(test_balance_received_messages_only_is_no_worse_either),
        cmocka_unit_test(test_balance_no_free_node_cannot),
        cmocka_unit_test(test_balance_bound_on_moves_and_nodes_that_come_back),
    };
    return cmocka_run_group_tests_name("balance", tests, NULL, NULL);
}
