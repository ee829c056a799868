/* The path policy where nodes hand messages on: schedules of cuts on the bed of relay_bed.h, and aimed single calls. */
#include "relay_bed.h"
#include "tests/unit/route/cables.h"

#include <stdlib.h>
#include <string.h>

static struct bed bed;

static void flap(struct bed *b, uint64_t now)
{
    (void)now;
    bed_flap(b);
}

static void test_relay_delivers_everything_while_cables_are_cut(void **state)
{
    (void)state;
    static const int nodes[] = {8, 16, 33, 64};
    static const double share[] = {0.1, 0.3, 0.6};
    for (uint64_t round = 0; round < 24; round++) {
        int n = nodes[round % 4], rails = 1 + (int)(round / 12);
        double cut = share[round / 4 % 3];
        uint64_t flap_ns = (round + round / 4 + round / 12) % 2 ? 200000000 / ((uint64_t)n * (uint64_t)n)
                                                                : 0; /* every cable a few times */
        bed_full(&bed, n, rails, cut, round);
        bed_run(&bed, MESSAGES, 0, flap_ns, flap);
        /* With so many nodes and 60 % of the pairs cut nearly every two have a node between them that reaches both. No
         * message is at a node twice but on its way back. */
        double mean = (double)bed.hops / MESSAGES;
        if (mean > 1.2 + 2 * cut || bed.most_hops > 2 * (n - 1))
            fail_msg("round %d: %.2f hops, %d at most", (int)round, mean, bed.most_hops);
        /* What is broken for good is tried again ever more seldom: less than twice from each end in the second half. */
        if (!flap_ns && bed.late_silences > 4 * bed_broken_cables(&bed))
            fail_msg("round %d: %d silences in the second half, %d cables cut", (int)round, bed.late_silences,
                     bed_broken_cables(&bed));
        bed_fini(&bed);
    }
}

/* All cables of one set are cut, then all of the other: what was learned of either is false in the next period. */
static void alternate(struct bed *b, uint64_t now)
{
    (void)now;
    uint8_t *was = b->cut;
    b->cut = b->other;
    b->other = was;
}

static void test_relay_delivers_while_what_is_cut_alternates(void **state)
{
    (void)state;
    static const uint64_t period[] = {500000, 1000000, 5000000, 20000000};
    for (int i = 0; i < 8; i++) {
        bed_full(&bed, i % 2 ? 16 : 8, 1, 0.5, 100 + (uint64_t)i);
        size_t links = (size_t)fabric_links(&bed.f);
        bed.other = malloc(links);
        memcpy(bed.other, bed.cut, links);
        for (size_t l = 0; l < links; l++)
            bed.cut[l] = bed.f.neighbor[l] >= 0 && bed_works(&bed, (int32_t)l);
        while (!bed_is_joined(&bed))
            bed_flap_for(&bed, 0);
        bed_run(&bed, 300, 0, period[i / 2], alternate);
        bed_check_cost(&bed, "alternating", i, 3, 50);
        bed_fini(&bed);
    }
}

/* Only a line joins the nodes; each other cable works one way, so that a message comes through, and who sent it does
 * not know. */
static void cut_all_but_a_line(struct bed *b, int one_way)
{
    for (int a = 0; a < b->nodes; a++)
        for (int k = a + 2; k < b->nodes; k++) {
            int32_t link = a * b->f.ports + fabric_next(&b->f, a, k, k), back = b->f.reverse[link];
            bool up = one_way == 2 ? rng_below(&b->rng, 2) : (k - a) * 2 < b->nodes; /* a ring, or at random */
            b->cut[link] = !one_way || up;
            b->cut[back] = !one_way || !up;
        }
}

static void test_relay_delivers_along_a_line_longer_than_a_path(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++) {
        bed_full(&bed, 8 << i % 3, 1, 0, 200 + (uint64_t)i);
        cut_all_but_a_line(&bed, i / 3);
        bed_run(&bed, 100, 0, 0, NULL);
        bed_check_cost(&bed, "line", i, i < 3 ? bed.nodes : 3, i < 3 ? 1000 : 30);
        bed_fini(&bed);
    }
}

static void test_relay_delivers_though_news_are_old_late_or_made_up(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        bed_full(&bed, i % 2 ? 33 : 8, 1, i < 2 ? 0.1 : i < 4 ? 0.3 : 0.6, 300 + (uint64_t)i);
        bed.lies = true;
        bed_run(&bed, 500, 0, 2000000, flap);
        bed_check_cost(&bed, "lies", i, 1.2 + 2 * bed.share, 50);
        bed_fini(&bed);
    }
}

/* Two nodes that no message is from or for leave with the view, and others that know nothing take their numbers, with
 * cables that all work, while they are still remembered as they were. */
static void replace(struct bed *b, uint64_t now)
{
    int node = (int)rng_below(&b->rng, 2);
    if (!b->dead[node]) {
        for (int i = 0; i < b->n; i++)
            if (b->ready[i] != UINT64_MAX && b->m[i].at == node)
                return; /* its messages would have to be sent again */
        b->dead[node] = true;
        bool joined = bed_is_joined(b);
        b->dead[node] = false;
        if (joined)
            bed_view(b, node, false, now);
        return;
    }
    bed_view(b, node, true, now);
    detour_source_fini(&b->s[node]);
    detour_source_init(&b->s[node], node);
    for (int p = 0; p < b->f.ports; p++) {
        int32_t link = node * b->f.ports + p;
        if (b->f.neighbor[link] >= 0)
            b->cut[link] = b->cut[b->f.reverse[link]] = 0;
    }
}

static void test_relay_delivers_while_nodes_leave_and_others_take_their_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        bed_full(&bed, i % 2 ? 16 : 8, 1, i < 2 ? 0.2 : i < 4 ? 0.4 : 0.6, 400 + (uint64_t)i);
        bed_run(&bed, 300, 2, 3000000, replace);
        assert_int_equal(bed.to_dead, 0);
        bed_check_cost(&bed, "replaced", i, 1.2 + 2 * bed.share, 50);
        /* Whoever is there in the end is reached directly when what was known of the former one is too old. */
        for (int node = 0; node < 2; node++) {
            struct detour_path path;
            if (bed.dead[node])
                replace(&bed, 20 * END_NS);
            uint64_t late = 20 * END_NS + 17 * bed.d[0].config.retry_max_ns;
            for (int a = 2; a < bed.nodes && !bed.dead[node]; a++)
                assert_true(detour_choose(&bed.d[a], &bed.s[a], node, late, &bed.rng, &path) && path.nvia == 0);
        }
        bed_fini(&bed);
    }
}

static void test_relay_sends_nothing_to_the_dead_and_uses_who_comes_back(void **state)
{
    (void)state;
    bed_full(&bed, 16, 1, 0.3, 5);
    for (int i = 0; i < 4; i++) {
        bed_view(&bed, i, false, 0);
    }
    for (int i = 0; i < 2000; i++) /* mended where the living were cut apart */
        bed_flap_for(&bed, bed_is_joined(&bed) ? 0.3 : 0);
    struct detour_path path;
    for (int a = 4; a < 16; a++)
        for (int k = 4; k < 16; k++)
            if (a != k) {
                assert_true(detour_choose(&bed.d[a], &bed.s[a], k, 1, &bed.rng, &path));
                const int32_t known = fabric_cable(&bed.f, a * bed.f.ports), held = 4 + (a + 1) % 12;
                const struct detour_met met = {.cable = &known, .node = &held, .ncables = 1, .nnodes = held != k};
                assert_int_equal(detour_relay(&bed.d[a], &bed.s[a], k, &met, 1, &bed.rng, &path), DETOUR_ON);
                struct detour_walk w;
                detour_walk_begin(&w, &bed.f, a, &path, k);
                while (detour_walk_next(&w) >= 0)
                    assert_false(bed.dead[w.at] || (met.nnodes && held != a && w.at == held));
            }
    assert_false(detour_choose(&bed.d[5], &bed.s[5], 2, 1, &bed.rng, &path));
    bed_view(&bed, 2, true, 1);
    assert_true(detour_choose(&bed.d[5], &bed.s[5], 2, 2, &bed.rng, &path));
    assert_int_equal(path.nvia, 0);
    bed_fini(&bed);
}

/* 2 - 1 - 0 - 3 - 4: a message for 4 that has come to 1 goes back, and on by the other side. */
static void test_relay_goes_back_from_a_dead_end_and_not_into_it_again(void **state)
{
    (void)state;
    static const struct fabric_edge line[] = {{0, 1, false}, {1, 2, false}, {0, 3, false}, {3, 4, false}};
    static const int32_t nodes[] = {0, 1};
    struct fabric f;
    struct detour d;
    struct detour_source s[5];
    struct detour_path path;
    struct rng rng;
    rng_seed(&rng, 1);
    const struct detour_config c = detour_config_plus();
    assert_null(fabric_graph(&f, 5, 5, line, 4));
    assert_true(detour_init(&d, &f, &c));
    for (int i = 0; i < 5; i++)
        detour_source_init(&s[i], i);
    const struct detour_met at_1 = {.node = nodes, .nnodes = 1, .trail = nodes, .ntrail = 1};
    assert_int_equal(detour_relay(&d, &s[1], 4, &at_1, 1, &rng, &path), DETOUR_BACK);
    assert_int_equal(path.nvia, 0); /* to 0, by the cable between them */
    const struct detour_met at_0 = {.node = nodes, .nnodes = 2};
    assert_int_equal(detour_relay(&d, &s[0], 4, &at_0, 1, &rng, &path), DETOUR_ON);
    struct detour_walk w;
    detour_walk_begin(&w, &f, 0, &path, 4);
    assert_int_equal(f.neighbor[detour_walk_next(&w)], 3);
    /* What the source takes for broken is tried where there is nothing else, what the message has met is not. */
    int32_t next = fabric_cable(&f, f.ports * 0 + fabric_next(&f, 0, 3, 3));
    detour_faulted(&d, &s[0], next, 1000000, 1);
    assert_int_equal(detour_relay(&d, &s[0], 4, &at_0, 2, &rng, &path), DETOUR_ON);
    const struct detour_met met = {.node = nodes, .nnodes = 2, .cable = &next, .ncables = 1};
    assert_int_equal(detour_relay(&d, &s[0], 4, &met, 2, &rng, &path), DETOUR_NO_WAY);
    int32_t behind = fabric_cable(&f, f.ports * 1 + fabric_next(&f, 1, 0, 0));
    const struct detour_met cut_off = {
        .node = nodes, .nnodes = 1, .trail = nodes, .ntrail = 1, .cable = &behind, .ncables = 1};
    assert_int_equal(detour_relay(&d, &s[1], 4, &cut_off, 2, &rng, &path), DETOUR_NO_WAY);
    for (int i = 0; i < 5; i++)
        detour_source_fini(&s[i]);
    detour_fini(&d);
    fabric_fini(&f);
}

/* Of nodes on two rails: the cable of two of them on one. */
static int32_t cable_on(const struct fabric *f, int32_t a, int32_t b, int32_t rail)
{
    int32_t from = rail * f->endpoints + a, to = rail * f->endpoints + b;
    return fabric_cable(f, from * f->ports + fabric_next(f, from, to, to));
}

static int32_t first_node(const struct bed *b, int at, const struct detour_path *path, int dest)
{
    struct detour_path hop;
    return b->f.neighbor[bed_first_hop(b, at, path, dest, &hop)] % b->nodes;
}

static void test_relay_takes_the_other_rail_before_another_node(void **state)
{
    (void)state;
    bed_full(&bed, 4, 2, 0, 6);
    struct detour_path path;
    detour_faulted(&bed.d[0], &bed.s[0], cable_on(&bed.f, 0, 1, 0), 0, 1);
    int direct = 0; /* the others are measured now and then */
    for (int i = 0; i < 100; i++) {
        assert_true(detour_choose(&bed.d[0], &bed.s[0], 1, 2, &bed.rng, &path));
        direct += first_node(&bed, 0, &path, 1) == 1;
    }
    assert_true(direct > 75);
    detour_faulted(&bed.d[0], &bed.s[0], cable_on(&bed.f, 0, 1, 1), 0, 3);
    assert_true(detour_choose(&bed.d[0], &bed.s[0], 1, 4, &bed.rng, &path));
    assert_int_not_equal(first_node(&bed, 0, &path, 1), 1);
    bed_fini(&bed);
}

/* A message for 3 that 2 and 0 have held is at 1, who knows no way on. */
static void test_relay_goes_back_by_any_cable_to_that_node_and_to_no_other(void **state)
{
    (void)state;
    bed_full(&bed, 4, 2, 0, 7);
    static const int32_t held[] = {2, 0};
    int32_t known[5] = {cable_on(&bed.f, 1, 3, 0), cable_on(&bed.f, 1, 3, 1), cable_on(&bed.f, 1, 0, 0)};
    struct detour_met met = {known, held, held, 3, 2, 2};
    struct detour_path path;
    assert_int_equal(detour_relay(&bed.d[1], &bed.s[1], 3, &met, 1, &bed.rng, &path), DETOUR_BACK);
    assert_int_equal(first_node(&bed, 1, &path, 0), 0);
    /* What it takes for broken, as others say, is tried all the same: the message has come by it. */
    detour_faulted(&bed.d[1], &bed.s[1], cable_on(&bed.f, 1, 0, 1), 1000000000, 1);
    assert_int_equal(detour_relay(&bed.d[1], &bed.s[1], 3, &met, 2, &bed.rng, &path), DETOUR_BACK);
    assert_int_equal(first_node(&bed, 1, &path, 0), 0);
    known[met.ncables++] = cable_on(&bed.f, 1, 0, 1);
    known[met.ncables++] = cable_on(&bed.f, 1, 2, 0);
    assert_int_equal(detour_relay(&bed.d[1], &bed.s[1], 3, &met, 3, &bed.rng, &path), DETOUR_NO_WAY);
    bed_fini(&bed);
}

static void test_relay_ignores_numbers_that_the_network_does_not_have(void **state)
{
    (void)state;
    bed_full(&bed, 4, 2, 0, 8);
    const int32_t odd[] = {-1, fabric_links(&bed.f), INT32_MIN, 1 << 30,
                           fabric_cable(&bed.f, fabric_next(&bed.f, 0, 4, 4))};
    const struct detour_met met = {odd, odd, odd, 5, 4, 4};
    struct detour_path path;
    assert_int_equal(detour_relay(&bed.d[0], &bed.s[0], 3, &met, 1, &bed.rng, &path), DETOUR_ON);
    bed_view(&bed, 3, false, 0);
    assert_int_equal(detour_relay(&bed.d[0], &bed.s[0], 3, &met, 1, &bed.rng, &path), DETOUR_NO_WAY);
    bed_fini(&bed);
}

/* 0 and 1 on one switch, 1 and 2 on another one: a hop between nodes has two cables. */
static void test_relay_goes_back_over_a_switch(void **state)
{
    (void)state;
    static const struct fabric_edge edges[] = {{0, 3, false}, {1, 3, false}, {1, 4, false}, {2, 4, false}};
    static const int32_t held[] = {0};
    struct fabric f;
    struct detour d;
    struct detour_source s;
    struct detour_path path;
    struct rng rng;
    rng_seed(&rng, 1);
    const struct detour_config c = detour_config_plus();
    assert_null(fabric_graph(&f, 5, 3, edges, 4));
    assert_true(detour_init(&d, &f, &c));
    detour_source_init(&s, 1);
    int32_t known[2] = {fabric_cable(&f, f.ports + fabric_next(&f, 1, 4, 4)), -1};
    struct detour_met met = {known, held, held, 1, 1, 1};
    assert_int_equal(detour_relay(&d, &s, 2, &met, 1, &rng, &path), DETOUR_BACK);
    known[met.ncables++] = fabric_cable(&f, 3 * f.ports + fabric_next(&f, 3, 0, 0));
    assert_int_equal(detour_relay(&d, &s, 2, &met, 1, &rng, &path), DETOUR_NO_WAY);
    detour_source_fini(&s);
    detour_fini(&d);
    fabric_fini(&f);
}

/* End to end, without completions of hops: silence raises doubts about each cable of a path, and what came through
 * clears them, so that the broken one is blamed. */
static void test_relay_silence_on_a_long_path_blames_the_cable_that_never_works(void **state)
{
    (void)state;
    bed_full(&bed, 8, 1, 0, 3);
    const struct detour_path over_1 = {.via = {1}, .nvia = 1}, direct = {.nvia = 0};
    int32_t first = fabric_cable(&bed.f, fabric_next(&bed.f, 0, 1, 1));
    int32_t second = fabric_cable(&bed.f, bed.f.ports + fabric_next(&bed.f, 1, 2, 2));
    for (uint64_t i = 1; i <= bed.d[0].config.silence_limit; i++) {
        detour_silent(&bed.d[0], &bed.s[0], 2, &over_1, i * SILENCE_NS);
        detour_acked(&bed.d[0], &bed.s[0], 1, &direct, HOP_NS, i * SILENCE_NS + HOP_NS);
    }
    assert_true(detour_faults_find(&bed.s[0].faults, second) && !detour_faults_find(&bed.s[0].faults, second)->works);
    assert_true(!detour_faults_find(&bed.s[0].faults, first) || detour_faults_find(&bed.s[0].faults, first)->works);
    detour_silent(&bed.d[0], &bed.s[0], 1, &direct, 10 * SILENCE_NS); /* of one cable: at once */
    assert_false(detour_faults_find(&bed.s[0].faults, first)->works);
    bed_fini(&bed);
}

static void test_relay_any_connected_graph_is_taken_and_others_are_refused(void **state)
{
    (void)state;
    static const struct fabric_edge ring[] = {
        {0, 1, false}, {1, 2, false}, {2, 3, false}, {3, 0, false}, {2, 4, false}};
    struct fabric f;
    assert_null(fabric_graph(&f, 5, 5, ring, 5));
    assert_int_equal(fabric_hops(&f, 0, 4, 4), 3);
    assert_int_equal(fabric_hops(&f, 1, 3, 3), 2);
    assert_int_equal(fabric_cables(&f), 5);
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++)
            assert_int_equal(fabric_hops(&f, a, b, b), fabric_hops(&f, b, a, a));
    fabric_fini(&f);
    assert_non_null(fabric_graph(&f, 5, 5, ring, 4)); /* not in one piece */
    assert_non_null(fabric_graph(&f, 4, 4, ring, 5)); /* an edge to nowhere */
    static const struct fabric_edge twice[] = {{0, 1, false}, {1, 0, false}};
    assert_non_null(fabric_graph(&f, 2, 2, twice, 2)); /* no message would go by the second one */
    assert_non_null(fabric_full(&f, 1, 1));
    assert_null(fabric_full(&f, 4, 3));
    assert_int_equal(f.endpoints, 4);
    assert_int_equal(f.routers, 12);
    assert_int_equal(fabric_hops(&f, 1, 3, 3), 1);
    fabric_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_delivers_everything_while_cables_are_cut),
        cmocka_unit_test(test_relay_delivers_while_what_is_cut_alternates),
        cmocka_unit_test(test_relay_delivers_along_a_line_longer_than_a_path),
        cmocka_unit_test(test_relay_delivers_though_news_are_old_late_or_made_up),
        cmocka_unit_test(test_relay_delivers_while_nodes_leave_and_others_take_their_numbers),
        cmocka_unit_test(test_relay_sends_nothing_to_the_dead_and_uses_who_comes_back),
        cmocka_unit_test(test_relay_goes_back_from_a_dead_end_and_not_into_it_again),
        cmocka_unit_test(test_relay_takes_the_other_rail_before_another_node),
        cmocka_unit_test(test_relay_goes_back_by_any_cable_to_that_node_and_to_no_other),
        cmocka_unit_test(test_relay_goes_back_over_a_switch),
        cmocka_unit_test(test_relay_ignores_numbers_that_the_network_does_not_have),
        cmocka_unit_test(test_relay_silence_on_a_long_path_blames_the_cable_that_never_works),
        cmocka_unit_test(test_relay_any_connected_graph_is_taken_and_others_are_refused),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
