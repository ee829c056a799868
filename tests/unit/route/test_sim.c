/* The network simulator: invariants at every event, determinism, the cross-checks of a network without failures, and
 * deadlock avoidance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim/route/batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/sanitized.h"
#include "tests/unit/route/cables.h"

static struct fabric make(const char *text)
{
    struct fabric f;
    const char *wrong = fabric_parse(&f, text);
    if (wrong)
        fail_msg("%s: %s", text, wrong);
    return f;
}

static struct sim_config short_run(const struct fabric *f, enum sim_method method, double load, uint64_t time_us)
{
    struct sim_config c = sim_config_default(f);
    sim_method_apply(&c, method);
    c.rate_gbps = load * fabric_bisection_bound(f);
    c.time_ns = time_us * 1000;
    c.warmup_ns = c.time_ns / 10;
    c.drain_ns = 20 * c.time_ns;
    return c;
}

static struct outages break_some(const struct fabric *f, const struct sim_config *c, int32_t count, bool permanent,
                                 uint64_t seed)
{
    struct outages o = {0};
    struct rng rng;
    rng_seed(&rng, seed);
    const struct outage_random r = {.count = count,
                                    .permanent = permanent,
                                    .time_ns = c->time_ns,
                                    .onset = 0.5,
                                    .lasting = 0.3,
                                    .keep_connected = true};
    assert_null(outages_random(&o, f, &r, &rng));
    return o;
}

static struct sim_result run(const struct sim_config *c)
{
    struct sim_result r;
    const char *wrong = sim_run(c, &r, NULL);
    if (wrong)
        fail_msg("%s", wrong);
    return r;
}

/* Every event of small runs: no packet lost or duplicated, no buffer over its size. Tiny buffers and a high load make
 * every rule of the routers act; the seed of a round is its number. */
static void test_sim_invariants_hold_at_every_event(void **state)
{
    (void)state;
    const char *const nets[] = {"5tx4t", "4x4", "3tx3tx3t", "tree:2,3", "7t", "2tx3t"};
    uint64_t exchanges = 0, bypasses = 0, escapes = 0;
    for (uint64_t round = 0; round < (SANITIZED ? 18 : 42); round++) {
        struct fabric f = make(nets[round % 6]);
        struct sim_config c = short_run(&f, (enum sim_method)(round % SIM_METHODS), round % 4 < 2 ? 1.5 : 0.5, 400);
        c.seed = round;
        c.check_every = 1;
        c.stall_ns = 3000;
        c.pattern = round % 3 ? SIM_UNIFORM : SIM_COMPLEMENT;
        c.buffer_bytes = (uint32_t)(2048 * 2 * (f.ports + 1) * (1 + (int)(round % 2)));
        c.store_forward = round % 7 == 3;
        struct outages o = break_some(&f, &c, f.ports > 2 ? (int32_t)(round % 4) : 1, round % 2, round);
        c.outages = &o;
        struct sim_result r = run(&c);
        assert_false(r.stuck);
        assert_int_equal(r.created, r.delivered + r.lost + r.undeliverable + r.unfinished);
        exchanges += r.exchanges;
        bypasses += r.bypasses;
        escapes += r.escapes;
        outages_fini(&o);
        fabric_fini(&f);
    }
    assert_true(exchanges > 10 && bypasses > 10 && escapes > 10);
}

static void test_sim_same_seed_gives_the_same_result(void **state)
{
    (void)state;
    struct fabric f = make("8tx8t");
    struct sim_config c = short_run(&f, SIM_FT_PLUS, 0.4, 2000);
    struct outages o = break_some(&f, &c, 12, false, 3);
    c.outages = &o;
    struct sim_result a = run(&c), b = run(&c);
    a.seconds = b.seconds = 0;
    assert_memory_equal(&a, &b, sizeof a);
    c.seed++;
    b = run(&c);
    assert_true(a.latency_ns != b.latency_ns);
    outages_fini(&o);
    fabric_fini(&f);
}

/* As many outages of one cable at a time as there is room for: they are one. */
static void test_sim_outages_of_one_cable_may_overlap_without_bound(void **state)
{
    (void)state;
    struct fabric f = make("4t");
    struct sim_config c = short_run(&f, SIM_FT_PLUS, 0.1, 100);
    struct sim_result r[2];
    for (int i = 0; i < 2; i++) {
        struct outages o = {0};
        for (int n = 0; n < (i ? 1 << 16 : 1); n++)
            assert_true(outages_add(&o, 0, 20000, 50000));
        c.outages = &o;
        r[i] = run(&c);
        outages_fini(&o);
    }
    assert_int_equal(r[1].delivered, r[1].created);
    assert_true(r[1].latency_ns == r[0].latency_ns && r[1].end_ns == r[0].end_ns);
    fabric_fini(&f);
}

/* A run that ends in the middle of packets: a link was busy for no longer than the run. */
static void test_sim_no_link_is_busy_for_longer_than_the_run(void **state)
{
    (void)state;
    struct fabric f = make("4t");
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct sim_config c = short_run(&f, SIM_FT_PLUS, 2, 20);
        c.seed = seed;
        c.drain_ns = 0;
        struct sim_result r = run(&c);
        assert_true(r.link_max > 0.5 && r.link_max <= 1);
    }
    fabric_fini(&f);
}

static void test_sim_result_is_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    struct fabric f = make("6tx6t");
    struct batch_cell cell[2] = {{.config = short_run(&f, SIM_FT, 0.3, 1000), .reference = -1}};
    cell[1] = cell[0];
    cell[1].reference = 0;
    cell[1].random = (struct outage_random){.count = 8, .onset = 0.1, .lasting = 1, .keep_connected = true};
    struct batch one = {.cell = cell, .ncells = 2, .reps = 6, .threads = 1, .seed = 4}, five = one;
    five.threads = 5;
    assert_null(batch_run(&one));
    assert_null(batch_run(&five));
    for (int i = 0; i < 12; i++) {
        assert_true(one.done[i] && five.done[i]);
        one.result[i].seconds = five.result[i].seconds = 0;
        assert_memory_equal(&one.result[i], &five.result[i], sizeof one.result[i]);
    }
    batch_fini(&one);
    batch_fini(&five);
    fabric_fini(&f);
}

static void test_sim_mean_distance_on_a_32x32_torus_is_16_hops(void **state)
{
    (void)state;
    struct fabric f = make("32tx32t");
    const enum sim_pattern patterns[] = {SIM_UNIFORM, SIM_TRANSPOSE, SIM_COMPLEMENT};
    for (int i = 0; i < 3; i++) {
        struct sim_config c = short_run(&f, SIM_FT, 0.05, 10000);
        c.pattern = patterns[i];
        struct sim_result r = run(&c);
        /* Uniform traffic never goes to its own sender and transpose has no traffic on the diagonal. */
        double expected = i == 0 ? 16.0 * 1024 / 1023 : i == 1 ? 16.0 * 32 / 31 : 16.0;
        assert_true(fabs(r.hops - expected) < 0.15);
        assert_int_equal(r.delivered, r.created);
    }
    fabric_fini(&f);
}

/* Without waiting a head takes hop_ns per link: one into the network, the hops, one out. */
/* What more comes in than goes out at a router is for its endpoint: a tenth of what the others send, and its share of
 * the rest; all others send as much as they get, but for that. */
static void test_sim_hotspot_gets_a_tenth_of_the_messages(void **state)
{
    (void)state;
    struct fabric f = make("8tx8t");
    struct sim_config c = short_run(&f, SIM_FT, 0.1, 50000);
    c.pattern = SIM_HOTSPOT;
    c.ack_bytes = 0;
    c.warmup_ns = 0;
    float *busy = calloc((size_t)fabric_links(&f), sizeof *busy);
    struct sim_result r;
    assert_non_null(busy);
    assert_null(sim_run(&c, &r, busy));
    double rate = r.offered_gbps / c.link_gbps * (double)c.time_ns / (double)r.end_ns;
    int hot = 0;
    for (int32_t at = 0; at < f.routers; at++) {
        double more = 0;
        for (int p = 0; p < f.ports; p++)
            more += (double)busy[f.reverse[at * f.ports + p]] - (double)busy[at * f.ports + p];
        double expected = more > rate ? 0.1 * 63 + 0.9 - 1 : 0.9 * 62 / 63 + 1.0 / 63 - 1;
        hot += more > rate;
        if (fabs(more / rate - expected) > 0.3)
            fail_msg("router %d gets %g of what it sends more, not %g", (int)at, more / rate, expected);
    }
    assert_int_equal(hot, 1);
    free(busy);
    fabric_fini(&f);
}

static void test_sim_latency_at_low_load_is_linear_in_hops(void **state)
{
    (void)state;
    struct fabric f = make("16tx16t");
    struct sim_config c = short_run(&f, SIM_FT, 0.0005, 60000);
    c.ack_bytes = 0;
    struct sim_result r = run(&c);
    int seen = 0;
    for (int h = 1; h < SIM_HOPS_MAX; h++) {
        if (r.n_by_hops[h] < 20)
            continue;
        double mean = r.lat_by_hops[h] / (double)r.n_by_hops[h];
        assert_true(mean >= (h + 2) * 220.0 && mean < (h + 2) * 220.0 + 60);
        seen++;
    }
    assert_true(seen >= 10);
    fabric_fini(&f);
}

static void test_sim_saturation_stays_below_the_bisection_bound(void **state)
{
    (void)state;
    struct fabric f = make("16tx16t");
    struct sim_config c = short_run(&f, SIM_FT, 2.0, 4000);
    c.drain_ns = 0;
    struct sim_result r = run(&c);
    double bound = fabric_bisection_bound(&f);
    assert_true(r.accepted_gbps < bound);
    assert_true(r.accepted_gbps > 0.5 * bound);
    fabric_fini(&f);
}

/* Rings of full buffers: without the avoidance queue they lock up, and the analysis of who waits for whom finds it. */
static struct sim_result overload(const struct fabric *f, bool avoidance, uint64_t seed)
{
    struct sim_config c = short_run(f, SIM_FT, 1.2, 6000);
    c.avoidance = avoidance;
    c.seed = seed;
    c.stall_ns = 20000;
    c.buffer_bytes = 2 * 2048 * 2 * 5;
    c.drain_ns = 400000000;
    struct outages o = break_some(f, &c, 12, true, seed);
    c.outages = &o;
    struct sim_result r = run(&c);
    outages_fini(&o);
    return r;
}

static void test_sim_deadlocks_without_avoidance_and_not_with_it(void **state)
{
    (void)state;
    struct fabric f = make("8tx8t");
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct sim_result r = overload(&f, false, seed);
        assert_true(r.deadlock_ns > 0);
        assert_true(r.unfinished > 0);
        r = overload(&f, true, seed);

        assert_true(r.deadlock_ns == 0 && !r.stuck);
        assert_int_equal(r.delivered, r.created);
        assert_true(r.exchanges > 0);
    }
    fabric_fini(&f);
}

/* Overload of tiny buffers while links break and come back: everything is delivered in the end. */
static void test_sim_overload_with_links_changing_never_stands_still(void **state)
{
    (void)state;
    const char *const nets[] = {"8tx8t", "6tx6t", "5x5", "4tx4tx4t", "tree:3,3", "10t", "4tx8t"};
    for (uint64_t seed = 0; seed < 28; seed++) {
        struct fabric f = make(nets[seed % 7]);
        struct sim_config c = short_run(&f, seed % 3 ? SIM_FT : SIM_FT_PLUS, 0.9 + 0.2 * (double)(seed % 5), 1500);
        c.seed = seed;
        c.stall_ns = 1000 + seed % 5 * 7000;
        c.buffer_bytes = (uint32_t)(2 * 2048 * (1 + (int)(seed % 3)) * (f.ports + 1));
        c.drain_ns = 1000000000;
        c.check_every = 997;
        struct outages o = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        const struct outage_random random = {.count = f.ports == 2 ? 1 : fabric_cables(&f) / 15,
                                             .permanent = seed % 2,
                                             .time_ns = c.time_ns,
                                             .onset = 0.9,
                                             .lasting = 0.5,
                                             .keep_connected = true};
        assert_null(outages_random(&o, &f, &random, &rng));
        c.outages = &o;
        struct sim_result r = run(&c);
        if (r.stuck || r.delivered + r.undeliverable != r.created)
            fail_msg("seed %d: stuck %d, %d of %d delivered", (int)seed, r.stuck, (int)r.delivered, (int)r.created);
        outages_fini(&o);
        fabric_fini(&f);
    }
}

/* Many short outages under a high load: what a message has met works again long before it arrives. The network is in
 * one piece at every instant, so everything must arrive. */
static void test_sim_connected_network_never_drops_a_message(void **state)
{
    (void)state;
    const char *const nets[] = {"8tx8t", "6x6", "tree:3,3"};
    uint64_t starts = 0;
    for (uint64_t round = 0; round < 12; round++) {
        struct fabric f = make(nets[round % 3]);
        struct sim_config c = short_run(&f, round % 2 ? SIM_FT : SIM_FT_PLUS, 0.8, 2000);
        uint64_t length = round % 4 < 2 ? 20000 : 50000;
        struct outages o = {0};
        struct rng rng;
        rng_seed(&rng, round);
        const struct outage_random r = {.count = (int32_t)((uint64_t)fabric_cables(&f) * c.time_ns / length / 8),
                                        .time_ns = c.time_ns,
                                        .onset = 1,
                                        .length_ns = length,
                                        .keep_connected = true};
        assert_null(outages_random(&o, &f, &r, &rng));
        c.outages = &o;
        c.seed = round;
        c.check_every = 1009;
        struct sim_result result = run(&c);
        if (result.delivered != result.created)
            fail_msg("round %d: %d of %d delivered", (int)round, (int)result.delivered, (int)result.created);
        starts += result.fresh_starts;
        outages_fini(&o);
        fabric_fini(&f);
    }
    assert_true(starts > 100); /* these are the messages that would have been dropped */
}

/* Of the two cables of an endpoint on a ring one is out at a time, now this one, now that one, each for as long as a
 * message takes to come around to it: whoever begins again at once, the other way, is always too late. */
static void test_sim_message_does_not_keep_step_with_what_flaps(void **state)
{
    (void)state;
    const struct {
        const char *net;
        uint64_t period_ns;
    } rings[] = {{"8t", 1330}, {"16t", 3084}, {"32t", 6600}};
    uint64_t starts = 0;
    for (int i = 0; i < 6; i++) {
        struct fabric f = make(rings[i / 2].net);
        struct sim_config c = short_run(&f, i % 2 ? SIM_FT_PLUS : SIM_FT, 0.01, 6000);
        c.size[0] = 64;
        c.nsizes = 1;
        c.ack_bytes = 0;
        c.check_every = 1009;
        struct outages o = {0};
        int32_t beside[] = {fabric_cable(&f, 0), fabric_cable(&f, (f.routers - 1) * f.ports)};
        for (uint64_t n = 0; n * rings[i / 2].period_ns < c.time_ns + c.drain_ns; n++)
            assert_true(
                outages_add(&o, beside[n % 2], n * rings[i / 2].period_ns, (n + 1) * rings[i / 2].period_ns - 1));
        c.outages = &o;
        struct sim_result result = run(&c);
        if (result.delivered != result.created)
            fail_msg("%s: %d of %d delivered", rings[i / 2].net, (int)result.delivered, (int)result.created);
        assert_int_equal(result.dropped_connected, 0);
        if (result.max_ns > 1e6)
            fail_msg("%s: a message takes %.0f us", rings[i / 2].net, result.max_ns / 1e3);
        starts += result.fresh_starts;
        outages_fini(&o);
        fabric_fini(&f);
    }
    assert_true(starts > 100);
}

/* Where two cables in five are gone for good, a message may meet more than a hundred of them. One that has forgotten
 * the first ones wanders until it has made all the hops it may. */
static void test_sim_message_remembers_each_cable_it_met(void **state)
{
    (void)state;
    struct fabric f = make("16tx16t");
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct sim_config c = short_run(&f, SIM_FT, 0.05, 3000);
        struct outages o = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        const struct outage_random r = {
            .count = 215, .permanent = true, .time_ns = c.time_ns, .lasting = 1, .keep_connected = true};
        assert_null(outages_random(&o, &f, &r, &rng));
        c.outages = &o;
        c.seed = seed;
        struct sim_result result = run(&c);
        if (result.delivered != result.created)
            fail_msg("seed %d: %d of %d delivered", (int)seed, (int)result.delivered, (int)result.created);
        outages_fini(&o);
    }
    fabric_fini(&f);
}

/* Nothing but one way is left between any two routers, and it turns more often than a path has room for: a row after
 * the other, there and back (form 0), or a random tree. */
static struct outages leave_a_tree(const struct fabric *f, int form)
{
    struct outages o = {0};
    struct rng rng;
    rng_seed(&rng, (uint64_t)form);
    const struct outage_random r = {
        .count = fabric_cables(f) - f->routers + 1, .permanent = true, .time_ns = 1, .keep_connected = true};
    if (form > 0) {
        assert_null(outages_random(&o, f, &r, &rng));
        return o;
    }
    int width = f->grid.size[0];
    for (int32_t at = 0; at + width < f->routers; at++) {
        bool open = at % width == (at / width % 2 ? 0 : width - 1);
        int32_t up = fabric_cable(f, at * f->ports + 2 + GRID_UP);
        assert_true(open || outages_add(&o, up, 0, OUTAGE_FOREVER));
    }
    assert_int_equal((int32_t)o.n, r.count);
    return o;
}

/* A path names six intermediates. What needs more goes on as the router says that meets the next cable. */
static void test_sim_way_of_more_turns_than_a_path_names_is_found(void **state)
{
    (void)state;
    static const enum sim_method method[] = {SIM_FT, SIM_FT_PLUS, SIM_FT_PLAN};
    struct fabric f = make("12x12");
    for (int form = 0; form < 6; form++) {
        struct sim_config c = short_run(&f, method[form % 3], 0.001, 40000);
        struct outages o = leave_a_tree(&f, form);
        c.outages = &o;
        c.check_every = 997;
        struct sim_result r = run(&c);
        if (r.delivered != r.created || r.escapes < r.created)
            fail_msg("form %d: %d of %d delivered, %d escapes", form, (int)r.delivered, (int)r.created, (int)r.escapes);
        outages_fini(&o);
    }
    fabric_fini(&f);
}

/* ft-plus must not avoid for long what works again soon, nor speak of it: short outages under any load cost it no more
 * than ft. */
static void test_sim_short_outages_cost_ft_plus_no_more_than_ft(void **state)
{
    (void)state;
    struct fabric f = make("12tx12t");
    const double loads[] = {0.3, 0.7};
    for (int i = 0; i < 2; i++) {
        double latency[2] = {0};
        for (uint64_t seed = 1; seed <= 3; seed++)
            for (int plus = 0; plus < 2; plus++) {
                struct sim_config c = short_run(&f, plus ? SIM_FT_PLUS : SIM_FT, loads[i], 5000);
                struct outages o = {0};
                struct rng rng;
                rng_seed(&rng, seed);
                const struct outage_random r = {
                    .count = 600, .time_ns = c.time_ns, .onset = 1, .length_ns = 50000, .keep_connected = true};
                assert_null(outages_random(&o, &f, &r, &rng));
                c.outages = &o;
                c.seed = seed;
                latency[plus] += run(&c).latency_ns;
                outages_fini(&o);
            }
        if (latency[1] > 1.02 * latency[0])
            fail_msg("load %g: ft %g us, ft-plus %g us", loads[i], latency[0] / 3000, latency[1] / 3000);
    }
    fabric_fini(&f);
}

/* A few lasting faults under a high load, once they are known: what ft-plus says of them must not cost more than its
 * ways gain. */
static void test_sim_lasting_faults_under_load_cost_ft_plus_no_more_than_ft(void **state)
{
    (void)state;
    struct fabric f = make("12tx12t");
    double latency[2] = {0};
    for (uint64_t seed = 1; seed <= 2; seed++)
        for (int plus = 0; plus < 2; plus++) {
            struct sim_config c = short_run(&f, plus ? SIM_FT_PLUS : SIM_FT, 0.42, 24000);
            struct outages o = {0};
            struct rng rng;
            rng_seed(&rng, seed);
            const struct outage_random r = {
                .count = 3, .permanent = true, .time_ns = c.time_ns, .keep_connected = true};
            assert_null(outages_random(&o, &f, &r, &rng));
            c.outages = &o;
            c.seed = seed;
            c.warmup_ns = c.time_ns / 2;
            latency[plus] += run(&c).latency_ns;
            outages_fini(&o);
        }
    if (latency[1] > latency[0])
        fail_msg("ft %g us, ft-plus %g us", latency[0] / 2000, latency[1] / 2000);
    fabric_fini(&f);
}

/* Latency once the sources have learned, summed over sets of lasting faults. */
static double learned_latency(const struct fabric *f, enum sim_method method, enum sim_pattern pattern)
{
    double sum = 0;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct sim_config c = short_run(f, method, 0.1, 180000);
        struct outages o = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        const struct outage_random r = {.count = 12, .permanent = true, .time_ns = c.time_ns, .keep_connected = true};
        assert_null(outages_random(&o, f, &r, &rng));
        c.outages = &o;
        c.pattern = pattern;
        c.seed = seed;
        c.warmup_ns = 140000000;
        c.drain_ns = c.time_ns;
        struct sim_result result = run(&c);
        assert_true(result.delivered == result.created);
        assert_true(method == SIM_FT_PLAN ? result.rumours > 0 : result.rumours == 0);
        sum += result.latency_ns;
        outages_fini(&o);
    }
    return sum;
}

/* The faults and the pattern are learned from acknowledgements and rumours, whatever the pattern; then the ways by the
 * traffic expected are faster than the paper's. */
static void test_sim_ft_plan_learns_faults_and_pattern(void **state)
{
    (void)state;
    static const enum sim_pattern pattern[] = {SIM_UNIFORM, SIM_COMPLEMENT, SIM_TRANSPOSE};
    static const double share[] = {0.99, 0.98, 0.9}; /* of the latency of ft */
    struct fabric f = make("8tx8t");
    for (int i = 0; i < (SANITIZED ? 1 : 3); i++) {
        double ft = learned_latency(&f, SIM_FT, pattern[i]), plan = learned_latency(&f, SIM_FT_PLAN, pattern[i]);
        if (plan > share[i] * ft)
            fail_msg("%s: ft %g us, ft-plan %g us", sim_pattern_name(pattern[i]), ft / 2000, plan / 2000);
    }
    fabric_fini(&f);
}

/* Cables broken at a time, from the list: where outages have one length, the network is in one piece at every start. */
static void test_outages_of_one_length_keep_the_network_connected_at_every_instant(void **state)
{
    (void)state;
    struct fabric f = make("6tx6t");
    struct outages o = {0};
    struct rng rng;
    rng_seed(&rng, 8);
    const struct outage_random r = {
        .count = 3000, .time_ns = 10000000, .onset = 1, .length_ns = 50000, .keep_connected = true};
    assert_null(outages_random(&o, &f, &r, &rng));
    assert_int_equal(o.n, 3000);
    size_t most = 0;
    for (size_t i = 0; i < o.n; i++) {
        struct outages at = {0};
        assert_true(o.list[i].end_ns - o.list[i].start_ns == 50000);
        for (size_t j = i > 200 ? i - 200 : 0; j <= i; j++)
            if (o.list[j].end_ns >= o.list[i].start_ns) {
                for (size_t k = 0; k < at.n; k++)
                    assert_int_not_equal(at.list[k].cable, o.list[j].cable);
                assert_true(outages_add(&at, o.list[j].cable, 0, OUTAGE_FOREVER));
            }
        struct outage_connectivity c;
        if (i % 7 == 0) {
            assert_true(outages_connectivity(&at, &f, &c));
            assert_true(c.pairs_connected == 1.0);
        }
        most = at.n > most ? at.n : most;
        outages_fini(&at);
    }
    assert_true(most > 10);
    outages_fini(&o);
    const struct outage_random dense = {
        .count = 3000, .time_ns = 100000, .onset = 1, .length_ns = 50000, .keep_connected = true};
    assert_non_null(outages_random(&o, &f, &dense, &rng)); /* there are not so many cables */
    outages_fini(&o);
    fabric_fini(&f);
}

static void test_sim_failed_links_lose_messages_only_without_fault_tolerance(void **state)
{
    (void)state;
    struct fabric f = make("16tx16t");
    for (int m = 0; m < SIM_METHODS; m++) {
        struct sim_config c = short_run(&f, (enum sim_method)m, 0.1, 5000);
        struct outages o = break_some(&f, &c, 50, true, 9);
        c.outages = &o;
        struct sim_result r = run(&c);
        assert_true(r.hit > 0);
        if (m == SIM_DOR || m == SIM_SINGLE)
            assert_true(r.lost > r.created / 50);
        else
            assert_int_equal(r.delivered, r.created);
        outages_fini(&o);
    }
    fabric_fini(&f);
}

/* A message's escapes are its own, with or without acknowledgements; theirs are counted apart. No source learns here,
 * and all cables are out from the begin, so that every message meets what it meets. */
static void test_sim_escapes_of_acknowledgements_are_not_those_of_messages(void **state)
{
    (void)state;
    struct fabric f = make("8tx8t");
    uint64_t escapes[2];
    for (int acks = 0; acks < 2; acks++) {
        struct sim_config c = short_run(&f, SIM_FT, 0.1, 2000);
        struct outages o = {0};
        struct rng rng;
        rng_seed(&rng, 3);
        const struct outage_random r = {.count = 12, .permanent = true, .time_ns = c.time_ns, .keep_connected = true};
        assert_null(outages_random(&o, &f, &r, &rng));
        c.outages = &o;
        c.notify = false;
        c.ack_bytes = acks ? 32 : 0;
        struct sim_result result = run(&c);
        assert_true(acks ? result.ack_escapes > 0 : result.ack_escapes == 0);
        escapes[acks] = result.escapes;
        outages_fini(&o);
    }
    assert_true(escapes[0] > 0 && escapes[0] == escapes[1]);
    fabric_fini(&f);
}

static void test_sim_cut_off_endpoint_is_undeliverable_and_the_run_ends(void **state)
{
    (void)state;
    struct fabric f = make("6tx6t");
    const enum sim_method methods[] = {SIM_FT, SIM_FT_PLUS};
    for (int m = 0; m < 2; m++) {
        struct sim_config c = short_run(&f, methods[m], 0.2, 4000);
        struct outages o = {0};
        for (int port = 0; port < 4; port++)
            assert_true(outages_add(&o, fabric_cable(&f, 14 * 4 + port), 0, OUTAGE_FOREVER));
        c.outages = &o;
        c.check_every = 101;
        struct sim_result r = run(&c);
        assert_true(r.undeliverable > 0);
        assert_int_equal(r.delivered + r.undeliverable, r.created);
        assert_false(r.stuck);
        assert_true(r.end_ns < c.time_ns + c.drain_ns);
        outages_fini(&o);
    }
    fabric_fini(&f);
}

/* Below the threshold a fault does not last longer than the link is broken; ft-plus forgets any fault. */
static void test_sim_repaired_links_are_used_again(void **state)
{
    (void)state;
    struct fabric f = make("8tx8t");
    struct outages o = {0};
    for (int32_t r = 0; r < 64; r += 9) /* broken at the begin, which is not measured */
        assert_true(outages_add(&o, fabric_cable(&f, r * 4), 0, 1000000));
    for (int i = 0; i < 2; i++) {
        struct sim_config c = short_run(&f, i ? SIM_FT_PLUS : SIM_FT, 0.2, 80000);
        c.detour.threshold = 1000;
        c.outages = &o;
        c.warmup_ns = 60000000;
        struct sim_result broken = run(&c);
        c.outages = NULL;
        struct sim_result whole = run(&c);
        assert_true(broken.hit > 0);
        assert_true(fabs(broken.hops - whole.hops) < 0.01 * whole.hops);
    }
    outages_fini(&o);
    fabric_fini(&f);
}

static void test_sim_impossible_configurations_are_refused(void **state)
{
    (void)state;
    struct fabric f = make("8tx8t"), odd = make("4tx8t");
    struct sim_config good = short_run(&f, SIM_FT, 0.1, 1000), c = good;
    assert_null(sim_config_wrong(&c));
    c.rate_gbps = -1;
    assert_non_null(sim_config_wrong(&c));
    c = good, c.rate_gbps = NAN;
    assert_non_null(sim_config_wrong(&c));
    c = good, c.buffer_bytes = 100;
    assert_non_null(sim_config_wrong(&c));
    c = good, c.size[0] = 70000;
    assert_non_null(sim_config_wrong(&c));
    c = good, c.warmup_ns = c.time_ns;
    assert_non_null(sim_config_wrong(&c));
    c = good, c.fabric = &odd, c.pattern = SIM_TRANSPOSE;
    assert_non_null(sim_config_wrong(&c));
    fabric_fini(&f);
    fabric_fini(&odd);
}

/* 200 of 2,048 cables cut: nearly every pair keeps a path, and about a quarter keeps its static route. */
static void test_outages_200_cut_cables_keep_paths_but_not_static_routes(void **state)
{
    (void)state;
    struct fabric f = make("32tx32t");
    struct rng rng;
    rng_seed(&rng, 2);
    struct outages o = {0};
    const struct outage_random r = {.count = 200, .permanent = true, .time_ns = 1, .keep_connected = true};
    assert_null(outages_random(&o, &f, &r, &rng));
    struct outage_connectivity c;
    assert_true(outages_connectivity(&o, &f, &c));
    assert_true(c.pairs_connected == 1.0);
    assert_true(c.mean_hops > 16.05 && c.mean_hops < 16.5);
    assert_true(c.pairs_static > 0.2 && c.pairs_static < 0.35);
    outages_fini(&o);
    fabric_fini(&f);
}

static void test_outages_file_errors_name_the_line(void **state)
{
    (void)state;
    struct fabric f = make("4tx4t");
    const char *const bad[] = {"start\n1,2,3\n", "h\n5,4,0,0\n",   "h\n-1,4,0,0\n",   "h\n1,2,99,0\n",
                               "h\n1,2,0,7\n",   "h\n1,x,0,0\n",   "h\n1,1e30,0,0\n", "h\n1,2,0.5,0\n",
                               "h\nnan,2,0,0\n", "h\n0x1,2,0,0\n", "h\n1,0X2,0,0\n",  "h\n1,2,0,0,\n",
                               "h\n1,2,0 0,0\n", "h\n1, ,0\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct outages o = {0};
        char what[160] = "";
        FILE *in = fmemopen((void *)bad[i], strlen(bad[i]), "r");
        assert_false(outages_read(&o, &f, in, "f", what));
        assert_non_null(strstr(what, "f:2: "));
        fclose(in);
        outages_fini(&o);
    }
    struct outages o = {0};
    char what[160] = "", long_comment[600], *end = long_comment + sizeof long_comment;
    memset(long_comment, '#', sizeof long_comment);
    memcpy(end - 9, "\n1,,0,0\n", 9); /* a number follows a comment longer than any line */
    FILE *in = fmemopen(long_comment, sizeof long_comment - 1, "r");
    assert_true(outages_read(&o, &f, in, "f", what));
    assert_int_equal(o.n, 1);
    fclose(in);
    outages_fini(&o);
    static const char *const first[] = {"nan,inf,5,0\n", "1,,0,0\0junk\n"};
    static const size_t size[] = {12, 12};
    for (int i = 0; i < 2; i++) {
        in = fmemopen((void *)first[i], size[i], "r");
        assert_false(outages_read(&o, &f, in, "f", what));
        assert_non_null(strstr(what, "f:1: "));
        fclose(in);
        outages_fini(&o);
    }
    char good[] = "start_us,end_us,router,port\n# a comment\n20,,3,1\n10,30.5,0,0 # another\n\n \t40 , \t, 3\t,1 \r\n";
    in = fmemopen(good, strlen(good), "r");
    assert_true(outages_read(&o, &f, in, "f", what));
    assert_int_equal(o.n, 3);
    assert_true(o.list[0].start_ns == 10000 && o.list[0].end_ns == 30500);
    assert_true(o.list[2].start_ns == 40000 && o.list[2].end_ns == OUTAGE_FOREVER);
    assert_true(o.list[1].end_ns == OUTAGE_FOREVER);
    fclose(in);
    outages_fini(&o);
    fabric_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sim_invariants_hold_at_every_event),
        cmocka_unit_test(test_sim_same_seed_gives_the_same_result),
        cmocka_unit_test(test_sim_outages_of_one_cable_may_overlap_without_bound),
        cmocka_unit_test(test_sim_no_link_is_busy_for_longer_than_the_run),
        cmocka_unit_test(test_sim_result_is_the_same_for_any_number_of_threads),
        cmocka_unit_test(test_sim_mean_distance_on_a_32x32_torus_is_16_hops),
        cmocka_unit_test(test_sim_hotspot_gets_a_tenth_of_the_messages),
        cmocka_unit_test(test_sim_latency_at_low_load_is_linear_in_hops),
        cmocka_unit_test(test_sim_saturation_stays_below_the_bisection_bound),
        cmocka_unit_test(test_sim_deadlocks_without_avoidance_and_not_with_it),
        cmocka_unit_test(test_sim_overload_with_links_changing_never_stands_still),
        cmocka_unit_test(test_sim_connected_network_never_drops_a_message),
        cmocka_unit_test(test_sim_message_does_not_keep_step_with_what_flaps),
        cmocka_unit_test(test_sim_message_remembers_each_cable_it_met),
        cmocka_unit_test(test_sim_way_of_more_turns_than_a_path_names_is_found),
        cmocka_unit_test(test_sim_short_outages_cost_ft_plus_no_more_than_ft),
        cmocka_unit_test(test_sim_lasting_faults_under_load_cost_ft_plus_no_more_than_ft),
        cmocka_unit_test(test_sim_ft_plan_learns_faults_and_pattern),
        cmocka_unit_test(test_outages_of_one_length_keep_the_network_connected_at_every_instant),
        cmocka_unit_test(test_sim_failed_links_lose_messages_only_without_fault_tolerance),
        cmocka_unit_test(test_sim_escapes_of_acknowledgements_are_not_those_of_messages),
        cmocka_unit_test(test_sim_cut_off_endpoint_is_undeliverable_and_the_run_ends),
        cmocka_unit_test(test_sim_repaired_links_are_used_again),
        cmocka_unit_test(test_sim_impossible_configurations_are_refused),
        cmocka_unit_test(test_outages_200_cut_cables_keep_paths_but_not_static_routes),
        cmocka_unit_test(test_outages_file_errors_name_the_line),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
