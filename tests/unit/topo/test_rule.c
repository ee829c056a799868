/* The grid of a job: which node has which number, with nodes that are not there at the start; methods by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/topo/rule.h"
#include "tests/lib/topo/look.h"

enum { NODES = 16, SEED = 11 };

static struct grid_choice choice(const char *grid, const char *spares, const char *method, int *dead, int ndead)
{
    struct grid_choice c = {.dead = dead, .ndead = ndead};
    snprintf(c.grid, sizeof c.grid, "%s", grid);
    snprintf(c.spares, sizeof c.spares, "%s", spares);
    snprintf(c.method, sizeof c.method, "%s", method);
    return c;
}

static void open_state(struct grid_state *s, struct grid_choice *c, int slots)
{
    struct grid_rule rule;
    assert_null(rule_read(&rule, c));
    assert_true(grid_open(s, &rule, slots));
}

static void test_rule_computing_nodes_come_first_in_the_order_of_places(void **state)
{
    (void)state;
    static struct grid_state s;
    struct grid_choice c = choice("4x4", "2D(2,1)", "auto", NULL, 0);
    int node_at[NODES], expected[NODES] = {0, 1, 2, 9, 3, 4, 5, 10, 6, 7, 8, 11, 12, 13, 14, 15};
    open_state(&s, &c, 9);
    assert_int_equal(grid_numbers(&s, node_at), NODES);
    assert_memory_equal(node_at, expected, sizeof expected);
    grid_close(&s);
    open_state(&s, &c, 8); /* the last place has no slot, and is one among the spares */
    assert_int_equal(grid_numbers(&s, node_at), NODES);
    assert_int_equal(node_at[10], 10);
    assert_int_equal(node_at[3], 8);
    grid_close(&s);
}

/* As keel-place --dead has it: one after another, or all at once, the map of 1D is the same here. */
static void test_rule_slots_of_dead_nodes_have_gone_before_the_start(void **state)
{
    (void)state;
    static struct grid_state s;
    int dead[] = {5}, node_at[NODES];
    struct grid_choice c = choice("4x4", "2D(2,1)", "1D", dead, 1);
    open_state(&s, &c, 9);
    assert_int_equal(grid_numbers(&s, node_at), NODES - 1);
    assert_int_equal(node_at[5], -1);
    assert_int_equal(node_at[9], 4); /* along y: 5 -> 9 -> 13 */
    assert_int_equal(node_at[13], 7);
    assert_true(look_transit_valid(&s.transit));
    assert_int_equal(s.transit.pending, 0);
    assert_int_equal(s.transit.stands[4], 9);
    grid_close(&s);
    c = choice("4x4", "2D(2,1)", "none", dead, 1);
    open_state(&s, &c, 9);
    assert_int_equal(s.place.homeless, 1);
    grid_close(&s);
}

/* All methods, random nodes that are missing: each slot has a node that lives, numbers are whole, and two who were told
 * the same have the same state. */
static void test_rule_random_nodes_are_missing(void **state)
{
    (void)state;
    static struct grid_state s, twin;
    static const char *const methods[] = {"0D",      "1D",     "hybrid(all)", "hybrid(-2D)",
                                          "balance", "repair", "repair(2)",   "auto"};
    struct rng rng;
    rng_seed(&rng, SEED);
    print_message("seed %d\n", SEED);
    for (int round = 0; round < 400; round++) {
        int dead[NODES], ndead = (int)rng_below(&rng, 8), node_at[NODES], seen[NODES] = {0};
        for (int i = 0; i < NODES; i++)
            dead[i] = i;
        for (int i = 0; i < ndead; i++) {
            int k = i + (int)rng_below(&rng, (uint64_t)(NODES - i)), was = dead[i];
            dead[i] = dead[k];
            dead[k] = was;
        }
        struct grid_choice c = choice("4x4t", "2D(2,1)", methods[round % 8], dead, ndead);
        c.moves = (int)rng_below(&rng, 4);
        open_state(&s, &c, 9);
        open_state(&twin, &c, 9);
        assert_true(look_transit_valid(&s.transit));
        assert_true(look_transit_digest(&s.transit) == look_transit_digest(&twin.transit));
        if (round % 8 != 1) /* slides alone may have no way */
            assert_int_equal(s.place.homeless, 0);
        int numbers = grid_numbers(&s, node_at);
        for (int g = 0; g < NODES; g++)
            if (node_at[g] >= 0 && node_at[g] < numbers)
                seen[node_at[g]]++;
        for (int n = 9; n < numbers; n++)
            assert_int_equal(seen[n], 1);
        for (int slot = 0; slot < 9 && !s.place.homeless; slot++)
            assert_int_equal(node_at[s.place.node_of[slot]], slot);
        if (!s.place.homeless)
            assert_int_equal(numbers, NODES - ndead);
        grid_close(&s);
        grid_close(&twin);
    }
}

/* 4x4, 2D(2,1): the user's plan for place 5 goes along x; for 0 there is none. */
static void test_rule_user_plans_are_taken_where_they_are_possible(void **state)
{
    (void)state;
    static struct grid_state s;
    struct place_plan plan;
    int words[] = {5, 2, 6, 7, 5, 6, /* 6 goes to 7, then 5 to 6 */ 9, 1, 9, 7};
    struct grid_choice c = choice("4x4", "2D(2,1)", "user", NULL, 0);
    c.plans = words;
    c.nplans = sizeof words / sizeof words[0];
    open_state(&s, &c, 9);
    assert_true(place_plan_init(&plan, &s.place));
    assert_int_equal(place_substitute(&s.place, &s.method, 5, &plan), PLACE_MOVED);
    assert_int_equal(plan.count, 2);
    assert_int_equal(s.place.node_of[4], 6); /* slot 4 was on 5, */
    assert_int_equal(s.place.node_of[5], 7);
    assert_int_equal(place_substitute(&s.place, &s.method, 9, &plan), PLACE_MOVED); /* 7 is taken: 0D */
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.order, 0);
    assert_int_equal(place_substitute(&s.place, &s.method, 0, &plan), PLACE_MOVED);
    assert_int_equal(plan.order, 0);
    place_plan_fini(&plan);
    grid_close(&s);
    c.moves = 1;
    open_state(&s, &c, 9);
    assert_true(place_plan_init(&plan, &s.place));
    assert_int_equal(place_substitute(&s.place, &s.method, 5, &plan), PLACE_MOVED);
    assert_int_equal(plan.count, 1);
    assert_true(plan.bounded);
    place_plan_fini(&plan);
    grid_close(&s);
}

/* Random ones, most of them not possible: the map stays whole. */
static void test_rule_random_user_plans_keep_the_map_whole(void **state)
{
    (void)state;
    static struct grid_state s;
    struct rng rng;
    int taken = 0;
    rng_seed(&rng, SEED);
    print_message("seed %d\n", SEED);
    for (int round = 0; round < 2000; round++) {
        struct place_plan plan;
        int words[2 + 6], failed = (int)rng_below(&rng, NODES), moves = 1 + (int)rng_below(&rng, 3);
        words[0] = failed;
        words[1] = moves;
        for (int i = 0; i < 2 * moves; i++)
            words[2 + i] = rng_below(&rng, 3) ? (int)rng_below(&rng, NODES) : failed;
        struct grid_choice c = choice("4x4", "2D(2,1)", "user", NULL, 0);
        c.plans = words;
        c.nplans = 2 + 2 * moves;
        open_state(&s, &c, 9);
        assert_true(place_plan_init(&plan, &s.place));
        if (place_substitute(&s.place, &s.method, failed, &plan) == PLACE_MOVED)
            taken += plan.order == PLACE_OWN;
        assert_true(look_place_valid(&s.place));
        assert_int_equal(s.place.homeless, 0);
        place_plan_fini(&plan);
        grid_close(&s);
    }
    assert_true(taken > 20);
}

static void test_rule_what_is_wrong_is_said(void **state)
{
    (void)state;
    struct grid_rule rule;
    int dead[] = {16};
    struct grid_choice bad[] = {
        choice("4x", "2D(2,1)", "auto", NULL, 0),        choice("4x4", "2D(3,1)", "auto", NULL, 0),
        choice("4x4", "2D(2,4)", "auto", NULL, 0),       choice("4x4", "3D(2,1)", "auto", NULL, 0),
        choice("4x4", "2D(2,1)", "repair(0)", NULL, 0),  choice("4x4", "2D(2,1)", "repair(257)", NULL, 0),
        choice("4x4", "2D(2,1)", "repair(8)x", NULL, 0), choice("4x4", "2D(2,1)", "3D", NULL, 0),
        choice("4x4", "2D(2,1)", "Auto", NULL, 0),       choice("4x4", "2D(2,1)", "auto", dead, 1),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_non_null(rule_read(&rule, &bad[i]));
    int cut[] = {5, 2, 6, 7, 5}, far[] = {5, 1, 5, 16};
    struct grid_choice user = choice("4x4", "2D(2,1)", "user", NULL, 0);
    user.plans = cut;
    for (user.nplans = 1; user.nplans <= 5; user.nplans++)
        assert_non_null(rule_read(&rule, &user));
    user.plans = far;
    user.nplans = 4;
    assert_non_null(rule_read(&rule, &user));
    far[3] = 15;
    assert_null(rule_read(&rule, &user));
    dead[0] = 15;
    assert_null(rule_read(&rule, &bad[sizeof bad / sizeof bad[0] - 1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_computing_nodes_come_first_in_the_order_of_places),
        cmocka_unit_test(test_rule_slots_of_dead_nodes_have_gone_before_the_start),
        cmocka_unit_test(test_rule_random_nodes_are_missing),
        cmocka_unit_test(test_rule_user_plans_are_taken_where_they_are_possible),
        cmocka_unit_test(test_rule_random_user_plans_keep_the_map_whole),
        cmocka_unit_test(test_rule_what_is_wrong_is_said),
    };
    return cmocka_run_group_tests_name("rule", tests, NULL, NULL);
}
