/* The path policy by timelines of events. The network is an 8x8 torus unless a test says otherwise; the source is
 * endpoint 0 and the destination 3, three hops along the first dimension: links 0 -> 1 -> 2 -> 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/topo/detour.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define US 1000ull
#define MS 1000000ull

struct fixture {
    struct fabric fabric;
    struct detour_config config;
    struct detour d;
    struct detour_source s;
    struct rng rng;
};

static int setup(void **state)
{
    struct fixture *t = calloc(1, sizeof *t);
    if (!t || fabric_parse(&t->fabric, "8tx8t"))
        return -1;
    t->config = detour_config_paper();
    detour_source_init(&t->s, 0);
    rng_seed(&t->rng, 11);
    *state = t;
    return detour_init(&t->d, &t->fabric, &t->config) ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *t = *state;
    detour_source_fini(&t->s);
    detour_fini(&t->d);
    fabric_fini(&t->fabric);
    free(t);
    return 0;
}

static int32_t cable(const struct fixture *t, int32_t router, int port)
{
    return fabric_cable(&t->fabric, router * t->fabric.ports + port);
}

static struct detour_path choose(struct fixture *t, int32_t dest, uint64_t now)
{
    struct detour_path path;
    assert_true(detour_choose(&t->d, &t->s, dest, now, &t->rng, &path));
    return path;
}

static int hops_of(const struct fixture *t, const struct detour_path *path, int32_t dest, int32_t without)
{
    struct detour_walk w;
    detour_walk_begin(&w, &t->fabric, 0, path, dest);
    int hops = 0;
    for (int32_t l; (l = detour_walk_next(&w)) >= 0; hops++)
        assert_int_not_equal(fabric_cable(&t->fabric, l), without);
    assert_int_equal(w.at, fabric_home(&t->fabric, dest));
    return hops;
}

static void test_detour_without_news_takes_the_original_path_and_no_memory(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    for (int i = 1; i < 64; i++) {
        assert_int_equal(choose(t, i, (uint64_t)i).nvia, 0);
        detour_acked(&t->d, &t->s, i, &original, 2000, (uint64_t)i);
    }
    assert_null(t->s.paths);
    assert_null(t->s.faults.entry);
}

static void test_detour_fault_below_threshold_keeps_the_original_path(void **state)
{
    struct fixture *t = *state;
    int32_t broken = cable(t, 1, 0);
    for (uint32_t i = 1; i < t->config.threshold; i++) {
        detour_faulted(&t->d, &t->s, broken, i * US);
        assert_int_equal(choose(t, 3, i * US).nvia, 0);
    }
    detour_faulted(&t->d, &t->s, broken, 9 * US);
    struct detour_path path = choose(t, 3, 10 * US);
    assert_int_not_equal(path.nvia, 0);
    assert_true(detour_faults_find(&t->s.faults, broken)->permanent);
    assert_int_equal(hops_of(t, &path, 3, broken), 5); /* one row aside and back */
    assert_int_equal(choose(t, 24, 10 * US).nvia, 0);  /* another destination, a whole path */
}

static void test_detour_acknowledgement_clears_every_cable_of_its_path(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    int32_t on = cable(t, 1, 0), off = cable(t, 9, 0);
    for (int i = 0; i < 5; i++) {
        detour_faulted(&t->d, &t->s, on, 1);
        detour_faulted(&t->d, &t->s, off, 1);
    }
    assert_int_not_equal(choose(t, 3, 2).nvia, 0);
    detour_acked(&t->d, &t->s, 3, &original, 3000, 3);
    assert_null(detour_faults_find(&t->s.faults, on));
    assert_non_null(detour_faults_find(&t->s.faults, off));
    assert_int_equal(choose(t, 3, 4).nvia, 0); /* a path that works again is used again */
}

static void test_detour_counter_starts_again_after_an_acknowledgement(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    int32_t broken = cable(t, 1, 0);
    for (int round = 0; round < 4; round++) {
        detour_faulted(&t->d, &t->s, broken, 1);
        detour_faulted(&t->d, &t->s, broken, 2);
        detour_acked(&t->d, &t->s, 3, &original, 3000, 3);
        assert_int_equal(choose(t, 3, 4).nvia, 0);
    }
}

static void test_detour_alternative_avoids_every_known_fault(void **state)
{
    struct fixture *t = *state;
    rng_seed(&t->rng, 1234);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 12; i++) {
            int32_t c = cable(t, (int32_t)rng_below(&t->rng, 64), (int)rng_below(&t->rng, 4));
            for (int k = 0; k < 3; k++)
                detour_faulted(&t->d, &t->s, c, 1);
        }
        int32_t dest = 1 + (int32_t)rng_below(&t->rng, 63);
        struct detour_path path;
        if (detour_choose(&t->d, &t->s, dest, 2, &t->rng, &path)) {
            struct detour_walk w;
            detour_walk_begin(&w, &t->fabric, 0, &path, dest);
            for (int32_t l; (l = detour_walk_next(&w)) >= 0;)
                assert_null(detour_faults_find(&t->s.faults, fabric_cable(&t->fabric, l)));
            assert_int_equal(w.at, dest);
        }
        detour_source_fini(&t->s);
    }
}

static void test_detour_source_cut_off_says_so_and_keeps_the_original(void **state)
{
    struct fixture *t = *state;
    for (int port = 0; port < 4; port++)
        for (int k = 0; k < 3; k++)
            detour_faulted(&t->d, &t->s, cable(t, 0, port), 1);
    struct detour_path path;
    assert_false(detour_choose(&t->d, &t->s, 3, 2, &t->rng, &path));
    assert_int_equal(path.nvia, 0);
}

static void test_detour_crowded_path_opens_more_and_calm_closes_them(void **state)
{
    struct fixture *t = *state;
    uint64_t now = MS;
    bool seen[2] = {false, false};
    for (int i = 0; i < 200; i++, now += 100 * US) {
        struct detour_path path = choose(t, 3, now);
        seen[path.nvia > 0] = true;
        detour_acked(&t->d, &t->s, 3, &path, 100 * US, now);
    }
    assert_true(seen[0] && seen[1]);
    assert_int_equal(t->s.paths[0].open, t->config.max_paths);
    for (int i = 0; i < 200; i++, now += 100 * US) {
        struct detour_path path = choose(t, 3, now);
        detour_acked(&t->d, &t->s, 3, &path, 1000, now);
    }
    assert_int_equal(t->s.paths[0].open, 1);
    assert_int_equal(choose(t, 3, now).nvia, 0);
}

static void test_detour_open_paths_are_chosen_by_inverse_latency(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    t->d.config.max_paths = 2;
    detour_acked(&t->d, &t->s, 3, &original, 100 * US, MS); /* crowded: a second path */
    struct detour_path other = original;
    for (int i = 0; i < 100 && other.nvia == 0; i++)
        other = choose(t, 3, MS);
    assert_int_not_equal(other.nvia, 0);
    for (int i = 0; i < 60; i++) { /* the original settles at 90 us, the other at 30 us */
        detour_acked(&t->d, &t->s, 3, &original, 90 * US, MS);
        detour_acked(&t->d, &t->s, 3, &other, 30 * US, MS);
    }
    int count = 0;
    enum { DRAWS = 20000 };
    for (int i = 0; i < DRAWS; i++)
        count += choose(t, 3, MS).nvia == 0;
    assert_true(fabs(count / (double)DRAWS - 0.25) < 0.02); /* (1/90) / (1/90 + 1/30) */
}

static void test_detour_silent_path_rests_and_returns(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    for (uint32_t i = 0; i < t->config.silence_limit; i++) {
        assert_int_equal(choose(t, 3, MS).nvia, 0);
        detour_silent(&t->d, &t->s, 3, &original, MS);
    }
    assert_int_not_equal(choose(t, 3, MS + 1).nvia, 0);
    assert_int_equal(choose(t, 3, MS + t->config.silence_hold_ns).nvia, 0);
    /* An answer in between begins the count again. */
    detour_silent(&t->d, &t->s, 3, &original, 30 * MS);
    detour_silent(&t->d, &t->s, 3, &original, 30 * MS);
    detour_acked(&t->d, &t->s, 3, &original, 3000, 30 * MS);
    detour_silent(&t->d, &t->s, 3, &original, 30 * MS);
    assert_int_equal(choose(t, 3, 30 * MS).nvia, 0);
}

static void test_detour_forgetful_avoids_at_once_and_tries_again_with_one_message(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = true;
    uint64_t wait = t->config.retry_ns;
    int32_t broken = cable(t, 1, 0);
    detour_faulted(&t->d, &t->s, broken, MS);
    assert_int_not_equal(choose(t, 3, MS).nvia, 0);
    assert_int_not_equal(choose(t, 3, MS + wait - 1).nvia, 0);
    assert_int_equal(choose(t, 3, MS + wait).nvia, 0);     /* the trial */
    assert_int_not_equal(choose(t, 3, MS + wait).nvia, 0); /* the others wait for its answer */
    detour_faulted(&t->d, &t->s, broken, MS + wait);
    assert_int_not_equal(choose(t, 3, MS + wait + 2 * wait - 1).nvia, 0); /* twice as long now */
    assert_int_equal(choose(t, 3, MS + wait + 2 * wait).nvia, 0);
}

static void test_detour_told_faults_are_avoided_and_passed_on_until_they_are_old(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = t->d.config.tell = true;
    int32_t broken = cable(t, 1, 0);
    uint64_t max = t->config.retry_max_ns;
    struct detour_news news[4];
    detour_told(&t->d, &t->s, broken, MS, 2 * MS);
    assert_int_not_equal(choose(t, 3, 2 * MS).nvia, 0);
    assert_int_equal(detour_recall(&t->d, &t->s, 3 * MS, 4, news), 1);
    assert_int_equal(news[0].cable, broken);
    assert_true(news[0].seen_ns == MS); /* when it was seen, not when it was told */
    assert_int_equal(detour_recall(&t->d, &t->s, MS + max + 1, 4, news), 0);
    assert_int_equal(detour_recall(&t->d, &t->s, MS + 2 * max + 1, 4, news), 0);
    assert_int_equal(t->s.faults.used, 0);
    detour_told(&t->d, &t->s, broken, MS, MS + max + 1); /* too old to be believed */
    assert_int_equal(t->s.faults.used, 0);
}

static void test_detour_memory_of_a_source_is_bounded(void **state)
{
    struct fixture *t = *state;
    t->d.config.max_faults = 10;
    for (int round = 0; round < 50; round++)
        for (int32_t r = 0; r < 64; r++) {
            detour_faulted(&t->d, &t->s, cable(t, r, 0), (uint64_t)(round * 64 + r));
            struct detour_path path;
            detour_choose(&t->d, &t->s, 1 + r % 63, MS, &t->rng, &path);
        }
    assert_int_equal(t->s.faults.used, 10);
    assert_true(t->s.npaths <= t->config.cache);
}

static void test_detour_escape_takes_the_nearest_way_round(void **state)
{
    struct fixture *t = *state;
    int32_t known[] = {cable(t, 1, 0)};
    struct detour_path path;
    assert_true(detour_escape(&t->d, 1, 3, known, 1, &t->rng, &path));
    assert_int_equal(path.nvia, 1);
    assert_true(path.via[0] == 9 || path.via[0] == 57); /* one hop aside */
}

static void test_detour_escape_finds_any_path_or_says_there_is_none(void **state)
{
    struct fixture *t = *state;
    enum { ROUNDS = 300, CUT = 70 };
    int found = 0, cut = 0;
    rng_seed(&t->rng, 77);
    for (int round = 0; round < ROUNDS; round++) {
        int32_t known[CUT];
        uint8_t avoid[256] = {0}, mark[64] = {0};
        for (int i = 0; i < CUT; i++) {
            known[i] = cable(t, (int32_t)rng_below(&t->rng, 64), (int)rng_below(&t->rng, 4));
            avoid[known[i]] = 1;
        }
        int32_t from = (int32_t)rng_below(&t->rng, 64), to = (from + 1 + (int32_t)rng_below(&t->rng, 63)) % 64;
        mark[from] = 1;
        for (int i = 0; i < 64; i++)
            for (int32_t l = 0; l < 256; l++)
                if (mark[l / 4] && !avoid[fabric_cable(&t->fabric, l)])
                    mark[t->fabric.neighbor[l]] = 1;
        struct detour_path path;
        bool ok = detour_escape(&t->d, from, to, known, CUT, &t->rng, &path);
        assert_int_equal(ok, mark[to]);
        (*(ok ? &found : &cut))++;
    }
    assert_true(found > 20 && cut > 20);
}

static void test_detour_faults_table_behaves_as_a_set(void **state)
{
    (void)state;
    struct detour_faults f = {0};
    struct rng rng;
    rng_seed(&rng, 99);
    bool in[500] = {false};
    for (int i = 0; i < 20000; i++) {
        int32_t c = (int32_t)rng_below(&rng, 500);
        if (rng_below(&rng, 2)) {
            assert_non_null(detour_faults_add(&f, c, 1000));
            in[c] = true;
        } else {
            assert_int_equal(detour_faults_remove(&f, c), in[c]);
            in[c] = false;
        }
        int32_t probe = (int32_t)rng_below(&rng, 500);
        assert_int_equal(detour_faults_find(&f, probe) != NULL, in[probe]);
    }
    detour_faults_fini(&f);
}

#define ON_TORUS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_TORUS(test_detour_without_news_takes_the_original_path_and_no_memory),
        ON_TORUS(test_detour_fault_below_threshold_keeps_the_original_path),
        ON_TORUS(test_detour_acknowledgement_clears_every_cable_of_its_path),
        ON_TORUS(test_detour_counter_starts_again_after_an_acknowledgement),
        ON_TORUS(test_detour_alternative_avoids_every_known_fault),
        ON_TORUS(test_detour_source_cut_off_says_so_and_keeps_the_original),
        ON_TORUS(test_detour_crowded_path_opens_more_and_calm_closes_them),
        ON_TORUS(test_detour_open_paths_are_chosen_by_inverse_latency),
        ON_TORUS(test_detour_silent_path_rests_and_returns),
        ON_TORUS(test_detour_forgetful_avoids_at_once_and_tries_again_with_one_message),
        ON_TORUS(test_detour_told_faults_are_avoided_and_passed_on_until_they_are_old),
        ON_TORUS(test_detour_memory_of_a_source_is_bounded),
        ON_TORUS(test_detour_escape_takes_the_nearest_way_round),
        ON_TORUS(test_detour_escape_finds_any_path_or_says_there_is_none),
        cmocka_unit_test(test_detour_faults_table_behaves_as_a_set),
    };
    return cmocka_run_group_tests_name("detour", tests, NULL, NULL);
}
