/* What plans cost, and what auto chooses. */
#include "tests/unit/topo/testlib.h"

#include "runtime/topo/rule.h"
#include "tests/lib/topo/look.h"

enum { MIB = 1 << 20, NODE = 5 }; /* 4x4 with 2D(2,1), slots 0 1 2 | 4 5 6 | 8 9 10; node 5 in the middle dies */

/* 100 MB/s, a rank begins in 50 ms. */
static const struct weigh_figures QUIET = {.shape = WEIGH_STAR, .link_rate = 100000000, .begin_us = 50000};

static void open_state(struct grid_state *s, const char *grid, const char *method, int32_t moves)
{
    struct grid_rule rule = {0};
    assert_null(grid_parse(&rule.grid, grid));
    static const char *const layouts[] = {"", "1D(1,2)", "2D(2,1)", "3D(2,1)"};
    assert_null(spare_parse(&rule.layout, layouts[rule.grid.ndims]));
    assert_null(rule_method(&rule.method, method, rule.grid.ndims));
    rule.method.moves = moves;
    struct place whole;
    assert_true(place_init(&whole, &rule.grid, &rule.layout, 0, NULL));
    assert_true(grid_open(s, &rule, whole.slots));
    place_fini(&whole);
}

static void set(struct grid_state *s, struct weigh_figures f, uint64_t bytes)
{
    s->chooser.weigh.figures = f;
    for (int32_t i = 0; i < s->place.slots; i++)
        s->chooser.weigh.slot_bytes[i] = bytes;
}

/* The node dies, and all moves are done. returns  what was chosen. */
static const struct auto_decision *die(struct grid_state *s, int32_t node)
{
    struct transit *t = &s->transit;
    auto_forget(&s->chooser);
    assert_int_equal(transit_change(t, &s->method, &node, 1, NULL, 0), 0);
    for (int32_t i = 0; i < t->lines.count; i++)
        (void)transit_done(t, t->lines.move[i].slot, t->lines.move[i].to);
    assert_true(look_transit_valid(t) && t->pending == 0);
    return &s->chooser.decision[0];
}

static const struct auto_candidate *named(const struct auto_decision *d, const char *name)
{
    for (int i = 0; i < d->count; i++)
        if (strcmp(d->candidate[i].name, name) == 0)
            return &d->candidate[i];
    fail_msg("no candidate %s", name);
    return NULL;
}

static const char *chosen(const struct auto_decision *d)
{
    return d->chosen < 0 ? "none" : d->candidate[d->chosen].name;
}

/* 0D sends the slot beside its line: five messages cross a link where one did. A slot of 10 MB takes 0.1 s, and one
 * that lives 50 ms more. */
static void test_weigh_prices_by_hand(void **state)
{
    (void)state;
    static struct grid_state s;
    struct weigh_figures f = QUIET;
    f.message_bytes = 1000000; /* 10 ms a message */
    f.steps_per_ks = 2000;
    f.horizon_ms = 60000; /* 120 steps */
    open_state(&s, "4x4", "auto", 0);
    set(&s, f, 10000000);
    const struct auto_decision *d = die(&s, NODE);
    const struct weigh_price *zero = &named(d, "0D")->price, *line = &named(d, "1D")->price;
    assert_int_equal(zero->moves, 1);
    assert_int_equal(zero->move_ns, 100000000);
    assert_int_equal(zero->step_ns, (uint64_t)(zero->crossing - 1) * 10000000);
    assert_int_equal(zero->lost_ns, 120 * zero->step_ns);
    assert_int_equal(zero->cost_ns, zero->move_ns + zero->lost_ns);
    assert_int_equal(line->moves, 2);
    assert_int_equal(line->move_ns, 150000000);
    assert_true(line->crossing < zero->crossing);
    grid_close(&s);
}

static void test_weigh_much_is_sent_and_a_line_moves(void **state)
{
    (void)state;
    static struct grid_state s;
    struct weigh_figures f = QUIET;
    f.message_bytes = 1000000;
    f.steps_per_ks = 10000;
    f.horizon_ms = 600000;
    open_state(&s, "4x4", "auto", 0);
    set(&s, f, MIB);
    const struct auto_decision *d = die(&s, NODE);
    assert_true(d->known && d->slot == 4 && d->node == NODE);
    assert_true(d->candidate[d->chosen].price.moves > 1);
    assert_true(named(d, "0D")->price.cost_ns > d->candidate[d->chosen].price.cost_ns);
    grid_close(&s);
}

static void test_weigh_little_is_sent_and_nobody_who_lives_moves(void **state)
{
    (void)state;
    static struct grid_state s;
    struct weigh_figures f = QUIET;
    f.message_bytes = 100;
    f.steps_per_ks = 1000;
    f.horizon_ms = 10000;
    open_state(&s, "4x4", "auto", 0);
    set(&s, f, (uint64_t)1 << 34);
    const struct auto_decision *d = die(&s, NODE);
    assert_int_equal(d->candidate[d->chosen].price.moves, 1);
    grid_close(&s);
}

/* The node that has the copy is in the line, and would send twice as much: a large slot goes beside the line then, and
 * a small one does not. */
static void test_weigh_bytes_decide_where_the_copy_is_in_the_line(void **state)
{
    (void)state;
    static const uint64_t bytes[] = {MIB, (uint64_t)1 << 32};
    for (int i = 0; i < 2; i++) {
        static struct grid_state s;
        struct weigh_figures f = QUIET;
        f.message_bytes = 100000; /* a millisecond */
        f.steps_per_ks = 1000;
        f.horizon_ms = 1000000;
        open_state(&s, "5", "auto", 0); /* 0 1 2 | 3 4 */
        set(&s, f, bytes[i]);
        s.chooser.weigh.made_from[0] = 2;
        const struct auto_decision *d = die(&s, 0);
        assert_int_equal(named(d, "1D")->price.moves, 3);
        assert_int_equal(named(d, "1D")->price.move_ns, bytes[i] * 20 + 50000000);
        assert_true((d->candidate[d->chosen].price.moves > 1) == (i == 0));
        if (i)
            assert_true(d->candidate[d->chosen].price.move_ns < named(d, "1D")->price.move_ns);
        grid_close(&s);
    }
}

/* The same bytes and times; only the pattern differs. A ring's messages do not meet where a stencil's do. */
static void test_weigh_the_pattern_decides(void **state)
{
    (void)state;
    static struct grid_state s;
    uint64_t lost[WEIGH_SHAPES];
    for (int shape = WEIGH_STAR; shape < WEIGH_SHAPES; shape++) {
        struct weigh_figures f = QUIET;
        f.shape = (enum weigh_shape)shape;
        f.message_bytes = 10000;
        f.steps_per_ks = 1000;
        f.horizon_ms = 100000;
        open_state(&s, "4x4", "auto", 0);
        set(&s, f, MIB);
        lost[shape] = named(die(&s, NODE), "0D")->price.lost_ns;
        grid_close(&s);
    }
    assert_true(lost[WEIGH_RING] < lost[WEIGH_STAR]);
    assert_true(lost[WEIGH_STAR] < lost[WEIGH_BOX]);
}

/* What load.h counts, link by link, is what is counted here. */
static void test_weigh_crossings_are_the_collisions_of_the_load(void **state)
{
    (void)state;
    static const struct {
        enum pattern_kind kind;
        enum weigh_shape shape;
    } of[] = {{PATTERN_STAR, WEIGH_STAR}, {PATTERN_9P, WEIGH_BOX}, {PATTERN_RING, WEIGH_RING}};
    static const char *const methods[] = {"0D", "1D", "hybrid(all)"};
    struct rng rng;
    rng_seed(&rng, 7);
    for (int run = 0; run < 90; run++) {
        struct job j;
        struct weigh w;
        struct place_plan none = {0};
        job_open_on(&j, run % 2 ? "7x6" : "6tx5t", "2D(2,1)", methods[run / 3 % 3], of[run % 3].kind, LOAD_ALL, NULL);
        assert_true(weigh_init(&w, &j.place));
        w.figures = (struct weigh_figures){.shape = of[run % 3].shape, .link_rate = 1};
        for (int deaths = 0; deaths < 6; deaths++) {
            (void)job_fail(&j, (int32_t)rng_below(&rng, (uint64_t)j.grid.nodes));
            struct weigh_price price = weigh_plan(&w, &none);
            assert_int_equal(price.crossing, load_collisions(&j.load));
            assert_int_equal(price.hops, j.load.hops);
        }
        weigh_fini(&w);
        job_close(&j);
    }
}

static void test_weigh_all_counts_every_pair_and_beyond_many_slots_the_same_in_sum(void **state)
{
    (void)state;
    struct job j;
    struct weigh w;
    struct place_plan none = {0};
    job_open(&j, "5", "1D(1,1)", "0D");
    assert_true(weigh_init(&w, &j.place));
    w.figures = (struct weigh_figures){.shape = WEIGH_ALL, .link_rate = 1};
    struct weigh_price price = weigh_plan(&w, &none);
    assert_int_equal(price.crossing, 4); /* two on each side of the middle */
    assert_int_equal(price.hops, 2 * (3 * 1 + 2 * 2 + 1 * 3));
    weigh_fini(&w);
    job_close(&j);
    job_open(&j, "21x20", "2D(1,1)", "0D"); /* 400 slots: the exact number is 20 * 10 * 10 a row, both ways */
    assert_true(weigh_init(&w, &j.place));
    w.figures = (struct weigh_figures){.shape = WEIGH_ALL, .link_rate = 1};
    price = weigh_plan(&w, &none);
    assert_in_range(price.crossing, 2000 * 9 / 10, 2000 * 12 / 10);
    weigh_fini(&w);
    job_close(&j);
}

static void test_weigh_numbers_stay_at_the_greatest(void **state)
{
    (void)state;
    static struct grid_state s;
    struct weigh_figures f = {WEIGH_BOX, true, UINT64_MAX, UINT64_MAX, 1, UINT64_MAX, UINT64_MAX};
    assert_int_equal(weigh_part(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_MAX);
    assert_int_equal(weigh_part(7, 3, 2), 10);
    assert_int_equal(weigh_part(1, 1, 0), UINT64_MAX);
    struct rng rng;
    rng_seed(&rng, 13);
    for (int i = 0; i < 100000; i++) {
        uint64_t a = rng_u64(&rng) >> rng_below(&rng, 64), b = rng_u64(&rng) >> rng_below(&rng, 64),
                 c = 1 + (rng_u64(&rng) >> (1 + rng_below(&rng, 63)));
        unsigned __int128 part = (unsigned __int128)a * b / c;
        assert_true(weigh_part(a, b, c) == (part > UINT64_MAX ? UINT64_MAX : (uint64_t)part));
    }
    open_state(&s, "4x4", "auto", 0);
    set(&s, f, UINT64_MAX);
    const struct auto_decision *d = die(&s, NODE);
    assert_true(d->chosen >= 0 && named(d, "0D")->price.cost_ns == UINT64_MAX);
    grid_close(&s);
}

static void test_auto_knows_nothing_and_balance_chooses(void **state)
{
    (void)state;
    static struct grid_state s, b;
    open_state(&s, "4x4", "auto", 0);
    open_state(&b, "4x4", "balance", 4);
    const struct auto_decision *d = die(&s, NODE);
    int32_t node = NODE;
    (void)transit_change(&b.transit, &b.method, &node, 1, NULL, 0);
    assert_false(d->known);
    assert_string_equal(chosen(d), "balance");
    assert_int_equal(d->candidate[d->chosen].price.moves, 2);
    assert_memory_equal(s.place.node_of, b.place.node_of, (size_t)s.place.slots * sizeof *s.place.node_of);
    grid_close(&s);
    grid_close(&b);
}

static void test_auto_no_candidate_has_more_moves_than_may_be(void **state)
{
    (void)state;
    static struct grid_state s;
    struct weigh_figures f = QUIET;
    struct rng rng;
    rng_seed(&rng, 3);
    f.message_bytes = 1000000;
    f.steps_per_ks = 100000;
    f.horizon_ms = 1000000;
    for (int32_t most = 1; most <= 6; most++) {
        open_state(&s, "6x6", "auto", most);
        set(&s, f, 1);
        for (int deaths = 0; deaths < 5; deaths++) {
            int32_t node = (int32_t)rng_below(&rng, 36);
            if (s.place.slot_at[node] < 0)
                continue;
            const struct auto_decision *d = die(&s, node);
            for (int i = 0; i < d->count; i++)
                assert_true(d->candidate[i].price.moves <= most);
        }
        grid_close(&s);
    }
}

/* Of two machines with the same figures both come to the same map, whatever happens. */
static void test_auto_twins_choose_alike(void **state)
{
    (void)state;
    static struct grid_state s[2];
    struct rng rng;
    rng_seed(&rng, 5);
    for (int run = 0; run < 60; run++) {
        for (int i = 0; i < 2; i++)
            open_state(&s[i], run % 2 ? "5x5" : "4x4x3", "auto", 0);
        for (int step = 0; step < 6; step++) {
            int32_t node = (int32_t)rng_below(&rng, (uint64_t)s[0].place.grid.nodes);
            struct weigh_figures f = {.shape = (enum weigh_shape)rng_below(&rng, WEIGH_SHAPES),
                                      .message_bytes = rng_u64(&rng) >> rng_below(&rng, 64),
                                      .steps_per_ks = rng_u64(&rng) >> rng_below(&rng, 64),
                                      .link_rate = 1 + (rng_u64(&rng) >> (1 + rng_below(&rng, 62))),
                                      .begin_us = rng_u64(&rng) >> rng_below(&rng, 64),
                                      .horizon_ms = rng_u64(&rng) >> rng_below(&rng, 64)};
            bool asked = rng_below(&rng, 3) == 0, took[2];
            uint64_t bytes = rng_u64(&rng) >> rng_below(&rng, 64);
            for (int i = 0; i < 2; i++) {
                set(&s[i], f, bytes);
                took[i] = asked && auto_rebalance(&s[i].chooser, &s[i].place, s[i].method.moves, &s[i].transit.plan) &&
                          transit_take(&s[i].transit, &s[i].transit.plan);
                if (!asked && s[i].place.slot_at[node] != PLACE_DEAD)
                    (void)transit_change(&s[i].transit, &s[i].method, &node, 1, NULL, 0);
                assert_true(look_transit_valid(&s[i].transit));
                for (int32_t k = 0; k < s[i].transit.lines.count; k++)
                    (void)transit_done(&s[i].transit, s[i].transit.lines.move[k].slot, s[i].transit.lines.move[k].to);
            }
            assert_true(!asked || took[0] == took[1]);
            assert_true(look_transit_digest(&s[0].transit) == look_transit_digest(&s[1].transit));
        }
        grid_close(&s[0]);
        grid_close(&s[1]);
    }
}

/* A slot went beside its line when little was sent. Now much is, and the line moves after all; then nothing pays any
 * more. */
static void test_auto_rebalance_moves_the_line_when_it_pays(void **state)
{
    (void)state;
    static struct grid_state s;
    struct weigh_figures f = QUIET;
    struct place_plan *plan = &s.transit.plan;
    open_state(&s, "4x4", "auto", 0);
    f.message_bytes = 1;
    f.horizon_ms = 1;
    set(&s, f, MIB);
    assert_int_equal(die(&s, NODE)->candidate[0].price.moves, 1);
    auto_forget(&s.chooser);
    assert_false(auto_rebalance(&s.chooser, &s.place, 0, plan));
    assert_string_equal(chosen(&s.chooser.decision[0]), "stay");
    f.message_bytes = 1000000;
    f.steps_per_ks = 10000;
    f.horizon_ms = 60000;
    set(&s, f, MIB);
    auto_forget(&s.chooser);
    assert_true(auto_rebalance(&s.chooser, &s.place, 0, plan));
    const struct auto_decision *d = &s.chooser.decision[0];
    assert_true(d->slot == -1 && d->chosen > 0);
    assert_true(d->candidate[d->chosen].price.cost_ns < named(d, "stay")->price.cost_ns);
    assert_true(transit_take(&s.transit, plan));
    assert_false(transit_take(&s.transit, plan)); /* on their way */
    assert_true(look_transit_valid(&s.transit) && s.transit.pending > 0);
    for (int32_t i = 0; i < s.transit.lines.count; i++)
        assert_int_equal(transit_done(&s.transit, s.transit.lines.move[i].slot, s.transit.lines.move[i].to),
                         TRANSIT_OK);
    assert_true(look_transit_valid(&s.transit));
    auto_forget(&s.chooser);
    assert_false(auto_rebalance(&s.chooser, &s.place, 0, plan));
    grid_close(&s);
}

static void test_auto_rebalance_brings_slots_home_when_a_node_is_back(void **state)
{
    (void)state;
    static struct grid_state s;
    struct weigh_figures f = QUIET;
    int32_t node = NODE;
    f.message_bytes = 1;
    open_state(&s, "4x4", "auto", 0);
    set(&s, f, MIB);
    (void)die(&s, NODE);
    (void)die(&s, 6);
    f.message_bytes = 1000000;
    f.steps_per_ks = 10000;
    f.horizon_ms = 60000;
    set(&s, f, MIB);
    (void)transit_change(&s.transit, &s.method, NULL, 0, &node, 1);
    node = 6;
    (void)transit_change(&s.transit, &s.method, NULL, 0, &node, 1);
    assert_true(auto_rebalance(&s.chooser, &s.place, 0, &s.transit.plan));
    assert_true(transit_take(&s.transit, &s.transit.plan));
    assert_memory_equal(s.place.node_of, s.place.home, (size_t)s.place.slots * sizeof *s.place.home);
    grid_close(&s);
}

/* The plane to the right of place 6 is of two slots, the one below it of six: four moves are enough for the first, and
 * a bound does not leave the search with the second. */
static void test_auto_rebalance_looks_for_slides_within_its_bound(void **state)
{
    (void)state;
    enum { PLACE = 6 };
    static struct grid_state s;
    struct weigh_figures f = QUIET;
    open_state(&s, "4x4", "auto", 4);
    f.message_bytes = 1;
    f.horizon_ms = 1;
    set(&s, f, MIB);
    assert_int_equal(die(&s, PLACE)->candidate[0].price.moves, 1);
    f.message_bytes = 1000000;
    f.steps_per_ks = 10000;
    f.horizon_ms = 60000;
    set(&s, f, MIB);
    auto_forget(&s.chooser);
    assert_true(auto_rebalance(&s.chooser, &s.place, s.method.moves, &s.transit.plan));
    const struct auto_decision *d = &s.chooser.decision[0];
    assert_string_equal(chosen(d), "2D");
    assert_int_equal(d->candidate[d->chosen].price.moves, 2);
    grid_close(&s);
}

static void test_auto_rebalance_has_a_bound(void **state)
{
    (void)state;
    static struct grid_state s;
    struct weigh_figures f = QUIET;
    open_state(&s, "4x4", "auto", 1);
    f.message_bytes = 1000000;
    f.steps_per_ks = 10000;
    f.horizon_ms = 60000;
    set(&s, f, MIB);
    (void)die(&s, NODE);
    auto_forget(&s.chooser);
    (void)auto_rebalance(&s.chooser, &s.place, s.method.moves, &s.transit.plan);
    const struct auto_decision *d = &s.chooser.decision[0];
    for (int i = 0; i < d->count; i++)
        assert_true(d->candidate[i].price.moves <= 1);
    grid_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weigh_prices_by_hand),
        cmocka_unit_test(test_weigh_much_is_sent_and_a_line_moves),
        cmocka_unit_test(test_weigh_little_is_sent_and_nobody_who_lives_moves),
        cmocka_unit_test(test_weigh_bytes_decide_where_the_copy_is_in_the_line),
        cmocka_unit_test(test_weigh_the_pattern_decides),
        cmocka_unit_test(test_weigh_crossings_are_the_collisions_of_the_load),
        cmocka_unit_test(test_weigh_all_counts_every_pair_and_beyond_many_slots_the_same_in_sum),
        cmocka_unit_test(test_weigh_numbers_stay_at_the_greatest),
        cmocka_unit_test(test_auto_knows_nothing_and_balance_chooses),
        cmocka_unit_test(test_auto_no_candidate_has_more_moves_than_may_be),
        cmocka_unit_test(test_auto_twins_choose_alike),
        cmocka_unit_test(test_auto_rebalance_moves_the_line_when_it_pays),
        cmocka_unit_test(test_auto_rebalance_brings_slots_home_when_a_node_is_back),
        cmocka_unit_test(test_auto_rebalance_looks_for_slides_within_its_bound),
        cmocka_unit_test(test_auto_rebalance_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
