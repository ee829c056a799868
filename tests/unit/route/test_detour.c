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
        detour_faulted(&t->d, &t->s, broken, 0, i * US);
        assert_int_equal(choose(t, 3, i * US).nvia, 0);
    }
    detour_faulted(&t->d, &t->s, broken, 0, 9 * US);
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
        detour_faulted(&t->d, &t->s, on, 0, 1);
        detour_faulted(&t->d, &t->s, off, 0, 1);
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
        detour_faulted(&t->d, &t->s, broken, 0, 1);
        detour_faulted(&t->d, &t->s, broken, 0, 2);
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
                detour_faulted(&t->d, &t->s, c, 0, 1);
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
            detour_faulted(&t->d, &t->s, cable(t, 0, port), 0, 1);
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

/* From this time on one message tries the cable again; the others wait. */
static uint64_t trial_time(struct fixture *t, uint64_t from, uint64_t step)
{
    for (uint64_t now = from; now < from + 1000 * step; now += step)
        if (choose(t, 3, now).nvia == 0)
            return now;
    fail_msg("the cable is never tried again");
    return 0;
}

static void test_detour_forgetful_avoids_at_once_and_tries_again_with_one_message(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = true;
    uint64_t wait = t->config.retry_ns;
    int32_t broken = cable(t, 1, 0);
    detour_faulted(&t->d, &t->s, broken, 0, MS);
    uint64_t trial = trial_time(t, MS, wait / 10);
    assert_in_range(trial - MS, wait, 16 * wait);
    assert_int_not_equal(choose(t, 3, trial).nvia, 0); /* the others wait for its answer */
    /* Out for long, tried seldom, but at the longest after 16 times retry_max_ns. */
    for (uint64_t age = 10 * MS; age < 10000 * MS; age *= 10) {
        uint64_t capped = age < t->config.retry_max_ns ? age : t->config.retry_max_ns;
        detour_faulted(&t->d, &t->s, broken, 0, MS + age);
        trial = trial_time(t, MS + age, capped / 10);
        assert_in_range(trial - MS - age, capped, 16 * capped + capped / 10);
    }
}

static void test_detour_sources_try_a_cable_again_one_after_the_other(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = true;
    int early = 0;
    for (int32_t e = 0; e < 64; e++) {
        struct detour_source s;
        detour_source_init(&s, e);
        detour_faulted(&t->d, &s, cable(t, 1, 0), 10 * MS, 20 * MS);
        early += detour_faults_find(&s.faults, cable(t, 1, 0))->retry_ns < 20 * MS + 4 * 10 * MS;
        detour_source_fini(&s);
    }
    assert_in_range(early, 1, 32);
}

/* The router says how long a cable has been out: short outages are tried again soon, and by everybody. */
static void test_detour_cable_is_left_alone_for_as_long_as_it_has_been_out(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = true;
    int32_t broken = cable(t, 1, 0);
    detour_faulted(&t->d, &t->s, broken, 100 * US, 10 * MS);
    assert_int_not_equal(choose(t, 3, 10 * MS + 99 * US).nvia, 0);
    assert_int_equal(choose(t, 3, 10 * MS + 104 * US).nvia, 0);
    detour_faulted(&t->d, &t->s, broken, 5 * MS, 20 * MS);
    assert_int_not_equal(choose(t, 3, 24 * MS).nvia, 0);
}

static void test_detour_told_faults_are_avoided_and_passed_on_while_they_are_likely(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = t->d.config.tell = true;
    int32_t broken = cable(t, 1, 0);
    uint64_t max = t->config.retry_max_ns;
    struct detour_news news[4];
    const struct detour_news first = {.cable = broken, .out_ns = 5 * MS, .age_ns = MS};
    detour_told(&t->d, &t->s, &first, 10 * MS);
    assert_int_not_equal(choose(t, 3, 10 * MS).nvia, 0);
    assert_int_equal(detour_recall(&t->d, &t->s, 12 * MS, true, 4, news), 1);
    assert_int_equal(news[0].cable, broken);
    assert_false(news[0].works);
    assert_true(news[0].out_ns == 5 * MS);
    assert_true(news[0].age_ns == 3 * MS); /* since it was seen, not since it was told */
    assert_int_equal(detour_recall(&t->d, &t->s, 14 * MS + 1, true, 4, news), 0);
    assert_int_equal(detour_recall(&t->d, &t->s, 9 * MS + 2 * max, true, 4, news), 0);
    assert_int_equal(t->s.faults.used, 1); /* it lasted: remembered, if not for ever */
    assert_int_equal(detour_recall(&t->d, &t->s, 9 * MS + 2 * max + 16 * 5 * MS + 1, true, 4, news), 0);
    assert_int_equal(t->s.faults.used, 0);
    const struct detour_news old = {.cable = broken, .out_ns = max, .age_ns = max + 1};
    detour_told(&t->d, &t->s, &old, 10 * max); /* too old to be believed */
    assert_int_equal(t->s.faults.used, 0);
    /* What is over before others have heard of it is not passed on, nor kept once it works. */
    const struct detour_path original = {.nvia = 0};
    detour_faulted(&t->d, &t->s, broken, t->config.tell_ns - 1, 10 * max);
    assert_int_equal(detour_recall(&t->d, &t->s, 10 * max, true, 4, news), 0);
    detour_acked(&t->d, &t->s, 3, &original, 3000, 10 * max + MS);
    assert_int_equal(t->s.faults.used, 0);
}

/* Plans are for the faults that all know, so who asks for all hears of a lasting one for as long as it is remembered;
 * also that it works again, so that no old story makes it broken once more. */
static void test_detour_lasting_faults_are_told_for_as_long_as_they_are_remembered(void **state)
{
    struct fixture *t = *state;
    t->d.config = detour_config_plan();
    const struct detour_path original = {.nvia = 0};
    const uint64_t out = 10 * MS, last = 2 * t->config.retry_max_ns + 16 * out;
    const uint64_t age[] = {out + 1, t->config.retry_max_ns + 1, last};
    int32_t broken = cable(t, 1, 0);
    struct detour_news news[4];
    struct detour_source other;
    for (int i = 0; i < 3; i++) {
        detour_source_init(&other, 9);
        detour_faulted(&t->d, &t->s, broken, out, 20 * MS);
        for (uint32_t often = 0; often < 2 * t->config.tell_times; often++) /* not with messages */
            assert_int_equal(detour_recall(&t->d, &t->s, 20 * MS + age[i], false, 4, news), 0);
        assert_int_equal(detour_recall(&t->d, &t->s, 20 * MS + age[i], true, 4, news), 1);
        assert_true(!news[0].works && news[0].age_ns == age[i] && news[0].out_ns == out);
        const struct detour_news story = news[0];
        detour_told(&t->d, &other, &story, 20 * MS + age[i]);
        assert_true(detour_digest(&other).faults == detour_digest(&t->s).faults);
        assert_false(detour_compare(&other, &(struct detour_digest){.faults = detour_digest(&t->s).faults}));
        /* It works again, and one who has not heard of that tells the old story for as long. */
        uint64_t works = 20 * MS + age[i] + MS;
        detour_acked(&t->d, &t->s, 3, &original, 3000, works);
        assert_true(detour_digest(&t->s).faults == 0);
        assert_int_equal(detour_recall(&t->d, &t->s, works + last - MS, true, 4, news), 1);
        assert_true(news[0].works);
        struct detour_news late = story;
        late.age_ns = age[i] + last;
        detour_told(&t->d, &t->s, &late, 20 * MS + late.age_ns);
        assert_true(detour_digest(&t->s).faults == 0);
        detour_told(&t->d, &other, &news[0], works + last - MS);
        assert_true(detour_digest(&other).faults == 0);
        assert_int_equal(detour_recall(&t->d, &t->s, works + 2 * last, true, 4, news), 0);
        assert_int_equal(t->s.faults.used, 0);
        late.age_ns = last + 1; /* longer than anybody remembers */
        detour_told(&t->d, &t->s, &late, works + 2 * last);
        assert_int_equal(t->s.faults.used, 0);
        detour_source_fini(&other);
    }
}

static void test_detour_good_news_is_passed_on_and_the_latest_counts(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = t->d.config.tell = true;
    const struct detour_path original = {.nvia = 0};
    int32_t broken = cable(t, 1, 0);
    struct detour_news news[4];
    detour_faulted(&t->d, &t->s, broken, 5 * MS, 10 * MS);
    /* A message that may have crossed before the break says nothing about it. */
    detour_acked(&t->d, &t->s, 3, &original, 3000, 10 * MS + 5 * US);
    assert_int_not_equal(choose(t, 3, 10 * MS + 6 * US).nvia, 0);
    detour_acked(&t->d, &t->s, 3, &original, 3000, 11 * MS);
    assert_int_equal(choose(t, 3, 11 * MS).nvia, 0);
    assert_int_equal(detour_recall(&t->d, &t->s, 11 * MS, true, 4, news), 1);
    assert_true(news[0].works && news[0].out_ns == 5 * MS);
    /* An older story of its being broken changes nothing; a newer one does, and counts from then. */
    const struct detour_news older = {.cable = broken, .out_ns = MS, .age_ns = 2 * MS};
    detour_told(&t->d, &t->s, &older, 12 * MS);
    assert_int_equal(choose(t, 3, 12 * MS).nvia, 0);
    const struct detour_news newer = {.cable = broken, .out_ns = 0, .age_ns = 0};
    detour_told(&t->d, &t->s, &newer, 12 * MS);
    assert_int_not_equal(choose(t, 3, 12 * MS).nvia, 0);
    assert_true(detour_faults_find(&t->s.faults, broken)->out_ns == 0);
    const struct detour_news good = {.cable = broken, .works = true, .age_ns = MS};
    detour_told(&t->d, &t->s, &good, 14 * MS);
    assert_int_equal(choose(t, 3, 14 * MS).nvia, 0);
}

static void test_detour_latest_news_comes_first(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = t->d.config.tell = true;
    for (int32_t r = 0; r < 60; r++)
        detour_faulted(&t->d, &t->s, cable(t, r, 2), MS, 5 * MS + (uint64_t)r);
    struct detour_news news[8];
    bool told[60] = {false};
    for (int i = 0; i < 15; i++) {
        assert_int_equal(detour_recall(&t->d, &t->s, 5 * MS + 100, true, 8, news), 8);
        for (int n = 0; n < 8; n++) {
            told[100 - news[n].age_ns] = true;
            assert_true(n >= 4 || news[n].age_ns <= 100 - 52);
        }
    }
    for (int r = 0; r < 60; r++)
        assert_true(told[r]); /* the others have their turn too */
}

/* What rides on every message is traffic: a fault that is there to stay is passed on tell_times, and then seldom, until
 * there is something new about it. */
static void test_detour_news_that_were_told_often_ride_on_few_messages(void **state)
{
    struct fixture *t = *state;
    t->d.config.forget = t->d.config.tell = true;
    const int often = (int)t->config.tell_times, times = 100;
    struct detour_news news[8];
    uint64_t now = 300 * MS;
    for (int again = 0; again < 2; again++) {
        detour_faulted(&t->d, &t->s, cable(t, 1, 0), now / 2, now);
        for (int i = 0; i < often; i++)
            assert_int_equal(detour_recall(&t->d, &t->s, now + US, false, 8, news), 1);
        int told = 0;
        for (int i = 0; i < times * often; i++)
            told += detour_recall(&t->d, &t->s, now + US, false, 8, news);
        assert_int_equal(told, times);
        for (int i = 0; i < often; i++)
            assert_int_equal(detour_recall(&t->d, &t->s, now + US, true, 8, news), 1); /* who asks for all gets it */
        now += MS;
    }
    const struct detour_news good = {.cable = cable(t, 1, 0), .works = true};
    detour_told(&t->d, &t->s, &good, now);
    for (int i = 0; i < often; i++) {
        assert_int_equal(detour_recall(&t->d, &t->s, now + US, false, 8, news), 1);
        assert_true(news[0].works);
    }
    t->config.tell_times = 0;
    struct detour none;
    assert_false(detour_init(&none, &t->fabric, &t->config));
}

/* Among ways as short as the original one those with few turns come first, as messages wait where streams merge. */
static void test_detour_shortest_ways_turn_seldom(void **state)
{
    struct fixture *t = *state;
    t->d.config = detour_config_plus();
    int turns = 0;
    for (int round = 0; round < 200; round++) {
        struct detour_source s;
        struct detour_path path;
        detour_source_init(&s, 0);
        detour_faulted(&t->d, &s, cable(t, 1, 0), 5 * MS, 10 * MS);
        assert_true(detour_choose(&t->d, &s, 27, 10 * MS + US, &t->rng, &path));
        assert_int_equal(hops_of(t, &path, 27, cable(t, 1, 0)), 6);
        struct detour_walk w;
        detour_walk_begin(&w, &t->fabric, 0, &path, 27);
        for (int32_t link, last = -1; (link = detour_walk_next(&w)) >= 0; last = link)
            turns += last >= 0 && last % t->fabric.ports != link % t->fabric.ports;
        detour_source_fini(&s);
    }
    assert_in_range(turns, 200, 220); /* one each but for unlucky draws; a router anywhere in between makes 1.9 */
}

static void test_detour_spread_measures_paths_and_prefers_the_fastest(void **state)
{
    struct fixture *t = *state;
    t->d.config = detour_config_plus();
    t->d.config.forget = false;
    for (uint32_t i = 0; i < t->d.config.threshold; i++)
        detour_faulted(&t->d, &t->s, cable(t, 0, 0), 0, i);
    struct detour_path fast = {.nvia = 0};
    int taken = 0;
    for (uint64_t i = 1; i <= 2000; i++) {
        struct detour_path path = choose(t, 27, i * MS);
        if (fast.nvia == 0)
            fast = path;
        bool is_fast = path.nvia == fast.nvia && memcmp(path.via, fast.via, path.nvia * sizeof path.via[0]) == 0;
        taken += i > 1000 && is_fast;
        detour_acked(&t->d, &t->s, 27, &path, is_fast ? 2000 : 4000, i * MS);
    }
    assert_int_equal(t->s.paths[0].nroutes, t->d.config.max_paths); /* all were tried */
    assert_in_range(taken, 950, 1000);                              /* 1 / (1 + 3 / 2^8) of 1000 is 988 */
}

static void test_detour_memory_of_a_source_is_bounded(void **state)
{
    struct fixture *t = *state;
    t->d.config.max_faults = 10;
    for (int round = 0; round < 50; round++)
        for (int32_t r = 0; r < 64; r++) {
            detour_faulted(&t->d, &t->s, cable(t, r, 0), 0, (uint64_t)(round * 64 + r));
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

static void use(struct fixture *t, struct detour_config c)
{
    detour_fini(&t->d);
    assert_true(detour_init(&t->d, &t->fabric, &c));
}

static void test_detour_no_way_of_a_grid_leads_over_or_to_who_left(void **state)
{
    struct fixture *t = *state;
    struct detour_path path;
    detour_alive(&t->d, 1, false);
    path = choose(t, 3, 1);
    hops_of(t, &path, 3, cable(t, 0, 1));
    assert_int_not_equal(path.nvia, 0);
    assert_false(detour_choose(&t->d, &t->s, 1, 1, &t->rng, &path));
    detour_alive(&t->d, 1, true);
    assert_int_equal(choose(t, 1, 2).nvia, 0);
}

/* The clock of a process that has just begun, at 0. */
static void test_detour_news_older_than_the_clock_are_heard(void **state)
{
    struct fixture *t = *state;
    use(t, detour_config_plus());
    int32_t broken = cable(t, 1, 1), mended = cable(t, 2, 1);
    const struct detour_news news[] = {{broken, false, 5 * MS, 10 * MS, 15 * MS},
                                       {mended, true, 5 * MS, 10 * MS, 10 * MS}};
    detour_told(&t->d, &t->s, &news[0], 1 * MS);
    detour_told(&t->d, &t->s, &news[1], 1 * MS);
    const struct detour_path path = choose(t, 3, 1 * MS);
    hops_of(t, &path, 3, broken);
    assert_true(detour_faults_find(&t->s.faults, mended)->works);
    assert_false(detour_faults_find(&t->s.faults, broken)->works);
}

static void test_detour_suspicion_at_the_begin_of_the_clock_mends_nothing(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    use(t, detour_config_plus());
    detour_faulted(&t->d, &t->s, cable(t, 1, 1), 5 * MS, 0);
    detour_silent(&t->d, &t->s, 3, &original, 0);
    assert_false(detour_faults_find(&t->s.faults, cable(t, 1, 1))->works);
}

static void test_detour_acknowledgement_of_what_left_before_the_clock_began_clears_nothing(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    use(t, detour_config_plus());
    detour_faulted(&t->d, &t->s, cable(t, 1, 1), 5 * MS, 1 * MS);
    detour_acked(&t->d, &t->s, 3, &original, 1ull << 63, 2 * MS);
    assert_false(detour_faults_find(&t->s.faults, cable(t, 1, 1))->works);
    detour_acked(&t->d, &t->s, 3, &original, MS / 4, 2 * MS);
    assert_true(detour_faults_find(&t->s.faults, cable(t, 1, 1))->works);
}

static void test_detour_limits_may_be_large_or_are_refused(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    struct detour_config c = detour_config_plus();
    c.silence_limit = 300;
    use(t, c);
    for (uint64_t i = 1; i < 300; i++)
        detour_silent(&t->d, &t->s, 3, &original, i * MS);
    assert_true(detour_faults_find(&t->s.faults, cable(t, 1, 1))->works);
    detour_silent(&t->d, &t->s, 3, &original, 300 * MS);
    assert_false(detour_faults_find(&t->s.faults, cable(t, 1, 1))->works);
    struct detour other;
    c.max_faults = UINT32_MAX; /* the table of a source has no room for the last one */
    assert_false(detour_init(&other, &t->fabric, &c));
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
        struct detour_fault *found = detour_faults_find(&f, probe);
        if (found && rng_below(&rng, 4) == 0)
            assert_ptr_equal(detour_faults_renew(&f, found), &f.entry[f.used - 1]);
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
        ON_TORUS(test_detour_sources_try_a_cable_again_one_after_the_other),
        ON_TORUS(test_detour_cable_is_left_alone_for_as_long_as_it_has_been_out),
        ON_TORUS(test_detour_told_faults_are_avoided_and_passed_on_while_they_are_likely),
        ON_TORUS(test_detour_lasting_faults_are_told_for_as_long_as_they_are_remembered),
        ON_TORUS(test_detour_good_news_is_passed_on_and_the_latest_counts),
        ON_TORUS(test_detour_latest_news_comes_first),
        ON_TORUS(test_detour_news_that_were_told_often_ride_on_few_messages),
        ON_TORUS(test_detour_shortest_ways_turn_seldom),
        ON_TORUS(test_detour_spread_measures_paths_and_prefers_the_fastest),
        ON_TORUS(test_detour_memory_of_a_source_is_bounded),
        ON_TORUS(test_detour_escape_takes_the_nearest_way_round),
        ON_TORUS(test_detour_no_way_of_a_grid_leads_over_or_to_who_left),
        ON_TORUS(test_detour_news_older_than_the_clock_are_heard),
        ON_TORUS(test_detour_suspicion_at_the_begin_of_the_clock_mends_nothing),
        ON_TORUS(test_detour_acknowledgement_of_what_left_before_the_clock_began_clears_nothing),
        ON_TORUS(test_detour_limits_may_be_large_or_are_refused),
        ON_TORUS(test_detour_escape_finds_any_path_or_says_there_is_none),
        cmocka_unit_test(test_detour_faults_table_behaves_as_a_set),
    };
    return cmocka_run_group_tests_name("detour", tests, NULL, NULL);
}
