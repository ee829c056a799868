/* The optimiser: its maps are what it says, resumption changes nothing, no map beats the bound or what was proven. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/place/bound.h"
#include "sim/place/anneal.h"
#include "tests/lib/topo/look.h"

struct study {
    struct setup setup;
    struct job job;
    struct anneal anneal;
};

/* dead: failures drawn by the seed among the nodes that have a slot at launch. */
static void open_study(struct study *s, const char *grid, const char *spares, const char *method, int dead,
                       uint64_t seed, int64_t steps)
{
    struct rng rng;
    rng_seed(&rng, seed);
    memset(s, 0, sizeof *s);
    assert_null(grid_parse(&s->setup.grid, grid));
    assert_null(spare_parse(&s->setup.layout, spares));
    strcpy(s->setup.method, method);
    s->setup.pattern = setup_stencil(&s->setup.grid);
    assert_null(setup_check(&s->setup));
    assert_true(job_open(&s->job, &s->setup));
    while (dead > 0) {
        int32_t node = s->job.place.home[rng_below(&rng, (uint64_t)s->job.place.slots)];
        dead -= s->job.place.slot_at[node] != PLACE_DEAD;
        job_fail(&s->job, node);
    }
    assert_null(anneal_open(&s->anneal, &s->job, seed, steps));
}

static void close_study(struct study *s)
{
    anneal_close(&s->anneal);
    job_close(&s->job);
}

/* Messages on the most used link of a map, counted anew; each slot on a live node of its own. */
static int32_t count_map(struct study *s, const int32_t *map)
{
    struct place *p = &s->job.place;
    struct place_plan plan;
    assert_true(place_plan_init(&plan, p));
    int32_t *mark = malloc((size_t)p->slots * sizeof *mark);
    assert_non_null(mark);
    place_arrange_init(p, mark);
    if (p->nfree) {
        assert_true(place_arrange(p, NULL, p->slots, map, mark, &plan));
        place_apply(p, &plan);
    } else /* no node to step aside to: just put them there */
        for (int32_t r = 0; r < p->slots; r++) {
            assert_int_not_equal(p->slot_at[map[r]], PLACE_DEAD);
            p->node_of[r] = map[r];
            p->slot_at[map[r]] = r;
        }
    assert_true(look_place_valid(p));
    assert_true(load_count(&s->job.load, p, NULL));
    free(mark);
    place_plan_fini(&plan);
    return load_collisions(&s->job.load);
}

static void test_anneal_best_map_carries_what_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *grid, *spares;
        int dead;
    } cases[] = {{"12x12", "2D(2,1)", 23}, {"6x6x6", "3D(2,1)", 30}, {"7tx6t", "2D(2,1)", 8}, {"20", "1D(1,4)", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct study s;
        open_study(&s, cases[i].grid, cases[i].spares, "0D", cases[i].dead, 5, 200000);
        int32_t start = load_collisions(&s.job.load);
        while (anneal_burst(&s.anneal))
            continue;
        assert_true(s.anneal.found < start || start == s.anneal.bound);
        assert_int_equal(count_map(&s, s.anneal.best), s.anneal.found);
        close_study(&s);
    }
}

static void test_anneal_resumed_run_ends_with_the_same_map(void **state)
{
    (void)state;
    char name[] = "/tmp/keel-anneal-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    struct study whole, part, rest;
    open_study(&whole, "10x10", "2D(2,1)", "0D", 15, 7, 60000);
    while (anneal_burst(&whole.anneal))
        continue;
    open_study(&part, "10x10", "2D(2,1)", "0D", 15, 7, 60000);
    for (int i = 0; i < 400; i++)
        assert_true(anneal_burst(&part.anneal));
    assert_null(anneal_save(&part.anneal, name, "this study"));
    open_study(&rest, "10x10", "2D(2,1)", "0D", 15, 7, 60000);
    assert_non_null(anneal_load(&rest.anneal, name, "another study"));
    assert_null(anneal_load(&rest.anneal, name, "this study"));
    assert_true(rest.anneal.step == part.anneal.step);
    while (anneal_burst(&rest.anneal))
        continue;
    assert_int_equal(rest.anneal.found, whole.anneal.found);
    assert_memory_equal(rest.anneal.best, whole.anneal.best, (size_t)whole.job.place.slots * sizeof *whole.anneal.best);
    unlink(name);
    close_study(&whole);
    close_study(&part);
    close_study(&rest);
}

/* The lowest load of all maps of slots k.., by counting each of them. */
static int32_t brute(struct study *s, int32_t k, int32_t *map, bool *taken)
{
    struct place *p = &s->job.place;
    int32_t least = INT32_MAX;
    if (k == p->slots) {
        struct place view = *p; /* load_count reads node_of and slot_at only */
        int32_t at[64];
        for (int32_t n = 0; n < p->grid.nodes; n++)
            at[n] = PLACE_FREE;
        for (int32_t r = 0; r < p->slots; r++)
            at[map[r]] = r;
        view.node_of = map;
        view.slot_at = at;
        assert_true(load_count(&s->job.load, &view, NULL));
        return load_collisions(&s->job.load);
    }
    for (int32_t i = 0; i < s->anneal.nlive; i++) {
        if (taken[i])
            continue;
        taken[i] = true;
        map[k] = s->anneal.live[i];
        int32_t c = brute(s, k + 1, map, taken);
        least = c < least ? c : least;
        taken[i] = false;
    }
    return least;
}

static void test_anneal_proof_and_bound_agree_with_all_maps_counted(void **state)
{
    (void)state;
    static const struct {
        const char *grid, *spares;
        int dead;
    } cases[] = {{"3x3", "2D(2,1)", 3}, {"3x3", "2D(1,1)", 2},  {"4x2", "2D(1,1)", 2},
                 {"7", "1D(1,2)", 2},   {"3tx3", "2D(2,1)", 4}, {"2x2x2", "3D(1,1)", 2}};
    atomic_bool stop = false;
    print_message("seeds 1..6\n");
    for (uint64_t seed = 1; seed <= 6; seed++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct study s;
            open_study(&s, cases[i].grid, cases[i].spares, "0D", cases[i].dead, seed, 0);
            int32_t map[64], bound = s.anneal.bound;
            bool taken[64] = {false};
            assert_null(anneal_prove(&s.anneal, &stop));
            assert_int_equal(s.anneal.bound, s.anneal.found);
            int32_t least = brute(&s, 0, map, taken);
            assert_int_equal(s.anneal.found, least);
            assert_true(bound <= least);
            close_study(&s);
        }
}

/* Both nodes with four links are dead, and one slot sends four messages. */
static void test_bound_counts_nodes_with_enough_links(void **state)
{
    (void)state;
    struct study s;
    int32_t map[64];
    bool taken[64] = {false};
    open_study(&s, "4x3", "2D(1,1)", "0D", 0, 1, 0);
    assert_int_equal(s.anneal.bound, 1);
    anneal_close(&s.anneal);
    job_fail(&s.job, 5);
    job_fail(&s.job, 6);
    job_fail(&s.job, 0);
    assert_null(anneal_open(&s.anneal, &s.job, 1, 0));
    assert_int_equal(s.anneal.bound, 2);
    assert_true(brute(&s, 0, map, taken) >= 2);
    close_study(&s);
}

static void test_bound_of_a_fat_tree_is_what_a_node_sends(void **state)
{
    (void)state;
    struct setup setup = {.method = "0D", .pattern = PATTERN_5P};
    struct job j;
    assert_null(grid_parse(&setup.grid, "4x4"));
    assert_null(spare_parse(&setup.layout, "2D(1,1)"));
    assert_true(fattree_init(&setup.net.tree, 16, 4, 4));
    assert_true(job_open(&j, &setup));
    assert_int_equal(load_bound(&j.place, &j.load), 4);
    job_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anneal_best_map_carries_what_it_says),
        cmocka_unit_test(test_anneal_resumed_run_ends_with_the_same_map),
        cmocka_unit_test(test_anneal_proof_and_bound_agree_with_all_maps_counted),
        cmocka_unit_test(test_bound_counts_nodes_with_enough_links),
        cmocka_unit_test(test_bound_of_a_fat_tree_is_what_a_node_sends),
    };
    return cmocka_run_group_tests_name("anneal", tests, NULL, NULL);
}
