/* The simulator: thread-independence, resumption, and the pruned search against the full one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/place/sample.h"
#include "sim/place/worst.h"
#include "tests/lib/sanitized.h"

static struct setup setup(const char *grid, const char *spares, const char *method)
{
    struct setup s = {0};
    assert_null(grid_parse(&s.grid, grid));
    assert_null(spare_parse(&s.layout, spares));
    strcpy(s.method, method);
    s.pattern = setup_stencil(&s.grid);
    assert_null(setup_check(&s));
    return s;
}

static struct sample_config config(const char *method, int threads)
{
    return (struct sample_config){
        .setup = setup("6x5x4", "3D(2,1)", method), .seed = 9, .cases = 20000, .threads = threads, .links = true};
}

static void assert_same(const struct sample_result *a, const struct sample_result *b)
{
    size_t rows = (size_t)a->failures + 1;
    assert_int_equal(a->failures, b->failures);
    assert_true(a->done == b->done);
    assert_memory_equal(a->row, b->row, rows * sizeof *a->row);
    assert_memory_equal(a->link_loads, b->link_loads, rows * sizeof *a->link_loads);
}

static void test_sample_any_number_of_threads_gives_the_same_counts(void **state)
{
    (void)state;
    static const char *const methods[] = {"hybrid(all)", "balance"};
    for (size_t m = 0; m < 2; m++) {
        struct sample_result one, three;
        atomic_bool stop = 0;
        struct sample_config c = config(methods[m], 1);
        assert_null(sample_run(&c, &stop, &one));
        c.threads = 3;
        assert_null(sample_run(&c, &stop, &three));
        assert_true(one.row[1].cases >= 200);
        assert_same(&one, &three);
        sample_free(&one);
        sample_free(&three);
    }
}

/* A state as an interrupted run leaves it: the first five sequences finished, the rest not begun. */
static void test_sample_resumed_run_equals_an_uninterrupted_one(void **state)
{
    (void)state;
    char name[] = "/tmp/keel-sample-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    struct sample_config c = config("hybrid(all)", 2);
    struct sample_result whole, part, resumed;
    atomic_bool stop = 0;
    assert_null(sample_run(&c, &stop, &whole));
    /* the first five sequences alone, as if a run of all had stopped there */
    struct sample_config few = c;
    few.cases = 5 * whole.failures;
    assert_null(sample_run(&few, &stop, &part));
    assert_true(part.done == 5);
    struct sample_pending pending = {.next = 5};
    part.sequences = whole.sequences;
    c.state = name;
    assert_null(sample_state_save(&c, &part, &pending));
    c.resume = true;
    assert_null(sample_run(&c, &stop, &resumed));
    assert_same(&whole, &resumed);
    assert_int_not_equal(access(name, F_OK), 0);
    sample_free(&whole);
    sample_free(&part);
    sample_free(&resumed);
}

static void test_sample_interrupted_at_once_leaves_a_state_that_completes(void **state)
{
    (void)state;
    char name[] = "/tmp/keel-sample-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    struct sample_config c = config("0D", 2);
    struct sample_result whole, cut, resumed;
    atomic_bool stop = 0;
    assert_null(sample_run(&c, &stop, &whole));
    c.state = name;
    stop = 1;
    assert_null(sample_run(&c, &stop, &cut));
    assert_true(cut.interrupted);
    stop = 0;
    c.resume = true;
    assert_null(sample_run(&c, &stop, &resumed));
    assert_false(resumed.interrupted);
    assert_same(&whole, &resumed);
    /* another study's state is refused */
    struct sample_pending none = {.todo = NULL};
    assert_null(sample_state_save(&c, &cut, &none));
    c.seed++;
    struct sample_result other;
    assert_non_null(sample_run(&c, &stop, &other));
    unlink(name);
    sample_free(&whole);
    sample_free(&cut);
    sample_free(&resumed);
    sample_free(&other);
}

static void test_sample_worm_eaten_launch_starts_from_the_substituted_map(void **state)
{
    (void)state;
    int32_t dead[] = {0, 7, 44};
    struct sample_config c = config("hybrid(all)", 2);
    c.dead = dead;
    c.ndead = 3;
    struct sample_result r;
    atomic_bool stop = 0;
    assert_null(sample_run(&c, &stop, &r));
    assert_true(r.row[0].best >= 1 && r.row[0].best == r.row[0].worst);
    /* three nodes fewer: every sequence ends three failures or more before the spares are used up */
    assert_int_equal(r.row[r.failures].cases, 0);
    sample_free(&r);
}

static int64_t pruned_maps, full_maps;

static atomic_bool go_on, stop_now;

static void worst(const struct setup *s, int failures, bool full, enum draw draw, struct worst_result *r)
{
    struct worst_config c = {.setup = *s, .failures = failures, .full = full, .draw = draw, .stop = &go_on};
    assert_null(worst_run(&c, r));
}

static void assert_pruned_equals_full(struct setup *s, int failures)
{
    for (int count = LOAD_ALL; count <= LOAD_RECEIVED; count++) {
        struct worst_result full, pruned;
        s->convention = (enum load_convention)count;
        worst(s, failures, true, DRAW_JOB, &full);
        worst(s, failures, false, DRAW_JOB, &pruned);
        assert_memory_equal(full.collisions, pruned.collisions, sizeof full.collisions);
        assert_true(pruned.maps <= full.maps);
        pruned_maps += pruned.maps;
        full_maps += full.maps;
    }
}

/* Every method under both conventions, on meshes and tori, one to three dimensions, one or two sides or layers; with a
 * sanitizer, which makes them four times as long and sees the same code in each, every fourth. */
static void test_worst_pruned_search_equals_the_full_one(void **state)
{
    (void)state;
    static const struct {
        const char *grid, *spares, *method;
        int failures;
    } cases[] = {
        {"5x5", "2D(1,1)", "0D", 3},
        {"6x4", "2D(1,1)", "0D", 4},
        {"4x6", "2D(1,1):y", "0D", 3},
        {"3x3x3", "3D(2,1):xz", "0D", 3},
        {"4x4", "2D(1,1):y", "hybrid(all)", 4},
        {"5x5t", "2D(1,1)", "0D", 3},
        {"4tx6t", "2D(1,1)", "0D", 3},
        {"5tx5t", "2D(1,1)", "0D", 3},
        {"5x4", "2D(2,1)", "0D", 4},
        {"5tx5t", "2D(2,1)", "0D", 3},
        {"4x5t", "2D(2,1)", "0D", 4},
        {"4x4", "2D(2,1)", "0D", 5},
        {"3x3x3", "3D(1,1)", "0D", 3},
        {"3tx3x3t", "3D(1,1)", "0D", 3},
        {"3x3x3", "3D(2,1)", "0D", 4},
        {"3x3x3", "3D(3,1)", "0D", 4},
        {"4x4", "2D(1,2)", "0D", 5},
        {"4x5", "2D(2,2)", "0D", 4},
        {"9", "1D(1,3)", "0D", 3},
        {"3x8", "2D(1,1)", "0D", 5},
        {"8x3", "2D(1,1)", "0D", 4},
        {"5x5", "2D(2,1)", "1D", 3},
        {"4x4", "2D(2,1)", "1D", 5},
        {"5tx4t", "2D(2,1)", "1D", 3},
        {"5x4", "2D(1,1)", "1D", 4},
        {"3x3x3", "3D(2,1)", "1D", 3},
        {"5x4", "2D(2,1)", "2D", 3},
        {"5tx5", "2D(2,1)", "2D", 3},
        {"3x3x3", "3D(2,1)", "3D", 3},
        {"4x4", "2D(2,1)", "hybrid(all)", 4},
        {"4tx4t", "2D(2,1)", "hybrid(all)", 4},
        {"5x4", "2D(2,1)", "hybrid(-2D)", 3},
        {"4x3x3", "3D(2,1)", "hybrid(-2D)", 3},
        {"4x4", "2D(2,1)", "hybrid(1D+0D)", 4},
        {"4x4", "2D(1,1)", "hybrid(2D+0D)", 4},
        {"6x5", "2D(2,1)", "1D", 4},
        {"5x5", "2D(2,1)", "hybrid(1D+0D)", 4},
        {"6x3", "2D(2,1)", "hybrid(all)", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += SANITIZED ? 4 : 1) {
        struct setup s = setup(cases[i].grid, cases[i].spares, cases[i].method);
        assert_pruned_equals_full(&s, cases[i].failures);
    }
    assert_true(pruned_maps * (SANITIZED ? 2 : 10) < full_maps);
}

static void test_worst_pruned_search_of_wide_stencils_equals_the_full_one(void **state)
{
    (void)state;
    struct setup s = setup("5x4", "2D(1,1)", "0D");
    s.pattern = PATTERN_9P;
    assert_pruned_equals_full(&s, 3);
    s.pattern = PATTERN_RING;
    assert_pruned_equals_full(&s, 3);
    s = setup("5x4", "2D(2,1)", "0D");
    s.pattern = PATTERN_9P;
    assert_pruned_equals_full(&s, 3);
    s = setup("3x3x3", "3D(1,1)", "0D");
    s.pattern = PATTERN_27P;
    assert_pruned_equals_full(&s, 3);
}

static void test_worst_climb_meets_the_published_law(void **state)
{
    (void)state;
    struct worst_result r;
    struct setup s = setup("25x25", "2D(1,1)", "0D");
    struct worst_config c = {.setup = s, .failures = 8, .stop = &go_on};
    assert_null(worst_climb(&c, &r));
    for (int f = 2; f <= 8; f++)
        assert_int_equal(r.collisions[f], f <= 6 ? 2 * f + 1 : 4 * (f - 3));
}

/* The search proves what the climb finds, on a grid wide enough for the law. */
static void test_worst_search_proves_the_published_law(void **state)
{
    (void)state;
    struct worst_result r;
    struct setup s = setup("19x19", "2D(1,1)", "0D");
    s.convention = LOAD_RECEIVED;
    worst(&s, 8, false, DRAW_JOB, &r);
    assert_false(r.interrupted);
    for (int f = 1; f <= 8; f++)
        assert_int_equal(r.collisions[f], f <= 6 ? 2 * f + 1 : 4 * (f - 3));
}

/* 1D with 2D(2,1): 2 + F; 2D with 2D(2,1): two failures without collision; by full search. */
static void test_worst_1d_and_2d_follow_the_published_laws(void **state)
{
    (void)state;
    struct worst_result r;
    struct setup s = setup("7x7", "2D(2,1)", "1D");
    worst(&s, 3, true, DRAW_JOB, &r);
    for (int f = 1; f <= 3; f++)
        assert_int_equal(r.collisions[f], 2 + f);
    assert_int_equal(r.cannot, 0);
    s = setup("8x8", "2D(2,1)", "2D");
    worst(&s, 2, true, DRAW_JOB, &r);
    assert_int_equal(r.collisions[2], 1);
    assert_int_equal(r.cannot, 0);
}

/* A spare that took over may die too: one failure more can be handled, and the worst case is higher. */
static void test_worst_of_nodes_in_use_includes_spares_that_took_over(void **state)
{
    (void)state;
    struct worst_result job, active, full;
    struct setup s = setup("5x4", "2D(2,1)", "1D");
    strcpy(s.order, "xy");
    worst(&s, 4, false, DRAW_JOB, &job);
    worst(&s, 4, false, DRAW_ACTIVE, &active);
    worst(&s, 4, true, DRAW_ACTIVE, &full);
    assert_int_equal(job.collisions[4], 5);
    assert_int_equal(active.collisions[4], 6);
    assert_memory_equal(active.collisions, full.collisions, sizeof full.collisions);
    s = setup("4x4", "2D(2,1)", "hybrid(all)");
    worst(&s, 3, false, DRAW_ANY, &active);
    worst(&s, 3, true, DRAW_ANY, &full);
    assert_memory_equal(active.collisions, full.collisions, sizeof full.collisions);
}

/* What is found is what the sequence gives: also when nodes are dead at launch. */
static void test_worst_with_dead_nodes_starts_from_the_substituted_map(void **state)
{
    (void)state;
    static const int32_t dead[] = {6, 2};
    struct worst_result r, full;
    struct worst_config c = {
        .setup = setup("5x4", "2D(2,1)", "hybrid(all)"), .failures = 3, .dead = dead, .ndead = 2, .stop = &go_on};
    assert_null(worst_run(&c, &r));
    c.full = true;
    assert_null(worst_run(&c, &full));
    assert_memory_equal(r.collisions, full.collisions, sizeof full.collisions);
    struct job j;
    assert_true(job_open(&j, &c.setup));
    for (int i = 0; i < 2; i++)
        job_fail(&j, dead[i]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(job_fail(&j, r.nodes[3][i]) == PLACE_CANNOT, 0);
    job_close(&j);
}

static void *stop_soon(void *arg)
{
    usleep(*(unsigned *)arg);
    atomic_store(&stop_now, true);
    return NULL;
}

/* Broken off after longer and longer times, and gone on with, until it has come to its end. */
static int broken_off(struct worst_config c, struct worst_result *r)
{
    char state[] = "/tmp/keel-worst-XXXXXX";
    int fd = mkstemp(state), times = 0;
    assert_true(fd >= 0);
    close(fd);
    unlink(state);
    c.state = state;
    c.stop = &stop_now;
    for (unsigned us = 300;; us += us / 2, times++) {
        pthread_t thread;
        atomic_store(&stop_now, false);
        assert_int_equal(pthread_create(&thread, NULL, stop_soon, &us), 0);
        assert_null(worst_run(&c, r));
        pthread_join(thread, NULL);
        assert_int_equal(access(state, R_OK) == 0, r->interrupted);
        if (!r->interrupted)
            return times;
        c.resume = true;
    }
}

/* The same worst cases and the same sequences for any number of threads, with next to no memory for the maps met, and
 * when the search is broken off again and again. */
static void test_worst_does_not_depend_on_threads_memory_and_interruptions(void **state)
{
    (void)state;
    static const struct {
        const char *grid, *layout, *method;
        int failures;
        enum draw draw;
    } cases[] = {{"8x8", "2D(1,1)", "0D", 4, DRAW_JOB},
                 {"6x6", "2D(2,1)", "0D", 4, DRAW_JOB},
                 {"5x5", "2D(2,1)", "hybrid(all)", 4, DRAW_JOB},
                 {"5x4", "2D(2,1)", "1D", 4, DRAW_ACTIVE},
                 {"7tx5", "2D(1,1)", "0D", 3, DRAW_ANY}};
    int times = 0;
    for (size_t i = SANITIZED; i < (SANITIZED ? 2 : sizeof cases / sizeof *cases); i++) {
        struct setup s = setup(cases[i].grid, cases[i].layout, cases[i].method);
        struct worst_result one, r;
        struct worst_config c = {.setup = s, .failures = cases[i].failures, .draw = cases[i].draw, .stop = &go_on};
        assert_null(worst_run(&c, &one));
        assert_false(one.full);
        for (int way = 0; way < 4; way++) {
            c.threads = way == 3 ? 1 : 2 + way;
            c.memory = way < 2 ? 0 : (size_t)4 << 20;
            assert_null(worst_run(&c, &r));
            assert_memory_equal(r.collisions, one.collisions, sizeof r.collisions);
            assert_memory_equal(r.nodes, one.nodes, sizeof r.nodes);
            assert_false(r.interrupted);
        }
        times += broken_off(c, &r);
        assert_memory_equal(r.collisions, one.collisions, sizeof r.collisions);
        assert_memory_equal(r.nodes, one.nodes, sizeof r.nodes);
    }
    assert_true(times > 0);
}

/* The bound is met, some maps are followed again, and the result is the same; what cannot fit at all is refused. */
static void test_worst_within_little_memory_is_whole(void **state)
{
    (void)state;
    struct setup s = setup("6x6", "2D(2,1)", "hybrid(all)");
    struct worst_result r, little;
    struct worst_config c = {.setup = s, .failures = 4, .stop = &go_on};
    assert_null(worst_run(&c, &r));
    c.memory = (size_t)1 << 19;
    assert_null(worst_run(&c, &little));
    assert_true(!r.full && little.full && little.maps > r.maps);
    assert_memory_equal(r.collisions, little.collisions, sizeof r.collisions);
    c.memory = (size_t)1 << 14;
    assert_non_null(worst_run(&c, &little));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample_any_number_of_threads_gives_the_same_counts),
        cmocka_unit_test(test_sample_resumed_run_equals_an_uninterrupted_one),
        cmocka_unit_test(test_sample_interrupted_at_once_leaves_a_state_that_completes),
        cmocka_unit_test(test_sample_worm_eaten_launch_starts_from_the_substituted_map),
        cmocka_unit_test(test_worst_pruned_search_equals_the_full_one),
        cmocka_unit_test(test_worst_pruned_search_of_wide_stencils_equals_the_full_one),
        cmocka_unit_test(test_worst_climb_meets_the_published_law),
        cmocka_unit_test(test_worst_search_proves_the_published_law),
        cmocka_unit_test(test_worst_1d_and_2d_follow_the_published_laws),
        cmocka_unit_test(test_worst_of_nodes_in_use_includes_spares_that_took_over),
        cmocka_unit_test(test_worst_with_dead_nodes_starts_from_the_substituted_map),
        cmocka_unit_test(test_worst_does_not_depend_on_threads_memory_and_interruptions),
        cmocka_unit_test(test_worst_within_little_memory_is_whole),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
